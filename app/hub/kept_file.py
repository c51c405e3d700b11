"""Files that are read again at the next start: one that cannot be used is set aside and named, never lost."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from app.base.files import decode, reason, set_aside

T = TypeVar("T")


class NewerError(ValueError):
    """A newer version of Draftscope wrote the file."""


class _Version(msgspec.Struct, frozen=True):
    version: int = 1


_version = msgspec.json.Decoder(_Version)


def decode_kept(data: bytes, kind: type[T], newest: int) -> T:
    """The contents of a file. Raises NewerError where its version is above `newest`, whatever else it holds,
    and DamagedError where it is damaged."""
    if decode(_version, data).version > newest:
        raise NewerError
    return decode(msgspec.json.Decoder(kind), data)


def put_aside(path: Path, subject: str, error: OSError | ValueError) -> str:
    """Rename a file that could not be read, so that nothing overwrites it; returns the sentence about it,
    which begins with `subject`. Never raises."""
    if isinstance(error, NewerError):
        word, why = "newer", "a newer version of Draftscope wrote it"
    else:
        word, why = "damaged", reason(error) if isinstance(error, OSError) else "it is damaged"
    try:
        kept = f"; it is kept as {set_aside(path, word).name}"
    except OSError:
        kept = ""
    return f"{subject} could not be read ({why}){kept}."
