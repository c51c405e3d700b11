"""What is recorded of an answer, and what can be computed again from it."""
