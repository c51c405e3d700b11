"""The look of small parts beside numbers: buttons that look like text until pointed at, thin scroll bars; and
of what is plotted."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QPen
from PySide6.QtWidgets import QAbstractButton, QToolButton, QWidget

from app.ui.theme import Palette, Theme


def pen(colour: str, width: float, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """A pen of a width in pixels, which the plot's scale does not change."""
    made = QPen(QColor(colour), width, style)
    made.setCosmetic(True)
    return made


def shade(colour: str, alpha: float = 1.0) -> QColor:
    made = QColor(colour)
    made.setAlphaF(alpha)
    return made


def flat_button(palette: Palette, framed: bool = False) -> str:
    """A style sheet for one tool button or push button; `framed` draws its edge at all times."""
    edge = palette.edge if framed else "transparent"
    return f"""
        QAbstractButton {{
            color: {palette.secondary}; background: transparent;
            border: 1px solid {edge}; border-radius: 4px; padding: 1px 6px;
        }}
        QAbstractButton:hover {{ color: {palette.text}; background: {palette.panel};
            border-color: {palette.line}; }}
        QAbstractButton:pressed {{ background: {palette.line}; }}
        QAbstractButton[ring="true"]:focus {{ border-color: {palette.secondary}; }}
        QAbstractButton:disabled {{ color: {palette.faint}; }}
    """


def word_button(words: str, tip: str, name: str = "") -> QToolButton:
    """A button of one word. `name` is what a screen reader says, by default the tooltip."""
    made = QToolButton()
    made.setText(words)
    made.setToolTip(tip)
    made.setAccessibleName(name or tip)
    made.setCursor(Qt.CursorShape.PointingHandCursor)
    made.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    return made


def dress(font: QFont, colour: str, *labels: QWidget) -> None:
    """Give labels a font, and their letters a colour."""
    for label in labels:
        label.setFont(font)
        label.setStyleSheet(f"color: {colour}")


def dress_flat(theme: Theme, *buttons: QAbstractButton, framed: bool = False) -> None:
    """Give buttons small letters and the look of `flat_button`."""
    for button in buttons:
        button.setFont(theme.sans(-1.5))
        button.setStyleSheet(flat_button(theme.palette, framed))


def scroll_bar(palette: Palette) -> str:
    """A style sheet for thin scroll bars."""
    return f"""
        QScrollBar:vertical {{ background: transparent; width: 8px; margin: 0; }}
        QScrollBar::handle:vertical {{ background: {palette.edge}; min-height: 24px;
            border-radius: 3px; margin: 0 0 0 2px; }}
        QScrollBar::handle:vertical:hover {{ background: {palette.faint}; }}
        QScrollBar::add-line:vertical, QScrollBar::sub-line:vertical {{ height: 0; }}
        QScrollBar::add-page:vertical, QScrollBar::sub-page:vertical {{ background: none; }}
    """
