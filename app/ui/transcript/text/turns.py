"""The turns of a chat as given to the transcript. Turns compare by identity, not by content."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.saved.chats.conversation import Question

if TYPE_CHECKING:
    from app.ui.state.answer import AnswerModel


@dataclass(frozen=True, slots=True, eq=False)
class SystemTurn:
    """The system prompt of the chat."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class UserTurn:
    """What the user wrote: a message, the text that a completion continues, or the texts around a gap."""

    text: str
    at: int | None = None  # its index in the chat; None where it belongs to no chat
    suffix: str | None = None  # the text after the gap; None if there is no gap
    answered: bool = False  # an answer follows: it shows the texts around the gap that it fills

    @property
    def question(self) -> Question:
        """What was asked, as a chat holds it."""
        return Question(self.text, self.suffix)


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTurn:
    """What the model answered, or is about to answer."""

    answer: AnswerModel
    name: str  # name of the model
    at: int | None = None  # its index in the chat; None where it belongs to no chat
    text: str | None = None  # the text, where it is stored: the trace then only colours it
    goes_on_from: str = ""  # the text that it continues: a code fence may be open in it
    suffix: str | None = None  # the text after the gap that it fills: shown around it, all as code
    version: int = 0  # which of its versions it is
    versions: int = 1


Turn = SystemTurn | UserTurn | AnswerTurn
