"""What a chat is made of, as the transcript is given it."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.record.trace import Trace


@dataclass(frozen=True, slots=True)
class Note:
    """Something to tell the reader where it happened, with at most one thing to do about it."""

    message: str
    hint: str = ""
    action: str = ""  # the button's words, such as "Start the engine again"


@dataclass(frozen=True, slots=True)
class SystemTurn:
    """The system prompt of the chat."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What the user wrote: a message, or the text that a completion goes on from."""

    id: str
    text: str
    note: Note | None = None


@dataclass(frozen=True, slots=True)
class AnswerTurn:
    """What the model answered. Without a trace and without words it has not begun yet."""

    id: str
    model: str
    trace: Trace | None = None
    note: Note | None = None
    text: str | None = None  # the words, where they are known: the trace then only colours them
    code: bool = False  # set every line as code: a plain completion of code
    goes_on_from: str = ""  # the text that a completion continues: a code fence may be open in it


Turn = SystemTurn | UserTurn | AnswerTurn
