"""The whole answer in figures, below the inspected round."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from PySide6.QtCore import QTimer, SignalInstance
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QWidget

from app.engine.fates import Origin
from app.engine.record.alternative_stats import AlternativeStatistics
from app.lab.report.columns import SHAPE
from app.ui.inspector import figure as contents
from app.ui.inspector.figure import Bars, Figure
from app.ui.inspector.part import InspectorPart
from app.ui.instruments.cost_card import CostPlot
from app.ui.state.answer import AnswerModel
from app.ui.state.folds import MarkedFold
from app.ui.theme import Palette, Theme
from app.ui.theme.palette import blend
from app.ui.widgets import kit
from app.ui.widgets.labels import SteadyLabel
from app.ui.widgets.words import count

_LEAST, _MOST = 300, 3  # pixels of a column at text scale 1; columns
_SLICE = 0.005  # seconds of folding alternatives between two chances to paint
_CALM_MS = 150
_STRIDE = 2000  # rounds that are folded between two drawings
_DEFINITIONS = {column.key: column.definition for column in SHAPE}
_PLACES = "acc_per_pos", "acceptance_by_place", "judged_acceptance_by_place"
_DEFINITIONS["places"] = "\n".join(
    f"{column.title}: {column.definition}" for column in SHAPE if column.key in _PLACES
)


class ShapeView(InspectorPart):
    """Figures over the counted rounds of an answer up to its cursor."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._calm = QTimer(self, singleShot=True, interval=_CALM_MS)
        self._calm.timeout.connect(self._redraw)
        self._theme = theme
        self._alternatives = MarkedFold(AlternativeStatistics)
        self._drawn_at = 0  # rounds that were folded when they were last drawn
        self._rests = False
        self._fold_soon = QTimer(self, singleShot=True, interval=0)
        self._fold_soon.timeout.connect(self._fold)
        self.title = kit.label("Whole answer", "strong")
        self.scope = SteadyLabel("secondary")
        self.places = self._figure(
            "Acceptance by position",
            "places",
            ("place", "acc_per_pos", "of_drafted_there", "of_judged_there"),
            beside=True,
        )
        self.accepted = self._figure("Accepted per round", "accepted_per_round", ("accepted", "rounds"))
        self.ranks = self._figure("Draft's rank of the token", "ranks", ("choice", "places"))
        self.entropy = self._figure(
            "Entropy of the target", "target_entropy", ("bits_from", "rows", "judged", "accepted")
        )
        self.strategies = self._figure(
            "Share of each strategy", "strategies", ("strategy", "accepted_of_emitted")
        )
        self.cost = CostPlot(theme)
        self._cost_card = QFrame()
        self._cost_card.setProperty("kind", "figure")
        kit.column(self.cost, margins=(14, 12, 14, 12), on=self._cost_card)
        self._cards: tuple[QWidget, ...] = (
            self.places, self.accepted, self.ranks, self.entropy, self.strategies, self._cost_card,
        )  # fmt: skip
        for card in self._cards:
            card.setParent(self)  # one that is not shown is in no layout
            card.setMinimumWidth(1)  # columns become fewer, they do not keep the view wide
        head = kit.row(self.title, self.scope, kit.Spring(1), spacing=12)
        self._grid = kit.grid((12, 12))
        kit.column(head, self._grid, spacing=8, on=self)
        self._mixed = False  # several strategies drafted or were asked
        self._placed: tuple[tuple[QWidget, ...], int] = ((), 0)
        self.setAccessibleName("The whole answer in numbers")
        theme.follow(self._apply_theme)

    def _figure(self, title: str, key: str, columns: tuple[str, ...], *, beside: bool = False) -> Figure:
        def colours(palette: Palette) -> tuple[str, ...]:
            accepted = palette.area(Origin.ACCEPTED)
            soft = blend(accepted, palette.ground, 0.45)
            grey = blend(palette.secondary, palette.ground, 0.35)
            parts = (accepted, soft, grey) if beside else (grey, soft, accepted)
            return parts if len(columns) > 2 else (accepted,)

        bars = Bars(self._theme, columns, colours, beside=beside)
        return Figure(self._theme, title, _DEFINITIONS[key], bars)

    # ------------------------------------------------------------------ what is shown

    def set_answer(self, answer: AnswerModel | None) -> None:
        self._alternatives.begin(0)
        super().set_answer(answer)

    def _slots(self, answer: AnswerModel) -> tuple[tuple[SignalInstance, Callable[[], None]], ...]:
        return (  # which round is inspected does not matter here
            (answer.began, self._redraw), (answer.grew, self._grow), (answer.ended, self._redraw),
            (answer.moved, self._move), (answer.measured, self._redraw),
        )  # fmt: skip

    def _move(self) -> None:
        """Follow the cursor. If it went back far from any mark, wait until it rests: folding the alternatives
        again takes longer than a frame."""
        self._fold_soon.stop()
        if self._alternatives.is_near(self.answer.cursor):
            self._calm.stop()
            self._grow()
        else:
            self._calm.start()

    def draw(self) -> None:
        answer = self.answer
        if answer.start != self._alternatives.start:
            self._alternatives.begin(answer.start)
        self.scope.set_text(contents.scope(answer))
        self.places.show_content(contents.acceptance_by_place(answer))
        self.accepted.show_content(contents.accepted_per_round(answer))
        shares = contents.strategy_shares(answer)
        self.strategies.show_content(shares)
        self._mixed = len(shares.bars) > 1
        self._fold_some()  # the few rounds of a step or a frame of the replay are shown at once
        self._draw_alternatives()
        self.cost.answer = answer
        self.cost.draw(0, 0)
        self.cost.show_numbers()
        self._place()
        self._go_on()

    def _draw_alternatives(self) -> None:
        fold = self._alternatives
        shown = contents.draft_choices(self.answer, fold.value), contents.target_entropy(fold.value)
        self._drawn_at = fold.end
        so_far = f"{count(fold.end - fold.start)} rounds so far" if fold.end < self.answer.cursor else ""
        for figure, content in zip((self.ranks, self.entropy), shown, strict=True):
            words = content.words if content.bars or not so_far else ""  # why there are none is not known yet
            figure.show_content(replace(content, note=so_far or content.note, words=words))

    # ------------------------------------------------------------------ alternatives, slice by slice

    def rest(self, rests: bool) -> None:
        """Stop or resume reading alternatives, which would delay a file that is being opened."""
        self._rests = rests
        if rests:
            self._fold_soon.stop()
        else:
            self._go_on()

    def _go_on(self) -> None:
        """Fold what is not folded yet, from the next turn of the event loop on."""
        behind = self._alternatives.end < self.answer.cursor
        if behind and not self._rests and not self._fold_soon.isActive():
            self._fold_soon.start()  # begun again by every drawing, it would never come to its turn

    def _fold(self) -> None:
        """Fold alternatives for a moment, and draw them where that makes a difference."""
        if not self.in_sight:
            self._stale = True
            return
        self._fold_some()
        at = self._alternatives.end
        if at < self.answer.cursor:
            self._go_on()
            if at - self._drawn_at < _STRIDE:
                return
        self._draw_alternatives()

    def _fold_some(self) -> None:
        """Fold for a moment: the alternatives of a long answer take seconds to decode."""
        ends = time.perf_counter() + _SLICE
        self._alternatives.go_to(self.answer.rounds, self.answer.cursor, ends)

    # ------------------------------------------------------------------ the look

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        """Arrange the cards that are shown in as many columns as have room."""
        shown = tuple(card for card in self._cards if card is not self.strategies or self._mixed)
        columns = max(1, min(_MOST, int(self.width() / (_LEAST * self._theme.scale))))
        if self._placed == (shown, columns):
            return
        self._placed = shown, columns
        for card in self._cards:
            self._grid.removeWidget(card)
            card.setVisible(card in shown)
        for at, card in enumerate(shown):
            self._grid.addWidget(card, at // columns, at % columns)
        for at in range(_MOST):
            self._grid.setColumnStretch(at, 1 if at < columns else 0)

    def _apply_theme(self) -> None:
        self.cost.apply_theme()
        self._place()
