"""A label that moves nothing around it while only its digits change."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication, QHBoxLayout, QWidget
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.ui.theme import Theme
from app.ui.widgets.labels import SteadyLabel


class Asked(QObject):
    """Counts how often a widget lays itself out."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__()
        self.times = 0
        widget.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.times += event.type() == QEvent.Type.LayoutRequest
        return False


def test_other_digits_lay_nothing_out_other_words_do(qtbot: QtBot, theme: Theme) -> None:
    box = QWidget()
    qtbot.addWidget(box)
    label = SteadyLabel("7 of 99")
    label.setFont(theme.sans())
    QHBoxLayout(box).addWidget(label)
    box.show()
    QApplication.processEvents()
    asked, size = Asked(box), label.size()
    label.set_text("8 of 98")
    QApplication.processEvents()
    assert label.text() == "8 of 98" and label.size() == size and not asked.times
    label.set_text("8 of 98 rounds")
    QApplication.processEvents()
    assert label.width() > size.width() and asked.times
    width = label.width()
    label.set_text("8", widest="8 of 98 rounds")
    assert label.width() == width
    label.setFont(theme.sans(8))
    assert label.width() > width and label.height() > size.height()
