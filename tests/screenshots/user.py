"""What a user does who looks at every state."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QScrollArea, QTextEdit, QWidget

from app.ui.state.engine_session import Activity
from app.ui.widgets.form import FoldButton
from app.ui.widgets.lazy_place import LazyPlace
from app.ui.widgets.popover import Popover
from app.ui.widgets.segmented import Segmented
from tests.benchmarks.ui.window import turn
from tests.screenshots.variants import StateVisitor

Key = Qt.Key


def press(widget: QWidget) -> None:
    """Click a widget as soon as it can be clicked."""
    turn(lambda: widget.isVisible() and widget.isEnabled())
    QTest.mouseClick(widget, Qt.MouseButton.LeftButton)


def pick(choices: Segmented, choice: str) -> None:
    """Move to a choice with the arrow keys."""
    for key in (Key.Key_Left, Key.Key_Right):
        for _step in range(9):
            if choices.choice() != choice:
                QTest.keyClick(choices, key)


def write(field: Any, text: str) -> None:
    """Replace the text of a field, and press Enter."""
    field.selectAll()
    QTest.keyClicks(field, text)
    if not isinstance(field, QTextEdit):
        QTest.keyClick(field, Key.Key_Return)


def unfold(inside: QWidget) -> None:
    """Open every fold."""
    for fold in inside.findChildren(FoldButton):
        if fold.isVisible() and not fold.isChecked():
            press(fold)


def ready(visitor: StateVisitor) -> None:
    turn(lambda: visitor.window.session.activity is Activity.READY)


def open_panel(visitor: StateVisitor) -> Popover:
    return next(found for found in visitor.window.findChildren(Popover) if found.isVisible())


def panel(visitor: StateVisitor, state: str, **more: Any) -> None:
    """Take the open panel, screenful by screenful."""
    visitor.variants(state, scroll=open_panel(visitor).findChild(QScrollArea), **more)


def close(visitor: StateVisitor) -> None:
    """Close the open panel."""
    for shown in visitor.window.findChildren(Popover):
        shown.close_panel()


def place_of(visitor: StateVisitor, name: str) -> Any:
    """Go to a place that is made when it is first opened."""
    visitor.window.go(name)
    lazy = next(place.widget for place in visitor.window.places if place.name == name)
    assert isinstance(lazy, LazyPlace)
    turn(lambda: lazy.place is not None)
    return lazy.place
