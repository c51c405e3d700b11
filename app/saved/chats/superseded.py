"""The traces of answers that were replaced: those of other versions stay, the rest is kept for some days."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
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

    def put(self, turns: Iterable[Turn], now: datetime) -> None:
        """Move the traces of dropped answers here. One that cannot be moved stays; no chat names it."""
        for file in self._files_of(turns):
            try:
                make_own_folder(self._folder)
                moved = self._folder / file.name
                os.replace(file, moved)
                os.utime(moved, (now.timestamp(), now.timestamp()))  # for `purge`
            except OSError:
                continue

    def bring_back(self, turns: Iterable[Turn]) -> None:
        """Undo `put`; raises OSError."""
        for file in self._files_of(turns):
            moved = self._folder / file.name
            if moved.exists():
                os.replace(moved, file)

    def trace(self, answer: Answer) -> Path:
        """The trace of an answer, which is another version of one in the chat where it lies here."""
        path, moved = self._chat / answer.trace_name, self._folder / answer.trace_name
        return moved if moved.exists() and not path.exists() else path

    def purge(self, now: datetime, kept: timedelta, turns: Callable[[], Iterable[Turn]]) -> None:
        """Remove for good what was put here longer ago than `kept`, but for the versions that the chat's
        `turns` have; raises OSError."""
        files = [*self._folder.iterdir()] if self._folder.is_dir() else []
        named = {file.name for file in self._files_of(turns())} if files else set()
        for trace in files:
            if trace.name not in named and now - datetime.fromtimestamp(trace.stat().st_mtime, UTC) > kept:
                trace.unlink(missing_ok=True)

    def _files_of(self, turns: Iterable[Turn]) -> Iterator[Path]:
        for turn in turns:
            if isinstance(turn, Answer) and turn.trace:
                trace = self._chat / turn.trace_name
                yield from (trace, *run_files(trace))
