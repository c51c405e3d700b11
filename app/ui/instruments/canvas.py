"""The area a plot is drawn in: axes, grid lines, and mouse and keyboard input. Its view draws the values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QFocusEvent,
    QFontMetricsF,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.ui.theme import Theme
from app.ui.widgets.words import count

if TYPE_CHECKING:
    from app.ui.instruments.view import PlotView

_ABOVE = 4  # pixels above the highest tick, so that a dot there is not cut
_BELOW = 3
_BETWEEN = 3  # pixels between the plot and the words below it
_LEAST = 76  # pixels at text scale 1: the height that the plot keeps while the words around it grow
_ZOOM_STEP = 1.25


@dataclass(frozen=True, slots=True)
class Tick:
    value: float
    text: str


class Canvas(QWidget):
    """x is the round (or what `axis` names), y begins at 0. Input only emits signals: the panel decides, so
    that all plots show the same rounds."""

    hovered = Signal(object)  # the round under the mouse, or None
    clicked = Signal(int)
    double_clicked = Signal()
    stepped = Signal(int)  # arrow keys: one round on (1) or back (-1)
    zoomed = Signal(float, float)  # factor, round that keeps its place
    panned = Signal(float)  # rounds
    resized = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._view: PlotView | None = None
        self._ticks: tuple[Tick, ...] = ()
        self._top = 1.0
        self._span = (-0.5, 31.5)
        self._ring = False  # can be reached by keyboard
        self._drag: QPointF | None = None
        self._dragged = False
        self._level: tuple[float, str] | None = None
        self._reading: tuple[int, str] | None = None
        self._note = ""
        self.axis = "round"
        self.marked: int | None = None  # the round marked with a line
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.apply_theme()

    # ------------------------------------------------------------------------------- what is shown

    def apply_theme(self) -> None:
        self._label_font = self._theme.sans(-2)
        metrics = QFontMetricsF(self._label_font)
        self._label_height = metrics.height()
        self._axis_width = metrics.horizontalAdvance("8,888") + 8
        self.setMinimumHeight(round(_LEAST * self._theme.scale))
        self._place_view()
        if self._view is not None:
            self._view.set_mark_colour(self._theme.palette.faint)

    @property
    def view(self) -> PlotView:
        """What draws the values; made when there is an answer."""
        if self._view is None:
            # Its pyqtgraph takes a sixth of the start to import.
            from app.ui.instruments.view import PlotView

            self._view = PlotView(self, self.draw_over)
            self._view.lower()  # below the words that are in place of the plot
            self._view.show()
            self._view.mark(self.marked)
            self._place_view()
        return self._view

    @property
    def has_view(self) -> bool:
        """Whether there was an answer yet."""
        return self._view is not None

    def _place_view(self) -> None:
        self.update()
        if self._view is not None:
            plot, (left, right), (low, high) = self.plot_rect(), self._span, self.heights
            self._view.place(self.rect(), plot, QRectF(left, low, right - left, high - low))

    def set_ticks(self, ticks: Sequence[Tick]) -> None:
        """Label these values; the last is the top of the axis."""
        if tuple(ticks) != self._ticks:
            self._ticks = tuple(ticks)
            self._top = ticks[-1].value
            self._place_view()

    def set_span(self, first: float, last: float) -> None:
        """Show x from `first` to `last`."""
        if (first, last) != self._span:
            self._span = (first, last)
            self._place_view()

    def set_level(self, value: float | None, text: str = "") -> None:
        """Draw a dashed line across at `value`, with its meaning below the plot."""
        level = None if value is None else (value, text)
        if level != self._level:
            self._level = level
            self.update()

    def mark(self, index: int | None) -> None:
        """Draw a thin line at that round."""
        if index != self.marked:
            self.marked = index
            self.update()
        if self._view is not None:
            self._view.mark(index)

    def set_note(self, text: str) -> None:
        """Show a text in the middle of the axis."""
        if text != self._note:
            self._note = text
            self.update()

    @property
    def note(self) -> str:
        """The text in the middle of the axis."""
        return self._note

    def set_reading(self, index: int | None, text: str = "") -> None:
        """Show the values of a round below the plot, in place of the name of the axis."""
        reading = None if index is None else (index, text)
        if reading != self._reading:
            self._reading = reading
            self.update()

    @property
    def reading(self) -> str:
        """The values that are shown at the moment."""
        return "" if self._reading is None else self._reading[1]

    @property
    def plot_width(self) -> int:
        """The width in pixels that the rounds take."""
        return max(int(self.plot_rect().width()), 1)

    def plot_rect(self) -> QRectF:
        """Where the data is drawn, in pixels of this widget."""
        above, below = self._label_height / 2, self._label_height + _BETWEEN
        return QRectF(self.rect()).adjusted(self._axis_width, above, -2, -below)

    @property
    def heights(self) -> tuple[float, float]:
        """The values at the lower and the upper edge of `plot_rect`."""
        pixel = self._top / max(self.plot_rect().height() - _ABOVE - _BELOW, 1)
        return -_BELOW * pixel, self._top + _ABOVE * pixel

    def x_of(self, index: float) -> float:
        """Pixel of a round."""
        rect, (first, last) = self.plot_rect(), self._span
        return rect.left() + (index - first) / (last - first) * rect.width()

    def y_of(self, value: float) -> float:
        """Pixel of a value."""
        rect, (low, high) = self.plot_rect(), self.heights
        return rect.bottom() - (value - low) / (high - low) * rect.height()

    def round_at(self, x: float) -> float:
        """Round at a pixel, with its fraction."""
        rect, (first, last) = self.plot_rect(), self._span
        return first + (x - rect.left()) / max(rect.width(), 1) * (last - first)

    # --------------------------------------------------------------------------------- painting

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.fillRect(self.rect(), QColor(self._theme.palette.ground))
        self._draw_axes(painter)
        if self._view is None:
            self.draw_over(painter)

    def _draw_axes(self, painter: QPainter) -> None:
        palette, plot = self._theme.palette, self.plot_rect()
        painter.setFont(self._label_font)
        height = self._label_height
        for tick in self._ticks:
            y = round(self.y_of(tick.value))
            painter.fillRect(QRectF(plot.left(), y, plot.width(), 1), QColor(palette.line))
            painter.setPen(QColor(palette.secondary))
            box = QRectF(0, y - height / 2, plot.left() - 8, height)
            painter.drawText(box, Qt.AlignmentFlag.AlignRight, tick.text)
        if self._reading is not None:
            return
        first, last = (round(edge) for edge in (self._span[0] + 0.5, self._span[1] - 0.5))
        below = QRectF(plot.left(), plot.bottom() + 2, plot.width(), height)
        painter.setPen(QColor(palette.secondary))
        painter.drawText(below, Qt.AlignmentFlag.AlignLeft, f"{self.axis} {count(first)}")
        painter.drawText(below, Qt.AlignmentFlag.AlignRight, count(last))
        painter.drawText(below, Qt.AlignmentFlag.AlignHCenter, self._note)

    def draw_over(self, painter: QPainter) -> None:
        """Draw what stands over the values: the focus ring, the level, the values of a round."""
        if self._ring:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setPen(QColor(self._theme.palette.secondary))
            painter.drawRect(self.plot_rect().toRect().adjusted(0, 0, 0, -1))
        painter.setFont(self._label_font)
        if self._level is not None:
            self._draw_level(painter, *self._level)
        if self._reading is not None:
            self._draw_reading(painter, *self._reading)

    def _draw_level(self, painter: QPainter, value: float, text: str) -> None:
        plot, secondary = self.plot_rect(), QColor(self._theme.palette.secondary)
        pen = QPen(secondary, 1)
        pen.setDashPattern([4, 3])
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
        painter.setPen(pen)
        y = round(self.y_of(value)) + 0.5
        if plot.top() <= y <= plot.bottom():
            painter.drawLine(QLineF(plot.left(), y, plot.right(), y))
        if self._reading is not None:
            return
        # The name is in the free middle of the axis, where no curve crosses it.
        metrics = QFontMetricsF(self._label_font)
        sample = 18
        width = sample + 5 + metrics.horizontalAdvance(text)
        left = plot.center().x() - width / 2
        below = QRectF(left + sample + 5, plot.bottom() + 2, width, metrics.height())
        middle = round(below.center().y()) + 0.5
        painter.drawLine(QLineF(left, middle, left + sample, middle))
        painter.setPen(secondary)
        painter.drawText(below, Qt.AlignmentFlag.AlignLeft, text)

    def _draw_reading(self, painter: QPainter, index: int, text: str) -> None:
        metrics = QFontMetricsF(self._label_font)
        width = metrics.horizontalAdvance(text) + 2
        left = min(self.x_of(index) - width / 2, self.plot_rect().right() - width)
        below = QRectF(max(left, 0), self.plot_rect().bottom() + 2, width, metrics.height())
        painter.setPen(QColor(self._theme.palette.text))
        painter.drawText(below, Qt.AlignmentFlag.AlignLeft, text)

    # --------------------------------------------------------------------------- what people do

    def sizeHint(self) -> QSize:
        return QSize(300, round(96 * self._theme.scale))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_view()
        self.resized.emit()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        x = event.position().x()
        if self._drag is not None:
            moved = self.round_at(self._drag.x()) - self.round_at(x)
            if self._dragged or abs(self._drag.x() - x) > 4:
                self._dragged = True
                self._drag = event.position()
                self.panned.emit(moved)
        self.hovered.emit(round(self.round_at(x)))

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._drag, self._dragged = event.position(), False

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.double_clicked.emit()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self._drag is not None:
            self._drag = None
            if not self._dragged:
                self.clicked.emit(round(self.round_at(event.position().x())))

    def focusInEvent(self, event: QFocusEvent) -> None:
        keyboard = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
        self._ring = event.reason() in keyboard
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._ring = False
        super().focusOutEvent(event)
        self.update()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        event.ignore()  # the card handles it

    def leaveEvent(self, event: object) -> None:
        self.hovered.emit(None)

    def wheelEvent(self, event: QWheelEvent) -> None:
        # Without Ctrl the wheel scrolls the panel.
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier and event.angleDelta().y():
            factor = _ZOOM_STEP ** (-event.angleDelta().y() / 120)
            self.zoomed.emit(factor, self.round_at(event.position().x()))
            event.accept()
        else:
            event.ignore()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        middle = sum(self._span) / 2
        match event.key():
            case Qt.Key.Key_Left:
                self.stepped.emit(-1)
            case Qt.Key.Key_Right:
                self.stepped.emit(1)
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                self.zoomed.emit(1 / _ZOOM_STEP, middle)
            case Qt.Key.Key_Minus:
                self.zoomed.emit(_ZOOM_STEP, middle)
            case _:
                event.ignore()
