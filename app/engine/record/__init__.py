"""The record of an answer, and everything computed from it.

A trace is a header, an append-only list of rounds and totals (`trace.py`). A trace that was read keeps its
alternatives as the JSON that they were: 16 MB per 10,000 tokens instead of 38. Statistics are
folds over rounds (`stats.py`, `alternative_stats.py`), llama.cpp's own lines included; so is what a draft
length rule went by (`length_fold.py`). `recheck.py` recomputes every verdict from the recorded draws and
probabilities; `consistency.py` compares everything that a trace says twice. Both are `draftscope replay
--verify`.
"""
