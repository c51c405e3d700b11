"""The panel behind "Tune for me": how long it may take."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtCore import Signal, Slot
from PySide6.QtWidgets import QVBoxLayout

from app.engine.params import param, params_of
from app.ui.compare.start_panel import StartPanel
from app.ui.widgets.fields.field import NumberField

WORDS = (
    "Finds the fastest of about 50 settings on the prompts chosen here. A few answers show which settings "
    "cannot win; these are not run. Then it says how long the others take. Slow ones drop out, and the rest "
    "get longer answers. With several kinds of prompt there is an answer for each kind."
)


@dataclass(frozen=True, slots=True)
class SearchTime:
    """How long a search may take."""

    seconds: int = param(60, "Time for the search; loading is not part of it.", low=5, high=86_400, unit="s")


class TunePanel(StartPanel):
    """The budget of a search, and a button to start it."""

    wanted = Signal(int)
    """Start a search of so many seconds."""

    def __init__(self) -> None:
        super().__init__("Tune for me", WORDS, "Search", "Show the last result")
        self.seconds = NumberField(params_of(SearchTime)[0])
        self.seconds.edited.connect(self._edited)
        fields = QVBoxLayout()
        fields.addWidget(self.seconds)
        self.lay_out(fields)

    @Slot()
    def _edited(self) -> None:
        self.start.setEnabled(self.seconds.error() is None)

    @Slot()
    def _start(self) -> None:
        self.wanted.emit(int(self.seconds.value()))
