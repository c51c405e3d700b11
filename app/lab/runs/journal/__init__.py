"""What is kept of a long run: its journal, the record and the trace of each run."""
