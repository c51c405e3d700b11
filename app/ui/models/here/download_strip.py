"""The running downloads, in one line below the other views."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QProgressBar, QPushButton, QWidget

from app.hub.downloads import State
from app.ui.models.hub_session import HubSession
from app.ui.models.words import joined, speed, time_left
from app.ui.theme import Theme
from app.ui.widgets.text.elided import ElidedLabel
from app.ui.widgets.words.numbers import percent

BARS = 1000
AT_WORK = (State.QUEUED, State.RUNNING, State.CHECKING, State.WAITING)


class DownloadStrip(QWidget):
    """Hidden while nothing is being downloaded."""

    downloads_wanted = Signal()

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self._words = ElidedLabel()
        self._words.setProperty("role", "caption")
        self._bar = QProgressBar()
        self._bar.setRange(0, BARS)
        self._bar.setTextVisible(False)
        self._bar.setFixedWidth(160)
        show = QPushButton("Show downloads")
        show.setProperty("kind", "flat")
        show.clicked.connect(self.downloads_wanted)
        row = QHBoxLayout(self)
        row.setContentsMargins(24, 4, 16, 4)
        row.setSpacing(16)
        row.addWidget(self._bar, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._words, 1)
        row.addWidget(show)
        theme.changed.connect(self.update)
        self.is_busy = False
        self.refresh()

    @property
    def words(self) -> str:
        return self._words.text()

    @Slot()
    def refresh(self) -> None:
        """Sum up the queue."""
        items = self._session.downloads.values()
        coming = [item for item in items if item.state in AT_WORK]
        failed = [item for item in items if item.state is State.FAILED]
        self.is_busy = bool(coming or failed)
        done, total = sum(item.done for item in coming), sum(item.total for item in coming)
        rate = sum(item.speed or 0.0 for item in coming)
        self._bar.setValue(BARS * done // total if total else 0)
        self._bar.setVisible(bool(coming))
        one_or_more = f"{len(coming)} download{'s' if len(coming) != 1 else ''}"
        self._words.set_text(
            joined(
                one_or_more if coming else "",
                percent(done / total) if total else "",
                speed(rate) if rate else "",
                time_left((total - done) / rate) if rate else "",
                f"{len(failed)} stopped" if failed else "",
            )
        )

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.palette.panel)
        painter.fillRect(0, 0, self.width(), 1, self._theme.palette.line)
