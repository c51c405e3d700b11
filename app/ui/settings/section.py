"""What sections of the Settings place have in common: rows with their names on the left."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFormLayout, QLabel, QLayout, QWidget


class SettingsSection(QWidget):
    """Rows of settings; the page gives the names of all sections one width (`labels`)."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[QLabel] = []
        self._form = QFormLayout(self)
        self._form.setContentsMargins(0, 8, 0, 0)
        self._form.setHorizontalSpacing(24)
        self._form.setVerticalSpacing(12)

    def add_row(self, name: str, contents: QLayout) -> None:
        """Add a row at the end."""
        label = QLabel(name)
        label.setProperty("role", "secondary")
        label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.labels.append(label)
        self._form.addRow(label, contents)


def words_label(text: str) -> QLabel:
    """Plain words in as many lines as they take, which can be marked with the mouse."""
    label = QLabel(text)
    label.setWordWrap(True)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
