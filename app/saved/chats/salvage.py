"""Lines of a damaged chat file: repaired where the damage is inside a text, else shown as they are."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

from app.saved.chats.conversation import Answer, Question, Turn

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": ""}
_BEFORE = re.compile(r'^.*?"text":"', re.DOTALL)
_BEHIND = re.compile(r'"(?:,"note":".*)?\}$', re.DOTALL)
_NO_TEXT = re.compile(r':[^"]{4},"note"')


def repaired(line: bytes) -> bytes:
    """The line with invalid UTF-8 replaced and control characters escaped; empty if it is still not JSON."""
    try:
        found: Any = json.loads(line.decode("utf-8", errors="replace"), strict=False)
        return msgspec.json.encode(found)
    except (ValueError, RecursionError):
        return b""


def text_field(line: bytes, name: str) -> str:
    """The text field `name` of a line that is no longer JSON; "" where it is not found."""
    found = re.search(rf'"{name}":"((?:[^"\\]|\\.)*)"', line.decode("utf-8", errors="replace"))
    return _unescaped(found[1]) if found else ""


def turn_as_it_stands(line: bytes, before: Turn | None) -> Turn:
    """A turn that shows an unreadable line: a question or an answer, by its first words or by its place."""
    text = line.decode("utf-8", errors="replace")
    kind = text[:40]
    is_question = '"question"' in kind or ('"answer"' not in kind and not isinstance(before, Question))
    bare = _unescaped(_BEHIND.sub("", _BEFORE.sub("", text, count=1)))
    if is_question:
        return Question(bare)
    trace = text_field(line, "trace")
    # An answer that was cut off has null for its text: the trace holds the text.
    return Answer(trace, None if trace and _NO_TEXT.search(text) else bare)


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = found[1]
        if len(code) == 5:
            return chr(int(code[1:], 16)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return _ESCAPED.get(code, code)

    return _ESCAPE.sub(character, text)
