"""The offer of an earlier measurement: to be continued, or to be shown."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton

from app.base import numbers
from app.ui.compare.works.journals import Earlier


class ResumeStrip(QFrame):
    """Says what the measurement was and how many runs are done."""

    accepted = Signal()
    dismissed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("kind", "card")
        self._words = QLabel()
        self._words.setTextFormat(Qt.TextFormat.PlainText)
        self._words.setWordWrap(True)
        self.accept = QPushButton()
        self.accept.clicked.connect(self.accepted)
        self.dismiss = QPushButton()
        self.dismiss.setProperty("kind", "flat")
        self.dismiss.clicked.connect(self.dismissed)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 8, 12, 8)
        row.setSpacing(8)
        row.addWidget(self._words, 1)
        row.addWidget(self.accept)
        row.addWidget(self.dismiss)
        self.hide()

    @property
    def text(self) -> str:
        return self._words.text()

    def show_earlier(self, earlier: Earlier) -> None:
        """Offer this measurement."""
        when = f"{earlier.begun:%d %B, %H:%M}".lstrip("0")
        experiment = earlier.journal.experiment
        what = f"{numbers.count(len(experiment.lanes), 'lane')}, {experiment.title}"
        if earlier.depths:
            what += f", {numbers.count(len(earlier.depths), 'depth')}"
        if earlier.complete:
            self._words.setText(
                f"Your last measurement, of {when}: {what}. All {earlier.total:,} runs are done."
            )
            self.accept.setText("Show it")
            self.dismiss.setText("Dismiss")
        else:
            ended = "was interrupted" if earlier.broken_off else "has runs that failed"
            self._words.setText(
                f"A measurement of {when} {ended}: {what}. "
                f"{earlier.done:,} of {earlier.total:,} runs are done."
            )
            self.accept.setText("Resume")
            self.dismiss.setText("Discard")
        self.show()
