"""Downloads: a queue of items, each fetched by a child process. To cancel is to end the process.

A thread owns the queue and saves it. Partial downloads are `.incomplete` files in the standard cache, from
which the next child resumes. `hub/cache_entry.py` has the place and lock of one file, `hub/cache.py` the
layout. A download is synced to the disk before it gets its name. Files that a different program left in the
cache have their checksum verified once (`Checked` there). Saved lists carry a version: a list of a newer
Draftscope is set aside and named, never overwritten.
"""

from app.hub.downloads.item import Download, DownloadChanged, DownloadRemoved, QueueEvent, State, Wanted
from app.hub.downloads.queue import DownloadQueue

__all__ = ["Download", "DownloadChanged", "DownloadQueue", "DownloadRemoved", "QueueEvent", "State", "Wanted"]
