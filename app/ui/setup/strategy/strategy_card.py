"""One chosen strategy: what it is, its settings, and its place among the others."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.engine.drafters.registry import StrategyKind
from app.engine.params import params_of
from app.engine.strategy import NONE, StrategyPart
from app.ui.setup.strategy.strategy_picker import StrategyPicker
from app.ui.theme import Theme
from app.ui.widgets.fields.form import ParamForm
from app.ui.widgets.icons import IconButton
from app.ui.widgets.words.numbers import file_size

NONE_SUMMARY = "The target alone, one token per pass. Speed-ups are measured against it."


class StrategyCard(QFrame):
    """A picker, the generated form of the strategy's settings, and buttons to move or remove it.

    It keeps its settings while it is hidden, so that a strategy picked again has them.
    """

    edited = Signal()
    """A setting was edited; its value may be wrong."""
    pick_wanted = Signal()
    moved = Signal(int)
    """Up is -1, down is 1."""
    removed = Signal()

    def __init__(self, theme: Theme, kind: StrategyKind | None, parent: QWidget | None = None) -> None:
        """None stands for strategy none, which has no settings and cannot be removed."""
        super().__init__(parent)
        self.kind = kind
        self.name = NONE if kind is None else kind.name
        self._shown: Any = None  # the parameters that the form showed last
        self.setProperty("kind", "card")
        self.picker = StrategyPicker(theme, self.name, NONE_SUMMARY if kind is None else kind.summary)
        self.picker.clicked.connect(self.pick_wanted)
        self.up = IconButton(theme, "arrow-up", f"Ask {self.name} earlier")
        self.down = IconButton(theme, "arrow-down", f"Ask {self.name} later")
        self.remove = IconButton(theme, "close", f"Remove {self.name}")
        self.up.clicked.connect(lambda: self.moved.emit(-1))
        self.down.clicked.connect(lambda: self.moved.emit(1))
        self.remove.clicked.connect(self.removed)
        head = QHBoxLayout()
        head.setSpacing(2)
        head.addWidget(self.picker, 1)
        for button in (self.up, self.down, self.remove):
            head.addWidget(button, 0, Qt.AlignmentFlag.AlignTop)
        if kind is None:
            self.remove.hide()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, 4, 4, 4)
        layout.setSpacing(6)
        layout.addLayout(head)
        self.form: ParamForm | None = None
        if kind is not None and any(params_of(kind.params)):
            self.form = ParamForm(theme, kind.params)
            self.form.changed.connect(self.edited)
            self.form.setContentsMargins(8, 0, 8, 4)
            layout.addWidget(self.form)
            self.form.changed.connect(self._show_memory)
        self._n_ctx = 0
        self.memory = QLabel()
        self.memory.setProperty("role", "caption")
        self.memory.setIndent(8)  # in line with the form: the style sheet overrides margins
        self.memory.setContentsMargins(0, 0, 0, 4)
        layout.addWidget(self.memory)
        self._show_memory()

    def set_context(self, n_ctx: int) -> None:
        """Set the size of the context in tokens, 0 where it is not known."""
        self._n_ctx = n_ctx
        self._show_memory()

    @Slot()
    def _show_memory(self) -> None:
        """Say what the strategy keeps with the settings shown."""
        most = self.kind.memory_at(self.part().params, self._n_ctx) if self.kind is not None else 0
        self.memory.setText(f"Keeps up to {file_size(most)} of main memory with these settings.")
        self.memory.setVisible(most > 0)

    def valid(self) -> bool:
        """Whether the settings go together."""
        return self.form is None or self.form.valid()

    def part(self) -> StrategyPart:
        """The strategy with its settings; with the defaults where the settings in the form do not go
        together."""
        assert self.kind is not None
        if self.form is None or not self.form.valid():
            return StrategyPart(self.name, self.kind.params())
        return StrategyPart(self.name, self.form.value())

    def show_params(self, params: Any) -> None:
        """Show these settings in the form, unless they are the ones shown last."""
        if self.form is None or params == self._shown:
            return
        self._shown = params
        # Text that the user just typed stays as it is, also where it is wrong.
        if not self.form.valid() or self.form.value() != params:
            self.form.set_value(params)
        self._show_memory()

    def show_moves(self, up: bool, down: bool) -> None:
        """Enable the moves that are possible; where none is, the buttons are hidden."""
        for button, possible in ((self.up, up), (self.down, down)):
            button.setVisible(up or down)
            button.setEnabled(possible)
