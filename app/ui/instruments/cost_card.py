"""The cost model as a picture: the predicted speed-up over the draft length, the point of this answer, and
the remedies that an advice names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QPointF, QRectF, QSize, QSizeF, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QStyle, QStyleOptionButton, QStylePainter, QWidget

from app.engine.explain.advice import Advice, Remedy
from app.engine.explain.facts import DraftFile, Finding
from app.engine.explain.predict import is_clear, predicted
from app.engine.fates import UNTOLD_DRAFT
from app.engine.types import ModelOptions
from app.ui.instruments import definitions
from app.ui.instruments.by_round import nice_above
from app.ui.instruments.plot_card import PlotCard
from app.ui.instruments.styles import pen, shade
from app.ui.state.answer import AdviceQuestion, AnswerModel
from app.ui.widgets import kit
from app.ui.widgets import words as numbers
from app.ui.widgets.background import Query
from app.ui.widgets.kit import WrapLayout
from app.ui.widgets.labels import as_text
from app.ui.widgets.plot import Cell

if TYPE_CHECKING:
    from app.ui.instruments.view import PlotView

_STEP = 2.0  # pixels between two places of a line that are looked at
_HIDDEN = 1000  # how much worse it is to hide a mark, or to be cut, than to cross a line
_ANCHORS = (  # shares of the words' width and height at which the point lies; the first that is free serves
    (0.5, 1.25), (0.5, -0.25), (-0.1, 0.5), (1.1, 0.5), (0.0, 1.15), (1.0, 1.15), (0.0, -0.15), (1.0, -0.15),
)  # fmt: skip


def free_anchor(
    point: QPointF,
    size: QSizeF,
    room: QRectF,
    marks: Sequence[QRectF],
    lines: Sequence[Sequence[QPointF]],
    margin: float,
) -> tuple[float, float]:
    """The anchor of words of that size, all in pixels. They are inside `room`, and hide no mark and as little
    as possible of the lines. `margin` is the empty edge around the letters."""
    places = [place for line in lines for place in _along(line)]

    def hidden(anchor: tuple[float, float]) -> int:
        across, down = anchor
        corner = point - QPointF(across * size.width(), down * size.height())
        letters = QRectF(corner, size).adjusted(margin, margin, -margin, -margin)
        covered = sum(letters.intersects(mark) for mark in marks) + (not room.contains(letters))
        return _HIDDEN * covered + sum(letters.contains(place) for place in places)

    return min(_ANCHORS, key=hidden)


def _along(line: Sequence[QPointF]) -> Iterator[QPointF]:
    """Places on a line, close to each other."""
    for first, last in pairwise(line):
        way = last - first
        steps = max(1, round((abs(way.x()) + abs(way.y())) / _STEP))
        yield from (first + way * (step / steps) for step in range(steps + 1))


GAP = 6  # pixels between buttons
_PIECE = re.compile(r"[^\s+:]*(?:[+:]|\s|$)")  # of a text: a strategy may be broken after + and :


class Remedies(QWidget):
    """Buttons for the remedies that can be applied now; hidden if there are none."""

    chosen = Signal(object)  # Remedy

    def __init__(self) -> None:
        super().__init__()
        self._remedies: tuple[Remedy, ...] = ()
        self._shown: tuple[tuple[Remedy, bool], ...] = ()
        self.applies: Callable[[Remedy], bool] = lambda remedy: False
        """Whether a remedy would change the settings in use; False until a controller sets this."""
        self.tries: Callable[[Remedy], bool] = lambda remedy: False
        """Whether a click also answers again with it, and measures that."""
        WrapLayout(self, GAP)
        self.hide()

    def show_remedies(self, remedies: tuple[Remedy, ...]) -> None:
        """Show buttons for the remedies that apply."""
        self._remedies = remedies
        self.refresh()

    def refresh(self) -> None:
        """Show buttons for those that apply now: the settings may have changed."""
        remedies = self._remedies
        shown = tuple((remedy, self.tries(remedy)) for remedy in remedies if self.applies(remedy))
        if shown == self._shown:
            return
        self._shown = shown
        for button in self.findChildren(QPushButton):
            button.hide()
            button.setParent(None)
            button.deleteLater()
        layout = self.layout()
        assert layout is not None
        for remedy, tried in shown:
            words = f"Try {remedy.text} and measure" if tried else f"Use {remedy.text}"
            button = _WrappedButton(words, self)
            then = "Then answers again and measures it." if tried else "It applies from the next answer."
            button.setToolTip(as_text(f"{_what(remedy)} {then}"))
            button.clicked.connect(lambda _checked, remedy=remedy: self.chosen.emit(remedy))
            layout.addWidget(button)
            button.show()
        self.setVisible(bool(shown))
        self.updateGeometry()


class _WrappedButton(QPushButton):
    """A button with as many lines of text as its width asks for."""

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(text, parent)
        self.setProperty("kind", "framed")
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        more = len(self._lines(width)) - 1
        return self.sizeHint().height() + more * self.fontMetrics().lineSpacing()

    def paintEvent(self, event: QPaintEvent) -> None:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = "\n".join(self._lines(self.width()))
        QStylePainter(self).drawControl(QStyle.ControlElement.CE_PushButton, option)

    def _lines(self, width: int) -> list[str]:
        """The text in lines, the frame and the padding left out of `width`."""
        metrics = self.fontMetrics()
        room = width - self.sizeHint().width() + metrics.horizontalAdvance(self.text())
        lines = [""]
        for piece in _PIECE.findall(self.text()):
            if lines[-1] and metrics.horizontalAdvance(lines[-1] + piece.rstrip()) > room:
                lines.append("")
            lines[-1] += piece
        return [line.rstrip() for line in lines]


def _what(remedy: Remedy) -> str:
    if remedy.spec is not None:
        return f"Sets the strategy to {remedy.spec}."
    return "Reloads the models with that change."


_RING, _DOT = 9, 8  # pixels across: the best length, and the length of this answer
_INK = 2  # pixels that a ring's line takes beyond that
_EMPTY = 4  # pixels around the letters of words


def nothing_drafted(answer: AnswerModel) -> str:
    """Why there are no drafts in the counted rounds up to the cursor, as it was said live there."""
    if answer.statistics.untold:
        return UNTOLD_DRAFT
    since = " since the reset" if answer.start else ""
    if answer.live or answer.cursor < len(answer.rounds):
        return f"Nothing has been drafted{since or ' yet'}."
    return f"Nothing was drafted{since}."


class CostPlot(PlotCard):
    """The predicted speed-up over k as a line, and a dot for the drafts of this answer."""

    name = "Predicted speed-up"
    definition = "by draft length k"
    tooltip = definitions.PREDICTED
    empty = "Predicted speed-up for each draft length, from acceptance and measured costs."
    none = "Strategy none drafts nothing, so nothing is predicted."
    file_stem = "predicted-speed-up"

    def set_up(self) -> None:
        self.facts = kit.label("", "fine", tip=self.tooltip, wrap=True, plain=True)
        column = self.layout()
        assert column is not None
        column.addWidget(self.facts)
        self.canvas.axis, self.canvas.counts_from = "k =", 0
        self.canvas.setAccessibleDescription("Left and Right read out one draft length at a time.")
        self.canvas.hovered.connect(self._hover)
        self.canvas.stepped.connect(self._step)
        self._read_at: int | None = None
        self.is_best = False
        """Whether the advice names nothing better: then no other length is marked. The line has one α for all
        places of a draft, and the advice knows the text."""
        self.canvas.resized.connect(self._place_words)

    def has_values(self) -> bool:
        return bool(self._factors())

    def add_items(self, view: PlotView) -> None:
        view.box.setMouseEnabled(False, False)
        self._line = view.add_line()
        self._best = view.add_dots(_RING)
        self._here = view.add_dots(_DOT)
        self._words = view.add_words("here")

    def colour_items(self) -> None:
        palette = self._theme.palette
        self._line.setPen(pen(palette.text, 1.5))
        self._here.setBrush(shade(palette.good))
        self._best.setPen(pen(palette.aim, 1.8))
        self._words.setFont(self._theme.sans(-2))
        self._words.setColor(palette.good)

    @property
    def awaits_draft(self) -> bool:
        """Whether it says that nothing was drafted."""
        return self.message.text().startswith("Nothing ")

    def draw(self, first: int, last: int) -> None:
        """Show the current cost model; the range of rounds does not matter."""
        self._show_message(self.has_values())
        super().draw(first, last)

    def draw_values(self, first: int, last: int) -> None:
        factors = self._factors()
        self._words.hide()
        if not factors:
            for item in (self._line, self._best, self._here):
                item.setData(np.empty(0), np.empty(0))
            self.canvas.set_level(None)
            return
        self.canvas.set_span(-0.5, self.answer.priced.longest + 0.5)
        cost = self.answer.priced
        best = [] if self.is_best else [max(range(len(factors)), key=factors.__getitem__)]
        here = predicted(self.answer.statistics, cost, by_clock=False)  # its value alone
        self._line.setData(np.arange(len(factors)), np.array(factors))
        self._best.setData(best, [factors[k] for k in best])
        if here is not None and cost.mean_length is not None:
            self._here.setData([cost.mean_length], [here.value])
            self._words.setPos(cost.mean_length, here.value)
            self._words.show()
        highest = max(*factors, here.value if here is not None else 0)
        top = nice_above(max(1.1 * highest, 1.2))  # with room for the ring
        self.canvas.set_ticks([(value, f"{value:g}") for value in (0, top / 2, top)])
        self.canvas.set_level(1.0, "no gain")
        self._place_words()

    def _place_words(self) -> None:
        """Keep the words clear of the ring and, if there is room, of the lines."""
        if not self.canvas.has_view or not self._words.isVisible():
            return

        pixel = self.canvas.pixel
        curve = [pixel(x, y) for x, y in zip(*self._line.getData(), strict=True)]
        best = [pixel(x, y) for x, y in zip(*self._best.getData(), strict=True)]
        (left, right), _ = self.canvas.view.box.viewRange()
        half = QPointF(_RING / 2 + _INK, _RING / 2 + _INK)
        size = self._words.boundingRect().size()
        here = pixel(self._words.pos().x(), self._words.pos().y())
        room, rings = self.canvas.plot_rect(), [QRectF(centre - half, centre + half) for centre in best]
        lines = curve, [pixel(left, 1.0), pixel(right, 1.0)]
        self._words.setAnchor(free_anchor(here, size, room, rings, lines, _EMPTY))

    def show_numbers(self) -> None:
        cost, alpha = self.answer.priced, self.answer.statistics.alpha
        expected, k = self.answer.predicted, max(1, round(cost.mean_length or 1))
        disturbed = cost.is_disturbed(k)
        shown = expected if expected is not None and is_clear(expected) and not disturbed else None
        self.show_value(numbers.factor(shown.value) if shown is not None else "")
        facts = [f"{numbers.factor(shown.low)} to {numbers.factor(shown.high)}"] if shown is not None else []
        if alpha is not None and cost.c is not None and cost.surely_priced:
            facts.append(f"draft token: {numbers.percent(cost.c)} of a pass")
            if not disturbed:
                even = cost.break_even(k)
                least = f"α = {numbers.ratio(even)}".replace(" ", numbers.SPACE)
                facts.append("never pays" if even is None else f"pays from {least}")
        self.facts.setText(" · ".join(facts))
        self.facts.setVisible(bool(self.facts.text()))

    def read(self, index: int) -> str:
        factors = self._factors()
        if not 0 <= index < len(factors):
            return ""
        return f"k = {index}: {numbers.factor(factors[index])} predicted"

    def table(self) -> tuple[Sequence[str], Iterable[Sequence[Cell]]]:
        cost, alpha = self.answer.priced, self.answer.statistics.alpha
        names = ("k", "alpha", "c", "v", "predicted_factor")
        return names, ((k, alpha, cost.c, cost.v(k), factor) for k, factor in enumerate(self._factors()))

    def _factors(self) -> list[float]:
        """The predicted factor of every k; empty if too little was measured."""
        alpha, cost = self.answer.statistics.alpha, self.answer.priced
        if alpha is None:
            return []
        predicted = [cost.of_answer(alpha, k) for k in range(cost.longest + 1)]
        factors = [factor for factor in predicted if factor is not None]
        return factors if len(factors) == len(predicted) else []

    def _show_message(self, known: bool) -> None:
        answer = self.answer
        missing = "Measure the baseline first."
        if answer.header is not None and answer.header.pair.server is not None:
            missing = "A server does not report how long its passes and drafts take."
        text = "" if known else missing
        if answer.header is None:
            text = self.empty
        elif not answer.drafts:
            text = self.none
        elif answer.statistics.untold or not (known or answer.statistics.drafted):
            text = nothing_drafted(answer)
        elif not known and answer.statistics.alpha is None:
            text = "Drafts are judged as blocks, so there is no per-token α to predict from."
        if text != self.message.text():
            self.canvas.set_message(text)

    def _hover(self, k: int | None) -> None:
        inside = k is not None and 0 <= k <= self.answer.priced.longest
        self._read_at = k if inside else None
        self.read_out(self._read_at)

    def _step(self, by: int) -> None:
        """Read the next draft length, from that of the answer on."""
        if self._factors():
            at = round(self.answer.priced.mean_length or 0) if self._read_at is None else self._read_at + by
            self._read_at = min(max(at, 0), self.answer.priced.longest)
            self.read_aloud(self._read_at)


class CostCard(CostPlot):
    """The plot, with advice below. Advice takes a moment to work out, so space is reserved for it."""

    advised = Signal()
    """The advice has a new finding."""

    def set_up(self) -> None:
        super().set_up()
        self.models: tuple[ModelOptions | None, ModelOptions | None] = (None, None)
        """The load options of target and draft, if the answer was made with them."""
        self.drafts: Sequence[DraftFile] | None = None
        """Files that suit the target as drafts; None: not looked for."""
        self.query: Query[Advice | None] | None = None
        """Computes advice in the background and calls `show_advice`; None: it is computed at once, on this
        thread."""
        self.finding: Finding | None = None
        self._asked: AdviceQuestion | None = None
        self.advice = kit.label("", "small", wrap=True)
        self.advice.setAccessibleName("Advice")
        self.remedies = Remedies()
        self._room = kit.holder(kit.column(self.advice, self.remedies, kit.Spring(), spacing=2))
        column = self.layout()
        assert column is not None
        column.addWidget(self._room)

    def show_numbers(self) -> None:
        super().show_numbers()
        question, asked = self.answer.question(*self.models, self.drafts), self._asked
        if question is not None and question == asked and question.trace is asked.trace:
            self.remedies.refresh()
            return
        self._asked = question
        if question is None or asked is None or question.trace is not asked.trace:
            self.show_advice(None)  # that of another answer
        if question is not None and self.query is None:
            self.show_advice(question.answer())
        elif question is not None and self.query is not None:
            self.query.ask(question.answer)
        elif self.query is not None:
            self.query.drop()

    def show_advice(self, advice: Advice | None) -> None:
        """Show the advice on the answer, or nothing. The space for it only grows, so that the plots do not
        move when the next one appears."""
        finding = advice.finding if advice is not None else None
        if advice is not None and advice.finding is Finding.NO_BASELINE:
            advice = None  # the plot says so
        best = advice is not None and advice.keeps
        if best is not self.is_best:
            self.is_best = best
            self.draw(0, 0)
        self.advice.setText(advice.text if advice is not None else "")
        self.advice.setVisible(advice is not None)
        self.remedies.show_remedies(advice.remedies if advice is not None else ())
        height = self._room.heightForWidth(self._room.width()) if advice is not None else 0
        self._room.setMinimumHeight(max(self._room.minimumHeight(), height))
        if finding is not self.finding:
            self.finding = finding
            self.advised.emit()
