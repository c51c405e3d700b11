"""The list of all strategies, opened from a control that needs one, and the button that opens it."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPoint, QSize, Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QSizePolicy, QWidget

from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.buttons import RowButton
from app.ui.widgets.entry_list import EntryList, ListEntry
from app.ui.widgets.icons import icon

WIDTH = 600  # at text scale 1
EDGE = 12  # pixels of the list's frame, at both sides together


class StrategyList(QFrame):
    """A popup: arrow keys move, letters jump to a name, Enter or a click chooses, Escape closes."""

    picked = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self._theme = theme
        self._view = EntryList(theme, code=True)
        self._view.setFrameShape(QFrame.Shape.NoFrame)
        self._view.activated.connect(self._take)
        self._view.clicked.connect(self._take)
        self.setProperty("kind", "list")
        kit.column(self._view, margins=(5, 5, 5, 5), on=self)

    def open_at(self, anchor: QWidget, name: str, choices: Sequence[ListEntry], current: str = "") -> None:
        """Open below a control, or as near as the screen allows; `name` says what the list is."""
        self._view.setAccessibleName(name)
        self._view.set_entries(choices)
        self._place(anchor)
        names = [choice.title for choice in choices]
        possible = [at for at, choice in enumerate(choices) if choice.possible]
        self._view.select(names.index(current) if current in names else next(iter(possible), 0))
        self.show()
        self._view.setFocus(Qt.FocusReason.PopupFocusReason)

    def _place(self, anchor: QWidget) -> None:
        """Inside the window if there is room, else anywhere on the screen."""
        screen = anchor.screen().availableGeometry()
        window = anchor.window().frameGeometry().intersected(screen)
        width = min(round(WIDTH * self._theme.scale), screen.width())
        rows = sum(self._view.painter.height(entry, width - EDGE) for entry in self._view.entries)
        height = min(rows + EDGE, screen.height())
        corner = anchor.mapToGlobal(QPoint(0, anchor.height() + 2))
        room = window if window.width() >= width and window.height() >= height else screen
        left = max(room.left(), min(corner.x(), room.right() + 1 - width))
        top = max(room.top(), min(corner.y(), room.bottom() + 1 - height))
        self.setGeometry(left, top, width, height)

    def _take(self, index: QModelIndex) -> None:
        if self.isVisible() and index.flags() & Qt.ItemFlag.ItemIsEnabled:
            self.close()
            self.picked.emit(index.data())


class StrategyPicker(RowButton):
    """The name and when the strategy helps; a click, Space, Enter or Down asks to change it."""

    keys = (*RowButton.keys, Qt.Key.Key_Down)

    def __init__(self, theme: Theme, name: str, summary: str) -> None:
        super().__init__(theme)
        self.setAccessibleName(f"Strategy {name}")
        self.setAccessibleDescription(summary)
        self.setToolTip("Choose a different strategy")
        self._chevron = QLabel()
        self.summary = kit.label(summary, "caption", wrap=True, plain=True)
        # A strategy from outside may contain any text.
        head = kit.row(kit.label(name, "mono", plain=True), self._chevron, kit.Spring(1), spacing=6)
        kit.column(head, self.summary, margins=(8, 6, 8, 6), spacing=2, on=self)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.follow(self._restyle)

    def _restyle(self) -> None:
        side = round(14 * self._theme.scale)
        chevron = icon("chevron-down", self._theme.palette.secondary)
        self._chevron.setPixmap(chevron.pixmap(QSize(side, side), self.devicePixelRatio()))
        self.update()
