"""How a system ends the window, and errors that nothing caught."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import qCritical, qWarning
from pytestqt.qtbot import QtBot

from app.base.paths import find_paths
from app.care.log import NAME
from app.cli.terminal.console import tell
from app.engine.types import ModelOptions
from app.saved.settings import Settings, SettingsStore
from app.ui.window.application import BugWatch

# Opens the window, does something in it, prints its notices, and ends.
_WINDOW = """
import sys, threading
from PySide6.QtCore import QTimer
from app import wiring

make = wiring.make_window

def made(*arguments):
    window = make(*arguments)
    notices = window.page.prompt.notices
    def act():
        {act}
    def tell():
        for strip in notices.strips:
            print(strip.message, strip.hint, flush=True)
        window.close()
    def begin():
        QTimer.singleShot(0, act)
        timer = QTimer(window, interval=50)
        timer.timeout.connect(lambda: tell() if notices.strips else None)
        timer.start()
    window.shown_first.connect(begin)
    return window

wiring.make_window = made
sys.exit(wiring.run_window("thread"))
"""
_SLOT = "raise ValueError('my secret question')"
_THREAD = "threading.Thread(target=int, args=('my secret question',), name='worker').start()"
_DEATH = "import os; os.kill(os.getpid(), 11)"


@pytest.fixture
def home(tmp_path: Path, pair_files: tuple[Path, Path]) -> Path:
    target, draft = (ModelOptions(str(path)) for path in pair_files)
    settings = SettingsStore(find_paths({"DRAFTSCOPE_HOME": str(tmp_path)}).settings)
    settings.save(Settings(target=target, draft=draft, offline=True))
    return tmp_path


def window(home: Path, act: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"DRAFTSCOPE_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
    program = _WINDOW.replace("{act}", act)
    return subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("act", "where"), [(_SLOT, "ValueError at <string>:"), (_THREAD, "thread worker")])
def test_an_error_is_told_and_logged_and_the_window_stays(home: Path, act: str, where: str) -> None:
    ended = window(home, act)
    assert ended.returncode == 0
    assert "Something went wrong in Draftscope: ValueError" in ended.stdout and where in ended.stdout
    assert "Your chats are safe" in ended.stdout
    assert "my secret question" in ended.stderr, "the terminal sees all of it"
    log = home / "logs" / NAME
    assert "ValueError" in log.read_text() and "my secret question" not in log.read_text()
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert [file.name for file in log.parent.iterdir()] == [NAME], "nothing is left of a good end"


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_the_next_window_tells_how_this_one_died(home: Path) -> None:
    assert window(home, _DEATH).returncode == -signal.SIGSEGV
    ended = window(home, "pass")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "Draftscope ended unexpectedly: Segmentation fault." in ended.stdout
    assert "in act" in (home / "logs" / NAME).read_text()


def test_qts_errors_are_told_and_its_warnings_logged(
    qtbot: QtBot, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    watch = BugWatch(tell)
    told: list[str] = []
    watch.met.connect(told.append)
    try:
        qWarning("a small thing")
        for _ in range(9):
            qCritical("a thing")
    finally:
        watch.close()
    assert told == ["Qt says “a thing”"] * 3, "not for ever"
    assert [record.getMessage() for record in caplog.records] == ["Qt: a small thing", *["Qt: a thing"] * 3]
    assert "a small thing" in capsys.readouterr().err


# Prints as soon as a setting has changed, before the delay after which it would be saved anyway.
_ENDED_WINDOW = """
import signal, sys
for name in ("SIGHUP", "SIGINT"):  # a run in the background may ignore them, and so would its children
    signal.signal(getattr(signal, name), signal.SIG_DFL)
from app import wiring

make = wiring.make_window

def made(*arguments):
    window = make(*arguments)
    def change():
        window.settings.change(max_tokens=77)
        print("changed", flush=True)
    window.shown_first.connect(change)
    return window

wiring.make_window = made
sys.exit(wiring.run_window("thread"))
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_settings_just_changed_survive_a_signal(
    tmp_path: Path, pair_files: tuple[Path, Path], name: str
) -> None:
    paths = find_paths({"DRAFTSCOPE_HOME": str(tmp_path)})
    target, draft = (ModelOptions(str(path)) for path in pair_files)
    SettingsStore(paths.settings).save(Settings(target=target, draft=draft, offline=True))
    environment = os.environ | {"DRAFTSCOPE_HOME": str(tmp_path), "QT_QPA_PLATFORM": "offscreen"}
    with subprocess.Popen(
        [sys.executable, "-c", _ENDED_WINDOW], env=environment, stdout=subprocess.PIPE, text=True
    ) as window:
        try:
            assert window.stdout is not None and window.stdout.readline() == "changed\n"
            number = getattr(signal, name)
            window.send_signal(number)
            assert window.wait(60) == 128 + number
        finally:
            window.kill()
    assert json.loads(paths.settings.read_text())["max_tokens"] == 77
