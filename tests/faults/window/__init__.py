"""Campaigns on whole windows: each is the real one, in a process of its own (`driver.py`), told what to do
and looked at from outside (`driven.py`, `look.py`).

`models.py` gives it damaged models; `two.py` opens two on one home folder; `logout.py` ends it by the signals
of a logout; `clocks.py` lets its clock jump (`clock.c`).
"""
