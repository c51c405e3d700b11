"""Tables of texts that fit into a narrow window: their titles and texts take more lines there."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QHeaderView
from typing_extensions import override

from app.ui.theme import Theme
from app.ui.widgets.labels import NBSP
from app.ui.widgets.tables import TextTable, two_lines

_AROUND = 16  # pixels at the left and right of a text, together
_GAP = 2  # more between columns
_HIGHEST = 10_000  # pixels of a row
_BREAK = "\N{ZERO WIDTH SPACE}"


def breakable(text: str) -> str:
    """The text, in which a line can end only after ":" and "+", and before and after brackets."""
    text = text.replace(" ", NBSP).replace("-", "-\N{WORD JOINER}")
    text = re.sub(r"(?<=[:+])(?=\S)", _BREAK, text)
    return re.sub(rf"(?<=[:+)]){NBSP}|{NBSP}(?=\()", " ", text)


class LineTable(TextTable[Sequence[str]]):
    """A table whose rows are only texts; the first two name the subject of a row."""

    def __init__(self, theme: Theme, name: str, titles: Sequence[str], left: Collection[int] = (0,)) -> None:
        super().__init__(theme, name, titles, left=left)
        self.setHorizontalHeaderLabels([*map(two_lines, titles)])
        self.setWordWrap(True)
        self.horizontalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.restyle()

    def cells(self, row: Sequence[str]) -> Sequence[str]:
        return row

    @override
    def identity(self, row: Sequence[str]) -> object:
        return tuple(row[:2])

    def shown(self, at: int, column: int) -> str:
        """The text of a cell, with the places where a line can end."""
        return breakable(self.rows[at][column])

    def fill(self) -> None:
        super().fill()
        for at, column in self._cells():
            self.model().setData(self.model().index(at, column), self.shown(at, column))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _cells(self) -> list[tuple[int, int]]:
        return [(at, column) for at in range(self.rowCount()) for column in range(self.columnCount())]

    def _fit(self) -> None:
        """Give columns the width of their texts; if the table is too narrow, texts take several lines."""
        theme, titles = self._theme, QFontMetrics(self._theme.sans(-1))
        metrics = [QFontMetrics(theme.mono(-0.5)), *[QFontMetrics(theme.sans())] * (len(self._titles) - 1)]
        lines = [two_lines(title).split("\n") for title in self._titles]
        least = [max(map(titles.horizontalAdvance, each)) for each in lines]
        whole = [*least]
        for at, column in self._cells():
            if self.columnSpan(at, column) > 1:
                continue
            text, wide = self.shown(at, column), metrics[column].horizontalAdvance
            whole[column] = max(whole[column], wide(text))
            least[column] = max(least[column], *map(wide, re.split(f"[ {_BREAK}]", text)))
        spare = self.viewport().width() - sum(least) - (_AROUND + _GAP) * len(least)
        for column in sorted(range(len(least)), key=lambda column: whole[column] - least[column]):
            more = max(0, min(whole[column] - least[column], spare))
            spare -= more
            self.setColumnWidth(column, least[column] + more + _AROUND + _GAP)
        for at in range(self.rowCount()):
            height = self.verticalHeader().defaultSectionSize()
            for column, measured in enumerate(metrics):
                across = range(column, column + self.columnSpan(at, column))
                place = QRect(0, 0, sum(map(self.columnWidth, across)) - _AROUND, _HIGHEST)
                box = measured.boundingRect(place, Qt.TextFlag.TextWordWrap, self.shown(at, column))
                height = max(height, box.height() + round(8 * theme.scale))
            self.setRowHeight(at, height)
