"""Chips share the room that buttons leave: in the head of the chat and in that of Compare."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.engine.types import ModelOptions
from app.ui.theme import Theme
from app.ui.widgets.chip import Chip, ChipRow, chip_widths
from app.ui.widgets.words import file_size
from tests.ui.windows import Windows

WIDTHS = [(300, 200, 150, 100), (280, 180, 140, 90), (200, 150, 100, 80), (150, 150, 120, 110)]


def test_details_go_first_then_captions_then_names_are_cut() -> None:
    assert chip_widths(WIDTHS, 2000) == [300, 280, 200, 150]
    assert chip_widths(WIDTHS, 929) == [200, 280, 200, 150]
    assert chip_widths(WIDTHS, 680) == [200, 180, 150, 150]
    assert chip_widths(WIDTHS, 640) == [150, 180, 150, 150]
    assert chip_widths(WIDTHS, 500) == [145, 135, 100, 120]
    assert chip_widths(WIDTHS, 0) == [100, 90, 80, 110]


@given(
    st.lists(
        st.tuples(*[st.integers(20, 400)] * 4).map(lambda sizes: tuple(sorted(sizes, reverse=True))),
        min_size=4,
        max_size=4,
    ),
    st.integers(0, 2000),
)
def test_no_more_room_is_taken_than_there_is(widths: list[tuple[int, int, int, int]], room: int) -> None:
    given_widths = chip_widths(widths, room)
    least = sum(sizes[3] for sizes in widths)
    assert sum(given_widths) <= max(room, least)
    assert all(sizes[3] <= width <= sizes[0] for sizes, width in zip(widths, given_widths, strict=True))


def test_a_row_gives_its_chips_what_its_buttons_leave(qtbot: QtBot, theme: Theme) -> None:
    row = ChipRow(theme)
    qtbot.addWidget(row)
    button = QPushButton("A button with a lot of words")
    row.chips = tuple(Chip(theme, f"caption {at}") for at in range(4))
    row.others = (button,)
    for part in (*row.chips, button):
        row.row.addWidget(part)
    for chip in row.chips:
        chip.set_text("a value", "and a detail of some length")
    row.resize(2000, 60)
    row.show()
    row.restyle()
    assert [chip.width() for chip in row.chips] == [chip.widths()[0] for chip in row.chips]
    room = row.room()
    button.hide()
    assert row.room() == room + button.sizeHint().width() + 8
    button.show()
    row.resize(700, 60)
    row.fit()
    assert sum(chip.minimumWidth() for chip in row.chips) <= row.room()
    assert row.minimumSizeHint().width() == 0


def test_the_draft_is_dimmed_where_the_strategy_uses_none(windows: Windows) -> None:
    desk = windows.open(strategy="draft-simple")
    lit = desk.header.draft.grab().toImage()
    assert "does not draft with a model" not in desk.header.draft.toolTip()
    desk.window.settings.change(strategy="suffix")
    assert "suffix, does not draft with a model" in desk.header.draft.toolTip()
    assert desk.header.draft.grab().toImage() != lit
    desk.window.settings.change(strategy="suffix+draft-simple")
    assert "does not draft with a model" not in desk.header.draft.toolTip()


def test_a_pair_of_one_name_is_told_apart(windows: Windows, pair_files: tuple[Path, Path]) -> None:
    target, _draft = pair_files
    repository = windows.paths.config / "models--owner--tiny-GGUF" / "snapshots" / "a1"
    repository.mkdir(parents=True)
    other = repository / "other.gguf"
    other.write_bytes(target.read_bytes())
    desk = windows.open(draft=ModelOptions(str(other)), strategy="none")
    target_words, draft_words = desk.header.target.toolTip(), desk.header.draft.toolTip()
    assert target.name in target_words
    assert f"other.gguf · owner/tiny-GGUF · {file_size(other.stat().st_size)}" in draft_words
    assert desk.header.target.text_shown(1000)[0] != desk.header.draft.text_shown(1000)[0]


def test_chips_never_overlap_not_even_before_the_next_layout(qtbot: QtBot, theme: Theme) -> None:
    row = ChipRow(theme)
    qtbot.addWidget(row)
    row.chips = tuple(Chip(theme, f"caption {at}") for at in range(4))
    for chip in row.chips:
        chip.set_text("a value", "and a detail of some length")
        row.row.addWidget(chip)
    row.resize(1600, 60)
    row.show()
    qtbot.waitExposed(row)
    for width in (700, 1500, 640, 1100):
        row.resize(width, 60)  # what is painted at once
        for left, right in pairwise(row.chips):
            assert left.geometry().right() < right.geometry().left(), width


def test_a_name_is_cut_before_the_words_target_and_draft_go(qtbot: QtBot, theme: Theme) -> None:
    row = ChipRow(theme)
    qtbot.addWidget(row)
    row.chips = tuple(Chip(theme, name, caption_stays=at < 2) for at, name in enumerate(("target", "draft")))
    row.chips += tuple(Chip(theme, f"caption {at}") for at in range(2))
    for chip in row.chips:
        row.row.addWidget(chip)
        chip.set_text("SmolLM2-135M-Instruct", "Q4_1")
    row.resize(sum(chip.widths()[2] for chip in row.chips) - 20, 60)
    row.show()
    row.restyle()
    target, draft, *others = row.chips
    assert "…" in target.text_shown(target.width())[0]
    assert target.width() + draft.width() < 2 * target.widths()[1], "their words are beside the names"
    assert all(chip.width() <= chip.widths()[2] for chip in others), "these have only their values"
    assert target.widths()[3] > others[0].widths()[3], "however narrow"
