"""Downloads: a queue of items, each fetched by a child process of its own."""

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
