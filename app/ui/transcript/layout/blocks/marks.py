"""Marks over the text: selection, what was found, the token pointed at. All neutral: colour is for fates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPen

from app.ui.theme import Palette
from app.ui.transcript.text.spans import Span


@dataclass(frozen=True, slots=True)
class Marks:
    """What is marked in one block; ranges count characters of its text."""

    selected: tuple[int, int] | None = None  # its end is one behind the text where the newline is selected
    found: tuple[tuple[int, int], ...] = ()
    current: tuple[int, int] | None = None  # the current match
    token: Span | None = None


NO_MARKS = Marks()


def wash(palette: Palette) -> QColor:
    """A translucent veil in the text's colour."""
    colour = QColor(palette.text)
    colour.setAlphaF(palette.wash_share)
    return colour


def fill(painter: QPainter, rects: Sequence[QRectF], colour: QColor) -> None:
    if rects:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawRects(rects)


def outline(
    painter: QPainter,
    rects: Sequence[QRectF],
    colour: str,
    radius: float = 2.5,
    style: Qt.PenStyle = Qt.PenStyle.SolidLine,
) -> None:
    """A thin rounded line around each rectangle."""
    painter.save()
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(QPen(QColor(colour), 1, style))
    painter.setBrush(Qt.BrushStyle.NoBrush)
    for rect in rects:
        # On pixel centres, so that a line one pixel wide stays one pixel wide.
        left, top = round(rect.left()) - 0.5, round(rect.top()) - 0.5
        right, bottom = round(rect.right()) + 0.5, round(rect.bottom()) + 0.5
        painter.drawRoundedRect(QRectF(left, top, right - left, bottom - top), radius, radius)
    painter.restore()
