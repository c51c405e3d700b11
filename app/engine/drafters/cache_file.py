"""llama.cpp's lookup cache files (common/ngram-cache.cpp).

A file is a sequence of records in no order, without a header. All numbers are little-endian int32. A record:
the n-gram's four tokens (padded with -1) · number of followers · (token, count) for each follower."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from app.base.files import open_file, read_file, reason
from app.engine.errors import PromptError, SettingError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.types import TokenIds

    Numbers = NDArray[np.int32]

MIN_SIZE, MAX_SIZE = 1, 4  # of the n-grams counted, in tokens
STATIC_SIZE = 2  # of those in the statistics of a large text
TOKEN_BYTES = 4


class Followers:
    """The tokens that followed one n-gram. The most common token and the total are kept while counting, so
    reading them takes constant time.

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
        """Return the token with the largest weight, and its count here. The weight is its count here,
        multiplied by a hundred times its count in `static` if it occurs there."""
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
    """Count what follows each n-gram of `tokens` (shape [n]), for followers at index `first` or later.

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


_NO_TOKEN = -1
_HEAD = MAX_SIZE + 1  # numbers in front of a record's followers
_MAX_COUNT = 2**31 - 1
LARGEST = 2**30  # of a file: the index of such a large file takes several GB
_GLANCE = 2**18  # bytes: some thousand records


class LookupCache:
    """A file's statistics, kept in the file's form: followers are unpacked when first asked for."""

    def __init__(self, numbers: Numbers, starts: Numbers) -> None:
        """`numbers`, shape [n]: the file. `starts`, shape [records]: where each record begins there."""
        self._numbers = numbers
        heads = numbers[starts[:, None] + np.arange(MAX_SIZE)]
        raw, width = heads.tobytes(), TOKEN_BYTES * MAX_SIZE
        sizes = TOKEN_BYTES * (heads != _NO_TOKEN).sum(axis=1)
        keys = (raw[at * width : at * width + size] for at, size in enumerate(sizes.tolist()))
        self._starts = dict(zip(keys, starts.tolist(), strict=True))
        self._unpacked: dict[bytes, Followers] = {}

    @classmethod
    def empty(cls) -> LookupCache:
        return cls(np.empty(0, np.int32), np.empty(0, np.int32))

    def __len__(self) -> int:
        """Number of n-grams."""
        return len(self._starts)

    def __iter__(self) -> Iterator[bytes]:
        """The n-grams."""
        return iter(self._starts)

    def get(self, key: bytes) -> Followers | None:
        """The followers of an n-gram; keys as in ngram_counts.py."""
        known = self._unpacked.get(key)
        if known is None and key in self._starts:
            known = self._unpacked[key] = Followers.of(self._counts(key).items())
        return known

    def _counts(self, key: bytes) -> dict[int, int]:
        """token -> count, of an n-gram in the file."""
        start = self._starts[key] + _HEAD
        pairs = self._numbers[start : start + 2 * self._numbers[start - 1]].tolist()
        return dict(zip(pairs[::2], pairs[1::2], strict=True))

    def merged(self, added: Mapping[bytes, Followers]) -> bytes:
        """Return the contents of a file with the sum of these statistics and `added`."""
        kept = np.ones(len(self._numbers), bool)
        records = []
        for key, followers in added.items():
            counts = dict(followers.items())
            if key in self._starts:
                known = self._counts(key)
                start = self._starts[key]
                kept[start : start + _HEAD + 2 * len(known)] = False
                for token, count in known.items():
                    counts[token] = counts.get(token, 0) + count
            records.append(_record(key, counts))
        return b"".join([self._numbers[kept].tobytes(), *records])


def _record(key: bytes, counts: Mapping[int, int]) -> bytes:
    pairs = [number for token, count in counts.items() for number in (token, min(count, _MAX_COUNT))]
    tokens = key.ljust(TOKEN_BYTES * MAX_SIZE, b"\xff")
    return tokens + struct.pack(f"<{1 + len(pairs)}i", len(counts), *pairs)


def read_cache(path: Path, n_vocab: int) -> LookupCache:
    """Read a lookup cache whose tokens are ids of a vocabulary of `n_vocab`.

    Raises SettingError if the file cannot be read, is damaged or not a lookup cache, or has tokens that the
    vocabulary lacks.
    """
    numbers = _read_numbers(path, LARGEST)
    starts, end = _record_starts(numbers, path)
    if end < len(numbers):
        raise _damaged(path)
    _check_records(numbers, starts, n_vocab, path)
    cache = LookupCache(numbers, starts)
    if len(cache) < len(starts):  # an n-gram occurs twice
        raise _damaged(path)
    return cache


def glance_at_cache(path: Path, n_vocab: int) -> None:
    """Raise the SettingError that `read_cache` would raise, as far as the first records show. Takes
    milliseconds for any size."""
    numbers = _read_numbers(path, _GLANCE)
    starts, end = _record_starts(numbers, path)
    if end < len(numbers) < _GLANCE // TOKEN_BYTES:  # the whole file
        raise _damaged(path)
    _check_records(numbers[:end], starts, n_vocab, path)


def _read_numbers(path: Path, most: int) -> Numbers:
    """The numbers in the first `most` bytes of a file."""
    try:
        if not path.is_file():
            there = path.exists()
            raise SettingError(
                f"The lookup cache {path} {'is not a file' if there else 'does not exist'}.",
                "Choose a different lookup cache.",
            )
        size = path.stat().st_size
        if size > LARGEST:
            raise SettingError(
                f"The lookup cache {path.name} is larger than {LARGEST // 2**30} GiB.",
                "Choose a smaller one.",
            )
        with open_file(path) as file:
            data = file.read(most)
    except OSError as error:
        raise SettingError(
            f"The lookup cache {path} cannot be read: {reason(error)}.", "Choose a different lookup cache."
        ) from None
    if size % TOKEN_BYTES or len(data) % TOKEN_BYTES:
        raise _damaged(path)
    return np.frombuffer(data, "<i4")


def _record_starts(numbers: Numbers, path: Path) -> tuple[Numbers, int]:
    """Where each whole record begins, and where the last ends."""
    view, end = numbers.data, len(numbers)
    starts, at = [], 0
    while at + MAX_SIZE < end:
        followers = view[at + MAX_SIZE]
        behind = at + _HEAD + 2 * followers
        if followers < 1:
            raise _damaged(path)
        if behind > end:
            break
        starts.append(at)
        at = behind
    return np.array(starts, np.int32), at


def _check_records(numbers: Numbers, starts: Numbers, n_vocab: int, path: Path) -> None:
    heads = numbers[starts[:, None] + np.arange(MAX_SIZE)]
    empty = heads == _NO_TOKEN
    is_body = np.ones(len(numbers), bool)
    is_body[starts[:, None] + np.arange(_HEAD)] = False
    tokens, counts = numbers[is_body].reshape(-1, 2).T
    # -1 may only pad an n-gram's end
    sound = not empty[:, 0].any() and not (empty[:, :-1] & ~empty[:, 1:]).any()
    if not sound or (heads < _NO_TOKEN).any() or (tokens < 0).any() or (counts < 1).any():
        raise _damaged(path)
    if (heads >= n_vocab).any() or (tokens >= n_vocab).any():
        raise SettingError(
            f"The lookup cache {path.name} was made for a different vocabulary than the target's.",
            "Choose one that was made for this model.",
        )


def _damaged(path: Path) -> SettingError:
    return SettingError(
        f"{path.name} is damaged or not a lookup cache of llama.cpp.",
        "Choose a different lookup cache, or move it away.",
    )


class Tokenizer(Protocol):
    """The part of a vocabulary that reads texts."""

    def tokenize(self, text: str, *, special: bool, parse_special: bool) -> TokenIds: ...


class TextCounts:
    """The counts of texts in one vocabulary. Control tokens that a text spells out are read as plain text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._counts: dict[bytes, Followers] = {}
        self.tokens = 0

    def __len__(self) -> int:
        """The number of n-grams."""
        return len(self._counts)

    def add_text(self, path: Path) -> int:
        """Count a text file in UTF-8; returns its number of tokens. Raises PromptError."""
        tokens = self._tokenizer.tokenize(_text(path), special=True, parse_special=False)
        count_ngrams(self._counts, tokens, sizes=(STATIC_SIZE, STATIC_SIZE))
        self.tokens += len(tokens)
        return len(tokens)

    def add_cache(self, cache: LookupCache) -> None:
        """Add the counts of a second lookup cache with the same vocabulary."""
        for key in cache:
            followers = cache.get(key)
            assert followers is not None
            if key not in self._counts:
                self._counts[key] = followers
                continue
            for token, count in followers.items().items():
                self._counts[key].add(token, count)

    def as_file(self) -> bytes:
        """The contents of a file in llama.cpp's format."""
        return LookupCache.empty().merged(self._counts)


def _text(path: Path) -> str:
    try:
        return read_file(path).decode("utf-8")
    except OSError as error:
        raise PromptError(f"{path} cannot be read: {reason(error)}.", "Give a different text file.") from None
    except UnicodeDecodeError:
        raise PromptError(f"{path} is not UTF-8 text.", "Convert it first.") from None
