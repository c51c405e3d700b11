"""Rounds read from a trace file, with their alternatives left as they stand there.

Ten alternatives a row are most of a trace: as objects they take five times the memory of their JSON, and few
of them are ever looked at. They are checked when they are read, and decoded again when they are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, overload

import msgspec

from app.base.files import DamagedError, decode
from app.engine.types import Alternatives, Probability, Round


class _Row(msgspec.Struct, frozen=True, gc=False):
    """Alternatives, checked as they are decoded."""

    ids: list[int]  # lists: they are decoded in less time than tuples
    pieces: list[bytes]
    p: list[Probability]


_checked = msgspec.json.Decoder(list[_Row])
_rows = msgspec.json.Decoder(tuple[Alternatives, ...])


class PackedAlternatives(Sequence[Alternatives]):
    """The alternatives of a round as JSON; equal to the tuple that they stand for."""

    __slots__ = ("json",)

    def __init__(self, json: bytes) -> None:
        """Raises DamagedError if these are no alternatives."""
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

    def __repr__(self) -> str:
        return repr(_decoded(self.json))


@lru_cache(maxsize=64)  # the rounds that are looked at; a loop over the places of one decodes it once
def _decoded(json: bytes) -> tuple[Alternatives, ...]:
    return _rows.decode(json)


_PACKED = ("target_top", "draft_top")


def _line_fields() -> Iterator[tuple[str, Any, Any]]:
    for field in msgspec.structs.fields(Round):
        if field.name in _PACKED:
            yield field.name, msgspec.Raw, msgspec.Raw()
        else:
            given: dict[str, Any] = {"default": field.default, "default_factory": field.default_factory}
            yield field.name, field.type, msgspec.field(**given)


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
    """What an encoder writes for packed alternatives (its enc_hook)."""
    if isinstance(value, PackedAlternatives):
        return msgspec.Raw(value.json)
    raise TypeError(f"{type(value).__name__} is not part of a trace")
