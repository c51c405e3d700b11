"""The bound on what drafting may cost an answer, which length=auto keeps whatever its estimates say."""

from __future__ import annotations

_CREDIT = 4.5  # single-token passes that may be lost from the start
_CREDIT_SHARE = 0.0176  # share of the tokens wanted, if the answer is short
_SHARE = 0.008  # share of the passes so far that may be lost besides,
_LATER_SHARE = 0.02  # and of the passes after the first `_EARLY`, of which the credit is a smaller part
_EARLY = 256
_EARNED = 64.0  # most passes won that count against later losses


class Ledger:
    """The net cost of one answer's drafts, in single-token passes."""

    def __init__(self, wanted: int) -> None:
        """For an answer of at most `wanted` tokens."""
        self._credit = min(_CREDIT, _CREDIT_SHARE * wanted)
        self._loss = 0.0

    def add(self, loss: float) -> None:
        """Add a round's loss, negative for a gain."""
        self._loss = max(self._loss + loss, -_EARNED)

    def left(self, written: int) -> float:
        """The loss still allowed after `written` tokens."""
        later = max(0, written - _EARLY)
        return self._credit + _SHARE * (written - later) + _LATER_SHARE * later - self._loss
