"""Downloads: a queue of items, each fetched by a child process, so that to cancel is to end a process.

A thread owns the queue and writes it down. What has come is an `.incomplete` file in the standard cache, and
the next child goes on from there. `hub/place.py` is where one file belongs and its lock, `hub/cache.py` the
layout around it. A download is on the disk before it gets its name; the checksum of what another program left
in the cache is looked at once (`hub/checked.py`). Lists that are read again (`hub/kept_file.py`) carry a
version: a list of a newer Draftscope is set aside and named, never overwritten.
"""

from app.hub.downloads.item import Download, DownloadChanged, DownloadRemoved, QueueEvent, State, Wanted
from app.hub.downloads.queue import DownloadQueue

__all__ = [
    "Download",
    "DownloadChanged",
    "DownloadQueue",
    "DownloadRemoved",
    "QueueEvent",
    "State",
    "Wanted",
]
