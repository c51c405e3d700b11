"""Traces: an append-only list of rounds, kept as JSON Lines.

Most of a trace is alternatives, ten a row. As objects they take five times the memory of their JSON, and few
are ever viewed. They are checked when read, and decoded again when viewed.

The trace is the model of every view: live is a cursor at its end. Line 1 is the header, then comes one line
per round, then the totals. Bytes are base64, numbers plain JSON. A file cut in its last line (a crash, a full
disk) is read up to there; `salvage_trace` reads the rest of a damaged file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

import msgspec

from app.base.files import DamagedError, decode, open_file, open_own, reason, write_atomic
from app.engine.errors import TraceError
from app.engine.fates import JUDGED
from app.engine.loop.text import TextStream
from app.engine.types import Alternatives, Probability, Round, Totals, TraceHeader


class _Row(msgspec.Struct, frozen=True, gc=False):
    """Alternatives, checked as they are decoded."""

    ids: list[int]  # lists: they are decoded in less time than tuples
    pieces: list[bytes]
    p: list[Probability]


_checked = msgspec.json.Decoder(list[_Row])
_rows = msgspec.json.Decoder(tuple[Alternatives, ...])


class PackedAlternatives(Sequence[Alternatives]):
    """A round's alternatives as JSON; equal to the tuple that they encode."""

    __slots__ = ("json",)

    def __init__(self, json: bytes) -> None:
        """Raises DamagedError if these are not alternatives."""
        for row in decode(_checked, json):
            if not len(row.ids) == len(row.pieces) == len(row.p):
                raise DamagedError("its alternatives are incomplete")
        self.json = json

    @overload
    def __getitem__(self, place: int) -> Alternatives: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Alternatives, ...]: ...

    def __getitem__(self, place: int | slice) -> Alternatives | tuple[Alternatives, ...]:
        return _decoded(self.json)[place]

    def __len__(self) -> int:
        return len(_decoded(self.json))

    def __iter__(self) -> Iterator[Alternatives]:
        return iter(_decoded(self.json))

    def __eq__(self, rows: object) -> bool:
        return isinstance(rows, Sequence) and _decoded(self.json) == tuple(rows)

    def __hash__(self) -> int:
        return hash(_decoded(self.json))


@lru_cache(maxsize=64)  # the rounds that are looked at; a loop over the places of one decodes it once
def _decoded(json: bytes) -> tuple[Alternatives, ...]:
    return _rows.decode(json)


_PACKED = ("target_top", "draft_top")


def _line_fields() -> Iterator[tuple[str, Any, Any]]:
    for each in msgspec.structs.fields(Round):
        if each.name in _PACKED:
            yield each.name, msgspec.Raw, msgspec.Raw()
        else:
            given: dict[str, Any] = {"default": each.default, "default_factory": each.default_factory}
            yield each.name, each.type, msgspec.field(**given)


_Line = msgspec.defstruct("_Line", list(_line_fields()), gc=False)
_line = msgspec.json.Decoder(_Line)
_PLACES = [_Line.__struct_fields__.index(name) for name in _PACKED]


def decode_round(line: bytes) -> Round:
    """The round of a line. Raises DamagedError."""
    values = list(msgspec.structs.astuple(decode(_line, line)))
    for place in _PLACES:
        # A copy: a view would keep the whole line.
        values[place] = PackedAlternatives(bytes(values[place])) if len(values[place]) else ()
    return Round(*values)


def as_json(value: object) -> msgspec.Raw:
    """The enc_hook of encoders, for packed alternatives."""
    if isinstance(value, PackedAlternatives):
        return msgspec.Raw(value.json)
    raise TypeError(f"{type(value).__name__} is not part of a trace")


FORMAT = "1.10"
# 1.1: block verification, with the field h; 1.2: the strategies asked in a round; 1.3: the time that a draft
# model read in it; 1.4: the chat, the machine, and the rarer sampler settings; 1.5: DRY, the chat template's
# options, and its thinking options; 1.6: fill in the middle, prompts given as tokens, and the time of
# strategies to begin and to learn; 1.7: answers of servers, which tell neither p nor q; 1.8: k
# and the smoothed acceptance of length=ewma; 1.9: the prompt in tokens; 1.10: draws by noise, race in
# place of draw and draft_race in place of draft_draw, and what a head read

_encoder = msgspec.json.Encoder(enc_hook=as_json)
_header = msgspec.json.Decoder(TraceHeader)
_totals = msgspec.json.Decoder(Totals)
_PART = 256  # lines: some ten milliseconds of reading
_BUFFER = 1 << 17  # bytes: a line of a sampled answer is longer than the usual buffer


class _TraceFormat(msgspec.Struct):
    format: str
    title: str | None = None  # that results of measurements have


_format = msgspec.json.Decoder(_TraceFormat)


@dataclass(slots=True)
class Trace:
    """One answer: the request, every round so far, and, after the end, the totals."""

    header: TraceHeader
    rounds: list[Round] = field(default_factory=list)
    totals: Totals | None = None

    @property
    def token_ids(self) -> tuple[int, ...]:
        """All emitted tokens, including an end-of-generation token."""
        return tuple(token.id for round in self.rounds for token in round.emitted)

    @property
    def text(self) -> str:
        """The answer's text: never a rejected or ignored token, never a stop string."""
        if self.totals is not None:
            return self.totals.text
        return _text_of(self.rounds, self.header.stop)


class TraceWriter:
    """Appends a trace to a file while it is generated; every line is on disk before the next one starts."""

    def __init__(self, path: Path, header: TraceHeader) -> None:
        self.path = path
        self._file = open_own(path, "wb")
        self._write(header)

    def add(self, item: Round | Totals) -> None:
        self._write(item)

    def _write(self, item: TraceHeader | Round | Totals) -> None:
        self._file.write(line_of(item))
        self._file.flush()

    def close(self) -> None:
        self._file.close()


def line_of(item: TraceHeader | Round | Totals) -> bytes:
    """An item as its line of a trace file."""
    return _encoder.encode(item) + b"\n"


def trace_bytes(trace: Trace) -> bytes:
    """A trace as the lines of its file."""
    ends = () if trace.totals is None else (trace.totals,)
    return b"".join(map(line_of, (trace.header, *trace.rounds, *ends)))


def write_trace(path: Path, trace: Trace) -> None:
    """Write a whole trace; the file appears complete or not at all."""
    write_atomic(path, trace_bytes(trace))


def read_trace(path: Path) -> Trace:
    """Read a trace file; raises TraceError."""
    try:
        with open_file(path, _BUFFER) as lines:
            return parse_trace(lines, path.name)
    except OSError as error:
        raise TraceError(
            f"{path.name} cannot be read: {error.strerror or error}.", "Choose a different trace."
        ) from error


@dataclass(slots=True)
class Salvaged:
    """The readable parts of a possibly damaged trace file."""

    trace: Trace | None = None  # up to the damage; None if even the header is damaged
    text: str = ""  # the answer's text, including text after the damage
    damage: TraceError | None = None


def salvage_trace(path: Path) -> Salvaged:
    """Read the readable part of a trace file. Never raises: damage is part of the result."""
    *_, found = salvage_in_parts(path)
    return found


def salvage_in_parts(path: Path) -> Iterator[Salvaged]:
    """Like `salvage_trace`, in steps of _PART lines: yields what is read so far, and last the whole."""
    try:
        with open_file(path, _BUFFER) as lines:
            yield from _salvaged(lines, path.name)
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        yield Salvaged(
            damage=TraceError(f"{path.name} cannot be read: {reason(error)}.", "Choose a different trace.")
        )


def parse_trace(lines: Iterable[bytes], name: str = "the trace") -> Trace:
    """Build a trace from its lines; a truncated last line is left out. Raises TraceError if it is damaged."""
    *_, found = _salvaged(lines, name)
    if found.damage is not None:
        raise found.damage
    assert found.trace is not None  # otherwise the header is damaged
    return found.trace


def _salvaged(lines: Iterable[bytes], name: str) -> Iterator[Salvaged]:
    found = Salvaged()
    behind: list[Round] = []  # the damage
    totals: Totals | None = None
    emitted = 0  # tokens of the trace so far
    every = enumerate(lines, start=1)
    numbered: Iterator[tuple[int, bytes]] = (each for each in every if not each[1].isspace())
    number, first = next(numbered, (1, b""))
    try:
        found.trace = Trace(_read_header(first, number, name))
    except TraceError as error:
        found.damage = error
        numbered = itertools.chain([(number, first)], numbered)  # the first line may be missing
    for number, line in numbered:
        if not number % _PART:
            yield found
        try:
            is_last = b'"finish_reason"' in line[:20]
            item: Round | Totals = decode(_totals, line) if is_last else decode_round(line)
        except DamagedError as error:
            cut_off = not line.endswith(b"\n")  # cut while it was written, by a crash: not damage
            if found.damage is None and not cut_off:
                found.damage = _damage(name, number, error)
            continue
        flaw = ""
        if found.trace is not None and found.damage is None:
            flaw = "it follows the totals" if found.trace.totals is not None else ""
            if isinstance(item, Round):
                flaw = flaw or _flaw(item, found.trace, emitted)
                emitted += len(item.emitted)
            if flaw:
                found.damage = TraceError(f"{name}, line {number}, is damaged: {flaw}.")
            elif isinstance(item, Totals):
                found.trace.totals = item
            else:
                found.trace.rounds.append(item)
        if isinstance(item, Totals):
            totals = item
        elif found.damage is not None:
            behind.append(item)
    if totals is not None:
        found.text = totals.text
    else:
        known, stop = (found.trace.rounds, found.trace.header.stop) if found.trace is not None else ((), ())
        found.text = _text_of(itertools.chain(known, behind), stop)
    yield found


def _text_of(rounds: Iterable[Round], stop: Sequence[str]) -> str:
    """The text of rounds that may end anywhere, including text held back as a possible stop."""
    stream = TextStream(stop)
    for round in rounds:
        for token in round.emitted:
            stream.add(token.piece)
    stream.finish()
    return stream.text


def _flaw(item: Round, trace: Trace, emitted: int) -> str:
    """Why a round is impossible after the earlier rounds and `emitted` tokens; "" if it is possible. Views
    rely on this: they find rounds by index and plot measured values."""
    if item.index != len(trace.rounds) or item.position != emitted:
        return "its round does not follow the previous one"
    if trace.rounds and item.offset < trace.rounds[-1].offset:
        return "it begins before the previous one"
    if sum(token.verdict in JUDGED for token in item.drafted) > len(item.emitted):
        return "it judges more tokens than it emits"
    return ""


def _read_header(line: bytes, number: int, name: str) -> TraceHeader:
    """Raises TraceError."""
    _check_format(line, name)
    try:
        return decode(_header, line)
    except DamagedError as error:
        raise _damage(name, number, error) from error


def _damage(name: str, number: int, error: DamagedError) -> TraceError:
    return TraceError(f"{name}, line {number}, is damaged: {error}.")


def _check_format(line: bytes, name: str) -> None:
    try:
        head = decode(_format, line)
        version = head.format
        major = int(version.split(".")[0])
    except ValueError:
        raise TraceError(
            f"{name} is not a Draftscope trace.", "Choose a .jsonl file that Draftscope wrote."
        ) from None
    if head.title is not None:
        raise TraceError(
            f"{name} contains the results of a measurement, not an answer.",
            "Choose a .jsonl file that Draftscope wrote; draftscope compare reads results.",
        )
    if major > int(FORMAT.split(".", maxsplit=1)[0]):
        raise TraceError(
            f"{name} has the newer trace format {version}; this version reads {FORMAT}.",
            "Update Draftscope to open it.",
        )
