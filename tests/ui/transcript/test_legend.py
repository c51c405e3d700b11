from __future__ import annotations

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.engine.fates import FATES
from app.ui.theme import DARK, LIGHT, Theme
from app.ui.transcript import Legend
from app.ui.transcript.controls import FateLegend
from tests.ui.pixels import colours_of


def colours(widget) -> set[str]:
    return set(colours_of(widget.grab().toImage()))


def legend(qtbot: QtBot, theme: Theme) -> Legend:
    made = Legend(theme)
    qtbot.addWidget(made)
    made.show()
    return made


def test_a_sample_of_every_fate(qtbot: QtBot, theme: Theme) -> None:
    made = legend(qtbot, theme)
    assert tuple(made.samples) == tuple(FATES)
    for fate, sample in made.samples.items():
        assert sample.toolTip().startswith(f"{fate}: ")
        assert sample.accessibleName() == fate
        if fate != "plain":
            assert LIGHT.fate(fate) in colours(sample)
    theme.set_mode("dark")
    assert DARK.tint("bonus") in colours(made.samples["bonus"])


def test_a_legend_beside_a_text_is_there_if_it_has_room(qtbot: QtBot, theme: Theme) -> None:
    made = FateLegend(theme)
    qtbot.addWidget(made)
    line = made.fit(2_000, 200)
    assert 0 < line < made.fit(150, 500) and made.isVisible()
    assert made.fit(150, line) == 0 and made.isHidden()
    assert made.fit(10, 500) == 0 and made.isHidden()


def test_samples_on_several_lines_are_in_columns(qtbot: QtBot, theme: Theme) -> None:
    made = FateLegend(theme)
    qtbot.addWidget(made)
    made.show_fates(["accepted", "resampled", "rejected"])
    whole, widest = made.row.sizeHint().width(), made.samples["resampled"].sizeHint().width()
    made.resize(2 * widest + 12, made.fit(2 * widest + 12, 500))
    seen = {fate: sample.x() for fate, sample in made.samples.items() if sample.isVisible()}
    assert seen == {"accepted": 0, "resampled": widest + 12, "rejected": 0}
    assert made.fit(whole, 500) < made.fit(whole - 1, 500), "again on one line, without columns"


def test_resampled_is_explained_as_the_targets_choice_at_temperature_0(qtbot: QtBot, theme: Theme) -> None:
    made = legend(qtbot, theme)
    sample = made.samples["resampled"]
    drawn = sample.toolTip()
    made.set_undrawn(True)
    assert sample.accessibleName() == "resampled" and sample.toolTip().startswith(
        "resampled: the target's choice"
    )
    assert sample.accessibleDescription() == FATES["resampled"].undrawn
    assert made.samples["bonus"].toolTip() == FATES["bonus"].explained("bonus")
    made.set_undrawn(False)
    assert sample.toolTip() == drawn


def test_switches_by_mouse_and_keyboard(qtbot: QtBot, theme: Theme) -> None:
    made = legend(qtbot, theme)
    assert made.drafts_shown.isChecked() and not made.rendered.isChecked()
    with qtbot.waitSignal(made.drafts_shown_changed) as told:
        qtbot.mouseClick(made.drafts_shown, Qt.MouseButton.LeftButton)
    assert told.args == [False]
    with qtbot.waitSignal(made.rendered_changed) as told:
        qtbot.keyClick(made.rendered, Qt.Key.Key_Space)
    assert told.args == [True]


def test_rendered_text_has_no_place_for_drafts(qtbot: QtBot, theme: Theme) -> None:
    made = legend(qtbot, theme)
    made.rendered.setChecked(True)
    assert not made.drafts_shown.isEnabled()
    made.rendered.setChecked(False)
    assert made.drafts_shown.isEnabled()


def test_on_and_off_differ_in_more_than_colour(qtbot: QtBot, theme: Theme) -> None:
    """The knob is at the other end."""
    made = legend(qtbot, theme)
    switch = made.drafts_shown
    on = switch.grab().toImage()
    switch.setChecked(False)
    off = switch.grab().toImage()
    assert on != off
