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


_LEAST = 32  # rounds, so that the first few do not fill the width
_CLOSEST = 8


class RoundRange:
    """The range of rounds shown: all of them, until the user zooms in, and again after a reset.

    While an answer grows, the range grows in steps of a third or a half: the curves run into free room
    instead of shrinking with every round.
    """

    def __init__(self) -> None:
        self._zoomed: tuple[float, float] | None = None
        self._all = (-0.5, _LEAST - 0.5)

    def fit(self, start: int, last: int, *, live: bool) -> tuple[float, float]:
        """The x range to show: round i covers i - 0.5 to i + 0.5."""
        rounds = max(last - start + 1, 0)
        width = _room(rounds) if live else max(rounds, _LEAST)
        self._all = (start - 0.5, start + width - 0.5)
        if self._zoomed is not None:
            self._zoomed = self._inside(*self._zoomed)
        return self._zoomed or self._all

    def show_all(self) -> None:
        self._zoomed = None

    def zoom(self, factor: float, at: float) -> None:
        """Show `factor` times as many rounds; the one at `at` stays where it is."""
        first, last = self._zoomed or self._all
        width = max((last - first) * factor, _CLOSEST)
        if width >= self._all[1] - self._all[0]:
            self._zoomed = None
            return
        share = (at - first) / (last - first)
        self._zoomed = self._inside(at - share * width, at + (1 - share) * width)

    def pan(self, by: float) -> None:
        """Move what is shown by this many rounds."""
        if self._zoomed is not None:
            self._zoomed = self._inside(self._zoomed[0] + by, self._zoomed[1] + by)

    def _inside(self, first: float, last: float) -> tuple[float, float]:
        low, high = self._all
        width = min(last - first, high - low)
        first = min(max(first, low), high - width)
        return first, first + width


def _room(rounds: int) -> int:
    """The next of 32, 48, 64, 96, 128, 192, …"""
    room = _LEAST
    while room < rounds:
        room = room * 3 // 2 if room & (room - 1) == 0 else room * 4 // 3
    return room
