"""Saves a streaming answer, and unsent text. Unsent text is in its chat's folder, or beside all folders for a
new chat."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from app.base.files import FULL, DamagedError, decode, explained, read_file, reason, set_aside, write_atomic
from app.engine.errors import UserError
from app.engine.loop.text import TextStream
from app.engine.record.trace import TraceWriter
from app.engine.types import FinishReason, Round, Totals, TraceHeader
from app.saved.chats.conversation import Answer, Conversation, Question

NOTES = {
    FinishReason.LENGTH: "The answer reached its length limit.",
    FinishReason.CONTEXT: "The context is full.",
    FinishReason.CANCELLED: "Stopped.",
    FinishReason.FAILED: "The engine stopped before the end of the answer.",
}


class AnswerRecorder:
    """Saves one answer: `add` every round, then `finish` or `fail` once.

    Every round is in the trace file before the next one comes, so a crash loses nothing that was shown. A
    write failure is reported once, by UserError; the answer's text is still saved at its end if the disk has
    room.
    """

    def __init__(self, path: Path, header: TraceHeader, settle: Callable[[Answer], Conversation]) -> None:
        self._settle = settle
        self._name = path.name
        self._text = TextStream(header.stop)
        self._broken = False
        with explained("The answer cannot be saved", folder=path.parent):
            self._writer = TraceWriter(path, header)

    @property
    def trace(self) -> str:
        """The name of the trace file, which is also the answer's name."""
        return self._name

    def add(self, round: Round) -> None:
        for token in round.emitted:
            self._text.add(token.piece)
        self._write(round)

    def finish(self, totals: Totals) -> Conversation:
        """Close the trace and return the chat with the finished answer."""
        note = NOTES.get(totals.finish_reason, "")
        try:
            self._write(totals)
        finally:
            # The text is worth a second attempt: it is small, and goes to another file.
            chat = self._end(Answer(self._name, totals.text, note, totals.error))
        return chat

    def fail(self, message: str, hint: str = "") -> Conversation:
        """Close the trace of an answer that the engine broke off; returns the chat with the partial
        answer."""
        self._text.finish()
        note = NOTES[FinishReason.FAILED]
        return self._end(Answer(self._name, self._text.text, note, message, hint))

    def discard(self) -> None:
        """Remove the trace of an answer that did not begin. If the disk refuses, an unused file is left."""
        with contextlib.suppress(OSError):
            self._writer.close()
            self._writer.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Leave the answer unfinished; readers of the chat find it cut off."""
        # On a full disk closing fails on the unwritten rest, which was reported already.
        with contextlib.suppress(OSError):
            self._writer.close()

    def _end(self, answer: Answer) -> Conversation:
        self.close()
        try:
            return self._settle(answer)
        except UserError as error:
            if getattr(error.__cause__, "errno", None) not in FULL:
                raise
        # The disk is full: cut the trace to make room, for the text is worth more than its colours.
        path = self._writer.path
        with contextlib.suppress(OSError):
            os.truncate(path, path.stat().st_size // 2)
        return self._settle(answer)

    def _write(self, item: Round | Totals) -> None:
        if self._broken:
            return
        try:
            self._writer.add(item)
        except OSError as error:
            self._broken = True
            raise UserError(
                f"The tokens of this answer are no longer saved: {reason(error)}.",
                "Its text is saved when it ends, if there is room again.",
            ) from error


NOTHING = Question("")
_decoder = msgspec.json.Decoder(Question)


class Unsent:
    """The unsent text of every chat; a chat that was never saved has the id ""."""

    def __init__(self, folder: Path) -> None:
        """`folder` is that of the chats."""
        self._folder = folder

    def read(self, chat_id: str) -> Question:
        """A chat's unsent text; a damaged file is set aside. Raises UserError."""
        file = self._file(chat_id)
        try:
            return decode(_decoder, read_file(file))
        except FileNotFoundError:
            return NOTHING
        except DamagedError:
            with contextlib.suppress(OSError):
                set_aside(file, "damaged")
            raise UserError("What was typed here is damaged.", f"The file is in {file.parent}.") from None
        except OSError as error:
            raise UserError(f"What was typed here cannot be read: {reason(error)}.") from error

    def keep(self, chat_id: str, words: Question) -> None:
        """Save a chat's unsent text, whole or not at all; a deleted chat is unchanged. Raises UserError."""
        file, what = self._file(chat_id), "What you type is not saved"
        try:
            with explained(what, folder=self._folder):
                if words == NOTHING:
                    file.unlink(missing_ok=True)
                elif file.parent.is_dir():
                    write_atomic(file, msgspec.json.encode(words))
        except UnicodeEncodeError as error:
            raise UserError(
                f"{what}: something in it is not valid text.", "Look for odd characters."
            ) from error

    def _file(self, chat_id: str) -> Path:
        return self._folder / chat_id / "unsent.json" if chat_id else self._folder / ".unsent.json"
