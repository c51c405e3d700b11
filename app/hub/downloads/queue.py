"""The download queue: items wait, run in child processes, pause, retry and are cancelled."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import queue
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from multiprocessing.connection import wait
from pathlib import Path

from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.downloads import item
from app.hub.downloads.store import check_space, hold_queue, read_queue, remove_files, write_queue
from app.hub.downloads.worker import Worker
from app.hub.errors import Trouble, disk_error, offline_error
from app.hub.hub import Hub

log = logging.getLogger("draftscope.downloads")

_CLOSE_SECONDS = 10.0
_ANSWER_SECONDS = 30.0


class DownloadQueue:
    """The queue of one user. All methods are safe from any thread; all but `add` and `close` return at once.

    Work happens on the queue's thread, which calls `listen` with every change: a listener must be quick and
    must not raise. Items are saved in `file` (None: not saved). Those that were running when the last queue
    ended are paused.
    """

    def __init__(
        self,
        file: Path | None,
        hub: Hub,
        listen: Callable[[item.QueueEvent], None],
        cache: Cache | None = None,
        parallel: int = 2,
        patience: item.Patience | None = None,
        checked: Path | None = None,
    ) -> None:
        """`checked` is the file with the list of verified blobs; with None, blobs are read every time. Raises
        UserError if a different window uses the same file."""
        self._file = file
        self._hub = hub
        self._listen = listen
        self._cache = cache or Cache()
        self._parallel = parallel
        self._patience = patience or item.Patience()
        self._checked = str(checked or "")
        self._lock = hold_queue(file) if file else None
        remembered = read_queue(file) if file else None
        self.notice = remembered.notice if remembered else ""  # what could not be read, for people
        self._downloads = {
            download.id: item.after_restart(download)
            for download in (remembered.downloads if remembered else ())
        }
        self._saved = self._told = tuple(self._downloads.values())
        self._workers: dict[str, Worker] = {}
        self._rates: dict[str, item.Rate] = {}
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._bell, self._ringer = multiprocessing.Pipe(duplex=False)
        self._ringing = threading.Lock()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="downloads", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ from any thread

    @property
    def downloads(self) -> tuple[item.Download, ...]:
        """All items as last reported to the listener, in the order in which they were added."""
        return self._told

    def add(self, wanted: Sequence[item.Wanted]) -> tuple[str, ...]:
        """Queue models that belong together, such as a pair; returns their items' ids. A queued model is not
        queued twice: its id is returned. Raises HubError in offline mode, and if the disk cannot be read or
        has no room for them besides the queue."""
        if self._hub.is_offline:
            raise offline_error()
        answer: Future[tuple[str, ...]] = Future()

        def command() -> None:
            try:
                answer.set_result(self._add(wanted))
            except OSError as error:
                answer.set_exception(disk_error(error))
            except BaseException as error:  # the caller must not wait in vain
                answer.set_exception(error)

        self._do(command)
        return answer.result(_ANSWER_SECONDS)

    def pause(self, id: str) -> None:
        """Stop an item; `resume` continues where it stopped, also after a restart."""
        self._do(partial(self._pause, id))

    def resume(self, id: str) -> None:
        """Queue a paused or failed item again; one that waits to retry does so now."""
        self._do(partial(self._resume, id))

    def cancel(self, id: str) -> None:
        """Remove an unfinished item and everything that it downloaded; a finished one is unchanged. If
        something cannot be deleted, the item stays as FAILED and says what and where
        (Trouble.NOT_DELETED)."""
        self._do(partial(self._cancel, id))

    def delete(self, id: str) -> None:
        """Remove a finished item and everything that it downloaded. If something cannot be deleted, the item
        stays, as with `cancel`."""
        self._do(partial(self._delete, id))

    def dismiss(self, id: str) -> None:
        """Remove a finished item from the list; its files stay."""
        self._do(partial(self._dismiss, id))

    def offline_changed(self) -> None:
        """React to offline mode: running items stop, and continue when it is off again."""
        self._do(self._offline_changed)

    def close(self) -> None:
        """Pause everything, save it, and wait for the child processes to end."""
        self._do(self._close)
        self._thread.join(_CLOSE_SECONDS)
        if self._lock is not None:
            self._lock.release()

    def _do(self, command: Callable[[], None]) -> None:
        self._commands.put(command)
        with self._ringing, contextlib.suppress(OSError):  # the thread has ended
            self._ringer.send_bytes(b"!")

    # -------------------------------------------------------------- on the queue's thread

    def _run(self) -> None:
        while not self._closing:
            try:
                self._turn()
            except Exception:
                log.exception("Unexpected error in the download queue")
        self._bell.close()

    def _turn(self) -> None:
        """Wait for an event, handle it, and report it."""
        by_connection = {worker.connection: id for id, worker in self._workers.items()}
        for ready in wait([self._bell, *by_connection]):
            if ready is self._bell:
                self._bell.recv_bytes()
                self._commands.get_nowait()()
            elif (id := by_connection[ready]) in self._workers:  # type: ignore[index] # those that we gave
                self._read(id)
        self._start_next()
        self._tell()

    def _tell(self) -> None:
        now = tuple(self._downloads.values())
        before = {download.id: download for download in self._told}
        self._told = now
        if self._file is not None and [item.lasting(download) for download in now] != [
            item.lasting(download) for download in self._saved
        ]:
            self._saved = now
            try:
                write_queue(self._file, now)
            except UserError as error:
                log.warning("%s", error)
        for download in now:
            if before.pop(download.id, None) is not download:
                self._listen(item.DownloadChanged(download))
        for gone in before:
            self._listen(item.DownloadRemoved(gone))

    def _start_next(self) -> None:
        for download in list(self._downloads.values()):
            if len(self._workers) >= self._parallel or self._closing:
                return
            if download.state is not item.State.QUEUED:
                continue
            if self._hub.is_offline:
                self._downloads[download.id] = item.failed(download, offline_error())
                continue
            asked = download.repo, download.revision, download.files
            places = str(self._cache.folder), self._hub.endpoint
            job = item.DownloadJob(*asked, *places, self._patience, self._checked)
            self._workers[download.id] = Worker(job)
            self._downloads[download.id] = item.settled(download, item.State.RUNNING, download.done)

    def _read(self, id: str) -> None:
        worker = self._workers[id]
        for report in worker.reports():
            self._take(id, report)
        if worker.ended:
            worker.close()
            del self._workers[id]
            self._rates.pop(id, None)

    def _take(self, id: str, report: item.Report) -> None:
        download = self._downloads[id]
        if isinstance(report, item.DownloadBegun):
            self._drop_older(download, report)
        self._downloads[id] = item.folded(download, report, self._rate(id, report))

    def _drop_older(self, download: item.Download, report: item.DownloadBegun) -> None:
        """Remove an earlier try's bytes if the file has changed since."""
        old = download.files[report.index]
        if not old.etag or old.found:
            return
        if old.etag != report.etag:
            self._cache.remove(download.repo, old.name, old.etag, old.commit)
        elif old.commit != report.commit:
            self._cache.unlink(download.repo, old.name, old.etag, old.commit)

    def _rate(self, id: str, report: item.Report) -> item.Rate | None:
        """The speed of the item, including this report."""
        if isinstance(report, item.DownloadProgress) and not report.checking:
            now = time.monotonic()
            rate = self._rates.setdefault(id, item.Rate(report.done, now))
            rate.update(report.done, now)
        elif isinstance(report, (item.DownloadProgress, item.Waiting)):
            self._rates.pop(id, None)
        return self._rates.get(id)

    def _add(self, wanted: Sequence[item.Wanted]) -> tuple[str, ...]:
        known = {
            _identity(download): download for download in self._downloads.values() if not download.is_over
        }
        new = [model for model in wanted if _identity(model) not in known]
        check_space(self._cache, new, self._downloads.values())
        group = uuid.uuid4().hex
        added = [item.Download.of(model, group) for model in new]
        replaced = {_identity(download) for download in added}  # done before; the files may be gone since
        kept = {
            id: download for id, download in self._downloads.items() if _identity(download) not in replaced
        }
        self._downloads = kept | {download.id: download for download in added}
        known |= {_identity(download): download for download in added}
        return tuple(known[_identity(model)].id for model in wanted)

    def _pause(self, id: str) -> None:
        download = self._downloads.get(id)
        if download is None or download.state not in item.ACTIVE | {item.State.QUEUED}:
            return
        self._stop(id)
        if self._downloads[id].state is not item.State.DONE:  # its last report may have said so
            self._set(id, item.State.PAUSED)

    def _resume(self, id: str) -> None:
        download = self._downloads.get(id)
        if download is not None and download.state is item.State.WAITING:
            self._stop(id)
        if download is not None and self._downloads[id].state in item.RESUMABLE | {item.State.WAITING}:
            self._set(id, item.State.QUEUED)

    def _cancel(self, id: str) -> None:
        if id in self._downloads:
            self._stop(id)
            if self._downloads[id].state is not item.State.DONE:  # its last report may have said so
                self._remove(id)

    def _delete(self, id: str) -> None:
        if id in self._downloads and self._downloads[id].is_over:
            self._remove(id)

    def _remove(self, id: str) -> None:
        download = self._downloads[id]
        problem = remove_files(
            self._cache, download, [other for other in self._downloads.values() if other is not download]
        )
        if problem is None:
            del self._downloads[id]
        else:
            self._downloads[id] = item.failed(download, problem)

    def _dismiss(self, id: str) -> None:
        download = self._downloads.get(id)
        if download is not None and download.is_over:
            del self._downloads[id]

    def _offline_changed(self) -> None:
        offline = self._hub.is_offline
        for download in list(self._downloads.values()):
            if offline and download.state in item.ACTIVE:
                self._stop(download.id)
                if self._downloads[download.id].state is not item.State.DONE:
                    self._downloads[download.id] = item.failed(self._downloads[download.id], offline_error())
            elif not offline and download.trouble is Trouble.OFFLINE:
                self._set(download.id, item.State.QUEUED)

    def _close(self) -> None:
        for id in list(self._downloads):
            self._pause(id)
        self._closing = True

    def _set(self, id: str, state: item.State) -> None:
        download = self._downloads[id]
        self._downloads[id] = item.settled(download, state, download.done)

    def _stop(self, id: str) -> None:
        worker = self._workers.pop(id, None)
        if worker is not None:
            for report in worker.kill():
                self._take(id, report)
            self._rates.pop(id, None)


def _identity(model: item.Download | item.Wanted) -> tuple[str, str, str]:
    return model.repo, model.revision, model.files[0].name
