"""Signals that end the program close the window as a user would."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from app.base.paths import find_paths
from app.engine.types import ModelOptions
from app.saved.settings import Settings, SettingsStore

# Prints as soon as a setting has changed, before the delay after which it would be saved anyway.
_WINDOW = """
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
        [sys.executable, "-c", _WINDOW], env=environment, stdout=subprocess.PIPE, text=True
    ) as window:
        try:
            assert window.stdout is not None and window.stdout.readline() == "changed\n"
            number = getattr(signal, name)
            window.send_signal(number)
            assert window.wait(60) == 128 + number
        finally:
            window.kill()
    assert json.loads(paths.settings.read_text())["max_tokens"] == 77
