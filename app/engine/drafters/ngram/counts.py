"""Which tokens followed each n-gram, and how often: the statistics of ngram-cache."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.engine.types import TokenIds

MIN_SIZE, MAX_SIZE = 1, 4  # of the n-grams counted, in tokens
STATIC_SIZE = 2  # of those in the statistics of a large text
TOKEN_BYTES = 4


class Followers:
    """The tokens that followed one n-gram. The most common token and the total are kept while counting, so
    that reading them costs the same for two followers as for ten thousand.

    Among equally common tokens the lowest id wins; in llama.cpp the iteration order of its unordered map
    decides.
    """

    __slots__ = ("best", "best_count", "counts", "total")

    def __init__(self, token: int, count: int = 1) -> None:
        self.best, self.best_count, self.total = token, count, count
        self.counts: dict[int, int] | None = None  # token -> count; None while there is a single token

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Followers:
        """Make the followers from one or more (token, count)."""
        first, *rest = pairs
        followers = cls(*first)
        for token, count in rest:
            followers.add(token, count)
        return followers

    def add(self, token: int, count: int = 1) -> None:
        self.total += count
        if self.counts is None:
            if token == self.best:
                self.best_count += count
                return
            self.counts = {self.best: self.best_count}
        now = self.counts[token] = self.counts.get(token, 0) + count
        if now > self.best_count or (now == self.best_count and token < self.best):
            self.best, self.best_count = token, now

    def items(self) -> dict[int, int]:
        """Return token -> count, read-only."""
        return {self.best: self.best_count} if self.counts is None else self.counts

    def best_beside(self, static: Followers | None) -> tuple[int, int]:
        """Return the token with the largest weight, and its count here. The weight is the count here; a token
        that `static` knows has it multiplied by a hundred times its count there."""
        if static is None:
            return self.best, self.best_count
        here, there = self.items(), static.items()
        shared = here.keys() & there.keys()
        # The most common token here outweighs all others that `static` does not know; those need not be
        # searched.
        candidates = shared | {self.best}
        token = max(
            candidates,
            key=lambda candidate: (
                here[candidate] * 100 * there.get(candidate, 0) or here[candidate],
                -candidate,
            ),
        )
        return token, here[token]


def count_ngrams(
    counts: MutableMapping[bytes, Followers],
    tokens: TokenIds,
    first: int = 0,
    sizes: tuple[int, int] = (MIN_SIZE, MAX_SIZE),
) -> None:
    """Count what follows each n-gram of `tokens` (shape [n]), for the followers from index `first` on.

    `sizes` are the smallest and the largest n. A key is the n-gram's tokens as little-endian int32, as in a
    file.
    """
    raw, ids = token_bytes(tokens), tokens.tolist()
    shortest, longest = (TOKEN_BYTES * size for size in sizes)
    for at in range(max(first, sizes[0]), len(ids)):
        token, end = ids[at], TOKEN_BYTES * at
        for start in range(end - shortest, max(end - longest, 0) - 1, -TOKEN_BYTES):
            key = raw[start:end]
            known = counts.get(key)
            if known is None:
                counts[key] = Followers(token)
            else:
                known.add(token)


def token_bytes(tokens: TokenIds) -> bytes:
    return tokens.astype("<i4", copy=False).tobytes()
