"""Successive halving (Jamieson and Talwalkar 2016): every candidate briefly, then the better half longer."""

from __future__ import annotations

import math
from collections.abc import Mapping

FINALISTS = 3
"""The candidates of the last rung: the last choice needs the most certainty, and a runner-up to name."""
_FINAL_SHARE = 2.0  # the last rung's time, relative to every other rung's


def kept_of(candidates: int, scored: int) -> int:
    """How many survive a rung of `candidates`, of which `scored` could be measured; 1 survives the last."""
    return 1 if candidates <= FINALISTS else max(FINALISTS, math.ceil(scored / 2))


def rungs_left(candidates: int) -> int:
    """The number of rungs left, this one included."""
    count = 1
    while candidates > FINALISTS:
        candidates = kept_of(candidates, candidates)
        count += 1
    return count


def time_share(rungs: int, left: float) -> float:
    """Seconds for the next of `rungs` rungs, of `left` seconds: an equal part for each, more for the last."""
    before_last = rungs - 1
    return left / (before_last + _FINAL_SHARE) if before_last else left


def survivors(scores: Mapping[str, float], keep: int) -> tuple[str, ...]:
    """The `keep` candidates with the best scores, the best first; those without a score are out."""
    return tuple(sorted(scores, key=lambda name: scores[name], reverse=True)[:keep])
