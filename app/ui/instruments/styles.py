"""The look of small parts beside numbers: buttons that look like text until pointed at, thin scroll bars; and
of what is plotted."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QPen

from app.ui.theme import Palette


def pen(colour: str, width: float, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """A pen as many pixels wide, whatever the scale of the plot."""
    made = QPen(QColor(colour), width, style)
    made.setCosmetic(True)
    return made


def shade(colour: str, alpha: float = 1.0) -> QColor:
    made = QColor(colour)
    made.setAlphaF(alpha)
    return made


def flat_button(palette: Palette, framed: bool = False) -> str:
    """A style sheet for one tool button or push button; `framed` draws its edge at all times."""
    edge = palette.line if framed else "transparent"
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


def scroll_bar(palette: Palette) -> str:
    """A style sheet for thin scroll bars."""
    return f"""
        QScrollBar:vertical {{ background: transparent; width: 8px; margin: 0; }}
        QScrollBar::handle:vertical {{ background: {palette.line}; min-height: 24px;
            border-radius: 3px; margin: 0 0 0 2px; }}
        QScrollBar::handle:vertical:hover {{ background: {palette.faint}; }}
        QScrollBar::add-line:vertical, QScrollBar::sub-line:vertical {{ height: 0; }}
        QScrollBar::add-page:vertical, QScrollBar::sub-page:vertical {{ background: none; }}
    """
