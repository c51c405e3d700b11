"""Lookup caches made in the window: counted in the engine, in use at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.engine.drafters.cache_file import read_cache
from app.engine.strategy import StrategySpec
from app.ui.setup import lookup_caches
from app.ui.setup.lookup_caches import LookupMaker
from tests.ui.windows import Windows


def test_a_lookup_cache_is_made_of_texts_and_is_in_use(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open(strategy="ngram-cache:n_draft=8")
    text, made = tmp_path / "text.txt", tmp_path / "made: of one.lookup"
    text.write_text("the cat sat on the mat, and the cat sat on the hat. " * 4)
    maker = desk.header.strategy_panel.lookup_maker
    maker.wanted.emit((str(text),), str(made))
    desk.until(lambda: "The cache is in use." in maker.told.text())
    (part,) = StrategySpec.parse(desk.window.settings.now.strategy).parts
    assert (part.params.lookup_cache_static, part.params.n_draft) == (str(made), 8)
    assert len(list(read_cache(made, 2**31 - 1))) > 5
    desk.ask("the cat sat")
    assert desk.trace is not None and desk.trace.header.strategy == desk.window.settings.now.strategy


def test_a_text_that_cannot_be_read_is_told(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open(strategy="ngram-cache")
    maker = desk.header.strategy_panel.lookup_maker
    maker.wanted.emit((str(tmp_path / "gone.txt"),), str(tmp_path / "made.lookup"))
    desk.until(lambda: "gone.txt cannot be read" in maker.told.text())
    assert desk.window.settings.now.strategy == "ngram-cache"


def test_it_is_offered_where_ngram_cache_is_in_use(windows: Windows) -> None:
    desk = windows.open(strategy="suffix")
    panel = desk.header.strategy_panel
    assert panel.lookup_maker.isHidden()
    panel.set_spec("suffix+ngram-cache")
    assert not panel.lookup_maker.isHidden()


def test_files_are_asked_for_one_after_the_other(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    chosen: list[tuple[str, ...]] = [(), (str(tmp_path / "a.txt"),)]

    def output(_parent: object, folder: str) -> str:
        asked.append(folder)
        return "/made.lookup"

    monkeypatch.setattr(lookup_caches, "ask_for_texts", lambda _parent: chosen.pop(0))
    monkeypatch.setattr(lookup_caches, "ask_for_output", output)
    maker = LookupMaker()
    qtbot.addWidget(maker)
    maker.button.click()
    assert asked == [], "no text was chosen"
    with qtbot.waitSignal(maker.wanted) as wanted:
        maker.button.click()
    assert wanted.args == [(str(tmp_path / "a.txt"),), "/made.lookup"] and asked == [str(tmp_path)]
    assert maker.told.text() == "Counting…"
