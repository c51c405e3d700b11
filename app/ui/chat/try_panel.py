"""The panel of prompts to try: each shows something different of the bundled pair."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QVBoxLayout, QWidget

from app.base.paths import BUNDLED_DRAFT
from app.demo import DemoPrompt
from app.engine.types import Sampling
from app.ui.setup.sampling_panel import chip_words
from app.ui.theme import Theme
from app.ui.widgets.fields.grid_keys import Grid, GridKeys
from app.ui.widgets.fields.two_line_button import TwoLineButton
from app.ui.widgets.notice import Notice
from app.ui.widgets.text.tips import as_text

WIDTH = 720  # of the panel's popover
_TWO_COLUMNS = 560  # at text scale 1


def manner_words(demo: DemoPrompt) -> str:
    """How a prompt is asked: "draft-simple:n_max=4 · greedy"."""
    words = [str(demo.spec), *filter(None, chip_words(demo.sampling(Sampling())))]
    if demo.spec.needs_draft and demo.draft_path != BUNDLED_DRAFT:
        words.append(demo.draft.removesuffix(".gguf"))
    if demo.mode == "completion":
        words.append("completion")
    return " · ".join(words)


class TryPanel(QWidget):
    """Shows the prompts and emits a signal for the chosen one."""

    chosen = Signal(str)
    """The title of the prompt."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.rows: dict[str, TwoLineButton] = {}  # by title
        self._keys = GridKeys(self, self._rows_shown)
        title = QLabel("Try this")
        title.setProperty("role", "title")
        help_line = QLabel(
            "Each starts a new chat with the strategy and the sampling below its title. With the bundled"
            " pair, which they were made for, it says what to look for."
        )
        help_line.setProperty("role", "caption")
        help_line.setWordWrap(True)
        self.notice = Notice(theme)
        holder = QWidget()
        self._grid = QGridLayout(holder)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(title)
        layout.addWidget(help_line)
        layout.addWidget(self.notice)
        layout.addWidget(holder)

    def set_prompts(self, prompts: Sequence[DemoPrompt]) -> None:
        """The prompts to choose from; called once."""
        for demo in prompts:
            row = TwoLineButton(self._theme, demo.title, manner_words(demo), self)
            row.setToolTip(as_text(f"Ask:\n{demo.prompt}"))
            row.clicked.connect(lambda _checked=False, title=demo.title: self.chosen.emit(title))
            self._keys.watch(row)
            self.rows[demo.title] = row
        self._lay_out()

    def set_current(self, title: str) -> None:
        """Mark the prompt that the chat on the screen asks; "" for none."""
        for key, row in self.rows.items():
            row.set_current(key == title)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _rows_shown(self) -> Grid:
        """The visible rows, beside each other where there is room, ordered row by row."""
        columns = 2 if self.width() >= round(_TWO_COLUMNS * self._theme.scale) else 1
        rows = list(self.rows.values())
        return [rows[at : at + columns] for at in range(0, len(rows), columns)]

    def _lay_out(self) -> None:
        grid = self._rows_shown()
        for column in range(2):
            self._grid.setColumnStretch(column, int(column < max(map(len, grid), default=0)))
        for y, row in enumerate(grid):
            for x, button in enumerate(row):
                self._grid.addWidget(button, y, x)
