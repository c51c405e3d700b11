"""Replacements: pairs of strings that the target and the draft write differently."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from app.engine.errors import SettingError


class TextStretch(NamedTuple):
    """A stretch of text; `control` marks the names of control tokens, which plain text never becomes."""

    text: str
    control: bool = False


class Replacements:
    """One direction: every SOURCE becomes its DESTINATION, in a single pass; of two sources at the same place
    the longer wins, of two equal ones the first."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._pairs: dict[str, str] = {}
        for source, destination in pairs:
            if source:
                self._pairs.setdefault(source, destination)
        self.longest = max(map(len, self._pairs), default=0)  # characters
        sources = sorted(self._pairs, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, sources))) if sources else None

    def apply(self, runs: Sequence[TextStretch]) -> list[TextStretch]:
        """Return the runs with everything replaced. A replacement of a control token, or of part of one, is
        control."""
        if self._pattern is None:
            return list(runs)
        text = "".join(run.text for run in runs)
        control = b"".join(bytes([run.control]) * len(run.text) for run in runs)  # one byte per character
        replaced: list[TextStretch] = []
        at = 0
        for match in self._pattern.finditer(text):
            _add_unchanged(replaced, text, control, at, match.start())
            _add(replaced, self._pairs[match[0]], 1 in control[match.start() : match.end()])
            at = match.end()
        _add_unchanged(replaced, text, control, at, len(text))
        return replaced

    def unfinished(self, text: str) -> int:
        """The length of the longest suffix of `text` that may become a source when more text follows."""
        for length in range(min(self.longest - 1, len(text)), 0, -1):
            end = text[-length:]
            if any(len(source) > length and source.startswith(end) for source in self._pairs):
                return length
        return 0


def parse_pairs(written: str) -> list[tuple[str, str]]:
    """Read (TARGET, DRAFT) pairs from a JSON list; none from an empty text. Raises SettingError."""
    if not written:
        return []
    try:
        pairs = json.loads(written)
    except (ValueError, RecursionError):
        pairs = None
    if not isinstance(pairs, list) or not all(map(_is_pair, pairs)):
        raise SettingError(
            f"replace cannot be {written!r}.", 'Write a JSON list of pairs: [["TARGET", "DRAFT"], …].'
        )
    return [(target, draft) for target, draft in pairs]


def _is_pair(value: object) -> bool:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        return False
    return len(value) == 2 and value[0] != ""


def _add_unchanged(runs: list[TextStretch], text: str, control: bytes, start: int, end: int) -> None:
    while start < end:
        change = control.find(1 - control[start], start, end)
        stop = change if change >= 0 else end
        _add(runs, text[start:stop], bool(control[start]))
        start = stop


def _add(runs: list[TextStretch], text: str, control: bool) -> None:
    if runs and runs[-1].control == control:
        runs[-1] = TextStretch(runs[-1].text + text, control)
    elif text:
        runs.append(TextStretch(text, control))
