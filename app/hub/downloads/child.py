"""The child process that fetches one item: it can be killed at any moment, which is what cancel does."""

from __future__ import annotations

import logging
import os
import signal
import threading
from multiprocessing.connection import Connection

from app.hub.downloads.messages import DownloadFailed, DownloadFinished, Report, decode_job, encode
from app.hub.errors import HubError, Trouble


def serve(connection: Connection, job: bytes) -> None:
    """Run the job and report on it, until DownloadFinished or DownloadFailed; the process ends early when
    nothing reads its reports."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the parent to handle
    # Addresses in the client's messages may carry signatures; what matters is reported.
    logging.disable(logging.CRITICAL)

    def send(report: Report) -> None:
        try:
            connection.send_bytes(encode(report))
        except OSError:
            os._exit(0)

    threading.Thread(target=_leave_with_parent, args=(connection,), name="parent", daemon=True).start()
    try:
        from app.hub.downloads.fetch import Fetcher

        Fetcher(decode_job(job), send).run()
        send(DownloadFinished())
    except HubError as error:
        send(DownloadFailed(error.trouble, error.message, error.hint))
    except BaseException as error:
        # Only its type: its text could hold an address with a signature.
        kind = type(error).__name__
        send(DownloadFailed(Trouble.CRASHED, f"The download failed unexpectedly ({kind}).", "Resume it."))
    connection.close()
    os._exit(0)


def _leave_with_parent(connection: Connection) -> None:
    """End the process when the parent closes its end of the pipe: nothing else ever arrives here."""
    try:
        connection.recv_bytes()
    except (EOFError, OSError):
        os._exit(0)
