"""The three plots over the rounds: acceptance, speed, length; and why drafts stopped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QLabel, QSizePolicy

from app.base.numbers import ordinal
from app.engine.fates import UNTOLD_DRAFT, Origin, Verdict
from app.engine.lengths.base import LengthAt
from app.saved.measured import UNDRAFTED
from app.servers.address import whole_words
from app.ui.instruments import definitions
from app.ui.instruments.plot_card import PlotCard
from app.ui.instruments.styles import pen, shade
from app.ui.state.folds import RATE_WINDOW, Bins
from app.ui.widgets import words as numbers
from app.ui.widgets.labels import as_text
from app.ui.widgets.plot import Cell
from app.ui.widgets.words import end_words

if TYPE_CHECKING:
    from app.ui.instruments.view import PlotView

LINES = 2


class DraftEnds(QLabel):
    """The reasons with their numbers of rounds, the most frequent first.

    Always two lines high, so that nothing jumps while an answer grows. A text without room is elided; the
    tooltip shows all of it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setProperty("role", "fine")
        self._reasons: list[str] = []
        self.setTextFormat(Qt.TextFormat.PlainText)  # a strategy from outside may return markup
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setAccessibleName("Why drafts stopped")

    def show_ends(self, ends: Mapping[str, int]) -> None:
        """Show a tally: reason -> rounds."""
        ordered = sorted(ends.items(), key=lambda entry: -entry[1])
        self._reasons = [f"{numbers.count(rounds)}× {end_words(end)}" for end, rounds in ordered]
        self.setText(" · ".join(self._reasons))
        self.setToolTip(as_text("\n".join([definitions.DRAFT_ENDS, *self._reasons])))

    def lines(self, width: int) -> list[str]:
        """The lines that fit a width in pixels; a line that is still too long is elided when it is
        painted."""
        if not self._reasons:
            return []
        metrics = self.fontMetrics()
        first, rest = [f"drafts stopped: {self._reasons[0]}"], self._reasons[1:]
        while rest and metrics.horizontalAdvance(" · ".join([*first, rest[0]])) <= width:
            first.append(rest.pop(0))
        return [" · ".join(part) for part in (first, rest) if part]

    def sizeHint(self) -> QSize:
        return QSize(super().sizeHint().width(), LINES * self.fontMetrics().height())

    def minimumSizeHint(self) -> QSize:
        return QSize(0, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        metrics = self.fontMetrics()
        place = QRect(0, 0, self.width(), metrics.height())
        for line in self.lines(self.width()):
            shown = metrics.elidedText(line, Qt.TextElideMode.ElideRight, self.width())
            painter.drawText(place, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)
            place.translate(0, metrics.height())


_DOT_PIXELS = 2  # pixels that a dot or a bar takes at least; if there is less, rounds are grouped
_BAR_PIXELS = 3
_LINE_PIXELS = 2
_MOST_BINS = 1000
_NICE = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)


def nice_above(value: float) -> float:
    """The next round number above, whose half is round as well: 300 above 267."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(step * unit for step in _NICE if step * unit >= value * (1 - 1e-9))


def usual(rates: np.ndarray) -> float:
    """The usual maximum of the rates, so that one round with a too short time does not flatten all others."""
    if not len(rates):
        return 0.0
    return float(np.percentile(rates, 98) if len(rates) > 20 else rates.max())


def _grouped(step: int, mark: str) -> str:
    """A note if a mark shows several rounds."""
    return f"{numbers.count(step)} rounds per {mark}" if step > 1 else ""


def length_words(at: LengthAt) -> str:
    """The acceptance that a draft length rule uses."""
    return f"smoothed {numbers.ratio(at.acceptance)} · k {'≥ ' if at.at_least else ''}{numbers.count(at.k)}"


class AcceptancePlot(PlotCard):
    """One dot per round, and the rate pooled so far."""

    name = "Acceptance"
    definition = "accepted / drafted"
    tooltip = (
        f"{definitions.ACCEPTANCE_RATE}\nDots: single rounds. Line: the pooled rate so far.\nWith "
        "length=ewma or auto, the dotted line and “smoothed” show the rate that the rule uses. k is the "
        "longest draft it allowed in the last round."
    )
    empty = "One dot per round: the accepted share of its draft. The line shows the rate so far."
    none = "Strategy none drafts nothing, so there is nothing to accept."
    untold = UNTOLD_DRAFT
    file_stem = "acceptance"

    def add_items(self, view: PlotView) -> None:
        self.canvas.set_ticks([(0, "0"), (0.5, "0.5"), (1, "1")])
        self._whole = view.add_dots(4.5)
        self._partial = view.add_dots(4.5)
        self._smoothed = view.add_line()
        self._pooled = view.add_line()

    def colour_items(self) -> None:
        palette = self._theme.palette
        self._whole.setBrush(shade(palette.fate(Origin.ACCEPTED), 0.55))
        self._partial.setBrush(shade(palette.fate(Origin.RESAMPLED), 0.6))
        self._pooled.setPen(pen(palette.fate(Origin.ACCEPTED), 1.8))
        self._smoothed.setPen(pen(palette.secondary, 1.2, Qt.PenStyle.DotLine))

    def draw_values(self, first: int, last: int) -> None:
        series, width = self.answer.series, self.canvas.plot_width
        dots = series.bins(first, last, width // _DOT_PIXELS)
        self.canvas.set_note(_grouped(dots.step, "dot"))
        whole = dots.acceptance == 1
        partial = dots.acceptance < 1
        self._whole.setData(dots.centre[whole], dots.acceptance[whole])
        self._partial.setData(dots.centre[partial], dots.acceptance[partial])
        line = series.bins(first, last, width // _LINE_PIXELS)
        self._pooled.setData(line.right - 1, line.pooled)
        lengths, at = self.answer.lengths, line.right - 1
        smoothed = [lengths[int(index)].acceptance for index in at] if lengths else []
        self._smoothed.setData(at[: len(smoothed)], np.array(smoothed))

    def show_numbers(self) -> None:
        self.show_value(numbers.ratio(self.answer.statistics.acceptance_rate))
        lengths, last = self.answer.lengths, self.answer.last
        known = bool(lengths) and last >= self.answer.start
        whole = self._whole_server()
        self.note.setText(length_words(lengths[last]) if known else whole or self.definition)
        self.note.setToolTip(f"{whole}\n{self.tooltip}" if whole else self.tooltip)

    def _whole_server(self) -> str:
        """The drafts of the whole server during the answer, if it reports those alone; else ""."""
        totals = self.answer.totals if self.answer.whole else None
        whole = totals.whole_server if totals is not None else None
        told = whole_words(whole) if whole is not None else ""
        return f"whole server, all users: {told}" if told else ""

    def read(self, index: int) -> str:
        round = self.answer.rounds[index]
        pooled = numbers.ratio(self.answer.series.pooled_at(index))
        if not round.drafted:
            accepted = "draft unknown" if round.untold else "no draft"
        else:
            accepted = f"{round.accepted} of {len(round.drafted)} accepted"
        lengths = self.answer.lengths
        rule = f", {length_words(lengths[index])}" if lengths else ""
        return f"round {ordinal(index)}: {accepted}, so far {pooled}{rule}"

    def table(self) -> tuple[Sequence[str], Iterable[Sequence[Cell]]]:
        names = ("round", "drafted", *Verdict, "pooled_acceptance_rate", "smoothed_acceptance", "k")
        rounds = self.answer.rounds[self.answer.start :]
        pooled, lengths = self.answer.series.pooled_at, self.answer.lengths

        def rule(at: int) -> tuple[Cell, Cell]:
            return (lengths[at].acceptance, lengths[at].k) if lengths else (None, None)

        return names, (
            (r.index, len(r.drafted), *map(r.count, Verdict), pooled(at), *rule(at))
            for at, r in enumerate(rounds, self.answer.start)
        )


class SpeedPlot(PlotCard):
    """Tokens per second, beside the measured baseline."""

    name = "Tokens/s"
    definition = "emitted / wall time"
    tooltip = (
        f"{definitions.TOKENS_PER_SECOND}\nLine: the rate over the last {RATE_WINDOW} rounds.\nAfter the "
        "baseline is measured, the lines show its first pair of runs: dark with the strategy, grey without. "
        "Dashed: the baseline over all its runs."
    )
    empty = "Tokens per second over recent rounds. The dashed line is the measured baseline."
    file_stem = "tokens-per-second"

    def add_items(self, view: PlotView) -> None:
        self.canvas.set_ticks([(0, "0"), (100, "")])
        self._plain = view.add_line()
        self._rate = view.add_line()

    def colour_items(self) -> None:
        self._rate.setPen(pen(self._theme.palette.text, 1.5))
        self._plain.setPen(pen(self._theme.palette.faint, 1.5))

    def draw_values(self, first: int, last: int) -> None:
        bins = self.answer.series.bins(first, last, self.canvas.plot_width // _LINE_PIXELS)
        rate, plain = self._lines(bins)
        self._rate.setData(bins.right - 1, rate)
        self._plain.setData(bins.right - 1, plain)
        shown = bins
        if self.answer.live:  # the axis covers all rounds, so that it stays calm while more arrive
            shown = self.answer.series.bins(self.answer.start, self.answer.last, _MOST_BINS)
            rate, plain = self._lines(shown)
        calm = shown.right - self.answer.start >= RATE_WINDOW  # not the first rounds, measured over few
        if calm.sum() > len(calm) // 2:
            rate, plain = rate[calm], plain[calm]
        drawn = [run[np.isfinite(run)] for run in (rate, plain)]
        if not any(map(len, drawn)):
            self.canvas.set_ticks([(0, "0"), (100, "")])
            self.canvas.set_level(None)
            return
        measurement = self.answer.measurement
        baseline = measurement.baseline_speed if measurement is not None else None
        top = nice_above(max(*(usual(run) * 1.08 for run in drawn), (baseline or 0) * 1.15))
        self.canvas.set_ticks([(value, f"{value:,g}") for value in (0, top / 2, top)])
        self.canvas.set_level(baseline, f"baseline {numbers.significant(baseline)}")

    def _lines(self, bins: Bins) -> tuple[np.ndarray, np.ndarray]:
        """Tokens/s in each group, with the strategy and, if it was measured, without."""
        if self.answer.clocks is None:
            return bins.rate, np.full(len(bins.rate), np.nan)
        with_strategy, without = (clock.rate(bins.before, bins.behind) for clock in self.answer.clocks)
        return with_strategy, without

    def show_numbers(self) -> None:
        own = self.answer.statistics.tokens_per_second
        measurement = self.answer.measurement
        if measurement is None:
            shown, note, about = own, self.definition, self.tooltip
        else:
            factor, whole = map(numbers.factor, (measurement.factor, measurement.end_to_end_factor))
            end_to_end = "" if measurement.end_to_end_factor is None else f", {whole} end to end"
            undrafted = measurement.verdict is UNDRAFTED  # a difference is the machine's
            note = UNDRAFTED if undrafted else f"{factor}{end_to_end}"
            shown = measurement.strategy_speed
            came = f"The answer itself ran at {numbers.per_second(own)}."
            low, high = map(numbers.factor, (measurement.low, measurement.high))
            came += f" The measured pairs of runs range from {low} to {high}." * (measurement.pairs > 1)
            about = f"{definitions.SPEED_UP}\n{definitions.END_TO_END}\n{came}"
        self.show_value(numbers.significant(shown))
        self.note.setText(note)
        for label in (self.note, self.value):
            label.setToolTip(about)

    def read(self, index: int) -> str:
        round = self.answer.rounds[index]
        rate, plain = self._rates(index)
        if self.answer.measurement is not None:
            return (
                f"round {ordinal(index)}: {numbers.per_second(rate)}, baseline {numbers.significant(plain)}"
            )
        return (
            f"round {ordinal(index)}: {numbers.per_second(rate)}, "
            f"{len(round.emitted)} in {numbers.duration(round.seconds)}"
        )

    def _rates(self, index: int) -> tuple[float | None, float | None]:
        """The values of the lines at a round: the rate with the strategy and, if it was measured,
        without."""
        series, clocks = self.answer.series, self.answer.clocks
        if clocks is None:
            return series.rate_at(index), None
        before, behind = (np.array([tokens]) for tokens in series.tokens_at(index))
        rates = [float(clock.rate(before, behind)[0]) for clock in clocks]
        with_strategy, without = (rate if math.isfinite(rate) else None for rate in rates)
        return with_strategy, without

    def table(self) -> tuple[Sequence[str], Iterable[Sequence[Cell]]]:
        names = (
            "round", "offset_s", "seconds", "draft_s", "verify_s", "sample_s", "emitted",
            f"tokens_per_second_over_{RATE_WINDOW}_rounds", "baseline_tokens_per_second",
        )  # fmt: skip
        rounds = self.answer.rounds[self.answer.start :]
        return names, (
            (r.index, r.offset, r.seconds, r.draft_seconds, r.verify_seconds, r.sample_seconds,
             len(r.emitted), *self._rates(at))
            for at, r in enumerate(rounds, self.answer.start)
        )  # fmt: skip


class LengthPlot(PlotCard):
    """The tokens of each round beside the tokens drafted for it, and τ."""

    name = "τ"
    definition = "tokens per drafted round"
    tooltip = (
        f"{definitions.TAU}\nBars: accepted tokens, with the target's own token on top in the colour of its "
        "fate. Grey: the drafted length."
    )
    empty = "One bar per round, coloured by fate. Grey shows the drafted length."
    untold = UNTOLD_DRAFT
    file_stem = "tokens-per-round"

    def set_up(self) -> None:
        self.ends = DraftEnds()
        column = self.layout()
        assert column is not None
        column.addWidget(self.ends)

    def add_items(self, view: PlotView) -> None:
        self._set_top(4)
        self._bars = view.add_bars()

    def colour_items(self) -> None:
        self._bars.set_palette(self._theme.palette)

    def _set_top(self, top: int) -> None:
        half = math.ceil(top / 2)
        self.canvas.set_ticks([(value, f"{value:,}") for value in (0, half, 2 * half)])

    def draw_values(self, first: int, last: int) -> None:
        bins = self.answer.series.bins(first, last, self.canvas.plot_width // _BAR_PIXELS)
        self._bars.set_bins(None if self.answer.statistics.untold else bins)
        length = self.answer.statistics.draft_length
        drafts = f"drafts of {numbers.significant(length)}" if length is not None else ""
        self.canvas.set_note(", ".join(filter(None, (_grouped(bins.step, "bar"), drafts))))
        longest = self.answer.statistics.longest_draft
        self._set_top(longest + 1 if longest else 4)

    def show_numbers(self) -> None:
        statistics = self.answer.statistics
        self.show_value(numbers.significant(statistics.tau))
        self.note.setText(self.definition if self.answer.drafts else "nothing is drafted")
        self.ends.show_ends(statistics.ends)
        self.ends.setVisible(self.answer.drafts)

    def read(self, index: int) -> str:
        round = self.answer.rounds[index]
        emitted = len(round.emitted)
        if round.untold:
            return f"token {ordinal(index)}: draft unknown"
        return (
            f"round {ordinal(index)}: {len(round.drafted)} drafted, "
            f"{round.accepted} accepted, {emitted} emitted"
        )

    def table(self) -> tuple[Sequence[str], Iterable[Sequence[Cell]]]:
        names = ("round", "strategy", "drafted", "accepted", "emitted", "origin_of_last")
        rounds = self.answer.rounds[self.answer.start :]
        return names, (
            (r.index, r.strategy, len(r.drafted), r.accepted, len(r.emitted),
             str(r.emitted[-1].origin) if r.emitted else None)
            for r in rounds
        )  # fmt: skip
