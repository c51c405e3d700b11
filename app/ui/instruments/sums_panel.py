"""Sums over this answer, this chat and all since the last reset: a table, and llama.cpp's lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QFontMetricsF, QGuiApplication
from PySide6.QtWidgets import (
    QCheckBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QWidget,
)

from app.ui.instruments import definitions
from app.ui.state.sums import Sums
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.fields.segmented import Segmented
from app.ui.widgets.words.numbers import NONE, count, percent, significant

SCOPES = ("This answer", "This chat", "Since Reset")
WIDTH = 620  # pixels at text scale 1
_LINES = 8


def _answers(sums: Sums) -> str:
    return f"{count(len(sums.headers))}{f', {sums.warm} warm' if sums.warm else ''}"


def _part(part: int, whole: int) -> str:
    """A part as counts and as a rate."""
    return f"{count(part)} / {count(whole)} · {percent(part / whole)}" if whole else NONE


def _told(sums: Sums, words: str) -> str:
    """Words that are only true where every server told what became of its drafts."""
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
    ("judged α", definitions.ALPHA, lambda sums: significant(sums.statistics.alpha)),
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
    """Reset the sums; with True, strategies are to forget what they have learned as well."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._sums: tuple[Sums, ...] = tuple(Sums() for _ in SCOPES)
        self._cells: list[tuple[QLabel, ...]] = []
        grid = QGridLayout()
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(4)
        for column, scope in enumerate(SCOPES, 1):
            grid.addWidget(_label(scope, "strong"), 0, column, Qt.AlignmentFlag.AlignRight)
            grid.setColumnStretch(column, 1)
        for row, (name, definition, _) in enumerate(ROWS, 1):
            title = _label(name, "secondary")
            title.setToolTip(definition)
            grid.addWidget(title, row, 0)
            cells = tuple(_label("", "") for _ in SCOPES)
            for column, cell in enumerate(cells, 1):
                grid.addWidget(cell, row, column, Qt.AlignmentFlag.AlignRight)
            self._cells.append(cells)
        self.scopes = Segmented(theme, "Lines of", SCOPES)
        self.scopes.picked.connect(self._show_lines)
        self.lines = QPlainTextEdit(readOnly=True)
        self.lines.setProperty("kind", "list")
        self.lines.setTabChangesFocus(True)
        self.lines.setAccessibleName("llama.cpp's statistics")
        self.copy = kit.button("Copy", self._copy, tip="Copy the table and the lines shown")
        self.forget = QCheckBox("Forget what strategies have learned as well")
        self.forget.setToolTip("Smoothed acceptance, pools of n-grams, and the memory of earlier answers")
        self.reset = kit.button("Reset", self._reset, tip="Let “Since Reset” begin with the next round")
        above, below = QHBoxLayout(), QHBoxLayout()
        above.addWidget(_label("In llama.cpp's words", "strong"))
        above.addStretch(1)
        above.addWidget(self.scopes)
        for widget in (self.reset, self.forget):
            below.addWidget(widget)
        below.addStretch(1)
        below.addWidget(self.copy)
        kit.column(grid, above, self.lines, below, spacing=10, on=self)
        theme.changed.connect(self._fit)
        self._fit()

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

    @Slot()
    def _show_lines(self) -> None:
        lines = "\n".join(self._sums[SCOPES.index(self.scopes.choice())].lines())
        if lines != self.lines.toPlainText():
            self.lines.setPlainText(lines or "Nothing was drafted.")

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.text())

    @Slot()
    def _reset(self) -> None:
        self.reset_requested.emit(self.forget.isChecked())

    @Slot()
    def _fit(self) -> None:
        font = self._theme.mono(-1)
        self.lines.document().setDefaultFont(font)  # the widget's own is that of the style sheet
        self.lines.setFixedHeight(round(_LINES * QFontMetricsF(font).lineSpacing()))


def _label(text: str, role: str) -> QLabel:
    label = kit.label(text, role, plain=True)
    return label
