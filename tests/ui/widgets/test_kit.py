"""Lines of widgets: as many as the width asks for."""

from __future__ import annotations

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QMenu, QPushButton, QWidget
from pytestqt.qtbot import QtBot

from app.ui.widgets.kit import LINE_GAP, WrapLayout, open_below


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


def test_a_menu_that_is_filled_as_it_opens_stays_in_its_window(qtbot: QtBot) -> None:
    window = QWidget()
    qtbot.addWidget(window)
    window.resize(400, 100)
    button = QPushButton("Export", window)
    button.move(300, 0)
    menu = QMenu(window)
    menu.aboutToShow.connect(lambda: menu.addAction("Picture of the chart as PNG…"))
    window.show()
    open_below(button, menu)
    left, right = (window.mapFromGlobal(QPoint(x, 0)).x() for x in (menu.x(), menu.x() + menu.width()))
    assert menu.width() > 100 and left >= 0 and right <= window.width()
    menu.close()
