"""Errors of plug-in code as one short line that says where they arose."""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Mapping
from itertools import dropwhile
from pathlib import Path

from app.base import numbers

_OURS = (str(Path(__file__).resolve().parents[3]), str(Path(importlib.__file__).parent), "<")
"""Prefixes of files that are not plug-in code; generated code has a name in angle brackets."""
_LONGEST = 200


def error_words(error: BaseException) -> str:
    """The error, its text, and the deepest line of the first file that is not ours."""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        return (
            f"{type(error).__name__}: {plain(error.msg)} ({_file_name(error.filename)}, line {error.lineno})"
        )
    try:
        text = str(error)
    except Exception:  # an error whose own text is broken
        text = ""
    words = plain(f"{type(error).__name__}: {text}" if text else type(error).__name__)
    steps = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    theirs = list(dropwhile(lambda step: step[0].startswith(_OURS), steps))
    if not theirs:
        return words
    file = theirs[0][0]
    line = [line for name, line in theirs if name == file][-1]
    return f"{words} ({_file_name(file)}, line {line})"


FAULTS = ("raised", "gave", "took", "rests")
"""The words after a drafter's name in its guard's report of a fault."""


def fault_words(name: str, ends: Mapping[str, int], rounds: int, answers: int = 1) -> str:
    """A sentence on the drafts that a drafter's faults cost, "" without any; `ends` counts the ends of drafts
    in answers of so many rounds."""
    heads = tuple(f"{name} {verb} " for verb in FAULTS)
    found: dict[str, int] = {}
    for end, count in ends.items():
        if fault := next((part for part in end.split("; ") if part.startswith(heads)), ""):
            found[fault] = found.get(fault, 0) + count
    if not found:
        return ""
    first, lost = next(iter(found)), sum(found.values())
    others = f", and {numbers.count(len(found) - 1, 'other fault')}" if len(found) > 1 else ""
    cost = f"That cost {lost:,} of {numbers.count(rounds, 'round')} a draft"
    whole = "the answer is whole" if answers == 1 else "the answers are whole"
    return f"{first}{others}. {cost}; {whole}."


def plain(text: str) -> str:
    """Plug-in text as one short printable line."""
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _file_name(path: str | None) -> str:
    return (path or "?").replace("\\", "/").rsplit("/", 1)[-1]
