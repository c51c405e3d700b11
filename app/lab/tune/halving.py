"""Successive halving (Jamieson and Talwalkar 2016): every candidate a little, then the better half more."""

from __future__ import annotations

import math
from collections.abc import Mapping

FINALISTS = 3
"""So many are measured to the end: the last choice needs the most certainty, and a runner-up to name."""
_FINAL_SHARE = 2.0  # parts of the time that the last rung gets, where each other gets one


def kept_of(candidates: int, scored: int) -> int:
    """How many go on from a rung of `candidates`, of which `scored` could be measured; 1 from the last."""
    return 1 if candidates <= FINALISTS else max(FINALISTS, math.ceil(scored / 2))


def rungs_left(candidates: int) -> int:
    """Rungs to come, this one among them."""
    count = 1
    while candidates > FINALISTS:
        candidates = kept_of(candidates, candidates)
        count += 1
    return count


def time_share(candidates: int, left: float) -> float:
    """Seconds for the next rung, of the `left` ones: an equal part each, the last one more."""
    others = rungs_left(candidates) - 1
    return left / (others + _FINAL_SHARE) if others else left


def survivors(scores: Mapping[str, float], keep: int) -> tuple[str, ...]:
    """The `keep` with the best scores, the best first; those without a score are out."""
    return tuple(sorted(scores, key=lambda name: scores[name], reverse=True)[:keep])
