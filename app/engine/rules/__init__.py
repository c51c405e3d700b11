"""Verification rules: which drafted tokens pass, and what is emitted after them. Each has one file,
and one line in `registry.py`.

A rule carries all that is particular to it: its verdict (`judge`), the test that it states of a recorded
token, with its formula for the Inspector (`test_of`), the check of a record (`recheck`), what it needs and
keeps, and its words. `base.py` is the interface, `checks.py` what rules share that check a record, and
`formula.py` how the numbers of a sum are written.

`p` is always the target's distribution, `q` the one that the drafted token was drawn from; a token proposed
without drawing is one-hot (q = 1 at that token).
"""
