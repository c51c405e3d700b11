"""Running an experiment through pauses and crashes, and what is kept of each run.

A journal's first line contains the experiment and what it is made with (`journal.py`). A run of a different
file, llama.cpp or processor does not belong to it, and resuming is refused; runs that failed are tried
again; a lock beside it keeps other writers out. Lanes take turns in seeded Williams squares, so that no
lane gains by when it runs. `disturbance.py` says where other programs took the cores or the baseline drifted.
"""
