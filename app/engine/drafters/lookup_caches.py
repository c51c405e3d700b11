"""An engine's lookup caches: each file is read once for all drafters."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from app.base.files import SHARED, reason, write_atomic
from app.engine.drafters.cache_file import Followers, LookupCache, count_ngrams, glance_at_cache, read_cache
from app.engine.errors import SettingError

if TYPE_CHECKING:
    from app.engine.types import TokenIds

_MOST = 2  # static files kept; each may be of any size


class DynamicCache:
    """A file that answers are added to. Drafts use its state at first use: a cold run that measures an answer
    again must not find it in the file."""

    def __init__(self, path: Path, n_vocab: int) -> None:
        """The file need not exist yet, but its folder must. Raises SettingError."""
        self.path = path
        self._n_vocab = n_vocab
        self.statistics = self._read()
        self._added: TokenIds = np.empty(0, np.int32)  # the last text added

    def _read(self) -> LookupCache:
        if os.path.exists(self.path):
            return read_cache(self.path, self._n_vocab)
        _check_folder(self.path)
        return LookupCache.empty()

    def add(self, text: TokenIds) -> None:
        """Add a text of shape [n], except a beginning that it shares with the last text added. Raises
        SettingError on failure; an unreadable file is left unchanged."""
        both = min(len(text), len(self._added))
        parted = np.flatnonzero(text[:both] != self._added[:both])
        shared = int(parted[0]) if len(parted) else both
        if shared == len(text):
            return
        new: dict[bytes, Followers] = {}
        count_ngrams(new, text, first=shared)
        data = self._read().merged(new)  # read again: another window may have added to it
        try:
            write_atomic(self.path, data, SHARED)
        except OSError as error:
            raise SettingError(
                f"The lookup cache {self.path} cannot be saved: {reason(error)}.",
                "Choose a different file for it.",
            ) from None
        self._added = text.copy()


def glance_at_caches(static: str, dynamic: str, n_vocab: int) -> None:
    """Raise the SettingError of using these files, as far as their beginnings show; "" means no file."""
    if static:
        glance_at_cache(_path(static), n_vocab)
    if dynamic and os.path.exists(_path(dynamic)):
        glance_at_cache(_path(dynamic), n_vocab)
    elif dynamic:
        _check_folder(_path(dynamic))


def _check_folder(path: Path) -> None:
    if not os.path.isdir(path.parent):
        raise SettingError(f"There is no folder {path.parent} for the lookup cache.", "Create it first.")


def _path(text: str) -> Path:
    return Path(os.path.expanduser(text))


class LookupCaches:
    """Static and dynamic lookup caches by their paths."""

    def __init__(self) -> None:
        self._static: dict[Path, tuple[tuple[int, int], LookupCache]] = {}  # most recently used last
        self._dynamic: dict[Path, DynamicCache] = {}

    def static(self, text: str, n_vocab: int) -> LookupCache:
        """Return a file's statistics; a changed file is read again. Raises SettingError."""
        path = _path(text)
        try:
            found = path.stat()
        except OSError:
            return read_cache(path, n_vocab)  # says what is wrong
        stamp = found.st_mtime_ns, found.st_size
        cache = self._static.pop(path, None)
        if cache is None or cache[0] != stamp:
            cache = stamp, read_cache(path, n_vocab)
        self._static[path] = cache
        for oldest in list(self._static)[:-_MOST]:
            del self._static[oldest]
        return cache[1]

    def dynamic(self, text: str, n_vocab: int) -> DynamicCache:
        """Return the file that answers are added to. Raises SettingError."""
        path = _path(text)
        if path not in self._dynamic:
            self._dynamic[path] = DynamicCache(path, n_vocab)
        return self._dynamic[path]
