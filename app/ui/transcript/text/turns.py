"""What a chat is made of, as the transcript is given it. Each turn is itself, whatever it says."""

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
    """What the user wrote: a message, or the text that a completion goes on from."""

    text: str
    at: int | None = None  # its place among the chat's turns; None where it is of no chat


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTurn:
    """What the model answered, or is about to answer."""

    answer: AnswerModel
    name: str  # of the model
    at: int | None = None  # its place among the chat's turns; None where it is of no chat
    text: str | None = None  # the words, where they are known: the trace then only colours them
    code: bool = False  # set every line as code: a plain completion of code
    goes_on_from: str = ""  # the text that a completion continues: a code fence may be open in it


Turn = SystemTurn | UserTurn | AnswerTurn
