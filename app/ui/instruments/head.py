"""The row above the plots: the counted rounds, and buttons to reset the numbers and to fold the panel."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.engine.types import FinishReason
from app.ui.instruments import definitions
from app.ui.instruments.styles import dress, dress_flat, word_button
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.labels import GivingLabel, as_text
from app.ui.widgets.words import count

_ENDINGS = {
    FinishReason.CANCELLED: "stopped",
    FinishReason.CONTEXT: "context full",
    FinishReason.FAILED: "interrupted",
}


class InstrumentsHead(QWidget):
    """Shows how many rounds the numbers cover, with a button to reset them."""

    reset_requested = Signal()
    all_requested = Signal()
    fold_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.answer = AnswerModel()  # the answer whose rounds are counted
        self.scope = GivingLabel()
        tip = "Totals for this answer, this chat and all answers since the last reset"
        self.sums, self.reset = word_button("Sums", tip), word_button("", "")
        self.fold = word_button("›", "Hide the instruments")
        self.fold.setMinimumWidth(24)
        kit.row((self.scope, 1), self.sums, self.reset, self.fold, spacing=4, on=self)
        self.reset.clicked.connect(self._reset_clicked)
        self.fold.clicked.connect(self.fold_requested)

    def show_numbers(self) -> None:
        """Update the words; called at most ten times a second."""
        answer = self.answer
        statistics = answer.statistics
        words = [
            f"{count(number)} {noun}{'s' * (number != 1)}"
            for number, noun in ((statistics.rounds, "round"), (statistics.emitted, "token"))
            if noun == "token" or not statistics.untold
        ]
        if answer.start:
            words.insert(0, f"since round {count(answer.start)}")
        if answer.totals is not None and answer.totals.finish_reason in _ENDINGS:
            words.append(_ENDINGS[answer.totals.finish_reason])
        warm = answer.header is not None and answer.header.warm
        text = " · ".join([*words, *["warm"] * warm]) if answer.header is not None else ""
        self.scope.setText(text)
        self.scope.setToolTip(as_text(f"{text}\n{definitions.WARM}" if warm else text))
        if answer.start:
            name, tip = "All rounds", "Count all rounds of this answer"
        else:
            name, tip = "Reset", "Restart the statistics with the next round"
        self.reset.setText(name)
        self.reset.setToolTip(tip)
        self.reset.setAccessibleName(tip)
        self.reset.setEnabled(answer.cursor > 0)

    def apply_theme(self) -> None:
        dress(self._theme.sans(-1.5), self._theme.palette.secondary, self.scope)
        dress_flat(self._theme, self.sums, self.reset, self.fold)

    def _reset_clicked(self) -> None:
        if self.answer.start:
            self.all_requested.emit()
        else:
            self.reset_requested.emit()


LEAST = 32  # rounds, so that the first few do not fill the width


def room_for(rounds: int) -> int:
    """The next of 32, 48, 64, 96, 128, 192, …: while an answer grows, the range of rounds that is shown grows
    in steps of a third or a half, so that the curves run into free room instead of shrinking with every
    round."""
    room = LEAST
    while room < rounds:
        room = room * 3 // 2 if room & (room - 1) == 0 else room * 4 // 3
    return room
