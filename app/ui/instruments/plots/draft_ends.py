"""Why the drafts of an answer ended, in two lines."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy

from app.ui.instruments import definitions
from app.ui.widgets.text.tips import as_text
from app.ui.widgets.words import numbers
from app.ui.widgets.words.draft_end import end_words

LINES = 2


class DraftEnds(QLabel):
    """The reasons with their numbers of rounds, the most frequent first.

    Always two lines high, so that nothing jumps while an answer grows. A text without room is elided; the
    tooltip shows all of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self._reasons: list[str] = []
        self.setTextFormat(Qt.TextFormat.PlainText)  # a strategy from outside may return markup
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Why drafts ended")

    def show_ends(self, ends: Mapping[str, int]) -> None:
        """Show a tally: reason -> rounds."""
        ordered = sorted(ends.items(), key=lambda entry: -entry[1])
        self._reasons = [f"{numbers.count(rounds)}× {end_words(end)}" for end, rounds in ordered]
        self.setText(" · ".join(self._reasons))
        self.setToolTip(as_text("\n".join([definitions.DRAFT_ENDS, *self._reasons])))

    def lines(self, width: int) -> list[str]:
        """The lines that fit a width in pixels; a line that is still too long is elided when it is
        painted."""
        if not self._reasons:
            return []
        metrics = self.fontMetrics()
        first, rest = [f"drafts ended: {self._reasons[0]}"], self._reasons[1:]
        while rest and metrics.horizontalAdvance(" · ".join([*first, rest[0]])) <= width:
            first.append(rest.pop(0))
        return [" · ".join(part) for part in (first, rest) if part]

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), LINES * self.fontMetrics().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        metrics = self.fontMetrics()
        place = QRect(0, 0, self.width(), metrics.height())
        for line in self.lines(self.width()):
            shown = metrics.elidedText(line, Qt.TextElideMode.ElideRight, self.width())
            painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
            place.translate(0, metrics.height())
