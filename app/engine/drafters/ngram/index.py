"""Index of where each n-gram of a growing text occurred before, for the drafters that copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.engine.types import TokenIds

_FACTOR = 2654435761  # llama.cpp's, so that its own hash is the low bits of ours
_MASK = (1 << 60) - 1


class NgramIndex:
    """Every place of every n-gram of a text, latest first, for one n.

    The cost per token depends neither on n nor on the length of the text: a rolling hash, and a link from
    each place to the previous place with the same hash. If hashes are equal the tokens are compared, so
    results are exact.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._leaving = pow(_FACTOR, n, _MASK + 1)  # weight of the token that leaves the window
        self.restart()

    def restart(self) -> None:
        """Forget the text."""
        self.tokens: list[int] = []
        self.hashes: list[int] = []
        """The hash of the n-gram that begins at each place; length of the text - n + 1."""
        self._before: list[int] = []  # place -> the place before with the same hash, or -1
        self._latest: dict[int, int] = {}
        self._rolling = 0

    def follow(self, context: TokenIds) -> None:
        """Learn the new tokens of `context`, shape [length], which begins with the known text."""
        tokens, hashes, before, latest = self.tokens, self.hashes, self._before, self._latest
        n, leaving, rolling = self._n, self._leaving, self._rolling
        for token in context[len(tokens) :].tolist():
            rolling = rolling * _FACTOR + token
            tokens.append(token)
            at = len(tokens) - n
            if at > 0:
                rolling -= tokens[at - 1] * leaving
            rolling &= _MASK
            if at >= 0:
                hashes.append(rolling)
                before.append(latest.get(rolling, -1))
                latest[rolling] = at
        self._rolling = rolling

    def earlier(self, at: int) -> Iterator[int]:
        """Yield the earlier places of the n-gram that begins at `at`, latest first."""
        tokens, before, n = self.tokens, self._before, self._n
        ngram = tokens[at : at + n]
        place = before[at]
        while place >= 0:
            if tokens[place : place + n] == ngram:
                yield place
            place = before[place]
