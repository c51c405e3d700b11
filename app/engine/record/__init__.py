"""The record of an answer, and everything computed from it.

A trace is a header, an append-only list of rounds, and totals (`trace.py`). A trace that was read keeps its
alternatives as JSON: 16 MB per 10,000 tokens instead of 38. Statistics, including llama.cpp's own lines, are
folds over rounds (`stats.py`, `alternative_stats.py`). So is the state of a draft length rule
(`app/engine/lengths/base.py`). `recheck.py` recomputes every verdict from the recorded draws and
probabilities; `consistency.py` compares everything that a trace says twice. `draftscope replay --verify` runs
both.
"""
