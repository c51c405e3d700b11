"""Running an experiment through pauses and crashes, and what is kept of each run."""
