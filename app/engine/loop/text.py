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
        found = [at for at in (self._held.find(text) for text in self._stop) if at >= 0]
        if found:
            self.stopped = True
            return self._release(min(found))
        return self._release(len(self._held) - self._possible_start())

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

    def _possible_start(self) -> int:
        """The length of the longest suffix of the held text that begins a stop string."""
        longest = max((len(text) for text in self._stop), default=0)
        for length in range(min(longest - 1, len(self._held)), 0, -1):
            if any(text.startswith(self._held[-length:]) for text in self._stop):
                return length
        return 0
