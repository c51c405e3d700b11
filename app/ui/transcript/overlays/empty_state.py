"""What an empty chat shows: a title, a line of text, and prompts to begin with."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QFont, QResizeEvent
from PySide6.QtWidgets import QLabel, QPushButton, QSizePolicy, QVBoxLayout, QWidget

from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets.text.tips import as_text

MOST = 5  # prompts offered at most
TOUR = "Take the tour (3 minutes)"


class EmptyState(QWidget):
    """A title, a line, and prompts to choose from."""

    suggestion_chosen = Signal(str)  # its title
    tour_asked = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self.title = QLabel("Ask, and watch the draft being judged", self)
        self.line = QLabel(
            "Every token of the answer shows where it came from: drafted and accepted,"
            " corrected by the target, or a bonus.",
            self,
        )
        set_role(self.line, role="secondary")
        for words in (self.title, self.line):
            words.setWordWrap(True)
        self.tour = QPushButton(TOUR, self)
        self.tour.clicked.connect(self.tour_asked)
        self.tour.hide()
        self._buttons: list[QPushButton] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(round(8 * theme.scale))
        for label in (self.title, self.line):
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            self._column.addWidget(label)
        self._column.addSpacing(round(12 * theme.scale))
        self._column.addWidget(self.tour, 0, Qt.AlignmentFlag.AlignCenter)
        theme.changed.connect(self._theme_changed)
        self._theme_changed()

    def set_words(self, title: str, line: str) -> None:
        """Change the words, for example while no model is loaded yet."""
        self.title.setText(title)
        self.line.setText(line)

    def set_suggestions(self, prompts: Mapping[str, str]) -> None:
        """Offer the first few of these prompts (title -> prompt) as buttons."""
        for button in self._buttons:
            self._column.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._buttons = [self._button(title, prompt) for title, prompt in islice(prompts.items(), MOST)]
        for button in self._buttons:
            self._column.insertWidget(self._column.indexOf(self.tour), button)
            button.show()

    def fit(self, width: int, height: int) -> int:
        """Show as many prompts as fit into a place of this size; returns the height used."""
        self.tour.setText(TOUR)
        if self.tour.sizeHint().width() > width:
            self.tour.setText(TOUR.partition(" (")[0])
        for button in self._buttons:
            button.setVisible(True)
        for button in reversed(self._buttons):
            if self._wanted(width) <= height:
                break
            button.setVisible(False)
        return self._wanted(width)

    def _wanted(self, width: int) -> int:
        self._column.invalidate()
        tall = self._column.totalHeightForWidth(width) if self._column.hasHeightForWidth() else 0
        return tall if tall > 0 else self._column.totalSizeHint().height()

    @property
    def buttons(self) -> tuple[QPushButton, ...]:
        return tuple(self._buttons)

    def _button(self, title: str, prompt: str) -> QPushButton:
        button = _PromptButton(title, self)
        button.setAccessibleName(title)
        button.setToolTip(as_text(f"Ask:\n{prompt}"))
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.clicked.connect(lambda: self.suggestion_chosen.emit(title))
        return button

    @Slot()
    def _theme_changed(self) -> None:
        self.title.setFont(self._theme.sans(4, QFont.Weight.Medium))
        self.line.setFont(self._theme.sans(0.5))


class _PromptButton(QPushButton):
    """A button with the title of a prompt, elided where it does not fit."""

    def __init__(self, title: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._line = title
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.setText(self._line.replace("&", "&&"))

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = event.size().width() - 3 * self.fontMetrics().height()
        shown = self.fontMetrics().elidedText(self._line, Qt.TextElideMode.ElideRight, room)
        self.setText(shown.replace("&", "&&"))
