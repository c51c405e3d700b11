"""The button that draws a place a thousand times: what comes grows into p."""

from __future__ import annotations

from itertools import count

from PySide6.QtCore import QTimer, Signal, Slot
from PySide6.QtWidgets import QPushButton, QWidget

from app.engine.explain.law import PlaceLaw, Tally
from app.ui.theme import Theme
from app.ui.widgets.announce import announce

DRAWS = 1_000
_MILLISECONDS = 33  # between two frames
_AT_ONCE = 20  # draws a frame: the whole takes 1.7 s
_FIRST = f"Draw {DRAWS:,}"


class DrawButton(QPushButton):
    """Draws by a law, again and again; with less motion all at once. Every press draws anew."""

    drew = Signal()
    """The tally has other numbers, or is gone."""

    def __init__(self, theme: Theme, parent: QWidget, key: str = "") -> None:
        """`key` is the name of a key that presses it too."""
        super().__init__(parent)
        self.setProperty("kind", "small")
        self._theme = theme
        self._law: PlaceLaw | None = None
        self._seeds = count(1)
        self._key = f" ({key})" if key else ""
        self.tally: Tally | None = None
        self._timer = QTimer(self, interval=_MILLISECONDS)
        self._timer.timeout.connect(self._go_on)
        self.setToolTip("Draw a token from q, accept or replace it, and count what came: it grows into p")
        self.setAccessibleName(f"Draw it {DRAWS:,} times")
        self.clicked.connect(self.start)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.set_law(None)

    def set_law(self, law: PlaceLaw | None) -> None:
        """Draw by another law, or by none: what came is forgotten."""
        self._timer.stop()
        self._law, self.tally = law, None
        self.setVisible(law is not None)
        self._show()

    @Slot()
    def start(self) -> None:
        """Draw a thousand times."""
        if self._law is None:
            return
        self.tally = self._law.tally(next(self._seeds))
        if self._theme.less_motion:
            self.tally.draw(DRAWS)
            self._end()
        else:
            self._timer.start()
            self._go_on()

    @Slot()
    def _go_on(self) -> None:
        assert self.tally is not None
        self.tally.draw(min(_AT_ONCE, DRAWS - self.tally.total))
        if self.tally.total == DRAWS:
            self._end()
        else:
            self._show()

    def _end(self) -> None:
        self._timer.stop()
        self._show()
        announce(self, self.accessibleDescription())

    def _show(self) -> None:
        tally = self.tally
        if tally is None:
            self.setText(_FIRST + self._key)
            self.setAccessibleDescription("")
        else:
            running = tally.total < DRAWS
            self.setText(f"{tally.total:,} of {DRAWS:,}" if running else f"Draw again{self._key}")
            accepted = int(tally.accepted.sum())
            said = f"{tally.total:,} drawn: {accepted:,} accepted, {tally.total - accepted:,} replaced."
            self.setAccessibleDescription(said)
        self.drew.emit()

    @Slot()
    def _restyle(self) -> None:
        self.setFont(self._theme.sans(-1))
        widest = max(self.fontMetrics().horizontalAdvance(_FIRST + self._key), 1)
        self.setFixedSize(widest + round(24 * self._theme.scale), self.fontMetrics().height() + 8)
