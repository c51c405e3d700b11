"""The text of chats, cached between searches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from app.engine.errors import UserError
from app.saved.chats.conversation import Conversation


class SearchTexts:
    """The searchable text of each chat file, read again only when the file has changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[tuple[int, int], str]] = {}

    def of(self, file: Path, load: Callable[[], Conversation]) -> str:
        """The chat's title and turns with their case folded; empty if the chat cannot be read."""
        try:
            status = file.stat()
            stamp = (status.st_mtime_ns, status.st_size)
            known = self._known.get(file)
            if known is None or known[0] != stamp:
                known = (stamp, "\n".join(load().texts()).casefold())
                self._known[file] = known
        except (OSError, UserError):
            return ""  # the list shows it as damaged; a search does not find it
        return known[1]
