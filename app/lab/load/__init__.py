"""Servers under load: n requests at once (1, 2, 4, 8, …), or n a second at random times.

`levels.py` defines the possible loads. `LoadRunner` sends all prompts, n at once; when one ends, the next is
sent. Servers take turns, level by level. Only the time in which a server is busy with n requests counts. At a
rate, requests do not wait for each other (a Poisson process), and the whole time counts. `BurstReport` folds
the bursts into rows: tokens/s in total and per request, acceptance, first token, and the gain at the same
load. It also finds where that gain crosses 1. `load_curves` plots them. `export.py` writes sentences, tables
and pages.
"""
