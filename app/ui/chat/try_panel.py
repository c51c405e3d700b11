"""The panel of prompts to try: each shows something different of the model that it was written for."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET
from app.demo import TARGETS, DemoPrompt
from app.engine.types import Sampling
from app.ui.setup.sampling_panel import chip_words
from app.ui.theme import Theme
from app.ui.widgets.fields.grid_keys import Grid, GridKeys
from app.ui.widgets.fields.segmented import Segmented
from app.ui.widgets.fields.two_line_button import TwoLineButton
from app.ui.widgets.notice import Notice
from app.ui.widgets.text.tips import as_text

WIDTH = 720  # of the panel's popover
_TWO_COLUMNS = 560  # at text scale 1


def manner_words(demo: DemoPrompt) -> str:
    """How a prompt is asked: "draft-simple:n_max=4 · greedy"."""
    words = [str(demo.spec), *filter(None, chip_words(demo.sampling(Sampling())))]
    if demo.spec.needs_draft and demo.target != BUNDLED_TARGET:
        words.append("draft of the small pair")
    elif demo.spec.needs_draft and demo.draft_path != BUNDLED_DRAFT:
        words.append(demo.draft.removesuffix(".gguf"))
    if demo.mode == "completion":
        words.append("completion")
    return " · ".join(words)


def name_in_text(name: str) -> str:
    """A model's name within a sentence: SmolLM2, the small pair."""
    return name if name[0].isupper() else f"the {name}"


class TryPanel(QWidget):
    """Shows the prompts and emits a signal for the chosen one."""

    chosen = Signal(str)
    """The title of the prompt."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.rows: dict[str, TwoLineButton] = {}  # by title
        self._keys = GridKeys(self, self._rows_shown)
        self._targets: dict[str, str] = {}  # title of a prompt -> the path of its target
        self._loaded = ""  # the path of the target in use
        title = QLabel("Try this")
        title.setProperty("role", "title")
        self.model = Segmented(theme, "Prompts for", tuple(TARGETS.values()))
        self.model.picked.connect(self._show_group)
        self._help = QLabel()
        self._help.setProperty("role", "caption")
        self._help.setWordWrap(True)
        self.notice = Notice(theme)
        self._holder = QWidget()
        self._grid = QGridLayout(self._holder)
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setSpacing(2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        head = QHBoxLayout()
        head.addWidget(title, 1)
        head.addWidget(self.model)
        layout.addLayout(head)
        layout.addWidget(self._help)
        layout.addWidget(self.notice)
        layout.addWidget(self._holder)

    def set_prompts(self, prompts: Sequence[DemoPrompt]) -> None:
        """The prompts to choose from; called once."""
        for demo in prompts:
            row = TwoLineButton(self._theme, demo.title, manner_words(demo), self._holder)
            row.setToolTip(as_text(f"Ask:\n{demo.prompt}"))
            row.clicked.connect(lambda _checked=False, title=demo.title: self.chosen.emit(title))
            self._keys.watch(row)
            self.rows[demo.title] = row
            self._targets[demo.title] = demo.target
        self.model.setVisible(len(set(self._targets.values())) > 1)

    def set_loaded(self, target: str) -> None:
        """Show the prompts of the target in use, or of another target, those of the first one."""
        if target != self._loaded:
            self._loaded = target
            known = [path for path in TARGETS if path in self._targets.values()]
            if known:
                self.model.set_choice(TARGETS[target if target in known else known[0]])
        self._show_group()

    @Slot()
    def _show_group(self) -> None:
        name = self.model.choice()
        self._help.setText(
            "Each starts a new chat with its own settings, and says what to look for. Your settings come back"
            " when you leave that chat."
            if TARGETS.get(self._loaded) == name
            else f"Written for {name_in_text(name)}, which is loaded when you choose one. Your models and"
            " settings come back when you leave that chat."
        )
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
        shown = self.model.choice()
        rows = [row for title, row in self.rows.items() if TARGETS[self._targets[title]] == shown]
        return [rows[at : at + columns] for at in range(0, len(rows), columns)]

    def _lay_out(self) -> None:
        grid = self._rows_shown()
        shown = [button for line in grid for button in line]
        for row in self.rows.values():
            self._grid.removeWidget(row)
            row.setVisible(row in shown)
        for column in range(2):
            self._grid.setColumnStretch(column, int(column < max(map(len, grid), default=0)))
        for y, line in enumerate(grid):
            for x, button in enumerate(line):
                self._grid.addWidget(button, y, x)
