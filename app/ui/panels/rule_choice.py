"""A rule of the whole run: a few words side by side, and what the chosen one means."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.ui.panels.segmented import Segmented
from app.ui.theme import Theme


class RuleChoice(QWidget):
    """A heading, the choices, and a line of words on the one in use."""

    picked = Signal(str)
    """The user chose another one."""

    def __init__(
        self, theme: Theme, name: str, words: Mapping[str, str], parent: QWidget | None = None
    ) -> None:
        """`words` says for every choice what it means."""
        super().__init__(parent)
        self._meanings = words
        heading = QLabel(name)
        heading.setProperty("role", "strong")
        self.choices = Segmented(theme, name, list(words))
        self.choices.picked.connect(self._picked)
        self._words = QLabel()
        self._words.setProperty("role", "caption")
        self._words.setWordWrap(True)
        row = QHBoxLayout()
        row.addWidget(self.choices)
        row.addStretch()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(heading)
        layout.addLayout(row)
        layout.addWidget(self._words)
        self._explain()

    def set_choice(self, choice: str) -> None:
        """Show a choice, without telling anyone."""
        self.choices.set_choice(choice)
        self._explain()

    @Slot(str)
    def _picked(self, choice: str) -> None:
        self._explain()
        self.picked.emit(choice)

    def _explain(self) -> None:
        meaning = self._meanings[self.choices.choice()]
        self._words.setText(meaning)
        self.choices.setAccessibleDescription(meaning)
