"""The column of instruments: three plots over the rounds, and one round in detail."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.types import Round, Totals, TraceHeader
from app.saved.chats.measurement import Measurement
from app.ui.instruments.cost_card import CostCard
from app.ui.instruments.head import Head
from app.ui.instruments.plot_card import PlotCard
from app.ui.instruments.plots import AcceptancePlot, LengthPlot, SpeedPlot
from app.ui.instruments.record import Record
from app.ui.instruments.round_table import RoundTable
from app.ui.instruments.span import Span
from app.ui.instruments.styles import scroll_bar
from app.ui.theme import Theme
from app.ui.widgets.export import ChooseFile, choose_file
from app.ui.widgets.throttle import Throttle

_PLOT_MS = 60  # every other batch: smooth enough, and the processor is the engine's
_COST_MS = 500  # a model of the whole answer moves slowly
_WAITING = {  # (there are rounds before the reset, more rounds will come)
    (False, True): "Waiting for the first round.",
    (False, False): "This answer has no rounds.",
    (True, True): "Begins with the next round.",
    (True, False): "No rounds since the reset.",
}


class InstrumentsPanel(QScrollArea):
    """Fed with an answer as it comes (`start_answer`, `add_rounds` once a batch, `finish`), or with a
    whole one (`show_trace`)."""

    statistics_changed = Signal(object)  # Statistics, at most ten times a second
    round_hovered = Signal(object)  # the round under the mouse in a plot, or None
    round_pinned = Signal(object)  # the round that is held on show, or None
    fold_requested = Signal()

    def __init__(self, theme: Theme, ask: ChooseFile = choose_file) -> None:
        """`ask` asks where an exported file goes."""
        super().__init__()
        self._theme = theme
        self._record = Record()
        self._span = Span()
        self._hovered: int | None = None
        self._pinned: int | None = None
        self.acceptance = AcceptancePlot(theme, self._record, ask)
        self.speed = SpeedPlot(theme, self._record, ask)
        self.length = LengthPlot(theme, self._record, ask)
        self.cards: tuple[PlotCard, ...] = (self.acceptance, self.speed, self.length)
        self.cost = CostCard(theme, self._record, ask)
        self.table = RoundTable(theme)
        self.head = Head(theme, self._record)
        self._costs = Throttle(self._show_cost, self, _COST_MS)
        self._plots = Throttle(self._draw, self, _PLOT_MS)
        self._numbers = Throttle(self._show_numbers, self)
        self._lay_out()
        self._connect()
        self._apply_theme()
        self._show_all()

    def _lay_out(self) -> None:
        self._rule = QFrame()
        self._rule.setFixedHeight(1)
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(20, 8, 20, 12)
        column.setSpacing(12)
        column.addWidget(self.head)
        for card in self.cards:
            column.addWidget(card, 4 if card is self.length else 3)  # its plot has two lines below it
        column.addWidget(self.cost, 3)
        column.addWidget(self._rule)
        column.addWidget(self.table, 4)
        self.setWidget(body)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Instruments")
        self.setMinimumWidth(264)

    def _connect(self) -> None:
        self._theme.changed.connect(self._apply_theme)
        self.head.reset_requested.connect(self.reset)
        self.head.all_requested.connect(self.show_all)
        self.head.fold_requested.connect(self.fold_requested)
        self.table.unpin_requested.connect(self._unpin)
        for card in self.cards:
            canvas = card.canvas
            canvas.hovered.connect(self._hover)
            canvas.clicked.connect(self._click)
            canvas.stepped.connect(self._step)
            canvas.zoomed.connect(self._zoom)
            canvas.panned.connect(self._pan)
            canvas.double_clicked.connect(self._show_all_rounds)
        self.acceptance.canvas.resized.connect(self._draw)

    # ------------------------------------------------------------------------- what it is fed

    @property
    def statistics(self) -> Statistics:
        """Of the rounds since the answer began, or since the last reset."""
        return self._record.statistics

    def start_answer(self, header: TraceHeader) -> None:
        """A new answer begins; everything shown before goes, a reset ends."""
        self._begin(header)
        self._show_all()

    def add_rounds(self, rounds: Sequence[Round]) -> None:
        """One batch of rounds, in order."""
        if rounds:
            self._record.add(rounds)
            self._plots.request()
            self._numbers.request()
            self._costs.request()

    def finish(self, totals: Totals) -> None:
        """The answer is over."""
        self._record.finish(totals)
        self._show_all()

    def show_trace(self, trace: Trace) -> None:
        """Show a recorded answer, or the whole of one that is still growing."""
        self._begin(trace.header)
        self._record.add(trace.rounds)
        if trace.totals is not None:
            self._record.finish(trace.totals)
        self._show_all()

    def clear(self) -> None:
        """Back to the state before the first answer."""
        self._begin(None)
        self._show_all()

    def set_measurement(self, measurement: Measurement | None) -> None:
        """The measured baseline of the answer shown; None: it was not measured."""
        self._record.measure(measurement)
        self._show_all()

    @Slot()
    def reset(self) -> None:
        """Let the statistics and the plots begin with the next round."""
        self._count_from(len(self._record.rounds))

    @Slot()
    def show_all(self) -> None:
        """Undo a reset: all rounds of the answer count."""
        self._count_from(0)

    def preview_round(self, index: int | None) -> None:
        """Show a round while something else points at it (a token in the text); None: no longer."""
        inside = index is not None and 0 <= index < len(self._record.rounds)
        self._hovered = index if inside else None
        self._show_round()

    def pin_round(self, index: int | None) -> None:
        """Hold a round on show; None follows the latest one again."""
        inside = index is not None and 0 <= index < len(self._record.rounds)
        pinned = index if inside else None
        if pinned != self._pinned:
            self._pinned = pinned
            self.round_pinned.emit(pinned)
        self._show_round()

    def _begin(self, header: TraceHeader | None) -> None:
        self._record.begin(header)
        self._span.show_all()
        self._hovered = None
        self.pin_round(None)
        for card in self.cards:
            card.read_out(None)

    def _count_from(self, start: int) -> None:
        self._record.count_from(start)
        self._span.show_all()
        self._hovered = None
        for card in self.cards:
            card.read_out(None)
        self._show_all()

    # ---------------------------------------------------------------------- what it then shows

    def _show_all(self) -> None:
        """Draw everything now."""
        self._show_messages()
        self._plots.now()
        self._numbers.now()
        self._costs.now()

    @Slot()
    def _draw(self) -> None:
        record = self._record
        if record.last >= record.start:
            self._show_messages()
        first, last = self._span.fit(record.start, record.last, live=record.live)
        for card in self.cards:
            card.canvas.set_span(first, last)
            card.draw(round(first + 0.5), round(last - 0.5))
        self._mark()

    def _show_messages(self) -> None:
        record = self._record
        waiting = record.last < record.start
        for card in self.cards:
            text = ""
            if record.header is None:
                text = card.empty
            elif card.none and not record.drafts:
                text = card.none
            elif waiting:
                text = _WAITING[bool(record.rounds), record.live]
            if text != card.message.text():
                card.set_message(text)

    def _show_numbers(self) -> None:
        for card in self.cards:
            card.show_numbers()
        self.head.show_record()
        self._show_round()
        self.statistics_changed.emit(self._record.statistics)

    def _show_cost(self) -> None:
        self.cost.draw(0, 0)
        self.cost.show_numbers()

    def _show_round(self) -> None:
        record = self._record
        index = self._hovered if self._hovered is not None else self._pinned
        if index is None and record.rounds:
            index = record.last
        one = record.rounds[index] if index is not None else None
        self.table.show_round(one, pinned=self._pinned is not None and index == self._pinned)
        self._mark()

    def _mark(self) -> None:
        index = self._hovered if self._hovered is not None else self._pinned
        for card in self.cards:
            card.canvas.mark(index)

    # -------------------------------------------------------------------------- what people do

    @Slot(object)
    def _hover(self, index: int | None) -> None:
        record = self._record
        if index is not None:
            index = min(max(index, record.start), record.last)
            index = index if index >= record.start else None
        for card in self.cards:
            card.read_out(index if card.canvas is self.sender() else None)
        if index != self._hovered:
            self._hovered = index
            self._show_round()
            self.round_hovered.emit(index)

    @Slot(int)
    def _click(self, index: int) -> None:
        record = self._record
        if record.last >= record.start:
            index = min(max(index, record.start), record.last)
            self.pin_round(None if index == self._pinned else index)

    @Slot(int)
    def _step(self, by: int) -> None:
        record = self._record
        if record.last >= record.start:
            at = record.last + 1 if self._pinned is None else self._pinned
            self._hovered = None  # the mouse may rest somewhere else
            self.pin_round(min(max(at + by, record.start), record.last))
            card = next(card for card in self.cards if card.canvas is self.sender())
            card.read_out(self._pinned)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._pinned is not None:
            self._unpin()
        else:
            super().keyPressEvent(event)

    @Slot()
    def _unpin(self) -> None:
        for card in self.cards:
            card.read_out(None)
        self.pin_round(None)

    @Slot(float, float)
    def _zoom(self, factor: float, at: float) -> None:
        self._span.zoom(factor, at)
        self._draw()

    @Slot(float)
    def _pan(self, by: float) -> None:
        self._span.pan(by)
        self._draw()

    @Slot()
    def _show_all_rounds(self) -> None:
        self._span.show_all()
        self._draw()

    # --------------------------------------------------------------------------------- the look

    @Slot()
    def _apply_theme(self) -> None:
        palette = self._theme.palette
        self.setStyleSheet(
            f"InstrumentsPanel, InstrumentsPanel > QWidget > QWidget"
            f" {{ background: {palette.ground}; }}{scroll_bar(palette)}"
        )
        self._rule.setStyleSheet(f"background: {palette.line}")
        self.head.apply_theme()
        for card in self.cards:
            card.canvas.setMaximumHeight(round(140 * self._theme.scale))
            card.apply_theme()
        self.cost.canvas.setMaximumHeight(round(130 * self._theme.scale))
        self.cost.apply_theme()
        self._draw()

    def sizeHint(self) -> QSize:
        return QSize(340, 640)
