"""Servers under load: n requests at once, for n of 1, 2, 4, 8, …

`LoadRunner` sends them in bursts and waits for the last; servers take turns, level by level. `LoadReport`
folds the bursts into rows: tokens/s of all requests together and of one of them, acceptance, first token, the
gain over the baseline at the same load, and where that gain crosses 1. `export.py` writes it for people and
tables.
"""
