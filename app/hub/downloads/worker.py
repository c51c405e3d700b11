"""The queue's side of a child process."""

from __future__ import annotations

from collections.abc import Iterator

from app.base.processes import hear, start_child
from app.hub.downloads.child import serve
from app.hub.downloads.messages import (
    DownloadFailed,
    DownloadFinished,
    DownloadJob,
    Report,
    decode_report,
    encode,
)
from app.hub.errors import Trouble

_GOODBYE_SECONDS = 5.0


class Worker:
    """One child process at work on one job."""

    def __init__(self, job: DownloadJob) -> None:
        self._process, self.connection = start_child("draftscope download", serve, encode(job))
        self.ended = False

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def reports(self) -> Iterator[Report]:
        """Reports that have arrived since the last call; never waits. Sets `ended` after the last one."""
        try:
            while not self.ended and self.connection.poll():
                report: Report = hear(self.connection, decode_report)
                self.ended = isinstance(report, (DownloadFailed, DownloadFinished))
                yield report
        except (EOFError, OSError):
            self.ended = True
            self._process.join(_GOODBYE_SECONDS)
            code = self._process.exitcode
            yield DownloadFailed(
                Trouble.CRASHED,
                f"The download process ended unexpectedly (exit code {code}).",
                "Resume: what was downloaded is kept.",
            )

    def kill(self) -> Iterator[Report]:
        """End the process now; yields its remaining reports. It writes nothing afterwards."""
        self._process.kill()
        self._process.join()
        yield from (report for report in self.reports() if not isinstance(report, DownloadFailed))
        self.close()

    def close(self) -> None:
        """Release everything, after the end or `kill`."""
        self._process.join(_GOODBYE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self.connection.close()
        self._process.close()
