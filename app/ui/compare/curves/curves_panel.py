"""The panel behind Depth and Load: a list of numbers that is checked while it is typed."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.engine.errors import SettingError
from app.lab.experiment import Experiment
from app.ui.theme.style import set_role
from app.ui.widgets.fields.typing import Typing


class CurvesPanel(QWidget):
    """A derived class says what the numbers are, and how much they measure."""

    wanted = Signal(object, object)
    """Measure this Experiment with these numbers."""
    last_wanted = Signal()
    """Show what was measured last."""

    def __init__(self, title: str, words: str, label: str, start: str, last: str) -> None:
        super().__init__()
        self._typed = False
        head = QLabel(title)
        head.setProperty("role", "title")
        told = QLabel(words)
        told.setProperty("role", "secondary")
        told.setWordWrap(True)
        self.numbers = QLineEdit()
        self.numbers.setProperty("kind", "mono")
        self.numbers.setAccessibleName(label)
        self.numbers.textEdited.connect(self._edited)
        Typing(self.numbers, self.numbers.textEdited).settled.connect(self._check)
        self.amount = QLabel()
        self.amount.setWordWrap(True)
        self.start = QPushButton(start)
        self.start.setProperty("kind", "primary")
        self.start.clicked.connect(self._start)
        self.last = QPushButton(last)
        self.last.clicked.connect(self.last_wanted)
        self.last.hide()
        name = QLabel(label)
        name.setBuddy(self.numbers)
        line = QHBoxLayout()
        line.setSpacing(12)
        line.addWidget(name)
        line.addWidget(self.numbers, 1)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self.amount, 1)
        row.addWidget(self.last)
        row.addWidget(self.start)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addWidget(head)
        column.addWidget(told)
        column.addLayout(line)
        column.addLayout(row)

    def suggested(self) -> str:
        """Numbers to begin with; raises SettingError."""
        raise NotImplementedError

    def plan(self) -> tuple[Experiment, Sequence[int]]:
        """What would be measured, and the numbers; raises SettingError."""
        raise NotImplementedError

    def amount_of(self, experiment: Experiment, numbers: Sequence[int]) -> str:
        """How much that is."""
        raise NotImplementedError

    @Slot()
    def open(self) -> None:
        """Suggest numbers, unless some were typed, and say how much will be measured."""
        if not self._typed:
            try:
                self.numbers.setText(self.suggested())
            except SettingError:
                self.numbers.clear()  # the check says what is wrong
        self._check()

    @Slot()
    def _edited(self) -> None:
        self._typed = True

    @Slot()
    def _check(self) -> None:
        """Say how much will be measured, or what is wrong."""
        try:
            words, role = self.amount_of(*self.plan()), "secondary"
        except SettingError as error:
            words, role = str(error), "error"
        self.start.setEnabled(role != "error")
        self.amount.setText(words)
        set_role(self.amount, role=role)

    @Slot()
    def _start(self) -> None:
        self.wanted.emit(*self.plan())
