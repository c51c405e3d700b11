"""Deletes what a cancelled download brought."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from app.hub.cache import Cache
from app.hub.downloads.item import Download, ItemFile
from app.hub.errors import HubError, left_error


def remove_files(cache: Cache, download: Download, others: Iterable[Download]) -> HubError | None:
    """Delete what `download` brought and none of the `others` needs; returns an error where something is
    left."""
    needed = {(other.repo, file.name) for other in others for file in other.files}
    left: dict[Path, OSError] = {}
    for file in download.files:
        # Never begun: no part of it is ours.
        if not file.etag or (download.repo, file.name) in needed:
            continue
        error = _remove(cache, download.repo, file)
        if error and (place := cache.remains(download.repo, file.name, file.etag, file.commit)):
            left[place] = error
    return left_error(next(iter(left.values())), list(left)) if left else None


def _remove(cache: Cache, repo: str, file: ItemFile) -> OSError | None:
    """Returns why it failed."""
    if file.found:
        with contextlib.suppress(OSError):  # an empty lock
            cache.unlock(repo, file.etag)
        return None
    try:
        cache.remove(repo, file.name, file.etag, file.commit)
        cache.forget(repo, file.name)
    except OSError as error:
        return error
    return None
