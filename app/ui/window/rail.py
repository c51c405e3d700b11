"""The narrow rail on the left: one button for every place."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QButtonGroup, QVBoxLayout, QWidget

from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets.icons import IconButton

WIDTH = 56  # pixels at text scale 1


class Rail(QWidget):
    """Chooses among the places."""

    place_chosen = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._buttons: dict[str, IconButton] = {}
        self._group = QButtonGroup(self)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(8, 12, 8, 12)
        self._layout.setSpacing(8)
        self._add("chat", "Chat")
        self._add("compare", "Compare (Ctrl+K)")
        self._add("models", "Models (Ctrl+M)")
        self._layout.addStretch(1)
        self._add("settings", "Settings (Ctrl+,)")
        theme.changed.connect(self._fit)
        self._fit()

    def _add(self, place: str, tooltip: str) -> None:
        button = IconButton(self._theme, place, tooltip, side=18)
        set_role(button, kind="place")
        button.setCheckable(True)
        button.clicked.connect(lambda: self.place_chosen.emit(place))
        self._group.addButton(button)
        self._buttons[place] = button
        self._layout.addWidget(button)

    def set_place(self, place: str) -> None:
        """Mark the place that is on the screen."""
        self._buttons[place].setChecked(True)

    @Slot()
    def _fit(self) -> None:
        side = round((WIDTH - 16) * self._theme.scale)
        for button in self._buttons.values():
            button.setFixedSize(side, side)
        self.setFixedWidth(side + 16)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(self.rect(), self._theme.palette.panel)
        painter.fillRect(self.width() - 1, 0, 1, self.height(), self._theme.palette.line)
