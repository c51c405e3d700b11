"""Checks the room on the disk before a download."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.base.numbers import file_size
from app.hub.cache import Cache
from app.hub.downloads.item import ACTIVE, Download, State, Wanted
from app.hub.errors import HubError, Trouble, disk_error


def check_space(cache: Cache, wanted: Sequence[Wanted], queued: Iterable[Download]) -> None:
    """Raise HubError where the disk has no room for the files that are missing, beside the rest of the
    queue."""
    missing = sum(
        max(0, file.size - cache.came(item.repo, file.name, file.sha256))
        for item in wanted
        for file in item.files
        if cache.find(item.repo, file.name, file.size, file.sha256) is None
    )
    coming = sum(
        download.total - download.done for download in queued if download.state in ACTIVE | {State.QUEUED}
    )
    try:
        free = cache.free_bytes()
    except OSError as error:
        raise disk_error(error) from error
    if missing and missing + coming > free:
        others = f", {file_size(coming)} of them for other downloads" if coming else ""
        raise HubError(
            Trouble.NO_SPACE,
            f"There is no room on the disk: {file_size(missing + coming)} needed{others}; "
            f"{file_size(free)} free.",
            "Free some space, choose a smaller quantisation, or set HF_HOME to a folder on another disk.",
        )
