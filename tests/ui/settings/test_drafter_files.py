"""The user's own drafters in the window: added and removed in the settings, offered at once, used and
saved."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QLabel, QPushButton, QToolButton
from pytestqt.qtbot import QtBot

from app.engine.errors import DrafterError
from app.lab.experiment import Lane
from app.ui.settings.settings_page import WARNING, DrafterFiles
from app.ui.state.engine_session import Activity
from app.ui.theme import Theme
from app.ui.widgets.labels import ElidedButton
from tests.files.drafter_files import PHRASE_TRIE, write_drafter
from tests.ui.named import named
from tests.ui.windows import Desk, Windows

pytestmark = pytest.mark.usefixtures("known_strategies")

on_posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


def words(widget: DrafterFiles) -> list[str]:
    return [label.text() for label in widget.findChildren(QLabel) if not label.isHidden()]


def press(widget: DrafterFiles, name: str) -> None:
    buttons = [*widget.findChildren(QPushButton), *widget.findChildren(QToolButton)]
    next(
        button for button in buttons if button.accessibleName() == name and button.parent() is not None
    ).click()


def save_as_mine(desk: Desk, strategy: str) -> None:
    """Keep a preset of that strategy."""
    desk.type_strategy(strategy)
    desk.header.presets_panel.save_requested.emit("Mine")


def add(desk: Desk, file: Path) -> DrafterFiles:
    shown = desk.window.settings_page.drafters
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(QFileDialog, "getOpenFileName", lambda *_asked: (str(file), ""))
        press(shown, "Add a drafter file")
    return shown


def test_it_warns_asks_and_tells_what_the_user_wants(
    qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = ["", "/plugins/one.py", "/plugins/one.py"]
    asked: list[str] = []

    def choose(_parent: object, folder: str) -> str:
        asked.append(folder)
        return answers.pop(0)

    monkeypatch.setattr("app.ui.settings.settings_page.ask_for_drafter", choose)
    shown = DrafterFiles(theme)
    qtbot.addWidget(shown)
    wanted: list[tuple[str, ...]] = []
    shown.files_changed.connect(wanted.append)
    assert WARNING in words(shown)
    for _ in range(2):
        press(shown, "Add a drafter file")
    assert wanted == [("/plugins/one.py",)], "nothing chosen, nothing changed"
    assert asked[0] == str(Path.home())

    problem = DrafterError("bad.py cannot be used: it has no STRATEGY.", "Write one.")
    shown.set_files(("/plugins/one.py", "/else/bad.py"), {"/else/bad.py": problem})
    assert "bad.py cannot be used: it has no STRATEGY. Write one." in words(shown)
    press(shown, "Add a drafter file")
    assert wanted[-1] == ("/plugins/one.py", "/else/bad.py"), "a file is in the list once"
    assert asked[-1] == "/else"
    press(shown, "Reload the drafter files")
    assert wanted[-1] == ("/plugins/one.py", "/else/bad.py")
    press(shown, "Remove one.py from the list; the file stays")
    assert wanted[-1] == ("/else/bad.py",)


def test_a_drafter_is_offered_used_kept_and_taken_away(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open()
    shown = add(desk, PHRASE_TRIE)
    assert any(text.startswith("phrase-trie: Completes common") for text in words(shown))
    panel = desk.header.strategy_panel
    panel.set_spec("none")
    desk.type_strategy("phrase-trie:n_max=3")
    assert desk.saved()["strategy"] == "phrase-trie:n_max=3"
    assert desk.saved()["drafters"] == [str(PHRASE_TRIE)]
    answer = desk.ask("On the other hand, as soon")
    assert desk.error() == ""
    assert desk.trace is not None
    assert desk.trace.header.strategy == "phrase-trie:n_max=3"
    assert answer.answer.rounds
    windows.close(desk)

    again = windows.open()
    assert again.error() == ""
    assert again.header.strategy_panel.spec() == "phrase-trie:n_max=3"
    shown = again.window.settings_page.drafters
    press(shown, "Remove phrase_trie.py from the list; the file stays")
    assert again.saved()["drafters"] == []
    assert again.saved()["strategy"] == "draft-simple:n_max=4"
    assert again.header.strategy_panel.spec() == "draft-simple:n_max=4"
    assert "phrase-trie:n_max=3 was in use." in words(shown)
    assert again.ask("and on").answer.rounds


def test_an_answer_outlives_its_drafter(windows: Windows, tmp_path: Path) -> None:
    file = tmp_path / "trie.py"
    file.write_bytes(PHRASE_TRIE.read_bytes())
    desk = windows.open()
    add(desk, file)
    save_as_mine(desk, "phrase-trie:n_max=3")
    shown = desk.ask("On the other hand, as soon").text
    windows.close(desk)
    file.write_text("oops(")
    again = windows.open()
    assert again.texts()[-1] == shown
    assert again.window.presets.presets == () and "it stays in the file" in again.error()
    windows.close(again)
    file.write_bytes(PHRASE_TRIE.read_bytes())
    assert [preset.name for preset in windows.open().window.presets.presets] == ["Mine"]


def test_a_preset_whose_drafter_is_gone_changes_nothing(windows: Windows) -> None:
    desk = windows.open()
    shown = add(desk, PHRASE_TRIE)
    save_as_mine(desk, "phrase-trie:n_max=3")
    press(shown, "Remove phrase_trie.py from the list; the file stays")
    before = desk.window.settings.now
    desk.header.presets_panel.chosen.emit("Mine")
    assert desk.window.settings.now == before
    assert "phrase-trie" in desk.header.presets_panel.notice.message


def test_a_file_that_cannot_be_used_says_so_in_its_row_until_it_is_mended(
    windows: Windows, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text("x = 1\nimport nowhere\n")
    desk = windows.open()
    shown = add(desk, file)
    said = "mine.py cannot be used: ModuleNotFoundError: No module named 'nowhere' (mine.py, line 2)."
    assert any(text.startswith(said) for text in words(shown))
    assert desk.ask("nothing else is lost").answer.rounds
    desk.window.save()
    windows.close(desk)
    again = windows.open()
    assert again.error().startswith(said)
    shown = again.window.settings_page.drafters
    assert any(text.startswith(said) for text in words(shown))
    write_drafter(tmp_path, file="mine.py")
    press(shown, "Reload the drafter files")
    assert "echo: Repeats the last token." in words(shown)
    again.header.strategy_panel.set_spec("echo")


def test_a_file_that_ends_its_process_is_left_out_and_the_window_opens(
    windows: Windows, tmp_path: Path
) -> None:
    bad, good = tmp_path / "mine.py", write_drafter(tmp_path)
    bad.write_text("import os\nos._exit(3)\n")
    desk = windows.open(drafters=(str(bad), str(good)), strategy="echo:n_max=2")
    said = "mine.py is not used: it ended the process that read it (exit code 3)."
    assert desk.error().startswith(said)
    shown = desk.window.settings_page.drafters
    assert any(text.startswith(said) for text in words(shown))
    assert desk.ask("aaaa").answer.rounds, "the engine does not read it either"
    assert desk.saved()["drafters"] == [str(bad), str(good)]
    write_drafter(tmp_path, name="mended", file="mine.py")
    press(shown, "Reload the drafter files")
    assert "mended: Repeats the last token." in words(shown)


def test_rules_of_files_are_offered_used_and_taken_away(windows: Windows) -> None:
    desk = windows.open(max_tokens=16)
    shown = desk.window.settings_page.drafters
    for name in ("halving", "typical"):
        shown = add(desk, PHRASE_TRIE.with_name(f"{name}.py"))
        assert any(text.startswith(f"{name}: ") for text in words(shown))
    panel = desk.header.strategy_panel
    used = "suffix:verify=typical:length=halving:halving_start=2"
    panel.set_spec(used)
    panel.spec_changed.emit(used)
    assert (panel.length.choices.choice(), panel.rule.choices.choice()) == ("halving", "typical")
    desk.ask("abcabcabc")
    trace = desk.trace
    assert desk.error() == "" and trace is not None and trace.header.verification == "typical"
    press(shown, "Remove halving.py from the list; the file stays")
    assert any(text.startswith(f"{used} was in use.") for text in words(shown))
    press(shown, "Remove typical.py from the list; the file stays")
    assert (panel.length.choices.choice(), panel.rule.choices.choice()) == ("fixed", "auto")
    assert "typical" not in panel.rule.choices.accessibleDescription()


def test_nothing_is_changed_while_an_answer_is_made(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open(max_tokens=900)
    desk.type("go on")
    desk.until_streaming()
    shown = add(desk, write_drafter(tmp_path))
    assert "The engine is busy." in words(shown)
    assert desk.saved()["drafters"] == []
    desk.controller.stop()
    desk.until_ready()
    shown = add(desk, write_drafter(tmp_path))
    assert "The engine is busy." not in words(shown)
    assert desk.saved()["drafters"] == [str(tmp_path / "echo.py")]


@on_posix
def test_a_replaced_engine_process_knows_them_too(windows: Windows, tmp_path: Path) -> None:
    file = write_drafter(tmp_path)
    desk = windows.open(engine="process", drafters=(str(file),), strategy="echo:n_max=2", max_tokens=8)

    def strategies_used() -> set[str | None]:
        desk.ask("aaaa")
        assert desk.error() == ""
        trace = desk.trace
        assert trace is not None
        return {round.strategy for round in trace.rounds if round.drafted}

    assert strategies_used() == {"echo"}
    seen: list[Activity] = []
    desk.session.changed.connect(lambda now, _before: seen.append(now.activity))
    os.kill(desk.engine_pid, signal.SIGKILL)
    desk.until(lambda: Activity.LOADING in seen)
    desk.until_ready()
    assert strategies_used() == {"echo"}


def test_other_parameters_after_a_reload_are_shown_wherever_it_is_in_use(
    windows: Windows, tmp_path: Path
) -> None:
    file = write_drafter(tmp_path)
    desk = windows.open()
    shown = add(desk, file)
    desk.window.go("compare")
    place = desk.place("compare")
    assert place is not None
    place.chips.set_setup(dataclasses.replace(place.chips.setup, lanes=(Lane("echo"), Lane("suffix"))))
    text = file.read_text().replace("n_max: int", "most: int")
    file.write_text(text.replace("make=Mine", 'length="most", make=Mine'))
    os.utime(file, (1, 1))
    press(shown, "Reload the drafter files")
    desk.qtbot.mouseClick(place.head.lanes, Qt.MouseButton.LeftButton)
    panel = place.head.lanes_panel
    for name in ("suffix", "echo"):
        named(panel, name, ElidedButton).click()
    (card,) = panel.strategy.cards.shown
    assert card.form is not None and card.form.field("most").value() == 4
    desk.qtbot.mouseClick(place.head.lanes, Qt.MouseButton.LeftButton)
    press(shown, "Remove echo.py from the list; the file stays")
    desk.qtbot.mouseClick(place.head.lanes, Qt.MouseButton.LeftButton)
    assert "There is no strategy “echo”" in panel.strategy.notice.message
