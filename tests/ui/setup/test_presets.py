"""Presets in the real window: save, apply, rename, delete, undo."""

from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

from app.engine.types import ModelOptions, Sampling
from app.saved.presets import Preset, PresetStore
from app.ui.setup.presets import PresetRow, PresetsPanel, preset_words
from app.ui.setup.sampling_panel import AnswerOptions
from app.ui.state.engine_session import Activity
from tests.files.drafter_files import write_drafter
from tests.ui.windows import Desk, Windows

WARM = Sampling(temperature=0.8, top_k=40, seed=7)


@pytest.fixture
def desk(windows: Windows) -> Desk:
    made = windows.open(strategy="draft-simple:n_max=4")
    made.qtbot.mouseClick(made.header.presets, Qt.MouseButton.LeftButton)
    return made


def panel(desk: Desk) -> PresetsPanel:
    return desk.header.presets_panel


def row(desk: Desk, name: str) -> PresetRow:
    return next(row for row in panel(desk).rows if row.name == name)


def names(desk: Desk) -> list[str]:
    return [row.name for row in panel(desk).rows]


def marked(desk: Desk) -> list[str]:
    return [row.name for row in panel(desk).rows if row.button.current]


def stored(desk: Desk) -> tuple[Preset, ...]:
    return PresetStore(desk.paths.presets).load().presets


def save(desk: Desk, name: str) -> None:
    panel(desk).field.setFocus()
    desk.qtbot.keyClicks(panel(desk).field, name)
    desk.press(Qt.Key.Key_Return, panel(desk).field)


def change(desk: Desk, strategy: str, sampling: Sampling = WARM) -> None:
    desk.header.strategy_panel.spec_changed.emit(strategy)
    desk.header.sampling_panel.options_changed.emit(AnswerOptions(sampling, 33, ("END",)))


def test_what_is_in_use_is_saved_and_marked(desk: Desk) -> None:
    assert panel(desk).isVisible() and names(desk) == []
    assert not panel(desk).save.isEnabled()
    save(desk, "  My   pair ")
    assert names(desk) == marked(desk) == ["My pair"]
    assert panel(desk).field.text() == ""
    assert stored(desk) == (Preset.of("My pair", desk.window.settings.now),)
    change(desk, "none")
    assert marked(desk) == []
    change(desk, "draft-simple:n_max=4", Sampling())
    assert marked(desk) == []  # another length and stop


def test_applying_brings_it_back_without_loading_again(desk: Desk) -> None:
    save(desk, "First")
    first = desk.window.settings.now
    change(desk, "none")
    save(desk, "Baseline")
    loads: list[object] = []
    desk.session.changed.connect(lambda *_: loads.append(_))
    desk.qtbot.mouseClick(row(desk, "First").button, Qt.MouseButton.LeftButton)
    assert not panel(desk).isVisible()  # done; the chips show it
    assert desk.session.activity is Activity.READY and not loads
    settings = desk.window.settings.now
    assert (settings.strategy, settings.sampling) == (first.strategy, first.sampling)
    assert (settings.max_tokens, settings.stop) == (first.max_tokens, first.stop)
    assert desk.header.sampling_panel.options().max_tokens == first.max_tokens
    assert desk.header.strategy_panel.spec() == first.strategy
    assert marked(desk) == ["First"]
    assert desk.saved()["strategy"] == first.strategy


def test_applying_loads_another_pair(desk: Desk, windows: Windows) -> None:
    save(desk, "Pair")
    desk.header.draft_panel.applied.emit(None)
    desk.until(lambda: desk.session.pair is not None and desk.session.pair.draft is None)
    assert marked(desk) == []
    save(desk, "Alone")
    row(desk, "Pair").button.setFocus()
    desk.press(Qt.Key.Key_Return, row(desk, "Pair").button)
    assert desk.session.activity is Activity.LOADING
    desk.until_ready()
    assert desk.session.pair is not None and desk.session.pair.draft is not None
    assert marked(desk) == ["Pair"]


def test_another_pair_while_the_engine_is_at_work_is_refused(desk: Desk) -> None:
    save(desk, "Pair")
    kept = desk.window.settings.now
    desk.window.settings.change(draft=None, strategy="none", sampling=WARM)
    save(desk, "Alone")
    desk.window.settings.change(draft=kept.draft, strategy=kept.strategy, sampling=kept.sampling)
    desk.window.settings.change(max_tokens=900)
    desk.type("go")
    desk.until_streaming()
    row(desk, "Alone").button.click()
    assert desk.session.activity is Activity.GENERATING and panel(desk).isVisible()
    assert "busy" in panel(desk).notice.message
    assert desk.window.settings.now.strategy == kept.strategy
    row(desk, "Pair").button.click()  # the same pair: nothing to load
    assert not panel(desk).isVisible()
    desk.controller.stop()
    desk.until_ready()


def test_presets_are_there_after_a_restart(desk: Desk, windows: Windows) -> None:
    save(desk, "First")
    windows.close(desk)
    again = windows.open()
    assert names(again) == ["First"]


def test_a_known_name_replaces(desk: Desk) -> None:
    save(desk, "A")
    change(desk, "none")
    panel(desk).field.setText("A")
    assert panel(desk).save.text() == "Replace"
    panel(desk).save.click()
    assert names(desk) == marked(desk) == ["A"]
    assert stored(desk)[0].strategy == "none"
    assert panel(desk).save.text() == "Save"


def test_rename_in_place(desk: Desk) -> None:
    save(desk, "A")
    save(desk, "B")
    desk.press(Qt.Key.Key_F2, row(desk, "A").delete)  # anywhere on the row
    field = row(desk, "A").field
    assert field.isVisible() and field.selectedText() == "A"
    desk.qtbot.keyClicks(field, "B")
    desk.press(Qt.Key.Key_Return, field)
    assert "already" in panel(desk).notice.message and names(desk) == ["A", "B"]
    field.setText("C")
    desk.press(Qt.Key.Key_Return, field)
    assert names(desk) == ["C", "B"] and [preset.name for preset in stored(desk)] == ["C", "B"]
    assert QApplication.focusWidget() is row(desk, "C").button
    assert not panel(desk).notice.isVisible()


def test_escape_ends_renaming_and_nothing_else(desk: Desk) -> None:
    save(desk, "A")
    row(desk, "A").rename.click()
    field = row(desk, "A").field
    desk.qtbot.keyClicks(field, "zzz")
    desk.press(Qt.Key.Key_Escape, field)
    assert names(desk) == ["A"] and row(desk, "A").button.isVisible() and not field.isVisible()
    assert panel(desk).isVisible()


def test_delete_and_undo(desk: Desk) -> None:
    for name in "ABC":
        save(desk, name)
    desk.press(Qt.Key.Key_Delete, row(desk, "B").button)
    assert names(desk) == ["A", "C"] and len(stored(desk)) == 2
    assert QApplication.focusWidget() is panel(desk).undo
    desk.press(Qt.Key.Key_Space, panel(desk).undo)
    assert names(desk) == ["A", "B", "C"] and len(stored(desk)) == 3
    assert not panel(desk).undo.isVisible()
    row(desk, "A").delete.click()
    desk.header.presets.popover.close_panel()
    desk.qtbot.mouseClick(desk.header.presets, Qt.MouseButton.LeftButton)
    assert not panel(desk).undo.isVisible()  # too late
    assert names(desk) == ["B", "C"]


def test_what_another_window_saved_stays(desk: Desk) -> None:
    save(desk, "First")
    other = PresetStore(desk.paths.presets)
    theirs = dataclasses.replace(stored(desk)[0], name="Theirs", strategy="none")
    other.save([*stored(desk), theirs])
    save(desk, "Second")
    assert [preset.name for preset in stored(desk)] == names(desk) == ["First", "Theirs", "Second"]
    other.save([theirs])
    row(desk, "First").delete.click()
    assert [preset.name for preset in stored(desk)] == names(desk) == ["Theirs"], "it was gone already"
    desk.paths.presets.write_text("{")
    save(desk, "Third")
    assert [preset.name for preset in stored(desk)] == ["Theirs", "Third"], (
        "what cannot be read is what is known"
    )


def test_a_preset_whose_drafter_is_gone_can_be_deleted(desk: Desk, known_strategies: None) -> None:
    drafter = write_drafter(desk.paths.presets.parent)
    desk.window.settings_page.drafters.files_changed.emit((str(drafter),))
    change(desk, "echo")
    save(desk, "Mine")
    desk.window.settings_page.drafters.files_changed.emit(())
    save(desk, "Other")
    assert names(desk) == ["Mine", "Other"]
    row(desk, "Mine").delete.click()
    assert names(desk) == ["Other"] and b"Mine" not in desk.paths.presets.read_bytes()


def test_a_file_that_cannot_be_written_is_told_where_it_happened(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("app.base.files.write_atomic", refuse)
    save(desk, "A")
    assert names(desk) == [] and panel(desk).field.text() == "A"
    assert "no space left" in panel(desk).notice.message


def test_a_damaged_file_is_told_at_the_start(windows: Windows) -> None:
    windows.paths.presets.parent.mkdir(parents=True)
    windows.paths.presets.write_text("{")
    desk = windows.open(ready=False)
    assert "presets file was damaged" in desk.error()


def test_a_row_says_what_is_behind_the_name() -> None:
    preset = Preset("A", ModelOptions("/m/big.gguf"), ModelOptions(r"C:\m\small.gguf"), "none", WARM)
    assert preset_words(preset) == "none · temperature 0.8 · big.gguf + small.gguf"
    alone = dataclasses.replace(preset, draft=None, target=ModelOptions("bundled:demo_pair/target.gguf"))
    assert preset_words(alone) == "none · temperature 0.8 · bundled target, no draft"


def test_controls_have_names(desk: Desk) -> None:
    save(desk, "A")
    made = row(desk, "A")
    assert made.button.accessibleName() == "A, in use"
    assert made.rename.accessibleName() == "Rename A (F2)"
    assert made.delete.accessibleName() == "Delete A (Del)"
    assert desk.header.presets.accessibleName() == "Presets"


def test_tab_visits_the_rows_before_the_field(desk: Desk) -> None:
    save(desk, "A")
    save(desk, "B")
    row(desk, "A").button.setFocus()
    visited = []
    for _ in range(7):
        visited.append(QApplication.focusWidget().accessibleName())
        desk.press(Qt.Key.Key_Tab, QApplication.focusWidget())
    assert visited == [
        "A, in use", "Rename A (F2)", "Delete A (Del)",
        "B, in use", "Rename B (F2)", "Delete B (Del)", "Name of a new preset",
    ]  # fmt: skip


def test_the_window_outlives_rows_that_were_there_when_the_panel_opened(desk: Desk) -> None:
    for name in "AB":
        save(desk, name)
        desk.header.presets.popover.close_panel()
        desk.qtbot.mouseClick(desk.header.presets, Qt.MouseButton.LeftButton)
        desk.press(Qt.Key.Key_Tab, QApplication.focusWidget())
    gone = row(desk, "A")
    gone.delete.click()
    desk.until(lambda: not isValid(gone))
    assert desk.page.transcript.scroller.top == 0
    desk.window.grab()
