"""The bound on what drafting may cost an answer, which length=auto keeps whatever its estimates say."""

from __future__ import annotations

_CREDIT = 4.5  # single-token passes that may be lost from the start
_CREDIT_SHARE = 0.0176  # share of the tokens wanted, if the answer is short
_SHARE = 0.008  # share of the passes so far that may be lost besides,
_LATER_SHARE = 0.02  # and of the passes after the first `_EARLY`, of which the credit is a smaller part
_EARLY = 256
_IN_ALL = 0.024  # share of the tokens wanted that drafts may lose: 3 %, less what times are misjudged by
_EARNED = 64.0  # most passes won that count against later losses


class Ledger:
    """The net cost of one answer's drafts, in single-token passes."""

    def __init__(self, wanted: int) -> None:
        """For an answer of at most `wanted` tokens."""
        self._credit = min(_CREDIT, _CREDIT_SHARE * wanted)
        self._loss = 0.0
        self._in_all = _IN_ALL * wanted

    def add(self, loss: float) -> None:
        """Add a round's loss, negative for a gain."""
        self._loss = max(self._loss + loss, -_EARNED)

    @property
    def left_in_all(self) -> float:
        """The loss still allowed until the answer's end."""
        return self._in_all - self._loss

    def left(self, written: int) -> float:
        """The loss still allowed after `written` tokens."""
        later = max(0, written - _EARLY)
        return self._credit + _SHARE * (written - later) + _LATER_SHARE * later - self._loss
