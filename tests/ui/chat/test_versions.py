"""Versions of an answer in the window: arrows, the comparison, and where the chat goes on."""

from __future__ import annotations

from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QAbstractButton, QLabel

from app.engine.types import Sampling
from app.ui.chat.versions import VersionsPanel
from app.ui.transcript.controls import VersionBar
from tests.ui.named import all_named, named, words_in
from tests.ui.windows import Desk, Windows


def bar(desk: Desk) -> VersionBar:
    (shown,) = (bar for bar in desk.page.transcript.findChildren(VersionBar) if not bar.isHidden())
    return shown


def number(desk: Desk) -> str:
    return words_in(bar(desk))


def again(desk: Desk) -> None:
    desk.controller.regenerate()
    desk.answered()


def test_a_regenerated_answer_keeps_the_former_ones(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("Hello")
    assert not desk.page.transcript.findChildren(VersionBar)
    first = desk.trace
    again(desk)
    second = desk.trace
    again(desk)
    assert number(desk) == "3/3" and not bar(desk).after.isEnabled()
    named(bar(desk), "Version 2 of 3", QAbstractButton).click()
    assert desk.trace == second and number(desk) == "2/3"
    named(bar(desk), "Version 1 of 3", QAbstractButton).click()
    assert desk.trace == first and number(desk) == "1/3"
    desk.ask("Go on")
    assert desk.trace is not None and first is not None and second is not None
    said = [message.content for message in desk.trace.header.messages]
    assert said == ["Hello", first.text, "Go on"]
    desk.window.save()
    later = windows.open()
    assert number(later) == "1/3" and len(later.texts()) == 4
    named(bar(later), "Version 2 of 3", QAbstractButton).click()
    assert later.texts() == ["Hello", second.text]
    named(bar(later), "Version 1 of 3", QAbstractButton).click()
    assert later.texts()[:2] == ["Hello", first.text] and len(later.texts()) == 4


def test_the_bar_grows_with_the_text_and_stays_at_its_edge(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("Hello")
    again(desk)
    before, right = bar(desk).width(), bar(desk).geometry().right()
    desk.window.appearance.set_scale(1.6)
    desk.until(lambda: bar(desk).width() >= bar(desk).sizeHint().width() > before)
    desk.window.appearance.set_scale(1.0)
    desk.until(lambda: (bar(desk).width(), bar(desk).geometry().right()) == (before, right))


def test_a_long_strategy_is_wrapped_in_the_table(windows: Windows) -> None:
    desk = windows.open(strategy="ngram-map-k:size_n=4:size_m=12+draft-simple:n_max=4", text_scale=1.6)
    desk.ask("Hello")
    panel = VersionsPanel([desk.trace, None], 0)
    panel.setParent(desk.window)
    assert panel.minimumSizeHint().width() < 900


def test_the_arrows_are_walked_by_keys(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("Hello")
    again(desk)
    again(desk)
    bar(desk).before.setFocus()
    for now in ("2/3", "1/3"):
        desk.press(Qt.Key.Key_Space, bar(desk).before)
        assert number(desk) == now
    assert bar(desk).after.hasFocus(), "there is nothing before the first"
    desk.press(Qt.Key.Key_Space, bar(desk).after)
    assert number(desk) == "2/3" and bar(desk).after.hasFocus()


def test_versions_are_compared_and_inspected(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("Hello")
    first = desk.trace
    desk.window.settings.change(sampling=Sampling(temperature=2.0, seed=3))
    again(desk)
    assert first is not None and desk.trace is not None
    n = len(first.token_ids)
    bar(desk).compare.click()
    (panel,) = desk.window.findChildren(VersionsPanel)
    words = [label.text() for label in panel.findChildren(QLabel)]
    assert (words[6], words[8]) == ("1", str(n)) and "in the chat" in words
    assert words[7].endswith("greedy") and "temperature 2" in words[13], "how each was made"
    ids = zip(first.token_ids, desk.trace.token_ids, strict=False)
    parts = next(at for at, (one, other) in enumerate(ids, 1) if one != other)
    assert f"diverges at token {parts}:" in words_in(panel)
    unread = VersionsPanel([first, None], 1)
    desk.qtbot.addWidget(unread)
    assert "The tokens of the version in the chat are lost." in words_in(unread)
    named(panel, "Inspect version 1", QAbstractButton).click()
    assert desk.window.inspection.answer is not None
    assert desk.window.inspection.answer.trace == first
    assert desk.window.inspection.name == "Hello, version 1 of 2"
    assert not all_named(desk.window, "Inspect version 1", QAbstractButton), "the table is closed"


def test_versions_are_reached_by_the_menu_key_and_not_while_one_is_written(windows: Windows) -> None:
    desk = windows.open(max_tokens=100_000)
    desk.type("Hello")
    desk.until_streaming(8)
    desk.controller.stop()
    desk.until_ready()
    desk.controller.regenerate()
    desk.until_streaming(8)
    transcript = desk.page.transcript
    below = transcript.stack.top(1) + 40 - transcript.scroller.top
    menu = {
        action.text(): action
        for action in transcript.make_menu(QPoint(transcript.column[0], below)).actions()
    }
    assert menu["Previous version"].isEnabled() and not menu["Next version"].isEnabled()
    menu["Previous version"].trigger()
    assert "busy" in desk.error() and number(desk) == "2/2"
    desk.controller.stop()
    desk.until_ready()
    menu["Previous version"].trigger()
    assert number(desk) == "1/2"
