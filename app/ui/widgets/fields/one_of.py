"""Labels of which one is shown, in the room of the largest: nothing around them moves."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStackedLayout


class OneOf(QStackedLayout):
    """Takes no more room than the largest label; Qt's own layout grows as far as it can. The labels need a
    parent beforehand: the first is shown at once."""

    def expandingDirections(self) -> Qt.Orientation:  # noqa: N802
        return Qt.Orientation(0)
