"""The column of the transcript: items of blocks, laid out once they come into view, and painted."""
