"""A rule of the whole run: its choices side by side, and what the chosen one means."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets.fields.one_of import OneOf
from app.ui.widgets.fields.segmented import Segmented

IDLE = "No effect: strategy none drafts nothing."


class RuleChoice(QWidget):
    """A heading, the choices, and a text on the chosen one, in the room that the longest text takes."""

    picked = Signal(str)
    """The user chose a different one."""

    def __init__(
        self, theme: Theme, name: str, words: Mapping[str, str], parent: QWidget | None = None
    ) -> None:
        """`words` has the text on each choice."""
        super().__init__(parent)
        self._idle = False
        self._heading = QLabel(name)
        self._heading.setProperty("role", "strong")
        self.choices = Segmented(theme, name, list(words))
        self.choices.picked.connect(self._picked)
        self._words = {choice: _caption(meaning, self) for choice, meaning in words.items()}
        self._no_effect = _caption(IDLE, self)
        self._shown = OneOf()
        for label in (*self._words.values(), self._no_effect):
            self._shown.addWidget(label)
        row = QHBoxLayout()
        row.addWidget(self.choices)
        row.addStretch()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(self._heading)
        layout.addLayout(row)
        layout.addLayout(self._shown)
        self._explain()

    def set_choice(self, choice: str) -> None:
        """Show a choice, without emitting a signal."""
        self.choices.set_choice(choice)
        self._explain()

    def set_idle(self, idle: bool) -> None:
        """Dim it where the rule has no effect; it can still be chosen."""
        self._idle = idle
        self.choices.set_dim(idle)
        set_role(self._heading, role="secondary" if idle else "strong")
        self._explain()

    @Slot(str)
    def _picked(self, choice: str) -> None:
        self._explain()
        self.picked.emit(choice)

    def _explain(self) -> None:
        label = self._no_effect if self._idle else self._words[self.choices.choice()]
        self._shown.setCurrentWidget(label)
        self.choices.setAccessibleDescription(label.text())


def _caption(text: str, parent: QWidget) -> QLabel:
    made = QLabel(text, parent)
    made.setProperty("role", "caption")
    made.setWordWrap(True)
    made.setAlignment(Qt.AlignmentFlag.AlignTop)
    return made
