"""Labels and tooltips."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QAccessible, Qt, QTextDocument, QTextLayout
from PySide6.QtWidgets import QApplication, QHBoxLayout, QLabel, QWidget
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.labels import SteadyLabel, as_text
from tests.ui.windows import Windows


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
    label = SteadyLabel()
    label.set_text("7 of 99")
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


HOSTILE = "<img src=x>b  c"


def read(tip: str) -> str:
    """The characters that a tooltip shows."""
    if not Qt.mightBeRichText(tip):
        return tip
    document = QTextDocument()
    document.setHtml(tip)
    return document.toPlainText()


@pytest.mark.parametrize("words", ["plain.gguf", f"{HOSTILE}\n\tx & y", "<|im_end|> & <s>", ""])
def test_a_tooltip_shows_the_very_words(words: str) -> None:
    assert read(as_text(words)) == words


def test_a_file_name_is_shown_as_it_is_written(
    windows: Windows, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    target = tmp_path / f"{HOSTILE}.gguf"
    shutil.copy(pair_files[0], target)
    desk = windows.open()
    desk.header.target.click()
    desk.load(target)
    desk.until_ready()
    desk.load(pair_files[0])  # the hostile one is among the recent files now
    desk.until_ready()
    desk.load(target)
    desk.until_ready()
    widgets = desk.window.findChildren(QWidget)
    tips = [widget.toolTip() for widget in widgets if "img" in widget.toolTip()]
    assert tips and all(HOSTILE in read(tip) for tip in tips)
    labels = [label for label in desk.window.findChildren(QLabel) if "img" in label.text()]
    assert all(label.textFormat() is Qt.TextFormat.PlainText for label in labels)


@pytest.mark.parametrize(
    ("text", "narrowest"),
    [
        ("at 214 tok/s or 8.5 tokens/s", ["at", "214 tok/s", "or", "8.5 tokens/s"]),
        ("0.3 kB in 2 min 3 s, 8 %", ["0.3 kB", "in", "2 min", "3 s,", "8 %"]),
        ("4 lanes = 192 cold runs", ["4", "lanes", "=", "192 cold", "runs"]),
        ("13 rounds, 1.66 to 2.91", ["13 rounds,", "1.66 to 2.91"]),
        ("Use draft-eagle3:p_min=0.4+ngram-mod.", ["Use", "draft-eagle3:", "p_min=0.4+", "ngram-mod."]),
        ("preset --fim-qwen-7b-spec.", ["preset", "--fim-qwen-7b-spec."]),
        ("a two-word name", ["a", "two-", "word", "name"]),
    ],
)
def test_numbers_stay_with_their_units_and_specs_are_whole(
    qtbot: QtBot, text: str, narrowest: list[str]
) -> None:
    label = kit.label(text, wrap=True)
    qtbot.addWidget(label)
    assert label.text() == text
    interface = QAccessible.queryAccessibleInterface(label)
    assert interface is not None
    assert interface.text(QAccessible.Text.Name) == text, "a screen reader gets no joiners"
    layout = QTextLayout(QLabel.text(label))
    layout.beginLayout()
    lines = []
    while (line := layout.createLine()).isValid():
        line.setLineWidth(1)
        lines.append(layout.text()[line.textStart() :][: line.textLength()])
    layout.endLayout()
    shown = [re.sub("[\u200b\u2060]", "", line).replace("\u00a0", " ").strip() for line in lines]
    assert shown == narrowest


def test_text_that_can_be_copied_has_no_invisible_characters(qtbot: QtBot) -> None:
    label = kit.label("Use draft-eagle3:p_min=0.4.", wrap=True, selectable=True)
    qtbot.addWidget(label)
    assert QLabel.text(label) == "Use draft-eagle3:p_min=0.4."
