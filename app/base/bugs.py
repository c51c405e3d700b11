"""A bug in words that can be logged and passed on: where it is, and never what the program was working on."""

from __future__ import annotations

import traceback
from pathlib import Path

_TELLING = (AttributeError, NameError, TypeError, ImportError, IndexError, ZeroDivisionError, AssertionError)
"""Errors whose own text names parts of the program. That of others may quote a prompt, an answer or a key."""
_CAUSES = 10


def bug_words(error: BaseException) -> str:
    """A traceback of `error` and of what caused it; their texts are in it only if they quote no data."""
    parts: list[str] = []
    found: BaseException | None = error
    while found is not None and len(parts) < _CAUSES:
        parts.insert(0, "".join(traceback.format_tb(found.__traceback__)) + _named(found))
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return "\nThis led to:\n".join(parts)


def bug_line(error: BaseException) -> str:
    """The kind of an error and its place, for the middle of a sentence: "KeyError at store.py:12"."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return type(error).__name__ + place


def _named(error: BaseException) -> str:
    name = type(error).__name__
    if type(error) in _TELLING and str(error):
        return f"{name}: {error}"
    if isinstance(error, OSError) and error.strerror:
        return f"{name}: {error.strerror}"
    return name
