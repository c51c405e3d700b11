"""Arrow keys in a grid of controls: right and left in a row, up and down in a column."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QWidget

from app.ui.widgets.reveal import reveal

Grid = Sequence[Sequence[QWidget]]
_STEPS = {
    Qt.Key.Key_Left: (0, -1),
    Qt.Key.Key_Right: (0, 1),
    Qt.Key.Key_Up: (-1, 0),
    Qt.Key.Key_Down: (1, 0),
}


class GridKeys(QObject):
    """Moves the focus among the controls; at an edge it stays.

    By default Qt goes to the next or the previous control with all four keys.
    """

    def __init__(self, parent: QWidget, grid: Callable[[], Grid]) -> None:
        """`grid` gives the controls as they are laid out now, row by row; each is to be watched."""
        super().__init__(parent)
        self._grid = grid

    def watch(self, control: QWidget) -> None:
        control.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None:
            return False
        grid = self._grid()
        at = next((y, row.index(watched)) for y, row in enumerate(grid) if watched in row)
        y, x = at[0] + step[0], at[1] + step[1]
        if 0 <= y < len(grid) and 0 <= x < len(grid[y]):
            grid[y][x].setFocus(Qt.FocusReason.TabFocusReason)
            reveal(grid[y][x])
        return True
