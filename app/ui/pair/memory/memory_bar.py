"""A small bar: what a pair takes of a device's free memory."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui.pair.memory.memory_rows import KINDS, MemoryRow
from app.ui.theme import Theme
from app.ui.theme.palette import Palette, blend

_SHADES = {"weights": 1.0, "context": 0.62, "compute": 0.38}
"""Share of the text's colour. Colours are for the fates of tokens; here only an excess has one."""


class MemoryBar(QWidget):
    """Its width is the free memory; the draft's parts are hatched. The numbers are beside it."""

    def __init__(self, theme: Theme, row: MemoryRow) -> None:
        super().__init__()
        self._theme = theme
        self._row = row
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(f"{row.name}: {row.sentence}")
        theme.changed.connect(self.update)

    def sizeHint(self) -> QSize:
        return QSize(100, round(8 * self._theme.scale))

    def minimumSizeHint(self) -> QSize:
        return QSize(40, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, row = self._theme.palette, self._row
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        whole = QRectF(self.rect())
        clip = QPainterPath()
        clip.addRoundedRect(whole, 3, 3)
        painter.setClipPath(clip)
        painter.fillRect(whole, QColor(colours.line))
        scale = max(row.needed, row.device.free if row.device.total else 0, 1)
        left = 0.0
        for role, memory in row.models:
            for kind in KINDS:
                width = whole.width() * getattr(memory, kind) / scale
                place = QRectF(left, 0, width, whole.height())
                painter.fillRect(place, QColor(shade(colours, kind)))
                if role == "draft":
                    hatch = QColor(colours.ground)
                    hatch.setAlphaF(0.55)
                    painter.fillRect(place, QBrush(hatch, Qt.BrushStyle.BDiagPattern))
                left += width
        if row.excess:
            edge = whole.width() * row.device.free / scale
            painter.fillRect(QRectF(edge, 0, whole.width() - edge, whole.height()), QColor(colours.error))


def shade(colours: Palette, kind: str) -> str:
    """The colour of weights, KV cache or compute buffers."""
    return blend(colours.text, colours.ground, _SHADES[kind])
