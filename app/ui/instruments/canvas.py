"""Where a plot over the rounds is: words before the first answer, then axes, values, and a line below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QStackedWidget

from app.ui.instruments.styles import dress
from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.widgets import kit
from app.ui.widgets.labels import GivingLabel
from app.ui.widgets.words import count

if TYPE_CHECKING:
    from app.ui.instruments.view import PlotView

_LEAST = 76  # pixels at text scale 1: the height that the plot keeps while the words around it grow
_ZOOM_STEP = 1.25
_EDGES = 0.04, 0.06  # of the height, below 0 and above the highest tick, so that a dot there is not cut


class Canvas(QStackedWidget):
    """x is the round (or what `axis` names), y begins at 0. Input only emits signals: the panel decides, so
    that all plots show the same rounds."""

    hovered = Signal(object)  # the round under the mouse, or None
    clicked = Signal(int)
    double_clicked = Signal()
    stepped = Signal(int)  # arrow keys: one round on (1) or back (-1)
    zoomed = Signal(float, float)  # what someone wants to see: from, to
    resized = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._view: PlotView | None = None
        self._level = ""
        self.axis = "round"
        self.marked: int | None = None  # the round marked with a line
        self.note = ""
        """The text in the middle of the axis."""
        self.reading = ""
        """The values that are shown at the moment."""
        self.message = QLabel(wordWrap=True, alignment=Qt.AlignmentFlag.AlignCenter)
        self._foot = GivingLabel(), GivingLabel(), GivingLabel()
        self._foot[1].setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.addWidget(self.message)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.apply_theme()

    # ------------------------------------------------------------------------------- what is shown

    def apply_theme(self) -> None:
        theme = self._theme
        self.setMinimumHeight(round(_LEAST * theme.scale))
        dress(theme.sans(-1), theme.palette.secondary, self.message)
        dress(theme.sans(-2), theme.palette.secondary, *self._foot)
        if self._view is not None:
            self._view.dress(theme)

    @property
    def view(self) -> PlotView:
        """What draws the values; made when there is an answer."""
        if self._view is None:
            # Its pyqtgraph takes a sixth of the start to import.
            from app.ui.instruments.view import PlotView

            self._view = view = PlotView(lambda: ring_shown(self))
            foot = kit.row(self._foot[0], (self._foot[1], 1), self._foot[2])
            self.addWidget(kit.holder(kit.column((view, 1), foot, spacing=0)))
            view.scene().sigMouseMoved.connect(lambda at: self.hovered.emit(round(self.round_at(at.x()))))
            view.scene().sigMouseClicked.connect(self._mouse_clicked)
            view.box.sigRangeChangedManually.connect(lambda: self.zoomed.emit(*view.box.viewRange()[0]))
            view.box.sigResized.connect(self._tell_size, Qt.ConnectionType.QueuedConnection)
            self.apply_theme()
            self.set_message(self.message.text())
            self.mark(self.marked)
        return self._view

    @property
    def has_view(self) -> bool:
        """Whether there was an answer yet."""
        return self._view is not None

    def set_message(self, text: str) -> None:
        """Show words in place of the plot; "" shows the plot."""
        self.message.setText(text)
        self.setCurrentIndex(0 if text else self.count() - 1)

    def set_ticks(self, ticks: Sequence[tuple[float, str]]) -> None:
        """Label these values; the last is the top of the axis."""
        top = ticks[-1][0]
        self.view.axes.left.setTicks([ticks])
        self.view.box.setYRange(-_EDGES[0] * top, (1 + _EDGES[1]) * top, padding=0)

    def set_span(self, first: float, last: float, whole: tuple[float, float] | None = None) -> None:
        """Show x from `first` to `last`; people may look anywhere in `whole`."""
        if self._view is None:
            return
        low, high = whole or (first, last)
        self._view.box.setLimits(xMin=low, xMax=high, minXRange=8)
        self._view.box.setXRange(first, last, padding=0)
        self._show_foot()

    def set_level(self, value: float | None, text: str = "") -> None:
        """Draw a dashed line across at `value`, with its meaning below the plot."""
        self._level = f"╌╌ {text}" if value is not None else ""
        self.view.show_level(value)
        self._show_foot()

    def mark(self, index: int | None) -> None:
        """Draw a thin line at that round."""
        self.marked = index
        if self._view is not None:
            self._view.mark(index)

    def set_note(self, text: str) -> None:
        """Show a text in the middle of the axis."""
        self.note = text
        self._show_foot()

    def set_reading(self, text: str = "") -> None:
        """Show the values of a round below the plot, in place of the name of the axis."""
        self.reading = text
        self._show_foot()

    def _show_foot(self) -> None:
        if self._view is None:
            return
        first, last = self._view.box.viewRange()[0]
        ends = (f"{self.axis} {count(round(first + 0.5))}", count(round(last - 0.5)))
        words = ", ".join(filter(None, (self._level, self.note)))
        shown = ("", self.reading, "") if self.reading else (ends[0], words, ends[1])
        for label, text in zip(self._foot, shown, strict=True):
            label.setText(text)
        colours = self._theme.palette
        self._foot[1].setStyleSheet(f"color: {colours.text if self.reading else colours.secondary}")

    # ------------------------------------------------------------------------------ where things are

    @property
    def plot_width(self) -> int:
        """The width in pixels that the rounds take."""
        return max(int(self.plot_rect().width()), 1)

    def plot_rect(self) -> QRectF:
        """Where the data is drawn, in pixels of this widget."""
        if self._view is None:
            return QRectF(self.rect())
        return self._view.box.mapRectToScene(self._view.box.rect())  # type: ignore[no-any-return]

    @property
    def heights(self) -> tuple[float, float]:
        """The values at the lower and the upper edge of `plot_rect`."""
        low, high = self.view.box.viewRange()[1]
        return low, high

    def x_of(self, index: float) -> float:
        """Pixel of a round."""
        return self.view.axes.pixel(index, 0).x()

    def y_of(self, value: float) -> float:
        """Pixel of a value."""
        return self.view.axes.pixel(0, value).y()

    def round_at(self, x: float) -> float:
        """Round at a pixel, with its fraction."""
        return float(self.view.box.mapSceneToView(QPointF(x, 0)).x())

    # --------------------------------------------------------------------------- what people do

    def sizeHint(self) -> QSize:
        return QSize(300, round(96 * self._theme.scale))

    def _tell_size(self) -> None:
        self.resized.emit()

    def _mouse_clicked(self, event: Any) -> None:
        if event.double():
            self.double_clicked.emit()
        elif event.button() is Qt.MouseButton.LeftButton:
            self.clicked.emit(round(self.round_at(event.scenePos().x())))

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._repaint()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._repaint()

    def _repaint(self) -> None:
        if self._view is not None:
            self._view.viewport().update()

    def leaveEvent(self, event: QEvent) -> None:
        self.hovered.emit(None)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        match event.key():
            case Qt.Key.Key_Left:
                self.stepped.emit(-1)
            case Qt.Key.Key_Right:
                self.stepped.emit(1)
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal if self.has_view:
                self._zoom(1 / _ZOOM_STEP)
            case Qt.Key.Key_Minus if self.has_view:
                self._zoom(_ZOOM_STEP)
            case _:
                event.ignore()

    def _zoom(self, factor: float) -> None:
        self.view.box.scaleBy(x=factor)
        self.zoomed.emit(*self.view.box.viewRange()[0])
