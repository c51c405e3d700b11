"""The results of an experiment: folded, compared, exported.

An interval treats prompts and repeats as random samples (`summary.py`: two-way random effects). `verdict.py`
makes the sentence for window, command line and reports.
"""
