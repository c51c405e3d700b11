"""The inspected round: its facts, and its tokens."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.ui.inspector.part import InspectorPart
from app.ui.instruments import RoundTable
from app.ui.theme import Theme


class RoundView(InspectorPart):
    """Shows the inspected round of an answer."""

    place_focused = Signal(QWidget)
    """The widget of a place of the draft got the focus."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.table = RoundTable(theme)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.table)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setAccessibleName("Round")

    def draw(self) -> None:
        index = self.answer.inspected
        self.table.show_round(self.answer.rounds[index] if index is not None else None)
