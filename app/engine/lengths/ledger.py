"""What drafting may cost an answer: the bound that length=auto keeps whatever it believes."""

from __future__ import annotations

_CREDIT = 4.5  # single-token passes that may be lost from the start
_CREDIT_SHARE = 0.0176  # of the tokens wanted, where the answer is short
_SHARE = 0.005  # of the passes so far that may be lost besides,
_LATER_SHARE = 0.025  # and of those behind the first `_EARLY`, of which the credit is a smaller part
_EARLY = 256
_EARNED = 64.0  # passes that were won count no further than this against later losses


class Ledger:
    """What the drafts of one answer have cost and not brought back, in single-token passes."""

    def __init__(self, wanted: int) -> None:
        """For an answer of at most `wanted` tokens."""
        self._credit = min(_CREDIT, _CREDIT_SHARE * wanted)
        self._loss = 0.0

    def add(self, loss: float) -> None:
        """Negative where a draft won more than it cost."""
        self._loss = max(self._loss + loss, -_EARNED)

    def left(self, written: int) -> float:
        """What may still be lost where so many tokens were written."""
        later = max(0, written - _EARLY)
        return self._credit + _SHARE * (written - later) + _LATER_SHARE * later - self._loss
