"""The window's side of the Hub: requests, downloads, and local models."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from app.base.paths import Paths
from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.catalogue import Entry, find_entry, load_catalogue
from app.hub.downloads import Download, DownloadChanged, DownloadQueue, QueueEvent, State
from app.hub.errors import Trouble
from app.hub.fits import Fit, Room, fit_in
from app.hub.hub import Hub, is_forced_offline
from app.hub.library.library import DraftsChanged, Library, LibraryChanged, LibraryEvent
from app.hub.library.model import LocalModel
from app.hub.library.probe import Reader
from app.hub.library.shelf import Shelf, own_models
from app.hub.repo import HubFile
from app.ui.state.chat_side import SettingsInUse, UseModels
from app.ui.widgets.background import Askers, Query

E = TypeVar("E")

ROOM_SECONDS = 30.0  # how long measured memory counts as current


def free_room() -> Room:
    """The free memory of this machine. Blocks for about a second; raises ModelFileError."""
    with contextlib.closing(Reader()) as reader:
        return reader.room()


class HubSession(QObject):
    """Owns the client, the queue and the library; notifies the views, on their thread, of changes."""

    downloads_changed = Signal()
    library_changed = Signal()
    drafts_changed = Signal(object)  # DraftsChanged
    library_problem = Signal(str, str)  # message, hint
    room_changed = Signal()
    offline_changed = Signal()
    token_changed = Signal()

    def __init__(
        self, paths: Paths, settings: SettingsInUse, use: UseModels, measure: Callable[[], Room] = free_room
    ) -> None:
        """`use` loads models into the chat, or says why not; `measure` gives the free memory of this
        machine, and may block."""
        super().__init__()
        self.use = use
        self.settings = settings
        settings.changed.connect(self._settings_changed)
        self.hub = Hub(lambda: settings.now.offline)
        self.cache = Cache()
        self.catalogue = load_catalogue(paths.resources / "catalogue.json")
        self._paths = paths
        self.askers = Askers()
        self._mailbox = self.askers.mailbox
        self._measure = measure
        self._measured = 0.0
        self._room_question: Query[Room] = Query(self.askers, self._set_room, self._no_room)
        self.room: Room | None = None
        self.downloads: dict[str, Download] = {}  # in the order they were added
        self._heard: dict[str, float] = {}  # when each item was last reported
        self.queue: DownloadQueue | None = None
        self.queue_problem: UserError | None = None  # why there is no queue
        self._queue_file = paths.data / "downloads.json"
        self._checked_file = paths.checked
        self._queue_lock = threading.Lock()
        self._closed = False
        with contextlib.suppress(UserError):  # the views show it
            self._show_queue(self.downloads_queue().downloads)
        self.models: tuple[LocalModel, ...] = ()
        self.reading = True
        shelf = Shelf(paths.data, self.cache, own_models(paths))
        self.library = Library(shelf, self._post(self._library_event))
        self.library.refresh()

    def close(self) -> None:
        """Pause the downloads, end the threads and processes; nothing is emitted afterwards."""
        self.askers.close()
        with self._queue_lock:
            self._closed = True
        if self.queue is not None:
            self.queue.close()
        self.library.close()

    # ------------------------------------------------------------------ the network

    @property
    def is_offline(self) -> bool:
        """Whether the network must not be used, by the switch or by HF_HUB_OFFLINE."""
        return self.hub.is_offline

    @property
    def is_forced_offline(self) -> bool:
        """Whether HF_HUB_OFFLINE overrides the switch."""
        return is_forced_offline()

    def _settings_changed(self, names: set[str]) -> None:
        if "offline" in names:
            if self.queue is not None:
                self.queue.offline_changed()
            self.offline_changed.emit()

    def downloads_queue(self) -> DownloadQueue:
        """The queue, taken over as soon as it is free; raises UserError if another window uses it. Safe
        from any thread."""
        with self._queue_lock:
            if self.queue is None:
                if self._closed:
                    raise UserError("Draftscope is closing.")
                try:
                    self.queue = DownloadQueue(
                        self._queue_file,
                        self.hub,
                        self._post(self._queue_event),
                        self.cache,
                        checked=self._checked_file,
                    )
                except UserError as error:
                    self.queue_problem = error
                    raise
                self.queue_problem = None
                # Before the first report of the queue.
                self._mailbox.post(partial(self._show_queue, self.queue.downloads))
            return self.queue

    def _show_queue(self, downloads: Sequence[Download]) -> None:
        self.downloads = {download.id: download for download in downloads}
        self.downloads_changed.emit()

    # ------------------------------------------------------------------ this machine

    def measure_room(self) -> None:
        """Measure the free memory, unless that was done a moment ago."""
        if self._room_question.pending or time.monotonic() - self._measured < ROOM_SECONDS:
            return
        self._room_question.ask(self._measure)

    def fit(self, size: int) -> Fit | None:
        """Where a model of this many bytes would run; None while the memory is unknown."""
        return fit_in(size, self.room) if self.room is not None else None

    def _set_room(self, room: Room) -> None:
        self._measured = time.monotonic()
        if room != self.room:
            self.room = room
            self.room_changed.emit()

    def _no_room(self, _error: UserError) -> None:
        """Show no lights; all else works."""
        self._measured = time.monotonic()

    # ------------------------------------------------------------------ what is here

    def find(self, repo: str, files: Iterable[HubFile]) -> Path | None:
        """The file to load of a complete model, from the cache or from a finished download."""
        wanted = list(files)
        if path := self.cache.find_first(repo, wanted):
            return path
        return self._brought(repo, wanted[0].name) if wanted else None

    def find_listed(self, entry: Entry) -> Path | None:
        """The file to load for a complete model of the catalogue, if the Hub was not asked."""
        return find_entry(self.cache, entry) or self._brought(entry.repo, entry.file)

    def own_file(self, entry: Entry) -> Path | None:
        """The model of the catalogue as it came with Draftscope."""
        return entry.own_file(self._paths)

    def _brought(self, repo: str, file: str) -> Path | None:
        download = self.download_of(repo, file)
        return (
            Path(download.path)
            if download is not None and download.path and Path(download.path).exists()
            else None
        )

    def download_of(self, repo: str, file: str) -> Download | None:
        """The item of the queue that downloads this file, or has downloaded it."""
        for download in self.downloads.values():
            cancelled = download.trouble is Trouble.NOT_DELETED
            if download.repo == repo and not cancelled and any(part.name == file for part in download.files):
                return download
        return None

    def retry_in(self, download: Download) -> float:
        """Seconds until a waiting item tries again."""
        passed = time.monotonic() - self._heard.get(download.id, time.monotonic())
        return max(0.0, (download.retry_in or 0.0) - passed)

    def place_of(self, model: LocalModel) -> Path | None:
        """The added file or folder that contains this model; None for others."""
        for place in self.library.added:
            if model.path == place or place in model.path.parents:
                return place
        return None

    # ------------------------------------------------------------------ what threads say

    def _post(self, take: Callable[[E], None]) -> Callable[[E], None]:
        """Run `take` on the window's thread, for callbacks that come on other threads."""
        return lambda event: self._mailbox.post(partial(take, event))

    def _queue_event(self, event: QueueEvent) -> None:
        if isinstance(event, DownloadChanged):
            download = event.download
            before = self.downloads.get(download.id)
            self.downloads[download.id] = download
            self._heard[download.id] = time.monotonic()
            if download.state is State.DONE and (before is None or before.state is not State.DONE):
                self.library.refresh()
        else:
            gone = self.downloads.pop(event.id, None)
            self._heard.pop(event.id, None)
            if gone is not None and gone.state is State.DONE:
                self.library.refresh()
        self.downloads_changed.emit()

    def _library_event(self, event: LibraryEvent) -> None:
        if isinstance(event, LibraryChanged):
            self.models, self.reading = event.models, event.reading
            self.library_changed.emit()
        elif isinstance(event, DraftsChanged):
            self.drafts_changed.emit(event)
        else:
            self.library_problem.emit(event.message, event.hint)
