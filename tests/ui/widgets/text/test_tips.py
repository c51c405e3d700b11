"""File names are shown exactly as written, also where Qt would take them for HTML."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtGui import Qt, QTextDocument
from PySide6.QtWidgets import QLabel, QWidget

from app.ui.widgets.labels import as_text
from tests.ui.windows import Windows

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
