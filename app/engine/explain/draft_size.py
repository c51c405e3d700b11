"""A verdict on a draft by its size, before anything is measured.

A pass takes about as long as its bytes take to read.
"""

from __future__ import annotations

IDEAL_SHARE = 0.1
"""The best share of the target's size: small enough to cost little, large enough to agree often."""
LARGEST_THAT_PAYS = 0.5
"""At half the target's size, three drafted tokens per round with 8 in 10 accepted gain a fifth; above it,
nothing."""
_GOOD = (1 / 20, 1 / 5)
_MAY_DO = 1 / 3


def size_words(share: float) -> str:
    """The share of the target's size in words, such as "8 % of the target's size"."""
    digits = 0 if share >= 0.0095 else 1
    return f"{share * 100:.{digits}f} % of the target's size"


def size_verdict(share: float, target: str = "", draft: str = "") -> str:
    """A sentence about a draft by its share of the target's size and, if known, both architectures: models of
    one family agree more often."""
    low, high = _GOOD
    if share > LARGEST_THAT_PAYS:
        said = "it will hardly save time"
    elif share > _MAY_DO:
        said = "it pays only where nearly all of it is accepted"
    elif share > high:
        said = "it may pay"
    elif share >= low:
        said = "a good size"
    else:
        said = "a small draft costs little, and may agree seldom"
    if target and draft and target != draft:
        said += f"; it is of another family ({draft}, not {target})"
    return f"{size_words(share)}: {said}"
