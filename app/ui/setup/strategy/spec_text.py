"""A strategy as text: to read, to type, to copy."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets.fields.typing import Typing
from app.ui.widgets.icons import IconButton


class SpecText(QWidget):
    """One line in the font for code; an error is shown below."""

    typed = Signal(str)
    """The text that was entered, valid or not."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spec = ""
        heading = QLabel("As text")
        heading.setProperty("role", "strong")
        self.line = QLineEdit()
        self.line.setProperty("kind", "mono")
        self.line.setAccessibleName("Strategy as text")
        self.line.setToolTip("name:key=value, joined by + in order of precedence")
        self._typing = Typing(self.line, self.line.textEdited)
        self._typing.settled.connect(lambda: self.typed.emit(self.line.text()))
        copy = IconButton(theme, "copy", "Copy the strategy")
        copy.clicked.connect(self._copy)
        self.error = QLabel()
        self.error.setTextFormat(Qt.TextFormat.PlainText)
        self.error.setProperty("role", "error")
        self.error.setWordWrap(True)
        self.error.hide()
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.line, 1)
        row.addWidget(copy)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(heading)
        layout.addLayout(row)
        layout.addWidget(self.error)

    def set_spec(self, text: str) -> None:
        """Show a valid spec."""
        self._spec = text
        self._typing.forget()
        self.line.setText(text)
        self.line.setCursorPosition(0)
        self.show_error("")

    def accept(self, text: str) -> None:
        """The typed text stands for this spec, and stays as it is written."""
        self._spec = text
        self.show_error("")

    def show_error(self, text: str) -> None:
        """Say what is wrong with the typed text; "" where nothing is wrong with it."""
        self.error.setText(text)
        self.error.setVisible(bool(text))
        set_role(self.line, state="wrong" if text else "")

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._spec)
