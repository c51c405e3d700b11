"""Turns token bytes into readable text: whole characters only, stop strings never shown."""

from __future__ import annotations

import codecs
from collections.abc import Sequence


class TextStream:
    """Decodes UTF-8 incrementally and watches for stop strings.

    Text that may begin a stop string is held back until that is ruled out.
    """

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._stop = tuple(text for text in stop if text)
        self._held = ""
        self._released: list[str] = []
        self.stopped = False

    @property
    def text(self) -> str:
        """All text released so far."""
        return "".join(self._released)

    def add(self, piece: bytes) -> str:
        """Add one token's bytes; returns the text that became readable."""
        if self.stopped:
            return ""
        text = self._decoder.decode(piece)
        if not self._stop:
            self._released.append(text)
            return text
        self._held += text
        self.stopped = any(text in self._held for text in self._stop)
        return self._release(safe_length(self._held, self._stop))

    def finish(self) -> str:
        """Return the rest after the last token: held text, and U+FFFD for an incomplete character."""
        if self.stopped:
            return ""
        self._held += self._decoder.decode(b"", final=True)
        return self._release(len(self._held))

    def _release(self, length: int) -> str:
        ready, self._held = self._held[:length], self._held[length:]
        self._released.append(ready)
        return ready


def safe_length(text: str, stops: Sequence[str]) -> int:
    """How much of `text` comes before the first of these stop strings, or before an end that may begin one.
    There is at least one stop string."""
    if found := [at for at in map(text.find, stops) if at >= 0]:
        return min(found)
    for length in range(min(max(map(len, stops)) - 1, len(text)), 0, -1):
        if any(stop.startswith(text[-length:]) for stop in stops):
            return len(text) - length
    return len(text)
