"""All saved chats, one folder each: `chat.jsonl`, and a trace file for every answer.

Two windows may use the same store. Every change reads the file again under a lock and changes only its own
part. It is refused if a different window has changed the turns meanwhile. A file that is older than the
window's state (a restored backup) is kept under a new name, and the chat continues from that state.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import msgspec

from app.base.files import OWN, explained, reason, write_hint
from app.base.locks import check_there, held, lock_at
from app.engine.errors import UserError
from app.engine.record.trace import Salvaged, Trace, salvage_trace, write_trace
from app.engine.templates.options import TemplateOptions
from app.engine.types import TraceHeader
from app.saved.chats.chat_file import NAME, current, read_chat, read_head, written
from app.saved.chats.conversation import (
    NEW_TITLE,
    Answer,
    ChatHead,
    Conversation,
    Question,
    Turn,
    again,
    as_seen,
    in_place_of,
    new_trace_name,
    title_with,
    turned,
    with_head,
    with_versions,
)
from app.saved.chats.recorder import AnswerRecorder, Unsent
from app.saved.chats.trash import KEPT, SteadyClock, Superseded, Trash
from app.saved.measured import Measurement, read_measurement, write_measurement


class SearchTexts:
    """The searchable text of each chat file, read again only if the file has changed."""

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


CUT_OFF = "The answer was cut off."
_ID = re.compile(r"[0-9a-f-]{8,64}")
_utc_now = partial(datetime.now, UTC)


class ChatStore:
    """Saves chats after every change. Methods raise UserError."""

    def __init__(self, folder: Path, now: Callable[[], datetime] = _utc_now) -> None:
        """`folder` exists; `now` is the clock, in UTC."""
        self.folder = folder
        self._now = now
        self._trash = Trash(folder / ".trash")
        self._steady = SteadyClock(folder / ".clock", now)
        self._lock = lock_at(folder / ".lock")
        self._changed = folder / ".changed"
        self._texts = SearchTexts()
        self.unsent = Unsent(folder)

    # ------------------------------------------------------------------ looking

    def version(self) -> int:
        """A number that changes with every change of a chat in any window."""
        try:
            return self._changed.stat().st_mtime_ns
        except OSError:
            return 0

    def heads(self) -> list[ChatHead]:
        """The heads of all chats, the last changed first; `damaged` says which cannot be read."""
        heads = [read_head(folder) for folder in self._folders()]
        return sorted(heads, key=lambda head: (head.updated, head.id), reverse=True)

    def load(self, chat_id: str) -> Conversation:
        """Read a chat. Answers that a crash cut off get their text from the trace."""
        chat = read_chat(self._folder(chat_id))
        if all(isinstance(turn, Question) or turn.text is not None for turn in chat.turns):
            return chat
        turns = tuple(self._completed(chat.id, turn) for turn in chat.turns)
        return msgspec.structs.replace(chat, turns=turns)

    def load_trace(self, chat_id: str, answer: Answer) -> Salvaged:
        """The readable part of an answer's trace. Never raises for a damaged one."""
        return salvage_trace(self._trace(chat_id, answer))

    def load_measurement(self, chat_id: str, answer: Answer) -> Measurement | None:
        """The baseline measured for an answer, if there is one; raises TraceError."""
        return read_measurement(self._trace(chat_id, answer)) if answer.trace else None

    def _trace(self, chat_id: str, answer: Answer) -> Path:
        return Superseded(self._folder(chat_id)).trace(answer)

    def search(self, words: str) -> list[ChatHead]:
        """The chats whose title or turns contain every word, in any case; newest first."""
        wanted = words.casefold().split()
        found = []
        for head in self.heads():
            text = self._texts.of(self.folder / head.id / NAME, partial(self.load, head.id))
            if all(word in text for word in wanted):
                found.append(head)
        return found

    # ------------------------------------------------------------------ changing

    def new(self, mode: str = "chat", system_prompt: str = "") -> Conversation:
        """An empty chat. It is saved with its first message."""
        now = self._stamp()
        return Conversation(ChatHead(str(uuid.uuid4()), NEW_TITLE, now, now, mode), system_prompt)

    def ask(
        self, seen: Conversation, text: str, at: int | None = None, suffix: str | None = None
    ) -> Conversation:
        """Add the user's message; with `at`, instead of turn `at` and everything after it. `suffix` is the
        text after a gap to fill."""
        return self._change_turns(seen, at, Question(text, suffix))

    def save(self, seen: Conversation) -> Conversation:
        """Write a chat as it was seen, with turns that could not be written before. Raises UserError."""

        def whole(chat: Conversation) -> Conversation:
            if chat.head.revision != seen.head.revision:
                raise _changed_elsewhere()
            title = title_with(chat.head, next(iter(seen.turns), None))
            chat = with_head(chat, title=title, updated=self._stamp(), revision=chat.head.revision + 1)
            return msgspec.structs.replace(chat, turns=seen.turns)

        return self._change(seen.id, whole, seen)

    def save_trace(self, chat_id: str, name: str, trace: Trace) -> None:
        """Write an answer's trace that could not be written before. Raises UserError."""
        folder = self._folder(chat_id)
        with explained("The answer cannot be saved", folder=folder):
            write_trace(folder / name, trace)

    def take_back(self, asked: Conversation, before: Conversation) -> Conversation:
        """Undo `ask`, which turned `before` into `asked`."""
        with self._locked():
            folder = self._folder(asked.id)
            now = current(folder, asked)
            if now.head.revision != asked.head.revision:
                raise _changed_elsewhere()
            with explained("The question was not removed"):
                if not before.head.revision:
                    shutil.rmtree(folder)
                    return before
                Superseded(folder).bring_back(before.turns[len(asked.turns) - 1 :])
            revision = now.head.revision + 1
            chat = with_head(now, updated=before.head.updated, revision=revision)
            return written(folder, msgspec.structs.replace(chat, turns=before.turns))

    def begin_answer(
        self, seen: Conversation, header: TraceHeader, at: int | None = None, goes_on: bool = False
    ) -> tuple[Conversation, AnswerRecorder]:
        """Add an answer that will stream; with `at`, in place of turn `at` and everything after it. The
        earlier answer is kept as a version, unless the new one continues it (`goes_on`)."""
        # The trace comes first: a crash in between leaves a file that nothing names, and no harm.
        folder = self._folder(seen.id)
        path = folder / new_trace_name()
        recorder = AnswerRecorder(path, header, lambda answer: self._settle(chat, answer))
        try:
            former = seen.turns[len(seen.turns) if at is None else at :]
            chat = self._change_turns(seen, at, again(former, Answer(path.name), goes_on))
        except UserError:
            recorder.discard()
            raise
        return chat, recorder

    def keep_measurement(self, chat_id: str, answer: Answer, measurement: Measurement) -> None:
        """Save the baseline measured for an answer, unless the answer is no longer on disk."""
        with self._locked():
            folder = self._folder(chat_id)
            folder = folder if folder.exists() else self._trash.find(chat_id) or folder
            trace = Superseded(folder).trace(answer)
            if not trace.is_file():
                return
            try:
                write_measurement(trace, measurement)
            except OSError as error:
                raise UserError(
                    f"The measured baseline was not saved: {reason(error)}.",
                    f"It is shown as long as this answer is. {write_hint(error, trace.parent)}",
                ) from error

    def show_version(self, seen: Conversation, at: int, version: int) -> Conversation:
        """Let the chat continue from a different version of the answer `at`, with its following turns."""
        turns = turned(seen.turns[at:], version)
        chat = self._change_turns(seen, at, *turns)
        with contextlib.suppress(OSError):  # it is found where it lies
            Superseded(self._folder(chat.id)).bring_back(turns)
        return chat

    def truncate(self, seen: Conversation, keep: int) -> Conversation:
        """Drop all turns from index `keep` on."""
        return self._change_turns(seen, keep)

    def rename(self, chat_id: str, title: str) -> ChatHead:
        """Change a chat's title; an empty one changes nothing."""
        words = " ".join(title.split())

        def renamed(chat: Conversation) -> Conversation:
            return with_head(chat, title=words or chat.head.title)

        return self._change(chat_id, renamed).head

    def set_system_prompt(self, seen: Conversation, text: str) -> Conversation:
        """Change the chat's system prompt, on disk too if the chat is saved."""
        return self._set(seen, lambda chat: msgspec.structs.replace(chat, system_prompt=text))

    def set_template_options(self, seen: Conversation, options: TemplateOptions) -> Conversation:
        """Change the options of the chat template, on disk too if the chat is saved."""
        return self._set(seen, lambda chat: msgspec.structs.replace(chat, template_options=options))

    def set_mode(self, seen: Conversation, mode: str) -> Conversation:
        """Change between "chat" and "completion", on disk too if the chat is saved."""
        return self._set(seen, lambda chat: with_head(chat, mode=mode))

    def delete(self, chat_id: str) -> None:
        """Move a chat to the trash; `restore` brings it back."""
        with self._locked():
            try:
                self._trash.put(self._folder(chat_id), self._steady.now())
            except OSError as error:
                # Windows refuses to move a file that is being written.
                busy = "If it is answering in another window, stop it there."
                raise UserError(
                    f"The chat was not deleted: {reason(error)}.",
                    busy if os.name == "nt" else write_hint(error, self.folder),
                ) from error

    def restore(self, chat_id: str) -> ChatHead:
        """Undo `delete`."""
        folder = self._folder(chat_id)
        with self._locked():
            deleted = self._trash.find(chat_id)
            if deleted is None:
                raise UserError("The deleted chat is gone.", "Deleted chats are kept for 7 days.")
            with explained("The chat was not restored"):
                os.rename(deleted, folder)
        return read_head(folder)

    def purge(self, kept: timedelta = KEPT) -> None:
        """At start: permanently remove chats and traces that were deleted or replaced longer ago than
        `kept`."""
        with self._locked():
            with explained("The chats cannot be changed", folder=self.folder):
                now = self._steady.wind(self._trash.latest())
            self._trash.purge(now, kept)
            for folder in self._folders():
                with contextlib.suppress(UserError):  # a chat that is damaged may name any of them
                    Superseded(folder).purge(now, kept, partial(_turns_in, folder))

    def empty_trash(self) -> None:
        """Permanently remove all deleted chats."""
        with self._locked():
            self._trash.empty()

    # ------------------------------------------------------------------ inside

    def _change_turns(self, seen: Conversation, at: int | None, *turns: Turn) -> Conversation:
        keep = len(seen.turns) if at is None else at

        def changed(chat: Conversation) -> Conversation:
            head = chat.head
            if head.revision != seen.head.revision:
                raise _changed_elsewhere()
            title = title_with(head, turns[0] if turns else None)
            kept = as_seen(chat, seen).turns[:keep]
            chat = with_head(chat, title=title, updated=self._stamp(), revision=head.revision + 1)
            return msgspec.structs.replace(chat, turns=(*kept, *turns))

        chat = self._change(seen.id, changed, seen)
        Superseded(self._folder(chat.id)).put(seen.turns[keep:], self._steady.now())
        return chat

    def _settle(self, begun: Conversation, answer: Answer) -> Conversation:
        """Put the finished answer into the chat in which it was started, even if that was renamed or deleted
        since."""

        def settled(chat: Conversation) -> Conversation:
            turns = tuple(
                in_place_of(turn, answer) if isinstance(turn, Answer) and turn.trace == answer.trace else turn
                for turn in chat.turns
            )
            return msgspec.structs.replace(with_head(chat, updated=self._stamp()), turns=turns)

        with self._locked():
            folder = self._folder(begun.id)
            if not folder.exists():
                folder = self._trash.find(begun.id) or folder
            return written(folder, settled(current(folder, begun)))

    def _set(self, seen: Conversation, change: Callable[[Conversation], Conversation]) -> Conversation:
        """Change a part that no turn depends on. A chat that was never saved is changed only in memory."""
        if not seen.head.revision and not (self.folder / seen.id).exists():
            return change(seen)
        return self._change(seen.id, lambda chat: change(as_seen(chat, seen)), seen)

    def _change(
        self, chat_id: str, change: Callable[[Conversation], Conversation], seen: Conversation | None = None
    ) -> Conversation:
        """Read, change and write under the lock. `seen` is the window's chat, if the change depends on it."""
        with self._locked():
            folder = self._folder(chat_id)
            if folder.exists():
                return written(folder, change(read_chat(folder) if seen is None else current(folder, seen)))
            if seen is not None and not seen.head.revision:
                return written(folder, change(seen))
            if self._trash.find(chat_id) is not None:
                raise UserError("This chat was deleted in another window.", "Start a new one.")
            raise UserError(
                f"The folder of this chat is gone: {folder}.",
                "Restore it, or start a new chat. What is on the screen can still be copied.",
            )

    def _completed(self, chat_id: str, turn: Turn) -> Turn:
        if isinstance(turn, Question) or turn.text is not None:
            return turn
        text = self.load_trace(chat_id, turn).text
        return msgspec.structs.replace(turn, text=text, note=CUT_OFF)

    def _folders(self) -> Iterator[Path]:
        check_there(self.folder, "chats")
        with (
            explained("The chats cannot be listed", f"Check the folder {self.folder}."),
            os.scandir(self.folder) as entries,
        ):
            for entry in entries:
                if _ID.fullmatch(entry.name) and entry.is_dir():
                    yield Path(entry.path)

    def _folder(self, chat_id: str) -> Path:
        # Ids come back from the settings file: none may lead out of the folder.
        if not _ID.fullmatch(chat_id):
            raise UserError("There is no such chat.", "Choose one from the list.")
        return self.folder / chat_id

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with held(self._lock, "chats"):
            yield
            with contextlib.suppress(OSError):  # other windows then see the change later
                self._changed.touch(OWN)
                now = time.time_ns()  # the system's own time stamps may not advance for some milliseconds
                os.utime(self._changed, ns=(now, now))

    def _stamp(self) -> str:
        return self._now().astimezone(UTC).isoformat(timespec="milliseconds")


def _turns_in(folder: Path) -> Iterator[Turn]:
    """All turns in a chat, including other versions. Raises UserError, also for a damaged chat."""
    chat = read_chat(folder)
    if chat.head.damaged:
        raise UserError(chat.head.damaged)
    return with_versions(chat.turns)


def _changed_elsewhere() -> UserError:
    return UserError("This chat was changed in another window.", "Open it again to see the change.")
