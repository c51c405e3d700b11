"""Sampling, answer length and stop strings."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLineEdit, QPlainTextEdit
from pytestqt.qtbot import QtBot

from app.engine.types import Sampling
from app.saved.settings import Settings
from app.ui.setup.sampling_panel import AnswerOptions, SamplingPanel, chip_words, read_stop, write_stop
from app.ui.theme import Theme
from app.ui.widgets.field import NumberBox
from tests.ui.named import named, words_in


@pytest.fixture
def panel(qtbot: QtBot, theme: Theme) -> SamplingPanel:
    made = SamplingPanel(theme)
    qtbot.addWidget(made)
    made.show()
    return made


def stop_field(panel: SamplingPanel) -> QPlainTextEdit:
    return next(field for field in panel.findChildren(QPlainTextEdit) if field.accessibleName() == "stop")


def test_options_come_back_and_tell_nobody(qtbot: QtBot, panel: SamplingPanel) -> None:
    wanted = AnswerOptions(Sampling(temperature=0.8, top_k=40), 99, ("\n\n", "END"))
    with qtbot.assertNotEmitted(panel.options_changed):
        panel.set_options(wanted)
    assert panel.options() == wanted
    assert stop_field(panel).toPlainText() == "\\n\\n\nEND"


def test_the_defaults_are_those_of_the_settings(panel: SamplingPanel) -> None:
    settings = Settings()
    assert panel.options() == AnswerOptions(settings.sampling, settings.max_tokens, settings.stop)


def number(panel: SamplingPanel, name: str) -> NumberBox:
    return next(box for box in panel.findChildren(NumberBox) if box.accessibleName() == name)


def test_rarer_settings_are_folded_away_until_they_are_in_use(panel: SamplingPanel) -> None:
    assert number(panel, "temperature").isVisible()
    assert not number(panel, "typical_p").isVisible()
    panel.set_options(AnswerOptions(Sampling(temperature=0.8, typical_p=0.9)))
    assert number(panel, "typical_p").isVisible()


def test_texts_that_end_a_repetition_are_typed_as_words(qtbot: QtBot, panel: SamplingPanel) -> None:
    panel.set_options(AnswerOptions(Sampling(dry_multiplier=0.8)))
    fields = panel.findChildren(QLineEdit)
    field = next(field for field in fields if field.accessibleName() == "dry_sequence_breaker")
    assert field.isVisible()
    assert field.text() == r'\n : " *'
    field.selectAll()
    qtbot.keyClicks(field, r"\n User:\x20")
    qtbot.keyClick(field, Qt.Key.Key_Return)
    assert panel.options().sampling == Sampling(dry_multiplier=0.8, dry_sequence_breaker=r"\n User:\x20")


def test_every_field_tells(qtbot: QtBot, panel: SamplingPanel) -> None:
    seen: list[AnswerOptions] = []
    panel.options_changed.connect(seen.append)
    temperature = named(panel, "temperature", NumberBox)
    qtbot.keyClick(temperature, Qt.Key.Key_Up)
    qtbot.keyClick(named(panel, "max_tokens", NumberBox), Qt.Key.Key_Up)
    panel.activateWindow()
    stop_field(panel).setFocus()
    qtbot.waitUntil(stop_field(panel).hasFocus)
    qtbot.keyClicks(stop_field(panel), "END")
    assert not any(sampling.stop for sampling in seen), "no answer ends at an E"
    qtbot.keyClick(stop_field(panel), Qt.Key.Key_Tab)
    assert seen[0] == AnswerOptions(Sampling(temperature=0.05))
    assert seen[-1] == AnswerOptions(Sampling(temperature=0.05), 1025, ("END",))
    assert panel.options() == seen[-1]


def test_wrong_text_changes_nothing_in_use(qtbot: QtBot, panel: SamplingPanel) -> None:
    limit = named(panel, "max_tokens", NumberBox).lineEdit()
    limit.selectAll()
    with qtbot.assertNotEmitted(panel.options_changed):
        qtbot.keyClicks(limit, "0")
        qtbot.keyClick(limit, Qt.Key.Key_Return)
    assert limit.text() == "0"
    assert "from 1 to 1,000,000" in words_in(panel)
    assert panel.options().max_tokens == 1024


def test_half_of_a_number_is_never_in_use(qtbot: QtBot, panel: SamplingPanel) -> None:
    """The start of 99 is 9, a temperature; so is the start of 0.75."""
    seen: list[float] = []
    panel.options_changed.connect(lambda options: seen.append(options.sampling.temperature))
    box = next(box for box in panel.findChildren(NumberBox) if box.accessibleName() == "temperature")
    for text in ("99", "0.75"):
        box.lineEdit().selectAll()
        qtbot.keyClicks(box.lineEdit(), text)
        qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Return)
    assert seen == [0.75]


def test_a_wrong_field_keeps_no_other_from_acting(qtbot: QtBot, panel: SamplingPanel) -> None:
    boxes = {box.accessibleName(): box for box in panel.findChildren(NumberBox)}
    for name, text in (("temperature", "99"), ("top_k", "40")):
        boxes[name].lineEdit().selectAll()
        qtbot.keyClicks(boxes[name].lineEdit(), text)
        qtbot.keyClick(boxes[name].lineEdit(), Qt.Key.Key_Return)
    assert panel.options().sampling == Sampling(top_k=40)


@pytest.mark.parametrize(
    "stop", [(), ("END",), ("\n\n", "a b "), ("\\n",), ("\\", "\t", "\r\n"), ("a\\\nb", "„Ende“")]
)
def test_stop_strings_survive_their_written_form(stop: tuple[str, ...]) -> None:
    assert read_stop(write_stop(stop)) == stop


def test_stop_strings_as_people_write_them() -> None:
    assert read_stop("\nUser:\n\n\\n\\n\nC:\\dir\n") == ("User:", "\n\n", "C:\\dir")


def test_tab_leaves_the_stop_field(panel: SamplingPanel) -> None:
    assert stop_field(panel).tabChangesFocus()


@pytest.mark.parametrize(
    ("sampling", "words"),
    [
        (Sampling(), ("greedy", "")),
        (Sampling(seed=7), ("greedy", "seed 7")),
        (Sampling(temperature=0.8), ("temperature 0.8", "")),
        (Sampling(temperature=1, top_k=40, top_p=0.95), ("temperature 1", "top_k 40 · top_p 0.95")),
    ],
)
def test_chip_words(sampling: Sampling, words: tuple[str, str]) -> None:
    assert chip_words(sampling) == words
