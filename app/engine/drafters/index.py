"""An index of earlier occurrences of n-grams in a growing text, for drafters that copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.engine.types import TokenIds

_FACTOR = 2654435761  # llama.cpp's, so that its own hash is the low bits of ours
_MASK = (1 << 60) - 1


class NgramIndex:
    """All places of every n-gram of a text, latest first, for one n.

    A rolling hash links each place to the previous place with the same hash. So the cost per token depends on
    neither n nor the text's length. If hashes are equal, the tokens are compared: results are exact.
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


_BUCKETS = 262_144


class NgramBuckets:
    """One position for each of 262,144 hashes: the first entry stays.

    A generation enters the positions of its prompt, latest first, then those of the growing answer, always
    size_n + size_m + 1 tokens late. As in llama.cpp, different n-grams may share a bucket, and the last
    positions of a prompt are never entered: both decide which match is found.
    """

    def __init__(self, index: NgramIndex, n: int, m: int) -> None:
        """`index` holds the text with its last token, which lengths here do not count."""
        self._index = index
        self._n = n
        self._late = n + m + 1
        self._place: dict[int, int] = {}  # bucket -> position; never 0
        self._entered = 0  # positions up to here are entered or never will be
        self._prompt = 0  # length of the text when the generation began
        self._length = 0  # when a match was last looked for, or a generation began
        self._unused: list[int] = []  # buckets that `begin` filled and no `find` has used yet

    def begin(self, length: int) -> int | None:
        """Begin a generation on a text of `length` tokens.

        Returns the position from which on everything learned is stale, or None if nothing is.
        """
        # llama.cpp enters a prompt with the first draft. Here it is entered at once, and removed if no draft
        # came.
        for bucket in self._unused:
            del self._place[bucket]
        stale = None
        if length < self._length:
            stale = self._prompt if self._prompt <= length else max(0, length - self._late + 1)
            self._place = {bucket: place for bucket, place in self._place.items() if place < stale}
            self._entered = max(0, stale - 1)
        self._prompt = self._length = length
        self._unused = self._enter(self._entered, length - self._late)
        return stale

    def find(self, length: int) -> int:
        """The position of the match for the last n tokens of the index, or 0; enters what is new.

        `length` is at least 2 size_n + size_m.
        """
        self._unused = []
        self._length = length
        last = length + 1 - self._n  # where the n-gram in question begins
        match = self._look_up(last, length - self._late)
        if match == 0:
            match = self._latest(last, self._entered, self._prompt - self._late)
        if match == 0:
            match = self._latest(last, max(self._entered, self._prompt), length - self._late)
        self._enter(max(self._entered, self._prompt), length - self._late)
        self._entered = max(self._entered, length - self._late)
        return match

    def _look_up(self, last: int, below: int) -> int:
        place = self._place.get(self._index.hashes[last] % _BUCKETS, 0)
        tokens, n = self._index.tokens, self._n
        return place if place < below and tokens[place : place + n] == tokens[last:] else 0

    def _latest(self, last: int, after: int, to: int) -> int:
        """The last position in (after, to] with the n-gram at `last`, or 0."""
        if after < to:
            for place in self._index.earlier(last):
                if place <= to:
                    return place if place > after else 0
        return 0

    def _enter(self, after: int, to: int) -> list[int]:
        """Enter the positions in (after, to], latest first; returns the buckets that were empty."""
        filled = []
        for place in range(to, after, -1):
            bucket = self._index.hashes[place] % _BUCKETS
            if bucket not in self._place:
                self._place[bucket] = place
                filled.append(bucket)
        return filled
