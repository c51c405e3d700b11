"""The prompts to try: where they are offered, what they set and say, and the way back."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import QLabel, QPushButton, QScrollArea

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, REAL_TARGET
from app.demo import read_real
from app.engine.types import ModelOptions, Sampling
from app.saved.settings import SettingsStore
from app.ui.chat.try_prompts import GIVE_BACK
from app.ui.transcript.controls import MOST
from app.ui.widgets.buttons import TwoLineButton
from app.ui.widgets.icons import IconButton
from app.ui.widgets.popover import Popover
from app.ui.widgets.segmented import Segmented
from tests.ui.named import named
from tests.ui.test_layout import SHADOW, clipped, resize
from tests.ui.windows import Desk, Windows, chip_text

PROMPTS: list[dict[str, Any]] = [
    {"title": "Code", "strategy": "draft-simple:n_max=4"},
    {"title": "Copied", "strategy": "prompt-lookup:max_ngram_size=2"},
    {"title": "Warm", "strategy": "draft-simple:n_max=2", "temperature": 0.7, "seed": 5},
    {"title": "Small", "strategy": "draft-simple:n_max=4", "draft": "small-draft.gguf"},
    {"title": "Alone", "strategy": "none"},
    {"title": "Drawn", "strategy": "draft-simple:n_max=4:sample=1", "temperature": 1, "seed": 1},
    {"title": "Drawn again", "strategy": "draft-simple:n_max=4:sample=1", "temperature": 1, "seed": 2},
    {"title": "Bare", "strategy": "draft-simple:n_max=4", "mode": "completion"},
]
SAME = "Drawn abcabc"
TITLES = [demo["title"] for demo in PROMPTS]
LOOK = "A sentence of some words, as long as those of the pair are, and one more about "


@pytest.fixture
def bundled(windows: Windows, tmp_path: Path, pair_files: tuple[Path, Path]) -> Windows:
    """Windows that have the tiny pair as the bundled one."""
    resources = tmp_path / "resources"
    resources.mkdir()
    for path in windows.paths.resources.iterdir():
        if path.name != "demo_pair":
            (resources / path.name).symlink_to(path)
    pair = resources / "demo_pair"
    pair.mkdir()
    target, draft = pair_files
    files = {"target": target, "draft": draft, "small-draft": draft}
    for name, file in files.items():
        (pair / f"{name}.gguf").write_bytes(file.read_bytes())
    prompts = [
        {"category": "chat", "prompt": f"{demo['title'].split()[0]} abcabc", "look": LOOK + demo["title"]}
        | demo
        for demo in PROMPTS
    ]
    card = {"files": {name: {"file": f"{name}.gguf"} for name in files}, "prompts": prompts}
    (pair / "pair.json").write_text(json.dumps(card))
    windows.paths = dataclasses.replace(windows.paths, resources=resources)
    return windows


def opened(windows: Windows, **changes: object) -> Desk:
    own: dict[str, Any] = {"target": ModelOptions(BUNDLED_TARGET), "draft": ModelOptions(BUNDLED_DRAFT)}
    own["max_tokens"] = 256
    return windows.open(**own | changes)


def press_shortcut(desk: Desk) -> None:
    desk.window.commands["try"].trigger()


def row(desk: Desk, title: str) -> TwoLineButton:
    return desk.page.prompt.try_panel.rows[title]


def choose(desk: Desk, title: str) -> None:
    """Choose a prompt in the menu and wait for the answer."""
    press_shortcut(desk)
    row(desk, title).click()
    desk.until(lambda: desk.trace is not None and desk.trace.totals is not None)
    desk.until_ready()


def said(desk: Desk) -> tuple[str, str, str]:
    """The remark, what was set, and the way back."""
    remark = desk.page.prompt.remark
    return (remark.message, remark.hint, "".join(remark.ways_out)) if remark.isVisible() else ("", "", "")


def look(title: str) -> str:
    return f"What to look for: {LOOK}{title}"


def in_use(desk: Desk) -> tuple[str, float, str]:
    settings = desk.window.settings.now
    draft = settings.draft
    return settings.strategy, settings.sampling.temperature, draft.path if draft is not None else ""


def other_target(tmp_path: Path, pair_files: tuple[Path, Path]) -> ModelOptions:
    target = tmp_path / "other.gguf"
    target.write_bytes(pair_files[0].read_bytes())
    return ModelOptions(str(target))


def test_a_prompt_of_another_model_loads_it_and_the_users_comes_back(
    bundled: Windows, tmp_path: Path, pair_files: tuple[Path, Path]
) -> None:
    other = other_target(tmp_path, pair_files)
    desk = opened(bundled, target=other, draft=None, strategy="suffix")
    press_shortcut(desk)
    help_line = desk.page.prompt.try_panel.findChildren(QLabel)[1]
    assert help_line.text().startswith("Written for the small pair, which loads when you choose a demo.")
    row(desk, "Small").click()
    desk.answered()
    desk.until_ready()
    assert desk.window.settings.now.target.path == BUNDLED_TARGET
    assert said(desk)[0] == look("Small")
    assert "target small pair (before: other)" in said(desk)[1]
    desk.controller.new_chat()
    desk.until(lambda: desk.window.settings.now.target == other)
    desk.until_ready()
    assert desk.window.settings.now.draft is None and in_use(desk)[0] == "suffix"
    desk.ask("Small abcabc")  # typed
    assert said(desk) == ("This prompt was written for the small pair.", "", "Ask the small pair")
    named(desk.page.prompt.remark, "Ask the small pair", QPushButton).click()
    desk.until(lambda: said(desk)[0] == look("Small"))
    desk.until_ready()


def test_a_prompt_whose_models_cannot_be_loaded_leaves_no_setting_behind(
    bundled: Windows, tmp_path: Path, pair_files: tuple[Path, Path]
) -> None:
    other = other_target(tmp_path, pair_files)
    desk = opened(bundled, target=other, draft=None, strategy="suffix")
    (bundled.paths.resources / "demo_pair" / "target.gguf").write_bytes(b"GGUF")
    press_shortcut(desk)
    row(desk, "Warm").click()
    desk.until(lambda: desk.error() != "")
    now = desk.window.settings.now
    assert (now.target, now.draft) == (other, None) and in_use(desk)[:2] == ("suffix", 0)


@pytest.mark.same_text
def test_a_prompt_starts_cold_and_what_it_sets_is_not_saved(bundled: Windows) -> None:
    own = Sampling(top_k=9, seed=5)
    desk = opened(bundled, sampling=own, stop=("b",), max_tokens=7, system_prompt="Be brief.")
    desk.ask("mine")
    choose(desk, "Warm")
    first = desk.trace
    assert first is not None and first.header.cold and len(first.token_ids) > 7
    assert first.header.sampling == Sampling(temperature=0.7, seed=5) and first.header.stop == ()
    assert "brief" not in first.header.prompt
    desk.window.save()
    stored = SettingsStore(desk.paths.settings).load().settings
    assert (stored.sampling, stored.stop, stored.max_tokens) == (own, ("b",), 7)
    choose(desk, "Warm")
    assert desk.trace is not None and desk.trace.token_ids == first.token_ids
    desk.window.settings.change(strategy="suffix")  # the user's own from now on
    desk.controller.new_chat()
    now = desk.window.settings.now
    assert (now.strategy, now.sampling, now.stop, now.max_tokens) == ("suffix", own, ("b",), 7)


def test_prompts_are_shown_by_the_model_that_they_were_written_for(bundled: Windows) -> None:
    real = bundled.paths.real_target
    real.parent.mkdir()
    real.write_bytes((bundled.paths.resources / "demo_pair" / "target.gguf").read_bytes())
    desk = opened(bundled)
    press_shortcut(desk)
    panel = desk.page.prompt.try_panel
    smol = [demo.title for demo in read_real(bundled.paths.resources)]
    assert [title for title, button in panel.rows.items() if button.isVisible()] == TITLES
    desk.press(Qt.Key.Key_Left, panel.model)
    assert [title for title, button in panel.rows.items() if button.isVisible()] == smol
    panel.rows[smol[0]].click()
    desk.answered()
    desk.until_ready()
    assert desk.window.settings.now.target.path == REAL_TARGET
    desk.controller.new_chat()
    desk.until(lambda: desk.window.settings.now.target.path == BUNDLED_TARGET)
    desk.until_ready()


def test_an_empty_chat_shows_the_titles_whatever_target_is_loaded(
    bundled: Windows, tmp_path: Path, pair_files: tuple[Path, Path]
) -> None:
    desk = opened(bundled, strategy="suffix")

    def offered() -> list[QPushButton]:
        shown = [button for button in desk.page.transcript.findChildren(QPushButton) if button.isVisible()]
        return [button for button in shown if button.text() in TITLES]

    assert [button.text() for button in offered()] == TITLES[:MOST]
    desk.load(other_target(tmp_path, pair_files).path)
    assert [button.text() for button in offered()] == TITLES[:MOST]
    desk.qtbot.mouseClick(offered()[TITLES.index("Copied")], Qt.MouseButton.LeftButton)
    desk.answered()
    assert desk.texts()[0] == "Copied abcabc"
    assert in_use(desk)[0] == "prompt-lookup:max_ngram_size=2", "asked in the same way as from the menu"


def test_a_prompt_is_asked_with_what_it_names_and_says_so(bundled: Windows) -> None:
    desk = opened(bundled, sampling=Sampling(top_k=9, seed=5))
    desk.ask("mine")
    choose(desk, "Copied")
    assert desk.texts()[0] == "Copied abcabc" and len(desk.items()) == 2, "in a chat of its own"
    trace = desk.trace
    assert trace is not None and trace.header.strategy == "prompt-lookup:max_ngram_size=2"
    assert chip_text(desk.header.strategy).startswith("prompt-lookup:max_ngram_size=2")
    assert said(desk) == (
        look("Copied"),
        "Changed for this demo: strategy prompt-lookup:max_ngram_size=2 (before: draft-simple:n_max=4),"
        " sampling greedy (before: greedy · top_k 9).",
        GIVE_BACK,
    )
    assert row(desk, "Copied").current and not row(desk, "Code").current
    choose(desk, "Warm")
    trace = desk.trace
    assert trace is not None
    assert trace.header.sampling == Sampling(temperature=0.7, seed=5)
    assert chip_text(desk.header.sampling).startswith("temperature 0.7")
    assert "strategy draft-simple:n_max=2 (before: draft-simple:n_max=4)" in said(desk)[1]
    assert "sampling temperature 0.7 (before: greedy · top_k 9)" in said(desk)[1]
    named(desk.page.prompt.remark, GIVE_BACK, QPushButton).click()
    assert in_use(desk) == ("draft-simple:n_max=4", 0.0, BUNDLED_DRAFT), "those from before both"
    assert said(desk)[0] == look("Warm") and not said(desk)[2]
    assert "Made for draft-simple:n_max=2 · temperature 0.7" in said(desk)[1]


def test_a_prompt_that_changes_nothing_says_what_to_look_for_only(bundled: Windows) -> None:
    desk = opened(bundled)
    choose(desk, "Code")
    assert said(desk) == (look("Code"), "", "")
    desk.header.strategy_panel.text.typed.emit("none")
    assert said(desk)[1].startswith("Made for draft-simple:n_max=4 · greedy.")
    desk.header.strategy_panel.text.typed.emit("draft-simple:n_max=4")
    desk.window.pair.load(ModelOptions(BUNDLED_TARGET), None)
    desk.until(lambda: said(desk)[1])
    assert said(desk)[1].startswith("Made for draft-simple:n_max=4 · greedy, with the draft draft.gguf.")


def test_two_prompts_that_ask_the_same_are_told_apart_by_what_is_in_use(bundled: Windows) -> None:
    desk = opened(bundled)
    choose(desk, "Drawn")
    assert "sampling temperature 1 (before: greedy), seed 1 (before: random)" in said(desk)[1]
    first = desk.texts()
    choose(desk, "Drawn again")
    assert said(desk)[0] == look("Drawn again") and "seed 2 (before: random)" in said(desk)[1]
    assert row(desk, "Drawn again").current and not row(desk, "Drawn").current
    assert desk.texts()[0] == first[0] == SAME and desk.texts()[1] != first[1]
    assert row(desk, "Drawn again").accessibleDescription().endswith("temperature 1 · seed 2")
    named(desk.page.prompt.remark, GIVE_BACK, QPushButton).click()
    assert said(desk)[0] == look("Drawn"), "the first one where neither's settings are in use"
    assert "Made for" in said(desk)[1]


def test_a_prompt_of_bare_text_is_asked_as_it_is(bundled: Windows) -> None:
    desk = opened(bundled)
    choose(desk, "Bare")
    assert desk.trace is not None and desk.trace.header.prompt == "Bare abcabc"
    assert said(desk)[0] == look("Bare")
    assert row(desk, "Bare").accessibleDescription() == "draft-simple:n_max=4 · greedy · completion"
    desk.controller.new_chat()
    assert named(desk.page.prompt, "Mode: chat", Segmented), "new chats are as before"


def test_a_smaller_draft_is_loaded_and_the_first_one_put_back(bundled: Windows) -> None:
    desk = opened(bundled, draft=ModelOptions(BUNDLED_DRAFT, threads=1))
    choose(desk, "Small")
    trace = desk.trace
    assert trace is not None and trace.header.pair.draft is not None
    assert trace.header.pair.draft.path.endswith("small-draft.gguf")
    assert "draft small-draft.gguf (before: draft.gguf)" in said(desk)[1]
    named(desk.page.prompt.remark, GIVE_BACK, QPushButton).click()
    desk.until_ready()
    assert desk.window.settings.now.draft == ModelOptions(BUNDLED_DRAFT, threads=1)


def test_a_draft_is_taken_along_only_where_one_is_needed(bundled: Windows) -> None:
    desk = opened(bundled, draft=None, strategy="none")
    choose(desk, "Copied")
    assert desk.window.settings.now.draft is None
    choose(desk, "Code")
    assert in_use(desk)[2] == BUNDLED_DRAFT
    assert "draft draft.gguf (before: none)" in said(desk)[1]


def test_while_an_answer_is_written_nothing_is_changed(bundled: Windows) -> None:
    desk = opened(bundled, max_tokens=900, strategy="none")
    desk.type("go")
    desk.until_streaming(5)
    chat = desk.controller.shown.id
    press_shortcut(desk)
    row(desk, "Copied").click()
    notice = desk.page.prompt.try_panel.notice
    assert notice.isVisible() and "busy" in notice.message, "said where it was chosen"
    assert in_use(desk)[0] == "none" and desk.controller.shown.id == chat
    desk.controller.stop()
    desk.until_ready()


def test_what_is_chosen_while_the_models_load_is_asked_when_they_are_there(bundled: Windows) -> None:
    desk = bundled.open(ready=False, target=ModelOptions(BUNDLED_TARGET), draft=ModelOptions(BUNDLED_DRAFT))
    choose(desk, "Alone")
    assert desk.texts()[0] == "Alone abcabc" and said(desk)[0] == look("Alone")
    assert desk.trace is not None and desk.trace.header.strategy == "none"


def test_the_remark_belongs_to_its_chat(bundled: Windows) -> None:
    desk = opened(bundled, max_tokens=24)
    choose(desk, "Alone")
    chat = desk.controller.shown.id
    desk.controller.new_chat()
    assert said(desk) == ("", "", "")
    desk.controller.open_chat(chat)
    assert said(desk)[0] == look("Alone")
    desk.ask("and now?")
    assert said(desk) == ("", "", ""), "another question"
    desk.ask("Warm abcabc")  # typed
    assert said(desk)[0] == look("Warm")
    named(desk.page.prompt.remark, "Dismiss this notice", IconButton).click()
    desk.controller.regenerate()
    desk.answered()
    assert said(desk) == ("", "", ""), "dismissed"


def test_it_is_a_message_where_new_chats_are_bare_text(bundled: Windows) -> None:
    desk = opened(bundled, mode="completion")
    choose(desk, "Code")
    assert named(desk.page.prompt, "Mode: chat", Segmented)
    assert desk.trace is not None and "<|im_start|>" in desk.trace.header.prompt
    desk.controller.new_chat()
    assert named(desk.page.prompt, "Mode: completion", Segmented)


def test_the_keyboard_does_all_of_it(bundled: Windows) -> None:
    desk = opened(bundled)
    desk.window.activateWindow()
    desk.window.go("settings")
    press_shortcut(desk)
    assert desk.page.isVisible()
    first, second = row(desk, "Code"), row(desk, "Copied")
    desk.until(first.hasFocus)
    assert first.accessibleName() == "Code"
    assert first.accessibleDescription() == "draft-simple:n_max=4 · greedy"
    desk.press(Qt.Key.Key_Tab, first)
    assert second.hasFocus()
    desk.press(Qt.Key.Key_Escape, second)
    assert not first.isVisible() and desk.prompt.hasFocus()
    assert "Ctrl+T" in desk.page.prompt.try_this.accessibleName()
    press_shortcut(desk)
    desk.press(Qt.Key.Key_Right, first)
    assert second.hasFocus()
    desk.press(Qt.Key.Key_Return, second)
    desk.answered()
    assert desk.texts()[0] == "Copied abcabc" and desk.prompt.hasFocus()
    assert second.accessibleName() == "Copied, in use"


@pytest.mark.parametrize("scale", [1.0, 1.5])
@pytest.mark.parametrize("size", [(760, 480), (1100, 700), (1920, 1080)])
def test_the_menu_is_above_its_button_and_inside_the_window(
    bundled: Windows, scale: float, size: tuple[int, int]
) -> None:
    desk = opened(bundled, text_scale=scale)
    choose(desk, "Copied")
    resize(desk, *size)
    assert clipped(desk.page.prompt) == []
    remark, send = desk.page.prompt.remark, named(desk.page.prompt, "Send", IconButton)
    assert remark.isVisible()
    if size[1] >= 480 * scale:
        desk.until(lambda: remark.height() >= remark.heightForWidth(remark.width()))
        assert send.height() >= send.sizeHint().height()
    press_shortcut(desk)
    button = desk.page.prompt.try_this
    (card,) = [popover for popover in desk.window.findChildren(Popover) if popover.isVisible()]
    shown = QRect(card.mapTo(desk.window, QPoint(16, 16)), card.size().shrunkBy(SHADOW))
    assert desk.window.rect().contains(shown)
    assert shown.bottom() < button.mapTo(desk.window, QPoint(0, 0)).y()
    rows = desk.page.prompt.try_panel.rows.values()
    assert all(row.width() >= row.minimumSizeHint().width() for row in rows)
    area = card.findChild(QScrollArea)
    assert area is not None
    if size[1] >= 700:
        assert area.verticalScrollBar().maximum() == 0, "all of them in sight"
