"""The column of instruments: three plots over the rounds, and one round in detail."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, QTimer, Signal, SignalInstance
from PySide6.QtGui import QKeyEvent, QShowEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.base.numbers import ordinal
from app.engine.types import FinishReason
from app.ui.instruments import definitions
from app.ui.instruments.by_round import AcceptancePlot, LengthPlot, SpeedPlot
from app.ui.instruments.cost_card import CostCard
from app.ui.instruments.plot_card import PlotCard
from app.ui.instruments.round_table import RoundTable
from app.ui.instruments.styles import word_button
from app.ui.state.answer import AnswerModel, reconnect
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.background import Throttle
from app.ui.widgets.labels import as_text
from app.ui.widgets.words import count

_ENDINGS = {
    FinishReason.CANCELLED: "stopped",
    FinishReason.CONTEXT: "context full",
    FinishReason.FAILED: "interrupted",
}


class InstrumentsHead(QWidget):
    """Shows how many rounds the numbers cover, with a button to reset them."""

    reset_requested = Signal()
    all_requested = Signal()
    fold_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.answer = AnswerModel()  # the answer whose rounds are counted
        self.scope = kit.label("", "fine", wrap=True, plain=True)
        tip = "Totals for this answer, this chat and all answers since the last reset"
        self.sums, self.reset = word_button("Sums", tip), word_button("", "")
        self.fold = word_button("›", "Hide the instruments")
        self.fold.setMinimumWidth(24)
        kit.row((self.scope, 1), self.sums, self.reset, self.fold, spacing=4, on=self)
        self.reset.clicked.connect(self._reset_clicked)
        self.fold.clicked.connect(self.fold_requested)

    def show_numbers(self) -> None:
        """Update the words; called at most ten times a second."""
        answer = self.answer
        statistics = answer.statistics
        words = [
            f"{count(number)} {noun}{'s' * (number != 1)}"
            for number, noun in ((statistics.rounds, "round"), (statistics.emitted, "token"))
            if noun == "token" or not statistics.untold
        ]
        if answer.start:
            words.insert(0, f"since round {ordinal(answer.start)}")
        if answer.totals is not None and answer.totals.finish_reason in _ENDINGS:
            words.append(_ENDINGS[answer.totals.finish_reason])
        warm = answer.header is not None and answer.header.warm
        text = " · ".join([*words, *["warm"] * warm]) if answer.header is not None else ""
        self.scope.setText(text)
        self.scope.setToolTip(as_text(f"{text}\n{definitions.WARM}" if warm else text))
        if answer.start:
            name, tip = "All rounds", "Count all rounds of this answer"
        else:
            name, tip = "Reset", "Restart the statistics with the next round"
        self.reset.setText(name)
        self.reset.setToolTip(tip)
        self.reset.setAccessibleName(tip)
        self.reset.setEnabled(answer.cursor > 0)

    def _reset_clicked(self) -> None:
        if self.answer.start:
            self.all_requested.emit()
        else:
            self.reset_requested.emit()


LEAST = 32  # rounds, so that the first few do not fill the width


def room_for(rounds: int) -> int:
    """The next of 32, 48, 64, 96, 128, 192, …. While an answer grows, the shown range grows in steps of a
    third or a half, so that the curves do not shrink with every round."""
    room = LEAST
    while room < rounds:
        room = room * 3 // 2 if room & (room - 1) == 0 else room * 4 // 3
    return room


_PLOT_MS = 60  # every second batch: smooth enough, and leaves the processor to the engine
_COST_MS = 500  # the cost model of a whole answer changes slowly
_WAITING = {  # (there are rounds before the reset, more rounds will come)
    (False, True): "Waiting for the first round.",
    (False, False): "This answer has no rounds.",
    (True, True): "Starts with the next round.",
    (True, False): "No rounds since the reset.",
}


class InstrumentsPanel(QScrollArea):
    """Draws an answer up to its cursor, and shows single rounds in detail."""

    fold_requested = Signal()
    inspect_requested = Signal(int)  # round

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._zoomed: tuple[float, float] | None = None  # the rounds that someone wants to see
        self._stale = False  # something changed while this was hidden
        self.answer = AnswerModel()  # before the first answer
        self.acceptance = AcceptancePlot(theme)
        self.speed = SpeedPlot(theme)
        self.length = LengthPlot(theme)
        self.cards: tuple[PlotCard, ...] = (self.acceptance, self.speed, self.length)
        self.cost = CostCard(theme)
        self.table = RoundTable(theme)
        self.head = InstrumentsHead(theme)
        self._costs = Throttle(self._show_cost, self, _COST_MS)
        self._plots = Throttle(self._draw, self, _PLOT_MS)
        self._numbers = Throttle(self._show_numbers, self)
        self._lay_out()
        self._connect()
        self._apply_theme()
        self._start()

    def _lay_out(self) -> None:
        # Two lines are below the last of the plots over the rounds.
        parts = (self.acceptance, 3), (self.speed, 3), (self.length, 4), (self.cost, 3), kit.line()
        column = kit.column(self.head, *parts, (self.table, 4), margins=(20, 8, 20, 12), spacing=12)
        self.setWidget(kit.holder(column))
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName("Instruments")
        self.setMinimumWidth(264)

    def _connect(self) -> None:
        reconnect(self._slots, None, self.answer)
        self._theme.changed.connect(self._apply_theme)
        self.head.reset_requested.connect(self.reset)
        self.head.all_requested.connect(self.show_all)
        self.head.fold_requested.connect(self.fold_requested)
        self.table.unpin_requested.connect(self._unpin)
        self.table.inspect_requested.connect(self._inspect)
        for card in self.cards:
            canvas = card.canvas
            canvas.hovered.connect(self._hover)
            canvas.clicked.connect(self._click)
            canvas.stepped.connect(self._step)
            canvas.zoomed.connect(self._zoom)
            canvas.double_clicked.connect(self._show_all_rounds)
        self.acceptance.canvas.resized.connect(self._draw)

    # --------------------------------------------------------------------- the answer that it shows

    def set_answer(self, answer: AnswerModel | None) -> None:
        """Show a different answer; None shows the state before the first answer."""
        before, self.answer = self.answer, answer if answer is not None else AnswerModel()
        reconnect(self._slots, before, self.answer)
        self.head.answer = self.answer
        for card in (*self.cards, self.cost):
            card.answer = self.answer
        self._start()

    def _slots(self, answer: AnswerModel) -> tuple[tuple[SignalInstance, Callable[[], None]], ...]:
        return (
            (answer.began, self._start), (answer.grew, self._grow), (answer.ended, self._show_all),
            (answer.moved, self._move), (answer.measured, self._show_all),
            (answer.pointed, self._show_round), (answer.pinned, self._show_round),
        )  # fmt: skip

    def _start(self) -> None:
        """Show an answer that was chosen or has begun; the zoom and the reading of the one before are
        dropped."""
        self._zoomed = None
        self._read_nothing_out()
        self._show_all()

    def _put_off(self) -> bool:
        """Set whether a different place is on the screen. If so, changes are drawn only when this is shown
        again."""
        if self.isVisible() or not self.window().isVisible():
            return False
        self._stale = True
        return True

    def _grow(self) -> None:
        if not self._put_off():
            self._plots.request()
            self._numbers.request()
            if self.cost.awaits_draft and self.answer.statistics.drafted:
                self._costs.now()  # its words are no longer true
            else:
                self._costs.request()

    def _move(self) -> None:
        self._read_nothing_out()
        if not self._put_off():
            self._show_messages()
            self._grow()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._stale = False
            self._show_all()

    def reset(self) -> None:
        """Let the statistics and the plots begin with the next round."""
        self._count_from(self.answer.cursor)

    def show_all(self) -> None:
        """Undo a reset: all rounds of the answer count."""
        self._count_from(0)

    def _count_from(self, start: int) -> None:
        self._zoomed = None
        self.answer.count_from(start)
        self._show_all()

    def _read_nothing_out(self) -> None:
        for card in self.cards:
            card.read_out(None)

    # ---------------------------------------------------------------------- what it then shows

    def _show_all(self) -> None:
        """Draw all parts now."""
        if self._put_off():
            return
        self._show_messages()
        self._plots.now()
        self._numbers.now()
        self._costs.now()

    def _draw(self) -> None:
        answer = self.answer
        if answer.last >= answer.start:
            self._show_messages()
        whole = self._whole
        first, last = self._zoomed or whole
        for card in self.cards:
            card.canvas.set_span(first, last, whole)
            card.draw(round(first + 0.5), round(last - 0.5))
        self._mark()

    @property
    def _whole(self) -> tuple[float, float]:
        """The range of all rounds: round i covers i - 0.5 to i + 0.5."""
        answer = self.answer
        rounds = max(answer.last - answer.start + 1, 0)
        left = answer.start - 0.5
        return left, left + (room_for(rounds) if answer.live else max(rounds, LEAST))

    def _show_messages(self) -> None:
        answer = self.answer
        waiting = answer.last < answer.start
        for card in self.cards:
            text = ""
            if answer.header is None:
                text = card.empty
            elif card.none and not answer.drafts:
                text = card.none
            elif card.untold and answer.statistics.untold:
                text = card.untold
            elif waiting:
                text = _WAITING[answer.cursor > 0, answer.live]
            if text != card.message.text():
                card.canvas.set_message(text)

    def _show_numbers(self) -> None:
        for card in self.cards:
            card.show_numbers()
        self.head.show_numbers()
        self._show_round()

    def _show_cost(self) -> None:
        self.cost.draw(0, 0)
        self.cost.show_numbers()

    @property
    def _marked(self) -> int | None:
        """The round that is pointed at, else the pinned one."""
        answer = self.answer
        return answer.pointed_at if answer.pointed_at is not None else answer.pinned_at

    def _show_round(self) -> None:
        if self._put_off():
            return
        answer = self.answer
        index = self._marked
        if index is None and answer.cursor:
            index = answer.last
        round = answer.rounds[index] if index is not None else None
        pinned = index is not None and index == answer.pinned_at
        self.table.show_round(round, pinned=pinned)
        if pinned and not self.underMouse():  # a click on a plot stays on it
            QTimer.singleShot(0, self, lambda: self.ensureWidgetVisible(self.table))  # once it is laid out
        self._mark()

    def _mark(self) -> None:
        for card in self.cards:
            card.canvas.mark(self._marked)

    # -------------------------------------------------------------------------- what people do

    def _hover(self, index: int | None) -> None:
        index = self._counted(index) if index is not None else None
        for card in self.cards:
            card.read_out(index if card.canvas is self.sender() else None)
        self.answer.point(index)

    def _click(self, index: int) -> None:
        at = self._counted(index)
        if at is not None and at == self.answer.pinned_at:
            self.inspect_requested.emit(at)
        elif at is not None:
            self.answer.pin(at)

    def _inspect(self) -> None:
        self.inspect_requested.emit(self.answer.inspected)

    def _step(self, by: int) -> None:
        pinned = self.answer.pinned_at
        at = self._counted((self.answer.cursor if pinned is None else pinned) + by)
        if at is not None:
            self.answer.point(None)  # the mouse may rest elsewhere
            self.answer.pin(at)
            card = next(card for card in self.cards if card.canvas is self.sender())
            card.read_aloud(at)

    def _counted(self, index: int) -> int | None:
        """The nearest counted round; None if no round counts."""
        answer = self.answer
        return min(max(index, answer.start), answer.last) if answer.last >= answer.start else None

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.answer.pinned_at is not None:
            self._unpin()
        else:
            super().keyPressEvent(event)

    def _unpin(self) -> None:
        self._read_nothing_out()
        self.answer.pin(None)

    def _zoom(self, first: float, last: float) -> None:
        whole = self._whole
        self._zoomed = (first, last) if last - first < whole[1] - whole[0] else None
        self._draw()

    def _show_all_rounds(self) -> None:
        self._zoomed = None
        self._draw()

    # --------------------------------------------------------------------------------- the look

    def _apply_theme(self) -> None:
        for card in self.cards:
            card.canvas.setMaximumHeight(round(140 * self._theme.scale))
            card.apply_theme()
        self.cost.canvas.setMaximumHeight(round(130 * self._theme.scale))
        self.cost.apply_theme()
        self._draw()

    def sizeHint(self) -> QSize:
        return QSize(340, 640)
