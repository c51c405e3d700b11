"""Trial loading of drafter files in a separate process: a file that hangs or crashes must not take down
the window, in which the user could remove it from the list."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection

from app.base.processes import start_child
from app.engine.drafters.foreign import Stamp, source_name
from app.engine.errors import DrafterError
from app.engine.plugins import file_stamp, run_file, unread_files, use_drafters
from app.engine.process.safer import exit_words

TIME_LIMIT = 10.0  # seconds for a file; it may import a large package from a slow disk
_LONGEST = 20  # bytes of a message
_START_LIMIT = 60.0  # seconds until the process starts reading, which is not the files' fault
_ADVICE = "Fix it and reload, or remove it."


class TriedDrafters:
    """`use_drafters` for untrusted files."""

    def __init__(self, limit: float = TIME_LIMIT) -> None:
        self._limit = limit
        self._tried: dict[str, tuple[Stamp | None, DrafterError | None]] = {}  # None: harmless

    def use(self, files: Sequence[str]) -> Mapping[str, DrafterError]:
        """Register the drafters of installed packages and of exactly these files, except harmful ones.

        Returns the errors: file or entry point -> why it cannot be used. Each file is tried once, until it
        changes or until `forget`.
        """
        stamps = {file: file_stamp(file) for file in files}
        self._tried = {file: result for file, result in self._tried.items() if result[0] == stamps.get(file)}
        untried = [file for file in unread_files(files) if file not in self._tried]
        while untried:
            read, error = self._read(untried)
            done, untried = untried[: read + 1], untried[read + 1 :]
            self._tried |= {file: (stamps[file], error if file == done[-1] else None) for file in done}
        tried = {file: self._tried[file][1] for file in files if file in self._tried}
        problems = {file: error for file, error in tried.items() if error is not None}
        return {**problems, **use_drafters([file for file in files if file not in problems])}

    def forget(self) -> None:
        """Make the next `use` try every file again."""
        self._tried.clear()

    def _read(self, files: Sequence[str]) -> tuple[int, DrafterError | None]:
        """Index of the first harmful file, and its error; index of the last file if none is harmful."""
        process, ours = start_child("draftscope drafters", _read_all, tuple(files), fresh=True)
        at, limit = 0, _START_LIMIT
        try:
            while ours.poll(limit):
                # A number as text: nothing that a file writes into the pipe is executed here.
                at, limit = range(len(files) + 1)[int(ours.recv_bytes(_LONGEST))], self._limit
                if at == len(files):
                    return at - 1, None
            why = f"it was not read within {limit:.0f} s"
        except (EOFError, OSError):
            process.join(_START_LIMIT)
            why = f"it ended the process that read it ({exit_words(process.exitcode)})"
        except (ValueError, IndexError):
            why = "it disturbed the process that read it"
        finally:
            process.kill()
            process.join()
            process.close()
            ours.close()
        return at, DrafterError(f"{source_name(files[at])} is not used: {why}.", _ADVICE)


def _read_all(connection: Connection, files: Sequence[str]) -> None:
    """In the child process: announce the next file, then read it. What a file raises is reported when it is
    used."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the parent to handle
    for at, file in enumerate(files):
        connection.send_bytes(str(at).encode())
        with contextlib.suppress(DrafterError):
            run_file(os.path.abspath(file))
    connection.send_bytes(str(len(files)).encode())
    os._exit(0)  # does not wait for threads that a file started
