"""Keeps the trace of a run, in memory and optionally in a file."""

from __future__ import annotations

import contextlib
from pathlib import Path

from app.base.files import SHARED, reason, write_atomic
from app.engine.errors import UserError
from app.engine.process.messages import Event, Finished, RoundFinished, Started, kept
from app.engine.record.trace import Trace, TraceWriter
from app.engine.types import FinishReason, Round, Totals


class RunRecorder:
    """The trace of one run. Every round is in the file before the next one comes."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._writer: TraceWriter | None = None
        self.trace: Trace | None = None

    def keep(self, event: Event) -> None:
        """Add an event to the trace."""
        self.trace = kept(self.trace, event)
        if isinstance(event, Started) and self._path is not None:
            try:
                self._writer = TraceWriter(self._path, event.header)
            except OSError as error:
                raise cannot_write(self._path, error) from error
        elif isinstance(event, RoundFinished):
            self._write(event.round)
        elif isinstance(event, Finished):
            self._write(event.totals)

    def fail(self, message: str) -> None:
        """End the trace of an answer that broke off, unless it is over or did not begin."""
        if self.trace is None or self.trace.totals is not None:
            return
        last = self.trace.rounds[-1] if self.trace.rounds else None
        totals = Totals(
            finish_reason=FinishReason.FAILED,
            text=self.trace.text,
            seconds=last.offset + last.seconds if last else 0.0,
            prompt_seconds=0.0,
            draft_prompt_seconds=0.0,
            first_token_seconds=None,
            error=message,
        )
        with contextlib.suppress(UserError):  # the first failure is the one to report
            self.keep(Finished(0, totals))

    def close(self) -> None:
        if self._writer is not None:
            # On a full disk closing fails on the unwritten rest, which was reported already.
            with contextlib.suppress(OSError):
                self._writer.close()

    def _write(self, item: Round | Totals) -> None:
        if self._writer is None:
            return
        try:
            self._writer.add(item)
        except OSError as error:
            path = self._writer.path
            self.close()
            self._writer = None
            raise cannot_write(path, error) from error


def check_writable(path: Path) -> None:
    """Raise UserError for a file that cannot be written, before anything is computed for it."""
    try:
        # A pipe's reader would take opening and closing it for its end.
        if is_special(path):
            return
        real = path.resolve()  # a link to a missing file must stay
        new = not real.exists()
        real.open("ab").close()
        if new:
            real.unlink()
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        raise cannot_write(path, error) from error


def write_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, a pipe or a device directly; raises UserError."""
    try:
        if is_special(path):
            with path.open("ab") as file:
                file.write(data)
        else:
            write_atomic(path.resolve(), data, SHARED)  # a link stays, and points to the new file
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError | ValueError) -> UserError:
    if isinstance(error, FileNotFoundError) and not path.parent.is_dir():
        return UserError(
            f"{path} cannot be written: there is no folder {path.parent}.",
            "Make it, or choose a different output file.",
        )
    return UserError(f"{path} cannot be written: {reason(error)}.", "Choose a different output file.")


def is_special(path: Path) -> bool:
    """Whether a path is not a plain file and must not be replaced. (/dev/stdout is a link, which may lead to
    a plain file.)"""
    if path.absolute().is_relative_to("/dev"):
        return True
    return path.exists() and not path.is_file() and not path.is_dir()
