"""The rounds as bars. Top: tokens by fate. Below: time for draft, verify and sampling."""

from __future__ import annotations

from math import ceil

import numpy as np
from PySide6 import QtGui
from PySide6.QtCore import QEvent, QRectF, QSize, Qt
from PySide6.QtWidgets import QLabel

from app.base.numbers import ordinal
from app.engine.fates import Origin
from app.ui.inspector.part import InspectorPart
from app.ui.inspector.tracks import TIME_NAMES, BarPainter, RoundAxis, TrackPicture, bar_facts, time_colours
from app.ui.instruments.by_round import length_words, nice_above, usual
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring
from app.ui.widgets.keys import KeyTable
from app.ui.widgets.labels import GivingLabel
from app.ui.widgets.words import ratio, significant

_SIDE = 24  # left and right of the bars
_TOKENS, _TIMES, _TRACK = 48, 20, 22  # heights in pixels at text scale 1
_GAP = 2
_LEAST = 3  # pixels of a bar; if there are fewer, rounds are grouped
_MOST_BINS = 1000
_ZOOM = 1.25


class Timeline(InspectorPart):
    """All rounds of an answer on one axis. A click inspects a round; dragging and the wheel pan, the wheel
    with Ctrl zooms."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._axis = RoundAxis()
        self._compact = False
        self._hovered: int | None = None  # the round under the mouse
        self._drag: float | None = None  # x of the mouse while it drags
        self._dragged = False
        self._away = False  # someone looks elsewhere than at the inspected round
        self._inspected: int | None = None  # as drawn before
        self._pinned: int | None = None  # the same of the round that someone chose
        self._most = 1  # tokens of the longest draft or round so far
        self._seen = 0  # rounds in `_most`
        self._times_top = self._rate_top = 1.0
        self._scaled = 0  # rounds that these two are of
        self._picture = TrackPicture()
        self._title, self._legend, self._where = QLabel("Rounds", self), QLabel(self), GivingLabel()
        self._where.setParent(self)
        for label in (self._legend, self._where):
            label.setProperty("role", "fine")
        self._where.setAlignment(Qt.AlignmentFlag.AlignRight)
        for label in (self._title, self._legend, self._where):
            label.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAccessibleName("Rounds")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMouseTracking(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        theme.follow(self._fit)

    def set_answer(self, answer: AnswerModel | None) -> None:
        self._axis.reset()
        self._hovered, self._inspected, self._pinned, self._away = None, None, None, False
        self._most, self._seen, self._scaled = 1, 0, 0
        self._picture.forget()
        super().set_answer(answer)

    def set_compact(self, compact: bool) -> None:
        """Show only the bars, without acceptance and tokens/s: for low windows."""
        if compact != self._compact:
            self._compact = compact
            self._fit()

    def draw(self) -> None:
        answer, axis = self.answer, self._axis
        axis.rounds = len(answer.rounds)  # also those after the cursor: bars keep their place in a replay
        for round in answer.rounds[self._seen :]:
            self._most = max(self._most, len(round.emitted), len(round.drafted))
        self._seen = len(answer.rounds)
        index = answer.inspected
        if index is not None:
            self._scale_tracks()
            if index != self._inspected:
                self._away = self._away and answer.pinned_at is None
                if not self._away:
                    axis.show(index)
        self._inspected = index
        if answer.pinned_at != self._pinned:  # by a key: the mouse rests where another round was
            self._pinned, self._hovered = answer.pinned_at, None
        self.setAccessibleDescription(self.reading())
        self._show()

    def _scale_tracks(self) -> None:
        """Scale the tracks to the rounds up to the cursor. A long answer is scaled again only after a
        thousandth of its rounds: smaller steps cannot be seen."""
        cursor = self.answer.cursor
        rounds = cursor - cursor % max(cursor // _MOST_BINS, 1)
        if rounds == self._scaled:
            return
        every = self.answer.series.bins(0, rounds - 1, _MOST_BINS, start=0)
        self._times_top = usual(np.add.reduce(every.times)) * 1.1 or 1.0
        self._rate_top = nice_above(usual(every.rate[np.isfinite(every.rate)]) * 1.08)
        self._scaled = rounds

    # ------------------------------------------------------------------ what it says

    def _show(self) -> None:
        """Name the read round in the head, explain bars and colours if there is room, and repaint."""
        each = f"{self.grouped} rounds a bar" if self.grouped > 1 else "one bar a round"
        line = ", line k" if self.answer.lengths else ""
        times = " &nbsp;".join(
            f'<span style="color: {colour}">■</span> {name}'
            for name, colour in zip(TIME_NAMES, time_colours(self._theme.palette), strict=True)
        )
        words = f"{each}: tokens by fate (grey: drafted){line}; below &nbsp;{times}"
        self._where.setText(self.reading())
        right = self.width() - _SIDE
        base = 6 + self._title.sizeHint().height()
        for legend_words in (words, times):  # the colours alone, if there is room for no more
            if legend_words != self._legend.text():  # laying it out takes longer than a step's bars
                self._legend.setText(legend_words)
            left = _SIDE
            for label in (self._title, self._legend):
                label.adjustSize()
                label.move(left, base - label.height())
                left += label.width() + 12
            legend = left + 12 + self._where.sizeHint().width() <= right
            if legend:
                break
        left = self._legend.x() if not legend else left
        while self._where.sizeHint().width() > right - left and " · " in (said := self._where.text()):
            self._where.setText(said.rpartition(" · ")[0])  # rather than a cut number
        self._where.setGeometry(left, base - self._legend.height(), right - left, self._legend.height())
        for label in (self._title, self._legend, self._where):
            label.setVisible(self.answer.cursor > 0 and (legend or label is not self._legend))
        self.update()

    def reading(self) -> str:
        """The round under the mouse, else the inspected one, in words and numbers."""
        answer, index = self.answer, self._hovered if self._hovered is not None else self.answer.inspected
        if index is None:
            return "No round"
        rule = f" · {length_words(answer.lengths[index])}" if answer.lengths else ""
        return f"round {ordinal(index)} · {bar_facts(answer.rounds[index])}{rule}"

    @property
    def grouped(self) -> int:
        """How many rounds a bar represents."""
        step = 1
        while self._axis.pitch * step < _LEAST:
            step *= 2
        return step

    @property
    def span(self) -> tuple[int, int]:
        """The visible rounds: the first, and the one after the last."""
        axis = self._axis
        return int(axis.first), min(ceil(axis.first + axis.shown), axis.rounds)

    def round_rect(self, index: int) -> QRectF:
        """The position of a round's bars, if it is visible."""
        tokens, times = self._tracks()[:2]
        left = _SIDE + self._axis.x_of(index)
        return QRectF(left, tokens.top(), self._axis.pitch * 0.75, times.bottom() - tokens.top())

    # ------------------------------------------------------------------ what people do

    def _at(self, x: float) -> int | None:
        """The round at a pixel of the widget."""
        index = int(self._axis.round_at(x - _SIDE) // 1)
        return index if 0 <= index < self.answer.cursor and _SIDE <= x <= self.width() - _SIDE else None

    def _hover(self, index: int | None) -> None:
        if index != self._hovered:
            self._hovered = index
            self._show()

    def _pan(self, pixels: float) -> None:
        self._away = True
        self._axis.pan(pixels)
        self._show()

    def _zoom(self, factor: float, x: float) -> None:
        self._away = True
        self._axis.zoom(factor, x - _SIDE)
        self._show()

    def mousePressEvent(self, event: QtGui.QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton:
            self._drag, self._dragged = event.position().x(), False

    def mouseMoveEvent(self, event: QtGui.QMouseEvent) -> None:
        x = event.position().x()
        if self._drag is not None and (self._dragged or abs(x - self._drag) > 4):
            self._dragged = True
            self._pan(self._drag - x)
            self._drag = x
        self._hover(self._at(x))

    def mouseReleaseEvent(self, event: QtGui.QMouseEvent) -> None:
        if event.button() is not Qt.MouseButton.LeftButton or self._drag is None:
            return
        self._drag = None
        index = self._at(event.position().x())
        if not self._dragged and index is not None:
            self.answer.pin(index)

    def mouseDoubleClickEvent(self, event: QtGui.QMouseEvent) -> None:
        self.show_all()
        self._hover(self._at(event.position().x()))

    def show_all(self) -> None:
        """Show all rounds."""
        self._axis.show_all()
        self._show()

    def enterEvent(self, event: QtGui.QEnterEvent) -> None:
        self._hover(self._at(event.position().x()))

    def leaveEvent(self, event: QEvent) -> None:
        self._hover(None)

    def wheelEvent(self, event: QtGui.QWheelEvent) -> None:
        turned = event.angleDelta()
        if event.modifiers() & Qt.KeyboardModifier.ControlModifier:
            self._zoom(_ZOOM ** (turned.y() / 120), event.position().x())
        else:
            self._pan(-(turned.x() or turned.y()))
        self._hover(self._at(event.position().x()))
        event.accept()

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        if KEYS.act(self, event):
            self._hover(None)
        else:
            super().keyPressEvent(event)

    def zoom_by(self, steps: int) -> None:
        """Zoom in, or out if `steps` is negative, around the inspected round."""
        index = self.answer.inspected or 0
        self._zoom(_ZOOM**steps, _SIDE + min(max(self._axis.x_of(index + 0.5), 0.0), self._axis.width))

    def page_by(self, pages: int) -> None:
        """Inspect a round one page further."""
        if self.answer.cursor:
            index = (self.answer.inspected or 0) + pages * int(self._axis.shown)
            self.answer.pin(min(max(index, 0), self.answer.last))

    # ------------------------------------------------------------------ painting

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        if not self.answer.cursor:
            return
        painter = QtGui.QPainter(self)
        first, end = self.span
        if first < self.answer.cursor:  # otherwise someone looks at rounds that are not shown yet
            self._paint_tracks(painter, min(end, self.answer.cursor))

    def _paint_tracks(self, painter: QtGui.QPainter, end: int) -> None:
        """Paint the rounds in sight before `end`, with the names of their tracks and the inspected one."""
        palette = self._theme.palette
        look = palette, self._theme.scale, self._compact, self._most, self._times_top, self._rate_top
        size = QSize(ceil(self._axis.width), self.height())
        tracks = self._picture.pixels(
            look, palette.ground, size, self.devicePixelRatioF(), self._axis, self.grouped, end,
            self._paint_rounds,
        )  # fmt: skip
        painter.drawPixmap(_SIDE, 0, tracks)
        more = self._tracks()[2:]
        if more:
            line = "; line: smoothed acceptance, used by the length rule" if self.answer.lengths else ""
            pooled = self.answer.series.bins(end - 1, end - 1, 1, start=0).pooled[-1]
            self._name(painter, more[0], f"acceptance{line}", f"{ratio(pooled)} of drafted")
            self._name(painter, more[1], "tokens/s", f"0 to {significant(self._rate_top)}")
        self._mark(painter)

    def _paint_rounds(self, painter: QtGui.QPainter, first: int, end: int) -> None:
        """Paint the bars of some rounds in all tracks. Lines start at the group before them."""
        group = self.grouped
        first = max(first // group - 1, 0) * group
        bins = self.answer.series.bins(first, end - 1, ceil((end - first) / group), start=0)
        painter.translate(-_SIDE, 0)
        bars = BarPainter(painter, self._axis, bins, self._theme.palette)
        palette, lengths = self._theme.palette, self.answer.lengths
        lengths = lengths and [lengths[int(end) - 1] for end in bins.right]  # at the end of each group
        tokens, times, *more = self._tracks()
        bars.tokens(tokens, self._most)
        bars.times(times, self._times_top)
        if lengths:
            bars.steps(tokens, np.array([at.k for at in lengths]), self._most, palette.text)
        if more:
            bars.shares(more[0], bins.acceptance, palette.area(Origin.ACCEPTED))
            if lengths:
                smoothed = np.array([at.acceptance for at in lengths])
                bars.steps(more[0], smoothed, 1.0, palette.text)
            bars.steps(more[1], bins.rate, self._rate_top, palette.text)

    def _name(self, painter: QtGui.QPainter, track: QRectF, name: str, scale: str) -> None:
        """Write a track's name and its scale above it."""
        painter.setFont(self._tiny)
        painter.setPen(QtGui.QColor(self._theme.palette.secondary))
        height = self._caption()
        above = QRectF(track.left(), track.top() - height - 2, track.width(), height)
        painter.drawText(above, Qt.AlignmentFlag.AlignLeft, name)
        painter.drawText(above, Qt.AlignmentFlag.AlignRight, scale)
        painter.fillRect(
            QRectF(track.left(), round(track.bottom()), track.width(), 1),
            QtGui.QColor(self._theme.palette.line),
        )

    def _mark(self, painter: QtGui.QPainter) -> None:
        """Frame the inspected round, and underline what part of the answer is in sight."""
        palette, axis = self._theme.palette, self._axis
        if not axis.whole:
            line = QRectF(_SIDE, self.height() - 4, axis.width, 2)
            painter.fillRect(line, QtGui.QColor(palette.line))
            part = QRectF(line)
            part.setLeft(line.left() + axis.first / axis.rounds * axis.width)
            part.setWidth(max(axis.shown / axis.rounds * axis.width, 4))
            painter.fillRect(part, QtGui.QColor(palette.faint))
        first, end = self.span
        index = self.answer.inspected
        if index is None or not first <= index < end:
            return
        painter.setRenderHint(QtGui.QPainter.RenderHint.Antialiasing)
        ring = ring_shown(self)
        painter.setPen(
            QtGui.QPen(QtGui.QColor(focus_ring(palette) if ring else palette.text), 2.5 if ring else 1.5)
        )
        painter.setBrush(Qt.BrushStyle.NoBrush)
        rect = self.round_rect(index)
        wider = max(3.0, (8 - rect.width()) / 2)
        painter.drawRoundedRect(rect.adjusted(-wider, -4, wider, 4), 4, 4)

    # ------------------------------------------------------------------ the look

    def _caption(self) -> float:
        return QtGui.QFontMetricsF(self._tiny).height()

    def _tracks(self) -> list[QRectF]:
        """Where tokens, times and, unless it is compact, acceptance and tokens/s are painted."""
        scale = min(self._theme.scale, 1) if self._compact else self._theme.scale  # not of words
        width = self.width() - 2 * _SIDE
        top = 14 + QtGui.QFontMetricsF(self._theme.sans()).height()
        tracks = [QRectF(_SIDE, top, width, _TOKENS * scale)]
        tracks.append(QRectF(_SIDE, tracks[0].bottom() + _GAP, width, _TIMES * scale))
        for _ in range(0 if self._compact else 2):
            above = tracks[-1].bottom() + 7 + self._caption()
            tracks.append(QRectF(_SIDE, above, width, _TRACK * scale))
        return tracks

    def sizeHint(self) -> QSize:
        return QSize(300, round(self._tracks()[-1].bottom() + 12))

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        self._axis.width = max(self.width() - 2.0 * _SIDE, 1.0)
        if self.answer.inspected is not None and not self._away:
            self._axis.show(self.answer.inspected)
        self._show()

    def _fit(self) -> None:
        theme = self._theme
        self._axis.scale = theme.scale
        self._tiny = theme.sans(-2)
        self.setFixedHeight(self.sizeHint().height())
        self._show()


KEYS: KeyTable[Timeline] = KeyTable(
    ("+ =", "Timeline: zoom in", lambda timeline: timeline.zoom_by(1)),
    ("-", "Timeline: zoom out", lambda timeline: timeline.zoom_by(-1)),
    ("0", "Timeline: all rounds", lambda timeline: timeline.show_all()),
    ("PgUp", "Timeline: one page back", lambda timeline: timeline.page_by(-1)),
    ("PgDown", "Timeline: one page forward", lambda timeline: timeline.page_by(1)),
)
