"""llama.cpp's lookup cache files, as common/ngram-cache.cpp reads and writes them.

A file is a sequence of records in no order, without a header; all numbers are little-endian int32: the
n-gram's four tokens, padded with -1 · number of followers · (token, count) for each follower.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.base.files import reason
from app.engine.drafters.ngram.counts import MAX_SIZE, TOKEN_BYTES, Followers
from app.engine.errors import SettingError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.int32]

_NO_TOKEN = -1
_HEAD = MAX_SIZE + 1  # numbers in front of a record's followers
_MAX_COUNT = 2**31 - 1
_MAX_BYTES = 2**30  # of a file: the index of such a large file takes several GB


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
        """Return a file's contents with these statistics and `added` summed."""
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

    Raises SettingError if the file cannot be read, is not a lookup cache, is damaged or cut short, or holds
    tokens that the vocabulary lacks.
    """
    try:
        if not path.is_file():
            there = path.exists()
            raise SettingError(
                f"The lookup cache {path} {'is not a file' if there else 'does not exist'}.",
                "Choose another file.",
            )
        if path.stat().st_size > _MAX_BYTES:
            raise SettingError(f"The lookup cache {path.name} is larger than 1 GiB.", "Choose a smaller one.")
        data = path.read_bytes()
    except OSError as error:
        raise SettingError(
            f"The lookup cache {path} cannot be read: {reason(error)}.", "Choose another file."
        ) from None
    if len(data) % TOKEN_BYTES:
        raise _damaged(path)
    numbers = np.frombuffer(data, "<i4")
    starts = _record_starts(numbers, path)
    _check_records(numbers, starts, n_vocab, path)
    cache = LookupCache(numbers, starts)
    if len(cache) < len(starts):  # an n-gram occurs twice
        raise _damaged(path)
    return cache


def _record_starts(numbers: Numbers, path: Path) -> Numbers:
    view, end = numbers.data, len(numbers)
    starts, at = [], 0
    while at < end:
        starts.append(at)
        followers = view[at + MAX_SIZE] if at + MAX_SIZE < end else 0
        at += _HEAD + 2 * followers
        if followers < 1 or at > end:
            raise _damaged(path)
    return np.array(starts, np.int32)


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
            f"The lookup cache {path.name} was made with a vocabulary other than the target's.",
            "Choose one that was made with this model.",
        )


def _damaged(path: Path) -> SettingError:
    return SettingError(
        f"{path.name} is damaged or not a lookup cache of llama.cpp.", "Choose another file, or move it away."
    )
