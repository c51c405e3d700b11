"""The chat as it is read: coloured tokens, rendered text, a legend, a bar to find with."""

from app.ui.transcript.find_bar import FindBar
from app.ui.transcript.legend import Legend
from app.ui.transcript.text.turns import AnswerTurn, SystemTurn, Turn, UserTurn
from app.ui.transcript.view import TranscriptView

__all__ = [
    "AnswerTurn",
    "FindBar",
    "Legend",
    "SystemTurn",
    "TranscriptView",
    "Turn",
    "UserTurn",
]
