"""A few labelled bars: a histogram, or one bar for each place of a draft."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QToolTip

from app.ui.inspector.shape.contents import Bar
from app.ui.theme import Palette, Theme
from app.ui.widgets.data.export import Cell, ChooseFile
from app.ui.widgets.data.plot import Plot
from app.ui.widgets.text.tips import as_text

_HEIGHT, _WIDEST, _GAP = 96, 52, 3  # pixels at text scale 1


class Bars(Plot):
    """Bars of equal width from the left; the highest part takes the whole height."""

    def __init__(
        self,
        theme: Theme,
        choose: ChooseFile,
        columns: Sequence[str],
        colours: Callable[[Palette], Sequence[str]],
        *,
        beside: bool = False,
    ) -> None:
        """`columns` names label and parts in exported tables; `colours` are those of the parts; `beside` puts
        parts side by side."""
        super().__init__(theme, choose)
        self.file_stem = columns[0]
        self._columns = columns
        self._colours = colours
        self._beside = beside
        self.bars: tuple[Bar, ...] = ()
        self.top = 1.0  # the value of the whole height
        self._painted: object = None

    def set_bars(self, bars: Iterable[Bar], top: float | None = None) -> None:
        """Show these bars; `top` is the value of the whole height, by default the highest part."""
        self.bars = tuple(bars)
        parts = [part for bar in self.bars for part in bar.parts if part is not None]
        self.top = top or max(parts, default=0.0) or 1.0
        self.setAccessibleDescription("; ".join(bar.told for bar in self.bars))
        if self._look() != self._painted:  # one round more among thousands seldom moves a pixel
            self.update()

    def table(self) -> tuple[Sequence[str], Iterable[Sequence[Cell]]]:
        return self._columns, ((bar.label, *bar.parts) for bar in self.bars)

    @property
    def bar_rects(self) -> list[QRectF]:
        """Where each bar has room."""
        metrics = QFontMetricsF(self._theme.sans(-2))
        labels = max((metrics.horizontalAdvance(bar.label) for bar in self.bars), default=0.0) + 4 * _GAP
        pitch = min(self.width() / max(len(self.bars), 1), max(_WIDEST * self._theme.scale, labels))
        line = metrics.height()
        height = self.height() - 2 * line - 2
        return [QRectF(index * pitch, line, pitch - _GAP, height) for index in range(len(self.bars))]

    def _look(self) -> list[tuple[str, str, list[int]]]:
        """What is painted of the bars: words, and heights in whole pixels."""
        most = self.height() - 2 * self._line() - 2
        return [(bar.label, bar.text, [self._pixels(part, most) for part in bar.parts]) for bar in self.bars]

    def _pixels(self, part: float | None, most: float) -> int:
        return round((part or 0.0) / self.top * most)

    def _line(self) -> float:
        return QFontMetricsF(self._theme.sans(-2)).height()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, palette = QPainter(self), self._theme.palette
        self._painted = self._look()
        painter.setFont(self._theme.sans(-2))
        line, wide = self._line(), painter.fontMetrics().horizontalAdvance
        colours = [QColor(colour) for colour in self._colours(palette)]
        painter.setPen(QColor(palette.secondary))
        for rect, bar in zip(self.bar_rects, self.bars, strict=True):
            parts = self._part_rects(rect, bar)
            for part, colour in zip(parts, colours, strict=True):
                painter.fillRect(part, colour)
            room = rect.adjusted(-_GAP, 0, _GAP, 0)
            under = parts[0] if self._beside else min(parts, key=QRectF.top)
            above = QRectF(0, 0, under.width() if self._beside else room.width(), line)
            above.moveCenter(QPointF(under.center().x(), under.top() - line / 2))
            if wide(bar.text) <= above.width() + 1:
                painter.drawText(above, Qt.AlignmentFlag.AlignHCenter, bar.text)
            label = painter.fontMetrics().elidedText(
                bar.label, Qt.TextElideMode.ElideRight, round(room.width())
            )
            below = QRectF(room.left(), rect.bottom() + 2, room.width(), line)
            painter.drawText(below, Qt.AlignmentFlag.AlignHCenter, label)
        bottom = QRectF(0, round(self.height() - line - 2), self.width(), 1)
        painter.fillRect(bottom, QColor(palette.line))

    def _part_rects(self, rect: QRectF, bar: Bar) -> list[QRectF]:
        """The parts of a bar, on whole pixels."""
        width = rect.width() / len(bar.parts) if self._beside else rect.width()
        rects = []
        for place, part in enumerate(bar.parts):
            height = self._pixels(part, rect.height())
            left = round(rect.left() + width * place * self._beside)
            rects.append(QRectF(left, round(rect.bottom()) - height, round(width) - self._beside, height))
        return rects

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            at = next(
                (
                    index
                    for index, rect in enumerate(self.bar_rects)
                    if rect.left() <= event.pos().x() < rect.right() + _GAP
                ),
                None,
            )
            QToolTip.showText(event.globalPos(), as_text(self.bars[at].told) if at is not None else "", self)
            return True
        return super().event(event)

    def sizeHint(self) -> QSize:
        return QSize(200, round(_HEIGHT * self._theme.scale + 2 * self._line()))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())
