"""llama.cpp's table from n-gram hashes to positions, and how it finds a match (`common/ngram-map.cpp`)."""

from __future__ import annotations

from app.engine.drafters.ngram.index import NgramIndex

_BUCKETS = 262_144


class NgramBuckets:
    """One position for each of 262,144 hashes: the first one entered stays.

    A generation enters the positions of its prompt, latest first, then those of the growing answer, always
    size_n + size_m + 1 tokens late. Different n-grams may share a bucket, and the last positions of a prompt
    are never entered. Both decide which match is found, so both are reproduced.
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
