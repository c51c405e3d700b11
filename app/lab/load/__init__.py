"""Servers under load: n requests at once, for n of 1, 2, 4, 8, …; or this many a second, at random times.

`levels.py` says what may be asked for. `LoadRunner` sends all prompts, n at once, and the next as one ends;
servers take turns, level by level. Only the time in which a server is busy with n requests counts. At a rate
requests do not wait for each other (a Poisson process), and the whole time counts.
`BurstReport` folds the bursts into rows: tokens/s of all requests together and of one of them, acceptance,
first token, the gain over the baseline at the same load, and where that gain crosses 1; `load_curves` are
these as plots. `export.py` says it in sentences, and writes it for people and tables.
"""
