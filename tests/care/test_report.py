"""The report that can be copied: what helps to find a fault, and nothing that was said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app import __version__
from app.base.paths import Paths, find_paths
from app.care.log import NAME
from app.care.report import make_report, shortened
from app.engine.devices.memory import Device
from app.engine.process.messages import DevicesListed
from app.engine.types import ModelOptions
from app.saved.chats.store import ChatStore
from app.saved.settings import Settings, SettingsStore

SECRET = "my secret question"
DEVICES = DevicesListed(0, (Device("CUDA0", "A card", "GPU", "CUDA", 3 * 10**9, 8 * 10**9),), ("CUDA", "CPU"))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


@pytest.fixture
def paths(home: Path) -> Paths:
    """A home in use: settings, a chat and a log, in all of which something secret was said."""
    found = find_paths({"DRAFTSCOPE_HOME": str(home / "draftscope")})
    found.prepare()
    target = ModelOptions(str(home / "models" / "a.gguf"))
    settings = Settings(
        target=target, strategy="none", system_prompt=SECRET, stop=(SECRET,), server="http://10.1.2.3"
    )
    SettingsStore(found.settings).save(settings)
    store = ChatStore(found.chats)
    store.ask(store.new(system_prompt=SECRET), SECRET)
    (found.logs / NAME).write_text(f"2026-11-22 ERROR draftscope: It broke in {home}/x.py\n")
    return found


def test_the_report_says_what_helps_to_find_a_fault(paths: Paths) -> None:
    report = make_report(paths, DEVICES)
    assert report.startswith(f"Draftscope {__version__}, report of 20")
    assert "llama-cpp-python 0." in report and "PySide6-Essentials 6." in report
    assert "CUDA0: GPU, CUDA, A card, 3.00 GB free of 8.00 GB" in report
    assert "backends of this build: CUDA, CPU" in report
    assert '"strategy": "none"' in report and '"path": "~/models/a.gguf"' in report
    assert "1, 0 damaged" in report
    assert "It broke in ~/x.py" in report


def test_the_report_holds_nothing_that_was_said(paths: Paths, home: Path) -> None:
    report = make_report(paths, DEVICES)
    assert SECRET not in report and str(home) not in report and "10.1.2.3" not in report
    assert '"system_prompt": "(18 characters)"' in report


def test_the_report_holds_the_settings_texts_where_asked(paths: Paths) -> None:
    report = make_report(paths, DEVICES, texts=True)
    assert report.count(SECRET) == 2, "the system prompt and the stop string of the settings, no chat"


def test_a_setting_of_a_newer_version_is_not_shown(paths: Paths) -> None:
    known = json.loads(paths.settings.read_text())
    paths.settings.write_text(json.dumps(known | {"signature": SECRET}))
    assert SECRET not in make_report(paths, DEVICES)


def test_a_report_comes_whatever_is_damaged(paths: Paths) -> None:
    paths.settings.write_text('{"target": ')
    for chat in paths.chats.glob("*/chat.jsonl"):
        chat.write_bytes(b"\xff")
    (paths.logs / NAME).unlink()
    report = make_report(paths, "The engine is busy.")
    assert "1, 1 damaged" in report and "cannot be read" in report
    assert "The engine is busy." in report and "  empty" in report
    assert paths.settings.exists(), "a report changes nothing"


def test_a_report_of_a_program_that_was_never_started(home: Path) -> None:
    report = make_report(find_paths({"DRAFTSCOPE_HOME": str(home / "none")}), "Unknown.")
    assert "none are saved" in report and "The folder of the chats is gone: ~/none/data/chats." in report
    assert not (home / "none").exists(), "a report makes no folders"


def test_only_the_home_folder_itself_is_shortened(home: Path) -> None:
    assert shortened(f"{home} {home}/a {home}.") == "~ ~/a ~."
    assert shortened(f"{home}er/a") == f"{home}er/a"
