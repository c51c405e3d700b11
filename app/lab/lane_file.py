"""Lanes from a file: strategies, each on the command line's pair or on its own pair."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import msgspec

from app.base.files import decode, read_file, reason
from app.engine.errors import SettingError
from app.engine.params import check_params
from app.engine.types import ModelOptions
from app.lab.experiment import Lane, Pair


class LaneEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lane as the file has it: models are paths or other names, or objects with their load options."""

    strategy: str
    label: str = ""
    target: str | dict[str, Any] | None = None
    draft: str | dict[str, Any] | None = None


_entries = msgspec.json.Decoder(list[LaneEntry])


def path_beside(written: str, folder: Path) -> str:
    """The absolute path; a relative one starts at the folder."""
    return os.path.abspath(folder / written)


def read_lanes(path: Path, own: Pair, resolve: Callable[[str, Path], str] = path_beside) -> tuple[Lane, ...]:
    """The lanes of a JSON list of `LaneEntry`.

    A lane without models runs on `own`; with a draft only, on own's target with that draft; with a target
    only, without a draft. `resolve` makes a model's path of what is written and the file's folder. Where the
    file gives only a path, the model is loaded with own's options. Raises SettingError.
    """
    try:
        entries = decode(_entries, read_file(path))
    except (OSError, ValueError) as error:  # a DamagedError is a ValueError
        why = reason(error) if isinstance(error, OSError) else str(error)
        raise SettingError(
            f"{path.name} cannot be read: {why}.",
            'Write a JSON list of {"strategy": "...", "target": "T.gguf", "draft": "D.gguf"}.',
        ) from error

    def options(written: str | dict[str, Any], like: ModelOptions) -> ModelOptions:
        given = replace(like, path=written) if isinstance(written, str) else _options(written, path)
        return replace(given, path=resolve(given.path, path.parent))

    def pair(entry: LaneEntry) -> Pair | None:
        if entry.target is None and entry.draft is None:
            return None
        target = own.target if entry.target is None else options(entry.target, own.target)
        draft = None if entry.draft is None else options(entry.draft, own.draft or own.target)
        return Pair(target, draft)

    return tuple(Lane(entry.strategy, entry.label, pair(entry)) for entry in entries)


def _options(written: dict[str, Any], file: Path) -> ModelOptions:
    """A model with its options; an unknown option, or a value that is not allowed, is refused."""
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
        raise SettingError(f"{file.name} cannot be used: {error}.", "Correct the model's options.") from None
    check_params(given)
    return given
