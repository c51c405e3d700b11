"""Memory by device: what a pair would take, or took, against what is free."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from app.engine.devices.memory import PairMemory
from app.ui.pair.memory.lighter_offers import LighterOffers
from app.ui.pair.memory.memory_bar import MemoryBar, shade
from app.ui.pair.memory.memory_rows import HEADINGS, KINDS, MemoryRow, advice, memory_rows
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets.text.tips import as_text
from app.ui.widgets.words.numbers import file_size

EXPECTED = "Memory that Apply would take"
MEASURING = "Memory: measuring…"
TAKEN = "Memory taken, as llama.cpp reports it"
MAPPED = "is mapped from the file: the system frees it when other programs need the memory."
REPACKED = "is a copy of weights in the order in which this processor multiplies fastest (repack)."
_NONE = "–"
LAYERS = "Layers, with the output layer, as llama.cpp counts them"
_COLUMNS = 6  # role, layers, weights, KV cache, compute, sum

Files = tuple[str, str]
"""Paths of the target and of the draft, "" for no draft."""


class MemoryView(QWidget):
    """A bar with its numbers for every device that is used."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.memory: PairMemory | None = None
        self._files: Files = ("", "")  # the files that the numbers are for
        self._known = False
        self._table: QWidget | None = None
        self._title = QLabel(EXPECTED)
        self._title.setProperty("role", "strong")
        self._state = QLabel()
        self._state.setWordWrap(True)
        self._state.setTextFormat(Qt.TextFormat.PlainText)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(4)
        layout.addWidget(self._title)
        layout.addWidget(self._state)
        self.lighter = LighterOffers()
        layout.addWidget(self.lighter)
        theme.changed.connect(self._show)
        self.say("Not measured yet.")

    def show_memory(self, memory: PairMemory, taken: bool, files: Files) -> None:
        """Show what a pair would take, or (`taken`) what llama.cpp says that it took."""
        self.memory, self._files, self._known = memory, files, True
        self._title.setText(TAKEN if taken else EXPECTED)
        self.lighter.show_pairs(())
        self._show()

    def wait(self, files: Files) -> None:
        """Show that a pair is being measured. Numbers of the same files under other settings stay until then,
        those of other files do not; the table stays where it is."""
        self._title.setText(MEASURING)
        self.lighter.show_pairs(())
        if self.memory is None:
            self._tell("", error=False)
        if files != self._files:
            self._files, self._known = files, False
            self._show()

    def say(self, words: str, error: bool = False) -> None:
        """Show a sentence instead of numbers, which would be misleading under other settings."""
        self.memory, self._files = None, ("", "")
        self.lighter.show_pairs(())
        self._title.setText(EXPECTED)
        self._clear()
        self._tell(words, error)

    def _tell(self, words: str, error: bool) -> None:
        self._state.setText(words)
        self._state.setVisible(bool(words))
        set_role(self._state, role="error" if error else "caption")

    def _clear(self) -> None:
        if self._table is not None:
            self._table.hide()
            self._table.deleteLater()
            self._table = None

    @Slot()
    def _show(self) -> None:
        memory = self.memory
        if memory is None:
            return
        self._clear()
        rows = memory_rows(memory)
        self._table = self._build(rows)
        column = self.layout()
        assert isinstance(column, QVBoxLayout)
        column.insertWidget(1, self._table)
        self._tell(advice(rows) if self._known else "", error=True)

    def _build(self, rows: tuple[MemoryRow, ...]) -> QWidget:
        table = QWidget()
        grid = QGridLayout(table)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(2)
        for column in range(2, _COLUMNS):
            grid.setColumnStretch(column, 1)
        at = 0
        for number, row in enumerate(rows):
            name = QLabel(row.name)
            name.setTextFormat(Qt.TextFormat.PlainText)
            name.setToolTip(as_text(row.device.description))
            words = QLabel(row.sentence if self._known else "")
            words.setProperty("role", "error" if row.excess else "caption")
            grid.addWidget(name, at, 0, 1, 2)
            grid.addWidget(words, at, 2, 1, _COLUMNS - 2, Qt.AlignmentFlag.AlignRight)
            bar = MemoryBar(self._theme, row if self._known else MemoryRow(row.device, ()))
            grid.addWidget(bar, at + 1, 0, 1, _COLUMNS)
            at += 2
            if number == 0:
                self._add_headings(grid, at)
                at += 1
            for role, memory in row.models:
                words_of = [role, str(memory.layers) if memory.layers else _NONE]
                words_of += [
                    file_size(size) if size else _NONE for size in (getattr(memory, k) for k in KINDS)
                ]
                words_of.append(file_size(memory.total))
                if not self._known:
                    words_of[1:] = [_NONE] * (_COLUMNS - 1)
                for column, text in enumerate(words_of):
                    cell = _cell(text)
                    if column == 2 and self._known:
                        parts = ((memory.mapped, MAPPED), (memory.repacked, REPACKED))
                        told = (f"{file_size(size)} of it {words}" for size, words in parts if size)
                        cell.setToolTip("\n".join(told))
                    grid.addWidget(cell, at, column, _side(column))
                at += 1
            grid.setRowMinimumHeight(at, 6)
            at += 1
        return table

    def _add_headings(self, grid: QGridLayout, at: int) -> None:
        headings = ["", "layers", *(self._swatch(kind) for kind in KINDS), "in all"]
        for column, text in enumerate(headings):
            heading = _cell(text)
            heading.setToolTip(LAYERS if text == "layers" else "")
            grid.addWidget(heading, at, column, _side(column))

    def _swatch(self, kind: str) -> str:
        return f'<span style="color:{shade(self._theme.palette, kind)}">■</span> {HEADINGS[kind]}'


def _cell(text: str) -> QLabel:
    made = QLabel(text)
    made.setProperty("role", "caption")
    return made


def _side(column: int) -> Qt.AlignmentFlag:
    return Qt.AlignmentFlag.AlignRight if column else Qt.AlignmentFlag.AlignLeft
