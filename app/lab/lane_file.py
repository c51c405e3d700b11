"""Lanes from a file: strategies, each on the pair of the command line or on one of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec

from app.base.files import decode, reason
from app.engine.errors import SettingError
from app.engine.params import check_params
from app.engine.types import ModelOptions
from app.lab.experiment import Lane, Pair


class LaneEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lane as it is written: models are paths, or objects with the options they are loaded by."""

    strategy: str
    label: str = ""
    target: str | dict[str, Any] | None = None
    draft: str | dict[str, Any] | None = None


_entries = msgspec.json.Decoder(list[LaneEntry])


def read_lanes(path: Path, own: Pair, resolve: Callable[[str], str] = str) -> tuple[Lane, ...]:
    """The lanes of a JSON list of `LaneEntry`.

    A lane without models runs on `own`, one with a draft only on own's target with that draft, one with a
    target only without a draft. `resolve` makes a real path of a written one; relative ones are seen from
    the file. Models are loaded by own's options where the file gives only a path. Raises SettingError.
    """
    try:
        entries = decode(_entries, path.read_bytes())
    except (OSError, ValueError) as error:  # a DamagedError is a ValueError
        why = reason(error) if isinstance(error, OSError) else str(error)
        raise SettingError(
            f"{path.name} cannot be read: {why}.",
            'Write a JSON list of {"strategy": "...", "target": "T.gguf", "draft": "D.gguf"}.',
        ) from error

    def options(written: str | dict[str, Any], like: ModelOptions) -> ModelOptions:
        given = replace(like, path=written) if isinstance(written, str) else _options(written, path)
        return replace(given, path=os.path.abspath(path.parent / resolve(given.path)))

    def pair(entry: LaneEntry) -> Pair | None:
        if entry.target is None and entry.draft is None:
            return None
        target = own.target if entry.target is None else options(entry.target, own.target)
        draft = None if entry.draft is None else options(entry.draft, own.draft or own.target)
        return Pair(target, draft)

    return tuple(Lane(entry.strategy, entry.label, pair(entry)) for entry in entries)


def _options(written: dict[str, Any], file: Path) -> ModelOptions:
    """A model with its options; a misspelt one, or a value that is not allowed, is refused."""
    allowed = [field.name for field in fields(ModelOptions)]
    unknown = [name for name in written if name not in allowed]
    if unknown:
        raise SettingError(
            f"{file.name} cannot be used: a model has no option “{unknown[0]}”.",
            f"Allowed: {', '.join(allowed)}.",
        )
    try:
        given = msgspec.convert(written, ModelOptions)
    except msgspec.ValidationError as error:
        raise SettingError(f"{file.name} cannot be used: {error}.", "Mend the model's options.") from None
    check_params(given)
    return given
