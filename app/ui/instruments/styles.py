"""The look of what is plotted, and buttons of one word beside it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPen
from PySide6.QtWidgets import QToolButton


def pen(colour: str, width: float, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """A pen of a width in pixels, which the plot's scale does not change."""
    made = QPen(QColor(colour), width, style)
    made.setCosmetic(True)
    return made


def shade(colour: str, alpha: float = 1.0) -> QColor:
    made = QColor(colour)
    made.setAlphaF(alpha)
    return made


def word_button(words: str, tip: str, name: str = "") -> QToolButton:
    """A button of one word. `name` is what a screen reader says, by default the tooltip."""
    made = QToolButton()
    made.setProperty("kind", "word")
    made.setText(words)
    made.setToolTip(tip)
    made.setAccessibleName(name or tip)
    made.setCursor(Qt.CursorShape.PointingHandCursor)
    made.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return made
