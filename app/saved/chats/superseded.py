"""The traces of answers that were replaced: for some days they lie beside their chat, and can come back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from app.base.files import make_own_folder
from app.saved.chats.conversation import Answer, Turn
from app.saved.chats.measurement import run_files

_FOLDER = "superseded"


class Superseded:
    """Those of one chat, with their measurements."""

    def __init__(self, chat: Path) -> None:
        """`chat` is the chat's folder."""
        self._chat = chat
        self._folder = chat / _FOLDER

    def put(self, turns: Sequence[Turn], now: datetime) -> None:
        """Move the traces of dropped answers here. One that cannot be moved stays; no chat names it."""
        for file in self._files_of(turns):
            try:
                make_own_folder(self._folder)
                moved = self._folder / file.name
                os.replace(file, moved)
                os.utime(moved, (now.timestamp(), now.timestamp()))  # for `purge`
            except OSError:
                continue

    def bring_back(self, turns: Sequence[Turn]) -> None:
        """Undo `put`; raises OSError."""
        for file in self._files_of(turns):
            moved = self._folder / file.name
            if moved.exists():
                os.replace(moved, file)

    def purge(self, now: datetime, kept: timedelta) -> None:
        """Remove for good what was put here longer ago than `kept`; raises OSError."""
        for trace in self._folder.iterdir() if self._folder.is_dir() else ():
            if now - datetime.fromtimestamp(trace.stat().st_mtime, UTC) > kept:
                trace.unlink(missing_ok=True)

    def _files_of(self, turns: Sequence[Turn]) -> Iterator[Path]:
        for turn in turns:
            if isinstance(turn, Answer) and turn.trace:
                trace = self._chat / turn.trace_name
                yield from (trace, *run_files(trace))
