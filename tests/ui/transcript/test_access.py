"""What a screen reader reads of the transcript: in the process, and over the bus where one can be started."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.saved.measured import Measurement
from app.ui.theme import Theme
from app.ui.transcript import AnswerTurn, UserTurn
from tests.ui.instruments.answers import measurement
from tests.ui.transcript.on_the_bus import READ, shown


def test_question_summary_and_answer_are_a_text_with_fates(qtbot: QtBot, theme: Theme) -> None:
    view = shown(theme)
    qtbot.addWidget(view)
    spoken = QAccessible.queryAccessibleInterface(view)
    assert spoken is not None and spoken.role() is QAccessible.Role.EditableText
    text = view.spoken_text()
    assert text.toPlainText() == READ
    cursor = text.textCursor()
    colours = set()
    for at in range(READ.index("A fox"), len(READ) - 1):
        cursor.setPosition(at + 1)
        colours.add(cursor.charFormat().foreground().color().name().upper())
    assert colours == {theme.palette.fate(fate) for fate in ("accepted", "resampled", "bonus")}
    answered = view.turns[1]
    assert isinstance(answered, AnswerTurn)
    answered.answer.measure(measurement(1.5))
    assert "tiny, 2 rounds, 3 accepted, 1 rejected, 1.50×:\n" in view.spoken_text().toPlainText()
    theme.set_mode("dark")
    cursor = view.spoken_text().textCursor()
    cursor.setPosition(view.spoken_text().toPlainText().index("A fox") + 1)
    assert cursor.charFormat().foreground().color().name().upper() == theme.palette.fate("accepted")
    slower, faster = measurement(0.8), measurement(1.5)
    answered.answer.measure(Measurement(*slower.runs, *faster.runs))  # no clear difference
    view.add_turn(UserTurn("More", 2))
    assert view.spoken_text().toPlainText() == f"{READ}You:\nMore\n"
    view.set_turns([])
    assert view.spoken_text().toPlainText() == ""


def test_arrows_move_the_caret_where_a_screen_reader_listens(qtbot: QtBot, theme: Theme) -> None:
    view = shown(theme)
    qtbot.addWidget(view)
    QTest.keyClick(view, Qt.Key.Key_Down)
    assert view.spoken_text().textCursor().position() == 0
    view.resize(400, 60)
    view.verticalScrollBar().setValue(0)
    QAccessible.setActive(True)
    try:
        QTest.keyClick(view, Qt.Key.Key_Down)
        scrolled = view.verticalScrollBar().value()
        QTest.keyClick(view, Qt.Key.Key_End)
    finally:
        QAccessible.setActive(False)
    assert scrolled > 0, "the keys scroll too"
    assert view.spoken_text().textCursor().position() == READ.index("\ntiny")


def test_keys_go_from_the_tokens_of_one_answer_to_those_of_the_next(qtbot: QtBot, theme: Theme) -> None:
    view = shown(theme)
    qtbot.addWidget(view)
    view.add_turn(UserTurn("Again", 2))
    answered = view.turns[1]
    assert isinstance(answered, AnswerTurn)
    view.add_turn(AnswerTurn(answered.answer, "tiny", 3))
    pointed = []
    for _ in range(14):
        QTest.keyClick(view, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
        assert view.hover.token is not None
        pointed.append(view.hover.token.item)
    assert pointed == sorted(pointed) and set(pointed) == {1, 3}
    QTest.keyClick(view, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    QTest.keyClick(view, Qt.Key.Key_Up, Qt.KeyboardModifier.AltModifier)
    assert view.hover.token is not None and view.hover.token.item == 1


def missing() -> str:
    """Why no bus for screen readers can be started here; "" where it can."""
    tools = [tool for tool in ("dbus-run-session", "gdbus", "Xvfb") if shutil.which(tool) is None]
    if tools:
        return f"not installed: {', '.join(tools)}"
    service = Path("/usr/share/dbus-1/services/org.a11y.Bus.service")
    return "" if service.exists() else "not installed: at-spi2-core"


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_chat_is_read_over_the_bus(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    environment = os.environ | {"QT_LINUX_ACCESSIBILITY_ALWAYS_ON": "1", "XDG_RUNTIME_DIR": str(tmp_path)}
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        environment.pop(name, None)  # the window has a screen of its own
    command = ["dbus-run-session", "--", sys.executable, "-m", "tests.ui.transcript.on_the_bus"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.endswith(f"{READ!r}\n"), done.stderr
