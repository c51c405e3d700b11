"""Is there room on the disk for what is wanted?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from app.base.numbers import file_size
from app.hub.cache import Cache
from app.hub.downloads.item import ACTIVE, Download, State, Wanted
from app.hub.errors import HubError, Trouble, disk_error


def check_space(cache: Cache, wanted: Sequence[Wanted], queued: Iterable[Download]) -> None:
    """Raises HubError where the disk has no room for what is not here yet, beside what is still to come of
    the others."""
    missing = sum(
        max(0, file.size - cache.came(one.repo, file.name, file.sha256))
        for one in wanted
        for file in one.files
        if cache.find(one.repo, file.name, file.size, file.sha256) is None
    )
    coming = sum(one.total - one.done for one in queued if one.state in ACTIVE | {State.QUEUED})
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
