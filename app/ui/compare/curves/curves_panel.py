"""The panel behind Depth and Load: a list of numbers that is checked while it is typed."""

from __future__ import annotations

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QVBoxLayout

from app.engine.errors import SettingError
from app.lab.experiment import Experiment
from app.ui.compare.start_panel import StartPanel
from app.ui.widgets.fields.typing import Typing


class CurvesPanel(StartPanel):
    """A derived class says what the numbers are, and how much they measure."""

    wanted = Signal(object, object)
    """Measure this Experiment with what `plan` returned."""

    def __init__(self, title: str, words: str, label: str, start: str, last: str) -> None:
        super().__init__(title, words, start, last)
        self._typed = False
        self.numbers = QLineEdit()
        self.numbers.setProperty("kind", "mono")
        self.numbers.setAccessibleName(label)
        self.numbers.textEdited.connect(self._edited)
        Typing(self.numbers, self.numbers.textEdited).settled.connect(self.check)
        self.name = QLabel(label)
        self.name.setBuddy(self.numbers)
        self.line = QHBoxLayout()
        self.line.setSpacing(12)
        self.line.addWidget(self.name)
        self.line.addWidget(self.numbers, 1)
        self.lines = QVBoxLayout()
        self.lines.setSpacing(12)
        self.lines.addLayout(self.line)
        self.lay_out(self.lines)

    def suggested(self) -> str:
        """Numbers to begin with; raises SettingError."""
        raise NotImplementedError

    def plan(self) -> tuple[Experiment, object]:
        """What would be measured, and the numbers; raises SettingError."""
        raise NotImplementedError

    @Slot()
    def open(self) -> None:
        """Suggest numbers, unless some were typed, and say how much will be measured."""
        if not self._typed:
            try:
                self.numbers.setText(self.suggested())
            except SettingError:
                self.numbers.clear()  # the check says what is wrong
        self.check()

    @Slot()
    def _edited(self) -> None:
        self._typed = True

    @Slot()
    def _start(self) -> None:
        self.wanted.emit(*self.plan())
