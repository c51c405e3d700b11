"""Lines of widgets: as many as the width asks for."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.ui.widgets.kit import LINE_GAP, WrapLayout


def row(qtbot: QtBot, left: int, right: int) -> tuple[QWidget, WrapLayout, list[QWidget]]:
    """Widgets of 50 × 20 pixels, 10 apart."""
    holder = QWidget()
    qtbot.addWidget(holder)
    layout = WrapLayout(holder, gap=10)
    boxes = []
    for at in range(left + right):
        box = QWidget()
        box.setFixedSize(50, 20)
        boxes.append(box)
        (layout.addWidget if at < left else layout.add_at_right)(box)
    return holder, layout, boxes


def places(holder: QWidget, width: int, boxes: list[QWidget]) -> list[tuple[int, int]]:
    holder.resize(width, 200)
    holder.layout().activate()
    holder.show()
    return [(box.x(), box.y()) for box in boxes]


def test_one_line_while_there_is_room(qtbot: QtBot) -> None:
    holder, layout, boxes = row(qtbot, 3, 2)
    assert layout.sizeHint().width() == 290 and layout.heightForWidth(290) == 20
    assert places(holder, 400, boxes) == [(0, 0), (60, 0), (120, 0), (290, 0), (350, 0)]


def test_those_at_the_right_stay_together(qtbot: QtBot) -> None:
    holder, layout, boxes = row(qtbot, 3, 2)
    second = 20 + LINE_GAP
    assert layout.heightForWidth(289) == 20 + second
    assert places(holder, 289, boxes)[3:] == [(0, second), (60, second)]


def test_everything_wraps_in_a_narrow_place(qtbot: QtBot) -> None:
    holder, layout, boxes = row(qtbot, 3, 2)
    second = 20 + LINE_GAP
    assert places(holder, 120, boxes)[:4] == [(0, 0), (60, 0), (0, second), (0, 2 * second)]
    assert layout.heightForWidth(120) == 2 * second + 20
    assert layout.minimumSize().width() == 110


def test_a_lone_widget_at_the_right_stands_at_the_right(qtbot: QtBot) -> None:
    holder, _, boxes = row(qtbot, 0, 1)
    assert places(holder, 200, boxes) == [(150, 0)]
