"""The turns of a chat as given to the transcript. Turns compare by identity, not by content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.ui.state.answer import AnswerModel


@dataclass(frozen=True, slots=True, eq=False)
class SystemTurn:
    """The system prompt of the chat."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class UserTurn:
    """What the user wrote: a message, or the text that a completion continues."""

    text: str
    at: int | None = None  # its index in the chat; None where it belongs to no chat


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTurn:
    """What the model answered, or is about to answer."""

    answer: AnswerModel
    name: str  # name of the model
    at: int | None = None  # its index in the chat; None where it belongs to no chat
    text: str | None = None  # the text, where it is stored: the trace then only colours it
    code: bool = False  # set every line as code: a plain completion of code
    goes_on_from: str = ""  # the text that a completion continues: a code fence may be open in it


Turn = SystemTurn | UserTurn | AnswerTurn
