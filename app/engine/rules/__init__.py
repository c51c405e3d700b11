"""Verification rules: which drafted tokens pass, and what is emitted after them. Each has a file and a line
in `registry.py`.

A rule contains its verdict (`judge`), its test of a recorded token with the Inspector's formula (`test_of`),
and its check of a record (`recheck`). It also states its requirements, guarantees and texts. `base.py` is the
interface, `checks.py` has common checks of records, and `formula.py` writes the numbers of a sum.

`p` is always the target's distribution, `q` the one that the drafted token was drawn from. A token proposed
without drawing is one-hot (q = 1 at that token).
"""
