"""The row above the plots: the counted rounds, and buttons to reset the numbers and to fold the panel."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QToolButton, QWidget

from app.engine.types import FinishReason
from app.ui.instruments import definitions
from app.ui.instruments.styles import flat_button
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.text.giving_label import GivingLabel
from app.ui.widgets.text.tips import as_text
from app.ui.widgets.words.numbers import count

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
        self.sums = QToolButton()
        self.sums.setText("Sums")
        self.sums.setToolTip("Sums over this answer, this chat and all answers since the last reset")
        self.sums.setAccessibleName(self.sums.toolTip())
        self.reset = QToolButton()
        self.fold = QToolButton()
        self.fold.setText("›")
        self.fold.setMinimumWidth(24)
        self.fold.setAccessibleName("Fold the instruments away")
        self.fold.setToolTip("Fold the instruments away")
        row = kit.row((self.scope, 1), spacing=4, on=self)
        for button in (self.sums, self.reset, self.fold):
            button.setCursor(Qt.CursorShape.PointingHandCursor)
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            row.addWidget(button)
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
            name, tip = "All rounds", "Count all rounds of this answer again"
        else:
            name, tip = "Reset", "Start the statistics again with the next round"
        self.reset.setText(name)
        self.reset.setToolTip(tip)
        self.reset.setAccessibleName(tip)
        self.reset.setEnabled(answer.cursor > 0)

    def apply_theme(self) -> None:
        theme, palette = self._theme, self._theme.palette
        for part in (self.scope, self.sums, self.reset, self.fold):
            part.setFont(theme.sans(-1.5))
        self.scope.setStyleSheet(f"color: {palette.secondary}")
        for button in (self.sums, self.reset, self.fold):
            button.setStyleSheet(flat_button(palette))

    @Slot()
    def _reset_clicked(self) -> None:
        if self.answer.start:
            self.all_requested.emit()
        else:
            self.reset_requested.emit()
