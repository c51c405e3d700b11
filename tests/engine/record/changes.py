"""Small changes to each single field of a record."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from typing import Any, get_type_hints

import msgspec

from app.engine.types import Draw, HeadInput, Race

_FILLED: dict[str, Any] = {
    "draft_p": 0.5, "p": 0.5, "u": 0.5, "h": 0.5, "target_id": 1, "match": 0, "strategy": "suffix",
    "asked": ("suffix",), "draw": Draw(0.5, 0.4, 0.6), "draft_draw": Draw(0.5, 0.4, 0.6),
    "race": Race(0.5), "draft_race": Race(0.5), "rival": 1, "rival_score": 0.1,
    "first_token_seconds": 1.0, "k": 3, "smoothed": 0.5,
    "head": HeadInput((0,), (1.0,)),
}  # fmt: skip
"""Values for fields that hold none."""


def changes(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """(path, new value) for each field at any depth; `path` names fields, not places in lists."""
    if isinstance(value, msgspec.Struct) or dataclasses.is_dataclass(value):
        yield from _of_record(value, path)
    elif isinstance(value, tuple):
        yield from _of_list(value, path)
    else:
        yield from ((path, new) for new in _of_leaf(value))


@cache
def _hints(kind: type[Any]) -> dict[str, Any]:
    return get_type_hints(kind)


def _of_record(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    replace = msgspec.structs.replace if isinstance(value, msgspec.Struct) else dataclasses.replace
    for name, hint in _hints(type(value)).items():  # type: ignore[arg-type]
        old, field = getattr(value, name), f"{path}.{name}".removeprefix(".")
        optional = type(None) in getattr(hint, "__args__", ())
        if old is None:
            if name in _FILLED:
                yield field, replace(value, **{name: _FILLED[name]})
        else:
            if optional:
                yield field, replace(value, **{name: None})
            yield from ((at, replace(value, **{name: new})) for at, new in changes(old, field))


def _of_list(value: tuple[Any, ...], path: str) -> Iterator[tuple[str, Any]]:
    if value:
        yield f"{path}[]", value[:-1]
        yield f"{path}[]", (*value, value[-1])
    if len(value) > 1 and isinstance(value[0], msgspec.Struct) and value[0] != value[1]:
        yield f"{path}[]", (value[1], value[0], *value[2:])
    for place in sorted({*range(len(value))[:2], *range(len(value))[-1:]}):  # a sample of all places
        for at, new in changes(value[place], path):
            yield at, (*value[:place], new, *value[place + 1 :])


def _of_leaf(value: Any) -> Iterator[Any]:
    match value:
        case bool():
            yield not value
        case StrEnum():
            yield from (member for member in type(value) if member is not value)
        case int():
            yield from (value + 1, value - 1)
        case float():
            yield value * 1.01 if value else 0.01
            if value:
                yield value * 0.99
        case str():
            yield f"{value}x"
        case bytes():
            yield value + b"x"
