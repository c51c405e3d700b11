"""What stands in for the Compare place until it is first opened: the window does not wait for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

if TYPE_CHECKING:
    from app.lab.experiment import Pair
    from app.ui.compare.place import ComparePlace
    from app.ui.state.engine_session import EngineSession


@dataclass(frozen=True, slots=True)
class ChatSide:
    """What Compare takes from the chat, and gives to it."""

    engine: EngineSession
    pair: Callable[[], Pair]  # its real paths
    is_bundled: Callable[[], bool]  # that pair comes with the app
    drafters: Callable[[], tuple[str, ...]]  # files of plug-ins in use
    use_strategy: Callable[[str], None]  # for the next answer; goes to the chat
    go: Callable[[str], None]  # to a place


MakeCompare = Callable[[ChatSide], "ComparePlace"]


class CompareDoor(QWidget):
    """Makes the place when it is first shown."""

    def __init__(self, build: Callable[[], ComparePlace]) -> None:
        super().__init__()
        self._build = build
        self.place: ComparePlace | None = None
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.place is None:
            self.place = self._build()
            self._layout.addWidget(self.place)
            self.place.show()

    def close_compare(self) -> None:
        """Before the window goes: end what is being measured. It can go on at the next start."""
        if self.place is not None:
            self.place.close_compare()
