"""A card with one figure of a whole answer: what it shows and says, and its bars."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QHelpEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QToolTip

from app.base import numbers
from app.base.numbers import ordinal
from app.engine.errors import UserError
from app.engine.record.alternative_stats import AlternativeStatistics
from app.engine.record.stats import Statistics
from app.engine.rules.registry import rule_of
from app.ui.instruments.cost_card import nothing_drafted
from app.ui.state.answer import AnswerModel
from app.ui.theme import Palette, Theme
from app.ui.widgets import kit
from app.ui.widgets.labels import SteadyLabel, as_text
from app.ui.widgets.plot import Cell, Plot
from app.ui.widgets.words import count, percent, significant

_PLACES = 16  # of a draft that are shown
_CHOICES = 10  # recorded


@dataclass(frozen=True, slots=True)
class Bar:
    """A labelled bar. Its parts are side by side, or one in front of the other."""

    label: str
    parts: tuple[float | None, ...]
    text: str  # above it
    told: str  # for tooltips and screen readers


@dataclass(frozen=True, slots=True)
class Content:
    """A figure's bars, the note beside its title and the words below."""

    bars: tuple[Bar, ...]
    note: str
    words: str
    top: float | None = None  # value of the whole height; None: the highest bar


def scope(answer: AnswerModel) -> str:
    """Which rounds the figures cover."""
    statistics = answer.statistics
    words = [] if statistics.untold else [numbers.count(statistics.rounds, "round")]
    words.append(numbers.count(statistics.emitted, "token"))
    if answer.start:
        words.insert(0, f"since round {ordinal(answer.start)}")
    if answer.cursor < len(answer.rounds):
        words.append(f"up to round {ordinal(answer.last)}")
    return " · ".join(words)


def acceptance_by_place(answer: AnswerModel) -> Content:
    statistics = answer.statistics
    places = zip(
        statistics.acc_per_pos,
        statistics.acceptance_by_place,
        statistics.judged_acceptance_by_place,
        strict=True,
    )
    bars = tuple(
        Bar(
            str(place),
            (rounds, drafted, judged),
            f"{rounds * 100:.0f}",
            f"place {place}: acc per pos {percent(rounds)}, {percent(drafted)} of drafted there, "
            f"{percent(judged)} of judged there",
        )
        for place, (rounds, drafted, judged) in enumerate(islice(places, _PLACES), 1)
    )
    words = (
        "Acceptance by position in the draft, in percent. Left: of all rounds with a draft (acc per pos, "
        "as in llama.cpp and vLLM). Middle: of tokens drafted there. "
    )
    words += (
        "Blocks are judged as a whole, so single tokens have no verdict."
        if statistics.blocks
        else "Right: of tokens judged there."
    )
    if statistics.longest_draft > _PLACES:
        words += f" The first {_PLACES} of {statistics.longest_draft} places."
    return Content(bars, _rounds(statistics), words if bars else _nothing(answer), top=1.0)


def accepted_per_round(answer: AnswerModel) -> Content:
    statistics = answer.statistics
    bars = tuple(
        Bar(str(tokens), (rounds,), count(rounds), f"{tokens} accepted in {numbers.count(rounds, 'round')}")
        for tokens, rounds in enumerate(statistics.accepted_per_round)
    )
    words = _nothing(answer)
    if statistics.tau is not None:
        words = (
            f"Mean {significant(statistics.tau - 1)} of {significant(statistics.draft_length)} drafted. "
            f"τ {significant(statistics.tau)} · {significant(statistics.tokens_per_pass)} tokens per pass."
        )
    return Content(bars, _rounds(statistics), words)


def strategy_shares(answer: AnswerModel) -> Content:
    statistics = answer.statistics
    bars = []
    for name in dict.fromkeys((*statistics.calls, *statistics.strategies)):
        part, calls = statistics.strategies.get(name), statistics.calls.get(name)
        accepted, drafted = (part.accepted, part.drafted) if part is not None else (0, 0)
        share = accepted / statistics.emitted if statistics.emitted else 0.0
        asked = f"asked {numbers.count(calls, 'time')}, " if calls is not None else ""
        told = (
            f"{name}: {asked}{count(accepted)} of {count(drafted)} accepted, {percent(share)} of the answer"
        )
        bars.append(Bar(name, (share,), percent(share), told))
    words = f"{'. '.join(bar.told for bar in bars)}. The target alone gave the rest."
    return Content(tuple(bars), numbers.count(statistics.emitted, "token"), words, top=1.0)


def draft_choices(answer: AnswerModel, folded: AlternativeStatistics) -> Content:
    """Which choice of the draft the emitted tokens were: whether a wider draft would pay."""
    if not folded.ranked:
        why = "No draft model was used. Lookup strategies propose a single token per position."
        if answer.header is not None and answer.header.pair.server is not None:
            why = "A server does not report its draft's other candidates."
        return Content((), "", why if answer.statistics.drafted else _nothing(answer))
    places = [*folded.ranks, *[0] * (_CHOICES - len(folded.ranks)), folded.unranked]
    names = [*(str(choice) for choice in range(1, _CHOICES + 1)), "…"]
    bars = tuple(
        Bar(
            name,
            (each,),
            f"{each / folded.ranked * 100:.0f}",
            f"{'none of the ten' if name == '…' else f'choice {name}'}: {numbers.count(each, 'place')}",
        )
        for name, each in zip(names, places, strict=True)
    )
    words = (
        "How the draft ranked the token that was emitted. It was in the draft's top 2 in "
        f"{percent(folded.held_by(2))} of positions and in its top 4 in {percent(folded.held_by(4))}. Ranks "
        "beyond ten are not recorded."
    )
    if answer.header is not None and rule_of(answer.header.verification).from_residual:
        words += " This is an estimate: replacements for rejected tokens are drawn from the residual."
    return Content(bars, f"% of {numbers.count(folded.ranked, 'place')}", words)


def target_entropy(folded: AlternativeStatistics) -> Content:
    """How sure the target was, and what it accepted then."""
    if not folded.rows:
        return Content((), "", "No alternatives are recorded.")
    histograms = folded.entropies, folded.judged_by_entropy, folded.accepted_by_entropy
    bars = tuple(
        Bar(
            f"{at / 2:g}",
            (rows, judged, accepted),
            count(rows),
            f"{at / 2:g} bit on: {numbers.count(rows, 'row')}, {count(judged)} judged, "
            f"{count(accepted)} accepted",
        )
        for at, (rows, judged, accepted) in enumerate(zip_longest(*histograms, fillvalue=0))
    )
    recorded = numbers.percent(1 - (folded.target_rest or 0.0))
    words = (
        "Positions by the target's entropy (bits). Strong colour: draft accepted. Pale: rejected. "
        f"Grey: not judged. The recorded tokens cover {recorded} of the probability."
    )
    return Content(bars, f"mean at least {significant(folded.target_entropy)} bit", words)


def _rounds(statistics: Statistics) -> str:
    return f"{numbers.count(statistics.drafted_rounds, 'round')} with a draft" if statistics.drafted else ""


def _nothing(answer: AnswerModel) -> str:
    return nothing_drafted(answer) if answer.drafts else "Strategy none drafts nothing."


_HEIGHT, _WIDEST, _GAP = 96, 52, 3  # pixels at text scale 1


class Bars(Plot):
    """Bars of equal width from the left; the highest part takes the whole height."""

    def __init__(
        self,
        theme: Theme,
        columns: Sequence[str],
        colours: Callable[[Palette], Sequence[str]],
        *,
        beside: bool = False,
    ) -> None:
        """`columns` names label and parts in exported tables; `colours` are those of the parts; `beside` puts
        parts side by side."""
        super().__init__(theme)
        self.file_stem = columns[0]
        self._columns = columns
        self._colours = colours
        self._beside = beside
        self.bars: tuple[Bar, ...] = ()
        self.top = 1.0  # the value of the whole height
        self._painted: object = None

    def set_bars(self, bars: Iterable[Bar], top: float | None = None) -> None:
        """Show these bars; `top` is the value of the whole height, by default the highest part."""
        self.bars = tuple(bars)
        parts = [part for bar in self.bars for part in bar.parts if part is not None]
        self.top = top or max(parts, default=0.0) or 1.0
        self.setAccessibleDescription("; ".join(bar.told for bar in self.bars))
        if self._look() != self._painted:  # one round more among thousands seldom moves a pixel
            self.update()

    def table(self) -> tuple[Sequence[str], Iterable[Sequence[Cell]]]:
        return self._columns, ((bar.label, *bar.parts) for bar in self.bars)

    @property
    def bar_rects(self) -> list[QRectF]:
        """Where each bar has room."""
        metrics = QFontMetricsF(self._theme.sans(-2))
        labels = max((metrics.horizontalAdvance(bar.label) for bar in self.bars), default=0.0) + 4 * _GAP
        pitch = min(self.width() / max(len(self.bars), 1), max(_WIDEST * self._theme.scale, labels))
        line = metrics.height()
        height = self.height() - 2 * line - 2
        return [QRectF(index * pitch, line, pitch - _GAP, height) for index in range(len(self.bars))]

    def _look(self) -> list[tuple[str, str, list[int]]]:
        """What is painted of the bars: words, and heights in whole pixels."""
        most = self.height() - 2 * self._line() - 2
        return [(bar.label, bar.text, [self._pixels(part, most) for part in bar.parts]) for bar in self.bars]

    def _pixels(self, part: float | None, most: float) -> int:
        return round((part or 0.0) / self.top * most)

    def _line(self) -> float:
        return QFontMetricsF(self._theme.sans(-2)).height()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter, palette = QPainter(self), self._theme.palette
        self._painted = self._look()
        painter.setFont(self._theme.sans(-2))
        line, wide = self._line(), painter.fontMetrics().horizontalAdvance
        colours = [QColor(colour) for colour in self._colours(palette)]
        painter.setPen(QColor(palette.secondary))
        for rect, bar in zip(self.bar_rects, self.bars, strict=True):
            parts = self._part_rects(rect, bar)
            for part, colour in zip(parts, colours, strict=True):
                painter.fillRect(part, colour)
            room = rect.adjusted(-_GAP, 0, _GAP, 0)
            under = parts[0] if self._beside else min(parts, key=QRectF.top)
            above = QRectF(0, 0, under.width() if self._beside else room.width(), line)
            above.moveCenter(QPointF(under.center().x(), under.top() - line / 2))
            if wide(bar.text) <= above.width() + 1:
                painter.drawText(above, Qt.AlignmentFlag.AlignHCenter, bar.text)
            label = painter.fontMetrics().elidedText(
                bar.label, Qt.TextElideMode.ElideRight, round(room.width())
            )
            below = QRectF(room.left(), rect.bottom() + 2, room.width(), line)
            painter.drawText(below, Qt.AlignmentFlag.AlignHCenter, label)
        bottom = QRectF(0, round(self.height() - line - 2), self.width(), 1)
        painter.fillRect(bottom, QColor(palette.line))

    def _part_rects(self, rect: QRectF, bar: Bar) -> list[QRectF]:
        """The parts of a bar, on whole pixels."""
        width = rect.width() / len(bar.parts) if self._beside else rect.width()
        rects = []
        for place, part in enumerate(bar.parts):
            height = self._pixels(part, rect.height())
            left = round(rect.left() + width * place * self._beside)
            rects.append(QRectF(left, round(rect.bottom()) - height, round(width) - self._beside, height))
        return rects

    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent) and event.type() == QEvent.Type.ToolTip:
            at = next(
                (
                    index
                    for index, rect in enumerate(self.bar_rects)
                    if rect.left() <= event.pos().x() < rect.right() + _GAP
                ),
                None,
            )
            QToolTip.showText(event.globalPos(), as_text(self.bars[at].told) if at is not None else "", self)
            return True
        return super().event(event)

    def sizeHint(self) -> QSize:
        return QSize(200, round(_HEIGHT * self._theme.scale + 2 * self._line()))

    def minimumSizeHint(self) -> QSize:
        return QSize(120, self.sizeHint().height())


class Figure(QFrame):
    """Shows bars, or a sentence on why there are none."""

    def __init__(self, theme: Theme, title: str, definition: str, bars: Bars) -> None:
        super().__init__()
        self.setProperty("kind", "figure")
        self.bars = bars
        self.title = kit.label(title, "strong")
        self.note = SteadyLabel("caption")
        self.caption = kit.label("", "caption", wrap=True)
        for part in (self.title, self.note, self.caption):
            part.setToolTip(definition)
        bars.setAccessibleName(title)
        bars.failed.connect(self._not_saved)
        row = kit.row(self.title, kit.Spring(1), self.note)
        kit.column(row, bars, self.caption, kit.Spring(1), margins=(14, 12, 14, 12), spacing=8, on=self)
        theme.changed.connect(self._fit)

    def show_content(self, content: Content) -> None:
        """Show bars and words; without bars there are only words."""
        self.bars.set_bars(content.bars, content.top)
        self.bars.setVisible(bool(content.bars))
        self.note.set_text(content.note)
        self.caption.setText(content.words)

    def _not_saved(self, error: UserError) -> None:
        self.caption.setText(str(error))

    def _fit(self) -> None:
        self.bars.updateGeometry()
