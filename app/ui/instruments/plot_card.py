"""A plot with its title row: name, definition, and its main number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QContextMenuEvent, QFocusEvent, QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QStackedWidget

from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.access import announce
from app.ui.widgets.labels import GivingLabel
from app.ui.widgets.plot import Plot
from app.ui.widgets.words import NONE, count

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
        self.axis, self.counts_from = "round", 1  # x is an index: people count rounds from 1
        self.marked: int | None = None  # the round marked with a line
        self.note = ""
        """The text in the middle of the axis."""
        self.reading = ""
        """The values that are shown at the moment."""
        self.message = kit.label("", "caption", wrap=True, side=Qt.AlignmentFlag.AlignCenter)
        self._foot: tuple[GivingLabel, ...] = ()  # below the view, and made with it
        self.addWidget(self.message)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.apply_theme()

    # ------------------------------------------------------------------------------- what is shown

    def apply_theme(self) -> None:
        self.setMinimumHeight(round(_LEAST * self._theme.scale))
        if self._view is not None:
            self._view.dress(self._theme)

    @property
    def view(self) -> PlotView:
        """The view that draws the values, made when there is an answer."""
        if self._view is None:
            # Its pyqtgraph takes a sixth of the start to import.
            from app.ui.instruments.view import PlotView

            self._view = view = PlotView(lambda: ring_shown(self))
            self._foot = first, words, last = GivingLabel(), GivingLabel(), GivingLabel()
            words.setAlignment(Qt.AlignmentFlag.AlignCenter)
            for label in self._foot:
                label.setProperty("role", "tiny")
            foot = kit.row(first, (words, 1), last)
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
        """Show x from `first` to `last`; panning is limited to `whole`."""
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
        low, high = (count(round(x) + self.counts_from) for x in (first + 0.5, last - 0.5))
        ends = (f"{self.axis} {low}", high)
        words = ", ".join(filter(None, (self._level, self.note)))
        shown = ("", self.reading, "") if self.reading else (ends[0], words, ends[1])
        for label, text in zip(self._foot, shown, strict=True):
            label.setText(text)
        set_role(self._foot[1], state="read" if self.reading else "")

    # ------------------------------------------------------------------------------ where things are

    @property
    def plot_width(self) -> int:
        """The width in pixels that the rounds take."""
        return max(int(self.plot_rect().width()), 1)

    def plot_rect(self) -> QRectF:
        """The rectangle of the data, in pixels of this widget."""
        if self._view is None:
            return QRectF(self.rect())
        return self._view.box.mapRectToScene(self._view.box.rect())  # type: ignore[no-any-return]

    def pixel(self, index: float, value: float) -> QPointF:
        """The pixel at which a value of a round is drawn."""
        return self.view.axes.pixel(index, value)

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


_NOTICE_MS = 6000
_KEYS = "Left and Right read out one round at a time."


class _Definition(GivingLabel):
    """Shown only if all of it has room; a tooltip has it, too."""

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.sizeHint().width() <= self.width() + 1:
            super().paintEvent(event)


class PlotCard(Plot):
    """The common part of the three plots. A subclass says what it draws, reads out and exports."""

    name = ""
    definition = ""
    tooltip = ""
    empty = ""
    """Shown before the first answer: what will appear here."""
    none = ""
    """Shown if the strategy drafts nothing, so the plot would be empty."""
    untold = ""
    """Shown if the server does not report what happened to its drafts."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.saved.connect(lambda name: self._notify(f"Saved {name}."))
        self.failed.connect(lambda error: self._notify(str(error)))
        self.answer = AnswerModel()  # the answer that is drawn
        self.title = kit.label(self.name, "strong")
        self.note = _Definition(self.definition)
        self.note.setProperty("role", "fine")
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        self.value = kit.label("", "large", side=right)
        self.show_value(NONE)
        for label in (self.title, self.note, self.value):
            label.setToolTip(self.tooltip)
        self.canvas = Canvas(theme)
        self.canvas.setAccessibleName(f"{self.name}, plot")
        self.canvas.setAccessibleDescription(_KEYS)
        self.message = self.canvas.message
        self.notice = kit.label("", "over", wrap=True, on=self.canvas)
        self.notice.hide()
        self.notice.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self._notice_timer = QTimer(self, singleShot=True, interval=_NOTICE_MS)
        self._notice_timer.timeout.connect(self.notice.hide)

        row = kit.row(self.title, (self.note, 1), self.value, spacing=8)
        kit.column(row, (self.canvas, 1), spacing=2, on=self)
        self.canvas.set_message(self.empty)
        self.set_up()
        self.apply_theme()

    # ------------------------------------------------------------- what a kind of plot says

    def set_up(self) -> None:
        """Add what is below the plot."""

    def has_values(self) -> bool:
        """Whether there are values, or soon will be: an answer has started. Reading its prompt takes long
        enough to import the plotting code."""
        return self.answer.header is not None

    def add_items(self, view: PlotView) -> None:
        """Prepare the axes, and add what draws the values."""
        raise NotImplementedError

    def colour_items(self) -> None:
        """Give the drawn items the colours of the theme."""
        raise NotImplementedError

    def draw_values(self, first: int, last: int) -> None:
        """Show the rounds from `first` to `last`."""
        raise NotImplementedError

    def show_numbers(self) -> None:
        """Update the title row; called at most ten times a second."""
        raise NotImplementedError

    def read(self, index: int) -> str:
        """The plot's values of one round, in words."""
        raise NotImplementedError

    # ------------------------------------------------------------------------ what they share

    def draw(self, first: int, last: int) -> None:
        """Show the rounds from `first` to `last`; called once a batch."""
        if not self.canvas.has_view and self.has_values():
            self.add_items(self.canvas.view)
            self.apply_theme()
        if self.canvas.has_view:
            self.draw_values(first, last)

    def show_value(self, text: str) -> None:
        """Show the plot's main number; a screen reader says its name before it."""
        self.value.setText(text)
        self.value.setAccessibleName(f"{self.name} {text}".strip())

    def apply_theme(self) -> None:
        self.canvas.apply_theme()
        if self.canvas.has_view:
            self.colour_items()

    def read_out(self, index: int | None) -> None:
        """Show the values of a round below the plot; None ends it."""
        self.canvas.set_reading("" if index is None or self.message.text() else self.read(index))

    def read_aloud(self, index: int) -> None:
        """Read values out for the keyboard, so that a screen reader says them too."""
        self.read_out(index)
        self.canvas.setAccessibleDescription(self.canvas.reading or _KEYS)
        announce(self.canvas, self.canvas.reading)

    # ------------------------------------------------------------------------------- exporting

    def has_rows(self) -> bool:
        return self.answer.last >= self.answer.start

    def picture(self) -> bytes:
        """The plot with its title row."""
        self.read_out(None)
        marked = self.canvas.marked
        self.canvas.mark(None)
        self.notice.hide()
        picture = super().picture()
        self.canvas.mark(marked)
        return picture

    def _notify(self, text: str) -> None:
        """Show the outcome of an export over the plot for a while."""
        plot = self.canvas.plot_rect().toRect()
        self.notice.setText(text)
        self.notice.setFixedWidth(plot.width())
        self.notice.adjustSize()
        self.notice.move(plot.topLeft())
        self.notice.show()
        self._notice_timer.start()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        self.open_menu(event)
