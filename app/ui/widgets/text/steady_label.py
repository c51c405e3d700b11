"""A label whose number may change with every step without anything around it being laid out anew."""

from __future__ import annotations

import re

from PySide6.QtCore import QEvent, Qt
from PySide6.QtWidgets import QLabel


class SteadyLabel(QLabel):
    """One line of plain text. It has the size of its widest text and keeps it while only digits change, which
    are all equally wide. A label of a fixed size does not ask its layout for room."""

    def __init__(self, text: str = "") -> None:
        super().__init__()
        self._pattern = ""
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.set_text(text)

    def set_text(self, text: str, widest: str = "") -> None:
        """Show a text; `widest` is the widest one to make room for, by default this one."""
        self.setText(text)
        pattern = re.sub(r"\d", "0", widest or text)
        if pattern != self._pattern:
            self._pattern = pattern
            self._fit()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self._fit()

    def _fit(self) -> None:
        metrics = self.fontMetrics()
        self.setFixedSize(metrics.horizontalAdvance(self._pattern) + 2, metrics.height())
