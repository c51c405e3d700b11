"""The rounds of an answer on one axis."""
