"""The engine's last words where native code ends its process: where each of its Python threads was."""

from __future__ import annotations

import faulthandler
import os
from multiprocessing import Pipe
from multiprocessing.connection import Connection

_MOST = 2**16  # bytes, what a pipe holds


class FaultDump:
    """A pipe that faulthandler writes into: file names, lines and functions, no values.

    A pipe leaves no file behind, and what is in it outlives the process. On Windows, whose pipes are no files
    to faulthandler, nothing is written.
    """

    def __init__(self) -> None:
        self._reading, self.writing = Pipe(duplex=False)  # `writing` is for the process

    def read(self) -> str:
        """What an ended process has written; "" where that is nothing."""
        if os.name != "posix":
            return ""
        os.set_blocking(self._reading.fileno(), False)
        try:
            return os.read(self._reading.fileno(), _MOST).decode("utf-8", errors="replace")
        except BlockingIOError:  # nothing, and a child of the process holds the pipe
            return ""

    def close(self) -> None:
        self._reading.close()


def dump_faults(writing: Connection) -> None:
    """In the engine process: have faulthandler write there. The connection must stay open."""
    if os.name == "posix":
        os.set_blocking(writing.fileno(), False)  # a full pipe cuts the dump, and hangs nothing
        faulthandler.enable(writing.fileno())
