"""Answers on their way: what is asked of the engine, the answer being written, the measured baseline."""
