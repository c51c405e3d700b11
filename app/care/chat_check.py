"""Looks through the saved chats for what is damaged, missing or left over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from app.base.files import set_aside
from app.care.finding import DataFault
from app.engine.errors import UserError
from app.engine.record.trace import salvage_trace
from app.saved.chats.chat_file import NAME, read_chat, read_head, write_chat
from app.saved.chats.conversation import Answer, Conversation
from app.saved.chats.measurement import run_files
from app.saved.chats.rebuild import answers_of, rebuilt
from app.saved.chats.store import ChatStore
from app.saved.chats.superseded import Superseded

_YOUNG = 600  # seconds; a file may be about to be named by its chat
TO_TRASH = "It is moved to the trash of the chats, for 7 days."


class ChatCheck(ChatStore):
    """A chat store that looks for damage, and mends it under the store's own lock."""

    def findings(self) -> Iterator[DataFault]:
        """What is wrong, chat by chat; nothing is changed. Raises UserError where the folder is gone."""
        for folder in sorted(self._folders()):
            try:
                chat = read_chat(folder)
            except UserError as error:
                yield self._unreadable(folder, error)
                continue
            if chat.head.newer:
                continue  # its rules are not known here
            if chat.head.damaged:
                yield self._damaged(folder, chat)
            else:
                yield from self._traces(folder, chat)

    def put_away(self, path: Path) -> None:
        """Move a file or a folder to the trash of the chats. Raises UserError or OSError."""
        with self._locked():
            self._trash.put_other(path, self._steady.now())

    def _unreadable(self, folder: Path, error: UserError) -> DataFault:
        if not any(folder.iterdir()):
            return DataFault(
                f"The folder of the chat {folder.name} is empty.", TO_TRASH, partial(self.put_away, folder)
            )
        if read_head(folder).newer:
            return DataFault(error.message)
        answers = len(answers_of(folder))
        if not answers:
            return DataFault(f"{error.message} ({folder.name})")
        words = f"The chat {folder.name} cannot be read."
        return DataFault(words, _made_again(answers), partial(self._rebuild, folder))

    def _damaged(self, folder: Path, chat: Conversation) -> DataFault:
        """Where the chat no longer names all its answers, they are the better source."""
        words = f"The chat “{chat.head.title}” is damaged."
        answers = answers_of(folder)
        if answers.keys() <= {turn.trace for turn in chat.turns if isinstance(turn, Answer)}:
            remedy = "It is written anew with what can be read; the damaged file stays beside it."
            return DataFault(words, remedy, partial(self._change, chat.id, lambda found: found))
        return DataFault(words, _made_again(len(answers)), partial(self._rebuild, folder))

    def _rebuild(self, folder: Path) -> None:
        with self._locked():
            chat = rebuilt(folder, self._stamp())
            if chat is None:
                raise UserError(f"The chat {folder.name} has no answer that can be read.")
            if (folder / NAME).exists():
                set_aside(folder / NAME, "damaged")
            write_chat(folder, chat)

    def _traces(self, folder: Path, chat: Conversation) -> Iterator[DataFault]:
        title = chat.head.title
        answers = [turn for turn in chat.turns if isinstance(turn, Answer) and turn.trace]
        named = {NAME}
        for turn in answers:
            path = Superseded(folder).trace(turn)
            named |= {path.name, *(file.name for file in run_files(path))}
            damage = salvage_trace(path).damage
            if not path.exists():
                yield DataFault(f"“{title}”: the trace of an answer is gone. Its text is kept.")
            elif damage is not None:
                yield DataFault(f"“{title}”: {damage.message} What can be read is shown.")
        for path in sorted(folder.glob("*.jsonl")):
            if path.name not in named and time.time() - path.stat().st_mtime > _YOUNG:
                trace = salvage_trace(path).trace
                held = len(trace.token_ids) if trace is not None else 0
                yield DataFault(
                    f"“{title}”: the chat does not name the trace {path.name} ({held:,} tokens).",
                    TO_TRASH,
                    partial(self.put_away, path),
                )


def _made_again(answers: int) -> str:
    many = "s" * (answers != 1)
    return f"It is made again from the trace{many} of {answers} answer{many}; a damaged file stays beside it."
