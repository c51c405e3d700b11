"""Draft lengths: how many tokens a round drafts. One file a rule, one line in `registry.py`."""
