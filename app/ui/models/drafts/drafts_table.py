"""The drafts of a target as a table: the best first, each with a button that uses it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QModelIndex, Qt, Signal, Slot
from PySide6.QtGui import QColor, QResizeEvent
from PySide6.QtWidgets import QHeaderView, QPushButton, QTableWidgetItem, QWidget

from app.lab.drafts.columns import DRAFT_COLUMNS, MEASURED_COLUMNS, SIZE_COLUMNS
from app.lab.drafts.trials import DraftScore
from app.ui.theme import Theme
from app.ui.widgets.data.quiet_table import add_action, alignment
from app.ui.widgets.data.text_table import TextTable
from app.ui.widgets.text.tips import as_text

TITLES = ("draft", *(column.title for column in DRAFT_COLUMNS), "")
USE_WORDS = "Use this draft"
FIRST_MEASURED, USE = 1 + len(SIZE_COLUMNS), len(TITLES) - 1
NAME_WIDTH = 170  # pixels at text scale 1, at least
GAP = 20  # pixels between columns, at text scale 1


@dataclass(frozen=True, slots=True)
class DraftLine:
    """A row: a file, what is known of it, and a sentence where it has no numbers."""

    path: str
    name: str
    score: DraftScore  # without numbers where it was not measured
    words: str = ""  # in place of the numbers: why there are none, or what is done now

    @property
    def is_problem(self) -> bool:
        return bool(self.score.problem) and self.words == self.score.problem

    @property
    def cells(self) -> tuple[str, ...]:
        """The texts of the row, without the button."""
        if self.words:
            sizes = [column.text(self.score) for column in SIZE_COLUMNS]
            return (self.name, *sizes, self.words, *([""] * (len(MEASURED_COLUMNS) - 1)))
        return (self.name, *(column.text(self.score) for column in DRAFT_COLUMNS))


class DraftsTable(TextTable):
    """The rows. Enter on a row, or its button, uses the draft."""

    use_wanted = Signal(str)
    """Use the draft of this path."""

    def __init__(self, theme: Theme) -> None:
        super().__init__(
            theme, "Drafts, the largest predicted speed-up first; Enter uses one in the chat", TITLES
        )
        self.lines: tuple[DraftLine, ...] = ()
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.explain(("The name in the file", *(column.definition for column in DRAFT_COLUMNS)))
        self.activated.connect(self._use_row)
        add_action(self, "Use this draft", lambda: self._use_row(self.currentIndex()))
        self.restyle()

    def set_lines(self, lines: Sequence[DraftLine]) -> None:
        """Show these rows; the selected draft stays selected."""
        if tuple(lines) == self.lines:
            return
        current = self.currentRow()
        chosen = self.lines[current].path if 0 <= current < len(self.lines) else ""
        self.lines = tuple(lines)
        self.fill()
        paths = [line.path for line in lines]
        if chosen in paths and paths.index(chosen) != current:
            self.selectRow(paths.index(chosen))

    def texts(self) -> Sequence[Sequence[str]]:
        return [line.cells for line in self.lines]

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def fill(self) -> None:
        self.clearSpans()
        self.setRowCount(len(self.lines))
        colours = self._theme.palette
        for row, line in enumerate(self.lines):
            for column, text in enumerate(line.cells):
                item = self.item(row, column) or QTableWidgetItem()
                item.setText(text)
                sentence = bool(line.words) and column == FIRST_MEASURED
                item.setTextAlignment(alignment(right=column > 0 and not sentence))
                quiet = bool(line.words) or column in range(1, FIRST_MEASURED)
                colour = colours.secondary if quiet and column else colours.text
                item.setForeground(QColor(colours.error if sentence and line.is_problem else colour))
                tip = line.path if not column else line.words if sentence else ""
                item.setToolTip(as_text(tip) if tip else "")
                if self.item(row, column) is None:
                    self.setItem(row, column, item)
            if line.words:
                self.setSpan(row, FIRST_MEASURED, 1, len(MEASURED_COLUMNS))
            self._button(row).setAccessibleName(f"Use {line.name} as the draft")
        self._fit()

    def _button(self, row: int) -> QWidget:
        """The button of a row; it stays while rows change."""
        if (there := self.cellWidget(row, USE)) is not None:
            return there
        button = QPushButton(USE_WORDS)
        button.setProperty("kind", "flat")
        button.setToolTip("Load it into the chat, with this target")
        button.clicked.connect(lambda: self.use_wanted.emit(self.lines[row].path))
        self.setCellWidget(row, USE, button)
        return button

    @Slot(QModelIndex)
    def _use_row(self, index: QModelIndex) -> None:
        if index.isValid():
            self.use_wanted.emit(self.lines[index.row()].path)

    def _fit(self) -> None:
        """Make the numbers as narrow as they are; the names take the rest."""
        gap, least = round(GAP * self._theme.scale), round(NAME_WIDTH * self._theme.scale)
        metrics, head = self.fontMetrics(), self.horizontalHeader().fontMetrics()
        widths = [0] * len(TITLES)
        for column in range(1, USE):
            measured = column >= FIRST_MEASURED
            texts = [line.cells[column] for line in self.lines if not (measured and line.words)]
            widest = max(map(metrics.horizontalAdvance, texts), default=0)
            widths[column] = max(widest, head.horizontalAdvance(TITLES[column])) + gap
        widths[USE] = metrics.horizontalAdvance(USE_WORDS) + 2 * gap
        room = self.viewport().width() - sum(widths)
        sizes = room < least  # the sizes give way to the numbers
        for column in range(1, FIRST_MEASURED):
            self.setColumnHidden(column, sizes)
            room += widths[column] if sizes else 0
        for column in range(1, len(TITLES)):
            self.setColumnWidth(column, widths[column])
        longest = max((metrics.horizontalAdvance(line.name) for line in self.lines), default=0) + gap
        self.setColumnWidth(0, max(least, min(room, max(longest, 2 * least))))
