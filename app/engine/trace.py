"""Traces: an append-only list of rounds, kept as JSON Lines.

The trace is the model of every view: live is a cursor at its end. Line 1 is the header, then one line a
round, last the totals. Bytes are base64, numbers plain JSON. A file cut in its last line (a crash, a full
disk) is read up to there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import msgspec

from app.engine.errors import TraceError
from app.engine.text import TextStream
from app.engine.types import Round, Totals, TraceHeader

FORMAT = "1.3"
# 1.1: block verification, with the field h; 1.2: a round says who was asked for a draft; 1.3: and how long a
# draft model read in it

_encoder = msgspec.json.Encoder()
_header = msgspec.json.Decoder(TraceHeader)
_round = msgspec.json.Decoder(Round)
_totals = msgspec.json.Decoder(Totals)
_DAMAGE = (msgspec.DecodeError, UnicodeDecodeError)  # msgspec gives the second where a text is not UTF-8


class _Format(msgspec.Struct):
    format: str


@dataclass(slots=True)
class Trace:
    """One answer: what was asked, every round so far, and (once it is over) how it ended."""

    header: TraceHeader
    rounds: list[Round] = field(default_factory=list)
    totals: Totals | None = None

    @property
    def token_ids(self) -> tuple[int, ...]:
        """All emitted tokens, an end-of-generation token included."""
        return tuple(token.id for one in self.rounds for token in one.emitted)

    @property
    def text(self) -> str:
        """The answer: never a rejected or ignored token, never a stop string."""
        if self.totals is not None:
            return self.totals.text
        stream = TextStream(self.header.stop)
        for one in self.rounds:
            for token in one.emitted:
                stream.add(token.piece)
        return stream.text


class TraceWriter:
    """Appends a trace to a file as it happens; every line is on disk before the next one starts."""

    def __init__(self, path: Path, header: TraceHeader) -> None:
        self.path = path
        self._file: BinaryIO = path.open("wb")
        self._write(header)

    def add(self, item: Round | Totals) -> None:
        self._write(item)

    def _write(self, item: TraceHeader | Round | Totals) -> None:
        self._file.write(_encoder.encode(item) + b"\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def write_trace(path: Path, trace: Trace) -> None:
    """Write a whole trace; the file appears complete or not at all."""
    partial = path.with_name(path.name + ".partial")
    with TraceWriter(partial, trace.header) as writer:
        for one in trace.rounds:
            writer.add(one)
        if trace.totals is not None:
            writer.add(trace.totals)
    os.replace(partial, path)


def read_trace(path: Path) -> Trace:
    """Read a trace file; raises TraceError in a sentence for people."""
    try:
        with path.open("rb") as lines:
            return parse_trace(lines, path.name)
    except OSError as error:
        raise TraceError(
            f"{path.name} cannot be read: {error.strerror or error}.", "Choose another file."
        ) from error


def parse_trace(lines: Iterable[bytes], name: str = "the trace") -> Trace:
    """Build a trace from its lines; a truncated last line is left out."""
    numbered = _numbered(lines)
    number, first = next(numbered, (1, b""))
    _check_format(first, name)
    try:
        trace = Trace(_header.decode(first))
    except _DAMAGE as error:
        raise TraceError(f"{name}, line {number}, is damaged: {error}.") from error
    broken: TraceError | None = None
    for number, line in numbered:
        if broken is not None:
            raise broken  # damage before the last line is not a truncation
        if trace.totals is not None:
            raise TraceError(f"{name}, line {number}, stands behind the totals.")
        try:
            if b'"finish_reason"' in line[:20]:
                trace.totals = _totals.decode(line)
            else:
                trace.rounds.append(_round.decode(line))
        except _DAMAGE as error:
            broken = TraceError(f"{name}, line {number}, is damaged: {error}.")
    return trace


def _numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield number, line


def _check_format(line: bytes, name: str) -> None:
    try:
        version = msgspec.json.decode(line, type=_Format).format
        major = int(version.split(".")[0])
    except (msgspec.DecodeError, ValueError):
        raise TraceError(
            f"{name} is not a Draftscope trace.", "Choose a .jsonl file that Draftscope wrote."
        ) from None
    if major > int(FORMAT.split(".", maxsplit=1)[0]):
        raise TraceError(
            f"{name} has the newer trace format {version}; this version reads {FORMAT}.",
            "Update Draftscope to open it.",
        )
