"""The child process that fetches an item, and the queue's side of it. It can be killed at any moment, to
cancel."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from multiprocessing.connection import Connection

from app.base.processes import Child, exit_words
from app.hub.downloads import item
from app.hub.errors import HubError, Trouble


def serve(connection: Connection, job: bytes) -> None:
    """Run the job and report on it, until DownloadFinished or DownloadFailed. The process ends early if
    nothing reads its reports."""
    # Addresses in the client's messages may carry signatures; what matters is reported.
    logging.disable(logging.CRITICAL)

    def send(report: item.Report) -> None:
        try:
            connection.send_bytes(item.encode(report))
        except OSError:
            os._exit(0)

    threading.Thread(target=_leave_with_parent, args=(connection,), name="parent", daemon=True).start()
    try:
        from app.hub.downloads.fetch import Fetcher

        Fetcher(item.decode_job(job), send).run()
        send(item.DownloadFinished())
    except HubError as error:
        send(item.DownloadFailed(error.trouble, error.message, error.hint))
    except BaseException as error:
        # Only its type: its text could hold an address with a signature.
        kind = type(error).__name__
        send(
            item.DownloadFailed(Trouble.CRASHED, f"The download failed unexpectedly ({kind}).", "Resume it.")
        )
    connection.close()
    os._exit(0)


def _leave_with_parent(connection: Connection) -> None:
    """End the process when the parent closes its end of the pipe. (Nothing else ever arrives here.)"""
    try:
        connection.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)


_GOODBYE_SECONDS = 5.0


class Worker:
    """A child process at work on one job."""

    def __init__(self, job: item.DownloadJob) -> None:
        self._child = Child("draftscope download", serve, item.encode(job))
        self.connection = self._child.connection
        self.ended = False

    @property
    def pid(self) -> int | None:
        return self._child.pid

    def reports(self) -> Iterator[item.Report]:
        """Reports that have arrived since the last call; never waits. Sets `ended` after the last one."""
        try:
            while not self.ended and self.connection.poll():
                report: item.Report = self._child.hear(item.decode_report)
                self.ended = isinstance(report, (item.DownloadFailed, item.DownloadFinished))
                yield report
        except (EOFError, OSError):
            self.ended = True
            ended = exit_words(self._child.end(_GOODBYE_SECONDS))
            yield item.DownloadFailed(
                Trouble.CRASHED,
                f"The download process ended unexpectedly ({ended}).",
                "Resume: what was downloaded is kept.",
            )

    def kill(self) -> Iterator[item.Report]:
        """End the process now; yields its remaining reports. It writes nothing afterwards."""
        self._child.end()
        yield from (report for report in self.reports() if not isinstance(report, item.DownloadFailed))
        self.close()

    def close(self) -> None:
        """Release everything, after the end or `kill`."""
        self._child.end(_GOODBYE_SECONDS)
        self._child.close()
