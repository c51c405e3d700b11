"""Charts: values between axes, drawn by pyqtgraph in the colours of the theme.

Importing pyqtgraph takes a sixth of the start, so this is imported where the first plot is drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from operator import itemgetter
from typing import Any

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QMouseEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QToolTip

from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.labels import as_text
from app.ui.widgets.plot import Plot

pg.setConfigOption("mouseRateLimit", 0)  # else the last place of a quick move may be left out

NEAR = 14  # pixels within which the mouse points at a point
_SAME = 4  # pixels within which points cover each other
DASHES = (4, 3)


def _zooms(event: Any) -> bool:
    """Whether the wheel zooms, because Ctrl is held. Otherwise it scrolls the area around the plot."""
    return bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)


class Box(pg.ViewBox):
    """The area in which values are drawn. Ctrl with the wheel zooms, dragging pans, and a double click resets
    both."""

    def __init__(self) -> None:
        super().__init__(enableMenu=False, defaultPadding=0)
        self.disableAutoRange()

    def wheelEvent(self, event: Any, axis: int | None = None) -> None:
        if _zooms(event):
            super().wheelEvent(event, axis)
        else:
            event.ignore()

    def mouseDragEvent(self, event: Any, axis: int | None = None) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            super().mouseDragEvent(event, axis)
        else:
            event.ignore()


class Ticks(pg.AxisItem):
    """An axis of words at round values, without a line of its own."""

    def __init__(self, side: str) -> None:
        super().__init__(side)
        self.words: Callable[[float], str] = str
        self.enableAutoSIPrefix(False)
        self.setStyle(tickLength=0, tickTextOffset=6, tickAlpha=255)
        self.setGrid(255 if side == "left" else False)
        self.setZValue(-1000)  # behind the values

    def dress(self, theme: Theme, step: float = -1) -> None:
        """Use the theme's colours, and its font `step` points larger."""
        self.setTickFont(theme.sans(step))
        self.label.setFont(theme.sans(step))
        self.setTextPen(theme.palette.secondary)
        self.setPen(QPen(Qt.PenStyle.NoPen))
        self.setTickPen(theme.palette.line)

    def wheelEvent(self, event: Any) -> None:
        if _zooms(event):
            super().wheelEvent(event)
        else:
            event.ignore()

    def boundingRect(self) -> QRectF:
        return super().boundingRect().adjusted(-20, -8, 20, 8)  # type: ignore[no-any-return]  # words at ends

    def tickValues(self, low: float, high: float, size: float) -> Any:
        return super().tickValues(low, high, size)[:1]

    def tickStrings(self, values: Sequence[float], scale: float, spacing: float) -> list[str]:
        return [self.words(value) for value in values]


class Axes(pg.GraphicsLayout):
    """A plot: a title, numbers at the left, each with a line across, and words below."""

    def __init__(self, plain: bool = False) -> None:
        """A `plain` plot has only the numbers at the left."""
        super().__init__()
        self.box, self.left, self.below = Box(), Ticks("left"), Ticks("bottom")
        self._title = pg.LabelItem(justify="left")
        self._whole: tuple[Sequence[float], Sequence[float]] = (), ()
        parts = (self.left, 1, 0), (self.box, 1, 1), (self._title, 0, 1), (self.below, 2, 1)
        for item, row, column in parts[:2] if plain else parts:
            self.addItem(item, row, column)
        for axis in (self.left, self.below):
            axis.linkToView(self.box)
        self.layout.setSpacing(2)
        self.layout.setContentsMargins(*((0, 8, 2, 4) if plain else (4, 0, 14, 0)))

    def start(self, theme: Theme, title: str, below: str, x: Sequence[float], y: Sequence[float]) -> None:
        """Begin a plot over these ranges, and remove what was drawn."""
        for item in self.box.childGroup.childItems():  # `clear` may leave them in the scene, at its top
            self.box.removeItem(item)
        self._title.item.setFont(theme.sans(-1))
        self._title.setText(escape(title), color=theme.palette.text)
        for axis in (self.left, self.below):
            axis.dress(theme)
        self.below.setLabel(escape(below), color=theme.palette.secondary)
        if self._whole != (x, y):  # else what someone zoomed to stays
            self._whole = x, y
            self.show_whole()

    def show_whole(self) -> None:
        """Show the whole range again."""
        x, y = self._whole
        self.box.setRange(xRange=x, yRange=y, padding=0.004)  # the ticks at the ends have their words

    def add(self, item: Any) -> Any:
        self.box.addItem(item, ignoreBounds=True)
        return item

    def add_level(self, value: float, theme: Theme, words: str = "") -> None:
        """A dashed line across, with words above its left end."""
        place = {"position": 0, "anchors": [(0, 1), (0, 1)], "color": theme.palette.secondary}
        line = self.add(
            pg.InfiniteLine(
                value, 0, dashed(theme.palette.secondary, 1), label=words or None, labelOpts=place
            )
        )
        if words:
            line.label.setFont(theme.sans(-1))

    def add_words(self, words: str, x: float, y: float, font: Any, colour: str, anchor: Any) -> Any:
        """Words beside a point; `anchor` is their place relative to it."""
        item = self.add(pg.TextItem(words, colour, anchor=anchor))
        item.setFont(font)
        item.setPos(x, y)
        return item

    def pixel(self, x: float, y: float) -> QPointF:
        """The pixel of the chart at which a value is drawn."""
        return self.box.mapViewToScene(QPointF(x, y))  # type: ignore[no-any-return]


class Area(pg.GraphicsLayoutWidget):
    """The area of the plots, without background, margins or focus of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.setBackground(None)
        self.setStyleSheet("background: transparent")
        self.setAntialiasing(True)
        for part in (self, self.viewport()):
            part.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.ci.layout.setContentsMargins(0, 0, 0, 0)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        event.accept()  # the scene makes clicks of it later

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        event.accept()

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        super().mouseDoubleClickEvent(event)
        event.accept()


def dashed(colour: str, width: float) -> QPen:
    """A pen of a width in pixels, which the plot's scale does not change."""
    made: QPen = pg.mkPen(QColor(colour), width=width)
    made.setDashPattern(DASHES)
    return made


class Chart(Plot):
    """Plots side by side, with a readout of the point under the mouse. A derived class draws them."""

    empty = ""
    """Show words instead of the plots, while there are none."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__(theme)
        self.pointed: tuple[Any, ...] = ()  # what is under the mouse, the nearest first
        self.axes: list[Axes] = []  # that are shown
        self._made: list[Axes] = []
        self._across = 0
        self.area = Area()
        self.area.scene().sigMouseMoved.connect(self._hover)
        self.area.scene().sigMouseClicked.connect(self._clicked)
        self._words = kit.label(self.empty, "secondary", wrap=True, side=Qt.AlignmentFlag.AlignCenter)
        self.setAccessibleName(name)
        self.column = kit.column((self._words, 1), (self.area, 1), on=self)
        theme.changed.connect(self.draw)
        self.draw()

    def draw(self) -> None:
        """Draw what is known now: arrange the plots, then fill them."""
        raise NotImplementedError

    def marks(self) -> Iterator[tuple[Any, QPointF]]:
        """Every point as (what it is, pixel)."""
        raise NotImplementedError

    def words_of(self, mark: Any) -> str:
        """The numbers of a point."""
        raise NotImplementedError

    def arrange(self, count: int, across: int) -> None:
        """Show a number of plots, with a number of them in each row."""
        if self.axes and (len(self.axes), self._across) == (count, across):
            return
        for axes in self.axes:
            self.area.removeItem(axes)
        while len(self._made) < count:
            self._made.append(Axes())
        self.axes, self._across = self._made[:count], across
        for at, axes in enumerate(self.axes):
            self.area.addItem(axes, *divmod(at, across))
        for item in (self.area.ci, *self.axes):
            item.layout.activate()
        self.area.setVisible(bool(count))
        self._words.setVisible(not count)

    def near(self, place: QPointF) -> tuple[Any, ...]:
        """The nearest point, and those that it covers."""
        away = [((point - place).manhattanLength(), mark) for mark, point in self.marks()]
        away.sort(key=itemgetter(0))  # marks have no order
        limit = min(NEAR, away[0][0] + _SAME) if away else 0.0
        return tuple(mark for distance, mark in away if distance <= limit)

    def reading(self, place: QPointF) -> str:
        """The numbers of the points near a place; "" if there are none."""
        return "\n\n".join(map(self.words_of, self.near(place)))

    def _hover(self, place: QPointF) -> None:
        pointed = self.near(place)
        if pointed != self.pointed:
            self.pointed = pointed
            self.draw()
            QToolTip.showText(self.cursor().pos(), as_text("\n\n".join(map(self.words_of, pointed))), self)

    def _clicked(self, event: Any) -> None:
        for axes in self.axes if event.double() else ():
            axes.show_whole()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.draw()

    def leaveEvent(self, event: QEvent) -> None:
        if self.pointed:
            self.pointed = ()
            self.draw()
