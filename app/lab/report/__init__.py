"""The results of an experiment: folded, compared, exported.

An interval takes prompts and repeats as drawn at random (`summary.py`: two-way random effects). `verdict.py`
makes the sentence that window, command line and reports share.
"""
