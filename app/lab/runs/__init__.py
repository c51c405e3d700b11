"""Running an experiment, through pauses and crashes, and the record of each run.

A journal's first line contains the experiment and its files, llama.cpp and processor (`journal.py`). If one
of these changed, resuming is refused. Failed runs are tried again; a lock file keeps other writers out. Lanes
take turns in seeded Williams squares, so no lane gains by when it runs. `disturbance.py` reports when other
programs took the cores or the baseline drifted.
"""
