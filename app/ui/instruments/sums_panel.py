"""Statistics over several answers, and a panel with those of this answer, of this chat, and of all answers
since the last reset."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QGuiApplication
from PySide6.QtWidgets import QCheckBox, QLabel, QPlainTextEdit, QWidget

from app.engine.record.llama_cpp_lines import llama_cpp_lines
from app.engine.record.stats import Statistics, strategy_names
from app.engine.strategy import longest_draft
from app.engine.types import TraceHeader
from app.ui.instruments import definitions
from app.ui.state.answer import AnswerModel, reconnect
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.words import NONE, count, percent, significant


@dataclass(slots=True)
class Sums:
    """Pooled answers: counts and times are sums, and ratios are computed from the sums."""

    statistics: Statistics = field(default_factory=Statistics)
    headers: tuple[TraceHeader, ...] = ()  # of the answers

    @classmethod
    def over(cls, answers: Iterable[AnswerModel]) -> Sums:
        """All rounds of these answers up to their cursors, independent of resets."""
        known = [(answer, answer.header) for answer in answers if answer.cursor and answer.header is not None]
        return cls(
            Statistics.pooled(_whole(answer) for answer, _ in known), tuple(header for _, header in known)
        )

    @property
    def warm(self) -> int:
        """How many answers began with a filled cache."""
        return sum(header.warm for header in self.headers)

    def lines(self) -> Iterator[str]:
        """llama.cpp's lines on the drafts."""
        names = dict.fromkeys(name for header in self.headers for name in strategy_names(header.strategy))
        limits = [longest_draft(header.strategy) for header in self.headers]
        known = None if None in limits else max((limit for limit in limits if limit), default=None)
        yield from llama_cpp_lines(self.statistics, list(names), known, len(self.headers))


def _whole(answer: AnswerModel) -> Statistics:
    if answer.start == 0:
        return answer.statistics  # folded once, and kept up to date
    if answer.trace is not None and answer.whole:
        return Statistics.of_answer(answer.trace)
    return Statistics.of(answer.rounds[: answer.cursor])


class SinceReset(QObject):
    """Sums over the answers that were made since the last reset, in any chat."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._ended = Sums()  # of answers before the last
        self._answer: AnswerModel | None = None  # the last one
        self._last = Statistics()
        self._folded = 0  # its rounds that are in `_last`, or came before the reset
        self._since = 0  # the first of them that counts

    def follow(self, answer: AnswerModel) -> None:
        """Count an answer that is about to be made. Rounds that it has when it begins are not new."""
        self._ended = self.sums  # the answer before has ended
        self._last, self._folded, self._since = Statistics(), 0, 0
        before, self._answer = self._answer, answer
        reconnect(
            lambda last: ((last.began, self._begin), (last.grew, self._grow), (last.ended, self._end)),
            before,
            answer,
        )

    def reset(self) -> None:
        """Start again with the next round."""
        self._ended, self._last = Sums(), Statistics()
        self._folded = self._since = len(self._answer.rounds) if self._answer is not None else 0
        self.changed.emit()

    @property
    def sums(self) -> Sums:
        """The sums so far."""
        answer = self._answer
        if answer is None or answer.header is None or not self._last.rounds:
            return self._ended
        return Sums(
            Statistics.pooled([self._ended.statistics, self._last]), (*self._ended.headers, answer.header)
        )

    def _begin(self) -> None:
        assert self._answer is not None
        self._folded = self._since = len(self._answer.rounds)

    def _end(self) -> None:
        assert self._answer is not None
        if self._answer.totals is not None and self._last.rounds and not self._since:
            self._last.end_whole(self._answer.totals)
            self.changed.emit()

    def _grow(self, _first: int, last: int) -> None:
        assert self._answer is not None
        for round in self._answer.rounds[self._folded : last + 1]:
            self._last.add(round)
        self._folded = last + 1
        self.changed.emit()


SCOPES = ("This answer", "This chat", "Since Reset")
WIDTH = 620  # pixels at text scale 1
_LINES = 8


def _answers(sums: Sums) -> str:
    return f"{count(len(sums.headers))}{f', {sums.warm} warm' if sums.warm else ''}"


def _part(part: int, whole: int) -> str:
    """A part as counts and as a rate."""
    return f"{count(part)} / {count(whole)} · {percent(part / whole)}" if whole else NONE


def _told(sums: Sums, words: str) -> str:
    """Returns the words, if every server reported what happened to its drafts; only then they are true."""
    return NONE if sums.statistics.untold else words


ROWS: tuple[tuple[str, str, Callable[[Sums], str]], ...] = (
    ("answers", definitions.WARM, _answers),
    ("rounds", "Each is one pass of the target.", lambda sums: _told(sums, count(sums.statistics.rounds))),
    ("tokens", "Emitted tokens.", lambda sums: count(sums.statistics.emitted)),
    (
        "accepted / drafted",
        definitions.ACCEPTANCE_RATE,
        lambda sums: _told(sums, _part(sums.statistics.accepted, sums.statistics.drafted)),
    ),
    (
        "accepted / emitted",
        definitions.DRAFT_SHARE,
        lambda sums: _told(sums, _part(sums.statistics.accepted, sums.statistics.emitted)),
    ),
    ("α (of judged tokens)", definitions.ALPHA, lambda sums: significant(sums.statistics.alpha)),
    ("τ", definitions.TAU, lambda sums: significant(sums.statistics.tau)),
    (
        "tokens per pass",
        definitions.TOKENS_PER_PASS,
        lambda sums: significant(sums.statistics.tokens_per_pass),
    ),
    ("tokens/s", definitions.TOKENS_PER_SECOND, lambda sums: significant(sums.statistics.tokens_per_second)),
)


class SumsPanel(QWidget):
    """Shows three sums side by side; the buttons copy them, and reset the third."""

    reset_requested = Signal(bool)
    """Reset the sums; if True, strategies also forget what they have learned."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._sums: tuple[Sums, ...] = tuple(Sums() for _ in SCOPES)
        self._cells: list[tuple[QLabel, ...]] = []
        grid = kit.grid((16, 4))
        for column, scope in enumerate(SCOPES, 1):
            grid.addWidget(kit.label(scope, "strong"), 0, column, Qt.AlignmentFlag.AlignRight)
            grid.setColumnStretch(column, 1)
        for row, (name, definition, _) in enumerate(ROWS, 1):
            grid.addWidget(kit.label(name, "secondary", tip=definition), row, 0)
            cells = tuple(kit.label(plain=True) for _ in SCOPES)
            for column, cell in enumerate(cells, 1):
                grid.addWidget(cell, row, column, Qt.AlignmentFlag.AlignRight)
            self._cells.append(cells)
        self.scopes = Segmented(theme, "Lines of", SCOPES)
        self.scopes.picked.connect(self._show_lines)
        self.lines = QPlainTextEdit(readOnly=True)
        self.lines.setProperty("kind", "list")
        self.lines.setTabChangesFocus(True)
        self.lines.setAccessibleName("llama.cpp's statistics")
        self.copy = kit.button("Copy", self._copy, tip="Copy the table and the lines below it")
        self.forget = QCheckBox("Also reset what strategies have learned")
        self.forget.setToolTip("Clears smoothed acceptance, n-gram pools and the memory of earlier answers")
        self.reset = kit.button("Reset", self._reset, tip="Restart “Since Reset” with the next round")
        above = kit.row(kit.label("llama.cpp's statistics", "strong"), kit.Spring(1), self.scopes)
        below = kit.row(self.reset, self.forget, kit.Spring(1), self.copy)
        kit.column(grid, above, self.lines, below, spacing=10, on=self)
        theme.follow(self._fit)

    def show_sums(self, sums: Sequence[Sums]) -> None:
        """Show the sums of SCOPES."""
        self._sums = tuple(sums)
        for (name, _, words), cells in zip(ROWS, self._cells, strict=True):
            for scope, each, cell in zip(SCOPES, self._sums, cells, strict=True):
                cell.setText(words(each))
                cell.setAccessibleName(f"{scope}, {name}: {words(each)}")
        self._show_lines()

    def text(self) -> str:
        """The table, separated by tabs, and the lines shown."""
        rows = [("", *SCOPES), *((name, *map(words, self._sums)) for name, _, words in ROWS)]
        table = ["\t".join(row) for row in rows]
        return "\n".join([*table, "", f"{self.scopes.choice()}:", self.lines.toPlainText()])

    def _show_lines(self) -> None:
        lines = "\n".join(self._sums[SCOPES.index(self.scopes.choice())].lines())
        if lines != self.lines.toPlainText():
            self.lines.setPlainText(lines or "Nothing was drafted.")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text())

    def _reset(self) -> None:
        self.reset_requested.emit(self.forget.isChecked())

    def _fit(self) -> None:
        font = self._theme.mono(-1)
        self.lines.document().setDefaultFont(font)  # the widget's own is that of the style sheet
        self.lines.setFixedHeight(round(_LINES * QFontMetricsF(font).lineSpacing()))
