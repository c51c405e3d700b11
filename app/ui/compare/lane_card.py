"""A lane: numbers and a plot, and below them its answer, token by token in the colours of fates; and lanes
side by side."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QFrame, QScrollArea, QSizePolicy, QWidget

from app.ui.compare.lane_plot import LanePlot
from app.ui.compare.words import short
from app.ui.state.answer import AnswerModel, reconnect
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.theme.theme import FollowingTheme
from app.ui.transcript import AnswerTurn, AnswerView
from app.ui.widgets import kit
from app.ui.widgets.labels import ElidedLabel, as_text

STEP = 1.5  # points


class SmallTheme(FollowingTheme):
    """A theme with smaller letters that follows its base in everything else."""

    def sans(self, step: float = 0, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        return self._theme.sans(step - STEP, weight)

    def mono(self, step: float = 0, weight: QFont.Weight = QFont.Weight.Normal) -> QFont:
        return self._theme.mono(step - STEP, weight)


_SIDE = 13  # pixels at the left and right of a card


class LaneText(AnswerView):
    """The answer of a lane, level with the numbers above it."""

    margin = _SIDE - 1  # beside the card's edge


WIDTH = 220  # pixels at text scale 1: narrower cards are scrolled
TEXT_HEIGHT = 96  # the least height of the answer


class LaneCard(QWidget):
    """The card of a lane: its answer with the numbers about it."""

    inspect_requested = Signal(object, int, str)  # answer, round, name of the lane

    def __init__(self, theme: Theme, name: str, detail: str) -> None:
        """`name` is the lane's short name, `detail` its full description."""
        super().__init__()
        self._theme = theme
        self.answer: AnswerModel | None = None
        self.name = name
        self._name = ElidedLabel(Qt.TextElideMode.ElideMiddle, text=name, role="mono")
        self._name.setToolTip(as_text(detail or name))
        self.told = ElidedLabel(role="caption")
        self.told.hide()
        self.speed = kit.label("–", tip="Emitted tokens / wall time from the start of the first round")
        self._unit = kit.label("tok/s", "caption")
        self.factor = kit.label(
            tip="Speed-up: tokens/s divided by tokens/s of the baseline, same prompt, seed, sampling and run"
        )
        self.caption = ElidedLabel(role="caption")
        self.badge = ElidedLabel(role="caption")
        self.plot = LanePlot(theme, name)
        self.text = LaneText(SmallTheme(theme, self))
        self.text.setAccessibleName(f"Answer of {name}")
        self.text.inspects = True
        self.text.inspect_requested.connect(self._inspect)
        self.text.token_clicked.connect(self._inspect)
        self.plot.round_clicked.connect(lambda index: self._inspect(None, index))
        numbers = kit.row(
            (self.speed, 0, Qt.AlignmentFlag.AlignBaseline),
            (self._unit, 0, Qt.AlignmentFlag.AlignBaseline),
            kit.Spring(1),
            (self.factor, 0, Qt.AlignmentFlag.AlignBaseline),
            spacing=6,
        )
        self._head = QWidget()
        parts = self._name, self.told, numbers, self.caption, self.badge, 4, self.plot
        kit.column(*parts, margins=(_SIDE, 9, _SIDE, 10), spacing=2, on=self._head)
        kit.ground(self, "lane")
        kit.ground(self._head, "lanehead")
        self._head.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        text = kit.row(self.text, margins=(1, 0, 1, 0))
        kit.column(self._head, (text, 1), margins=(1, 1, 1, 6), spacing=0, on=self)
        theme.follow(self._restyle)

    # ------------------------------------------------------------------ the answer

    def set_answer(self, answer: AnswerModel | None, words: str = "") -> None:
        """Show a different answer; with None, `words` say why there is none."""
        if answer is not None and answer is self.answer:
            return
        reconnect(lambda heard: ((heard.grew, self._draw), (heard.moved, self._draw)), self.answer, answer)
        self.answer = answer
        self.text.set_empty_words("", words)
        self.text.set_turns([AnswerTurn(answer, "")] if answer is not None else [])
        self._draw()

    def show_round(self, index: int) -> None:
        """Scroll a round of the answer into view."""
        for turn in self.text.turns:
            self.text.show_round(turn, index)

    def _inspect(self, _turn: object, index: int, place: int | None = None) -> None:
        if self.answer is not None:
            self.answer.pin(index, place)
        self.inspect_requested.emit(self.answer, index, self.name)

    def _draw(self) -> None:
        answer = self.answer
        self.plot.show_trace(*((answer.trace, answer.cursor) if answer is not None else (None, 0)))

    # ------------------------------------------------------------------ the numbers

    def set_numbers(self, speed: str, factor: str, caption: str, badge: tuple[str, str] = ("", "")) -> None:
        """Show tokens/s and the speed-up, with a caption; and `badge`, a second line with its tooltip."""
        self.speed.setText(speed)
        self.factor.setText(factor)
        self.caption.set_text(caption, short(caption))
        self.caption.setToolTip(as_text(caption))
        self.badge.set_text(badge[0])
        self.badge.setToolTip(as_text(badge[1]))

    def set_told(self, line: str, whole: str, *, shown: bool) -> None:
        """Say below the name which model answers in this lane; `whole` is the tooltip. All cards show this
        line or none, so that their plots stay level."""
        self.told.set_text(line)
        self.told.setToolTip(as_text(whole))
        self.told.setVisible(shown)

    def set_best(self, best: bool) -> None:
        """Mark the lane as the fastest over all runs."""
        set_role(self, best=str(best).lower())
        self.setToolTip("The fastest over all runs" if best else "")

    def set_at_work(self, at_work: bool) -> None:
        """Mark the lane that is answering now."""
        set_role(self, atwork=str(at_work).lower())

    # ------------------------------------------------------------------ looks

    def minimumSizeHint(self) -> QSize:
        scale = self._theme.scale
        return QSize(round(WIDTH * scale), self._head.sizeHint().height() + round(TEXT_HEIGHT * scale) + 8)

    def _restyle(self) -> None:
        theme = self._theme
        self._name.setFont(theme.mono(-0.5))
        self.speed.setFont(theme.sans(6, QFont.Weight.Medium))
        self.factor.setFont(theme.sans(1.5, QFont.Weight.Medium))
        self.plot.setFixedHeight(self.plot.sizeHint().height())
        self.text.setMinimumHeight(round(TEXT_HEIGHT * theme.scale))
        self.setMinimumWidth(round(WIDTH * theme.scale))


GAP = 12


class LanesView(QScrollArea):
    """A card per lane; they scroll if the window is too narrow for them."""

    inspect_requested = Signal(object, int, str)  # answer, round, name of the lane
    failed = Signal(object)
    """The UserError of a plot that could not be saved."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.cards: list[LaneCard] = []
        self._names: tuple[tuple[str, str], ...] = ()
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._row = kit.row(margins=(24, 16, 24, 4), spacing=GAP)
        self._inner = kit.holder(self._row)
        self.setWidget(self._inner)

    def set_lanes(self, names: Sequence[tuple[str, str]]) -> None:
        """Make a card for each (name, detail); unchanged lanes keep their cards."""
        if tuple(names) == self._names:
            return
        self._names = tuple(names)
        kit.empty(self._row)
        self.cards = [LaneCard(self._theme, name, detail) for name, detail in names]
        for card in self.cards:
            card.plot.failed.connect(self.failed)
            card.inspect_requested.connect(self.inspect_requested)
            self._row.addWidget(card, 1)

    def minimumSizeHint(self) -> QSize:
        """Narrow, since cards scroll sideways, but as high as a card, which is not cut, and its bar."""
        height = self._inner.minimumSizeHint().height() + self.horizontalScrollBar().sizeHint().height()
        return QSize(super().minimumSizeHint().width(), height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Ask for the height of cards that have become higher."""
        if event.type() is QEvent.Type.LayoutRequest:
            self.updateGeometry()
        return super().eventFilter(watched, event)

    def share_axes(self, across: int, baselines: Sequence[float | None]) -> None:
        """Give all plots the same axes, over `across` tokens and up to the highest speed; `baselines` are
        tokens/s."""
        plots = [card.plot for card in self.cards]
        known = [speed for speed in baselines if speed is not None]
        top = max([*known, *(plot.peak for plot in plots)], default=0.0)
        for plot, baseline in zip(plots, baselines, strict=True):
            plot.set_axes(across, top, baseline)
