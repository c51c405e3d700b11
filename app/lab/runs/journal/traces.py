"""The traces of an experiment's runs, one compressed file each, in a folder."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import tempfile
import weakref
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from app.base.files import make_own_folder, partial_of, read_file, reason, write_atomic, write_hint
from app.engine.errors import TraceError, UserError
from app.engine.record.trace import Trace, line_of, parse_trace
from app.lab.experiment import Job

_FILES = "*.jsonl.gz"
_LEVEL = 3  # compresses to a tenth; a higher level costs more time than it saves


class TraceStore:
    """Keeps traces on disk, so that a long suite does not fill the memory and a crash loses no trace."""

    def __init__(self, folder: Path | None = None) -> None:
        """Without a `folder` the traces are in a temporary one, until `close`."""
        self._remove: Callable[[], object] | None = None
        try:
            if folder is None:
                self.folder = Path(tempfile.mkdtemp(prefix="draftscope-"))
                self._remove = weakref.finalize(self, shutil.rmtree, self.folder, True)
            else:
                self.folder = folder
                make_own_folder(self.folder)
        except OSError as error:
            raise UserError(
                f"The folder for traces cannot be made: {reason(error)}.",
                write_hint(error, folder.parent if folder is not None else "for temporary files"),
            ) from error

    def put(self, job: Job, trace: Trace) -> None:
        """Write a trace, whole or not at all. Raises UserError."""
        try:
            write_atomic(self._path(job), gzip.compress(trace_bytes(trace), _LEVEL, mtime=0))
        except OSError as error:
            raise UserError(
                f"A trace cannot be written: {reason(error)}.",
                f"{write_hint(error, self.folder)} Then resume from the journal.",
            ) from error

    def get(self, job: Job) -> Trace | None:
        """The trace of a run; None where there is none. Raises TraceError where it is damaged."""
        try:
            lines = _lines(self._path(job))
        except OSError:
            return None
        return parse_trace(io.BytesIO(lines), self._path(job).name)

    def readable(self, job: Job) -> Trace | None:
        """As `get`, but None where it is damaged: the numbers of a run do not depend on its trace."""
        try:
            return self.get(job)
        except TraceError:
            return None

    def clear(self) -> None:
        """Remove all traces, those of an earlier measurement of this name. Raises UserError."""
        try:
            for file in self.folder.glob(_FILES):
                file.unlink()
        except OSError as error:
            raise UserError(
                f"The traces in {self.folder.name} cannot be removed: {reason(error)}.",
                "Choose another name.",
            ) from error

    def archive(self, path: Path, stopped: Callable[[], bool] = lambda: False) -> None:
        """Write all traces to one zip file, as plain files that the window and `draftscope replay` read;
        writes no file if it is `stopped` before the end.

        Raises OSError, and TraceError where a trace is damaged.
        """
        partial = partial_of(path)
        try:
            with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL) as archive:
                for file in sorted(self.folder.glob(_FILES)):
                    if stopped():
                        return
                    archive.writestr(file.name.removesuffix(".gz"), _lines(file))
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove a temporary folder."""
        if self._remove is not None:
            self._remove()

    def _path(self, job: Job) -> Path:
        return self.folder / f"{job.prompt:04}-{job.repeat:02}-{job.lane:02}.jsonl.gz"


def _lines(file: Path) -> bytes:
    """The lines of a trace; raises OSError, and TraceError where the file is damaged."""
    data = read_file(file)
    try:
        return gzip.decompress(data)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise TraceError(f"{file.name} is damaged: {error}.") from error


def trace_bytes(trace: Trace) -> bytes:
    """A trace as the lines of its file."""
    lines = [line_of(trace.header), *map(line_of, trace.rounds)]
    return b"".join(lines if trace.totals is None else [*lines, line_of(trace.totals)])
