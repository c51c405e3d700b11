"""Errors of plug-in code as one short line that says where they arose."""

from __future__ import annotations

import importlib
import traceback
from itertools import dropwhile
from pathlib import Path

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


def plain(text: str) -> str:
    """Plug-in text as one short printable line."""
    line = " ".join(text.encode("utf-8", "replace").decode("utf-8").split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _file_name(path: str | None) -> str:
    return (path or "?").replace("\\", "/").rsplit("/", 1)[-1]
