"""The bound on what drafting may cost an answer, which length=auto keeps whatever its estimates say."""

from __future__ import annotations

_CREDIT = 4.5  # single-token passes that may be lost from the start
_CREDIT_SHARE = 0.0176  # share of the tokens wanted, if the answer is short
_KNOWN_CREDIT = 0.5  # the part of it that is not for reading where costs are known: none need be learned
_SHARE = 0.008  # share of the passes so far that may be lost besides,
_KNOWN_SHARE = 0.012  # the same where costs are known,
_LATER_SHARE = 0.02  # and of the passes after the first `_EARLY`, of which the credit is a smaller part
_EARLY = 256
_IN_ALL = 0.024  # share of the tokens wanted that drafts may lose: 3 %, less what times are misjudged by
_EARNED = 64.0  # most passes won that count against later losses


class Ledger:
    """The net cost of one answer's drafts, in single-token passes."""

    def __init__(self, wanted: int, known: bool = False) -> None:
        """For an answer of at most `wanted` tokens. Where the costs of drafts are `known`, less may be lost
        from the start: the answer may end early. The rest is for a draft model's reading of the prompt."""
        self._credit = min(_CREDIT, _CREDIT_SHARE * wanted)
        self._for_reading = max(0.0, self._credit - _KNOWN_CREDIT) if known else 0.0
        self._share = _KNOWN_SHARE if known else _SHARE
        self._loss = 0.0
        self._in_all = _IN_ALL * wanted

    def add(self, loss: float, reading: float = 0.0) -> None:
        """Add a round's loss, negative for a gain, with the part of it that was a draft model's reading."""
        self._for_reading -= min(reading, self._for_reading)
        self._loss = max(self._loss + loss, -_EARNED)

    @property
    def left_in_all(self) -> float:
        """The loss still allowed until the answer's end."""
        return self._in_all - self._loss

    def left(self, written: int, reading: float = 0.0) -> float:
        """The loss still allowed after `written` tokens, of which `reading` would be a draft model's
        reading."""
        later = max(0, written - _EARLY)
        credit = self._credit - max(0.0, self._for_reading - reading)
        return credit + self._share * (written - later) + _LATER_SHARE * later - self._loss
