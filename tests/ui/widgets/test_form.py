"""Forms made from parameter dataclasses: every kind of field, right and wrong."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QComboBox,
    QFileDialog,
    QLabel,
    QLineEdit,
    QPushButton,
    QStyle,
    QStyleOptionButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.engine.drafters.draft_simple import DraftSimpleParams
from app.engine.drafters.ngram_cache import NgramCacheParams
from app.engine.errors import SettingError
from app.engine.params import param, params_of
from app.engine.types import Sampling
from app.ui.theme import Theme
from app.ui.widgets.field import Field, FileField, NumberBox, short_range
from app.ui.widgets.form import FoldedPart, ParamForm
from app.ui.widgets.notice import Notice


@dataclass(frozen=True, slots=True)
class Every:
    """One parameter of each kind."""

    name: str = ""  # no parameter: not shown, not touched
    count: int = param(3, "How many.", low=0, high=10, unit="tokens")
    share: float = param(0.5, "How much.", low=0, high=1)
    flag: bool = param(False, "Whether.")
    kind: str = param("one", "Which.", choices=("one", "two"))
    free: str = param("", "Anything.")


@pytest.fixture
def form(qtbot: QtBot, theme: Theme) -> ParamForm:
    made = ParamForm(theme, Every)
    made.set_value(Every("kept"))
    qtbot.addWidget(made)
    made.show()
    return made


def control(form: ParamForm, name: str) -> QWidget:
    return form.field(name).control  # type: ignore[attr-defined]


def type_over(qtbot: QtBot, form: ParamForm, name: str, text: str) -> None:
    box = control(form, name)
    assert isinstance(box, NumberBox)
    box.lineEdit().selectAll()
    qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Delete)
    qtbot.keyClicks(box.lineEdit(), text)
    qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Return)


def reset_button(form: ParamForm) -> QPushButton:
    return next(button for button in form.findChildren(QPushButton) if button.text() == "Reset to defaults")


def test_each_kind_has_its_control(form: ParamForm) -> None:
    kinds = {name: type(control(form, name)) for name in ("count", "share", "flag", "free")}
    assert kinds == {"count": NumberBox, "share": NumberBox, "flag": QCheckBox, "free": QLineEdit}
    assert isinstance(control(form, "kind"), QComboBox)
    with pytest.raises(KeyError):
        form.field("name")


def test_controls_end_at_the_same_edge(qtbot: QtBot, styled: Theme) -> None:
    form = ParamForm(styled, Every)
    qtbot.addWidget(form)
    form.resize(500, 600)
    form.show()
    flag = control(form, "flag")
    assert isinstance(flag, QCheckBox)
    option = QStyleOptionButton()
    flag.initStyleOption(option)
    box = flag.style().subElementRect(QStyle.SubElement.SE_CheckBoxIndicator, option, flag)
    edge = flag.mapTo(form, box.topRight()).x()
    for name in ("count", "kind"):
        there = control(form, name)
        assert 0 <= there.mapTo(form, there.rect().topRight()).x() - edge <= 3


def test_the_value_is_a_dataclass_with_what_was_set(form: ParamForm) -> None:
    wanted = Every("other", count=7, share=0.25, flag=True, kind="two", free="text")
    form.set_value(wanted)
    assert form.value() == wanted


def test_every_control_tells_and_is_told(qtbot: QtBot, form: ParamForm) -> None:
    def edit_all() -> None:
        type_over(qtbot, form, "count", "8")
        type_over(qtbot, form, "share", "0.75")
        qtbot.mouseClick(control(form, "flag"), Qt.MouseButton.LeftButton)
        qtbot.keyClick(control(form, "kind"), Qt.Key.Key_Down)
        qtbot.keyClicks(control(form, "free"), "ab")
        qtbot.keyClick(control(form, "free"), Qt.Key.Key_Return)

    seen: list[Every] = []
    form.changed.connect(lambda: seen.append(form.value()) if form.valid() else None)
    edit_all()
    assert form.value() == Every("kept", 8, 0.75, True, "two", "ab")
    assert seen[-1] == form.value()


def test_setting_a_value_tells_nobody(qtbot: QtBot, form: ParamForm) -> None:
    with qtbot.assertNotEmitted(form.changed):
        form.set_value(Every("kept", 8, 0.75, True, "two", "ab"))


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("count", "11", "from 0 to 10"),
        ("count", "-1", "from 0 to 10"),
        ("count", "2.5", "a whole number"),
        ("count", "", "a whole number"),
        ("count", "many", "a whole number"),
        ("share", "1.01", "from 0 to 1"),
        ("share", "nan", "from 0 to 1"),
        ("share", "1e", "a number"),
    ],
)
def test_wrong_text_is_kept_marked_and_explained(
    qtbot: QtBot, form: ParamForm, name: str, text: str, allowed: str
) -> None:
    type_over(qtbot, form, name, text)
    box = control(form, name)
    assert isinstance(box, NumberBox)
    qtbot.keyClick(box.lineEdit(), Qt.Key.Key_Tab)  # leaving the field does not clamp either
    assert box.lineEdit().text() == text
    assert box.property("state") == "wrong"
    assert allowed in form.field(name).error_text().lower()
    assert form.field(name).error_text().count(".") == 1 + text.count("."), "one sentence"
    with pytest.raises(SettingError):
        form.field(name).value()
    assert form.value() == Every("kept"), "what was right before is still in use"
    type_over(qtbot, form, name, "1")
    assert form.field(name).error_text() == ""
    assert box.property("state") == ""
    assert form.valid()


@pytest.mark.parametrize("leaving", ["enter", "tab", "pause"])
def test_a_number_is_told_once_and_as_a_whole(qtbot: QtBot, form: ParamForm, leaving: str) -> None:
    told: list[object] = []
    form.changed.connect(lambda: told.append((form.value().count, form.field("count").error_text())))
    box = control(form, "count")
    assert isinstance(box, NumberBox)
    form.activateWindow()
    box.setFocus()
    qtbot.waitUntil(box.hasFocus)
    for text, expected in (("10", (10, "")), ("99", (10, "“99” is not a whole number from 0 to 10."))):
        box.selectAll()
        qtbot.keyClicks(box, text)
        assert not told, "nothing is told while the hand moves"
        if leaving == "enter":
            qtbot.keyClick(box, Qt.Key.Key_Return)
        elif leaving == "tab":
            qtbot.keyClick(box, Qt.Key.Key_Tab)
            box.setFocus()
        qtbot.waitUntil(lambda: bool(told))
        assert told == [expected]
        told.clear()


def test_a_wrong_field_keeps_no_other_field_from_acting(qtbot: QtBot, form: ParamForm) -> None:
    type_over(qtbot, form, "count", "99")
    type_over(qtbot, form, "share", "0.25")
    assert form.valid() and form.value() == Every("kept", share=0.25)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("count", "1 0", 10), ("share", "0,25", 0.25), ("share", ".5", 0.5), ("share", "1e-3", 0.001)],
)
def test_numbers_as_people_write_them(
    qtbot: QtBot, form: ParamForm, name: str, text: str, value: float
) -> None:
    type_over(qtbot, form, name, text)
    assert getattr(form.value(), name) == value


def test_keys_step_within_the_limits(qtbot: QtBot, form: ParamForm) -> None:
    count = control(form, "count")
    for _ in range(12):
        qtbot.keyClick(count, Qt.Key.Key_Up)
    assert form.value().count == 10
    qtbot.keyClick(count, Qt.Key.Key_PageDown)
    assert form.value().count == 0
    type_over(qtbot, form, "share", "0.33")
    share = control(form, "share")
    qtbot.keyClick(share, Qt.Key.Key_Up)
    assert form.value().share == 0.35
    qtbot.keyClick(share, Qt.Key.Key_Down)
    qtbot.keyClick(share, Qt.Key.Key_Down)
    assert form.value().share == 0.25


@pytest.mark.parametrize(("name", "text", "value"), [("share", "0,5", 0.55), ("count", "0 4", 5)])
def test_stepping_reads_numbers_as_people_write_them(
    qtbot: QtBot, form: ParamForm, name: str, text: str, value: float
) -> None:
    type_over(qtbot, form, name, text)
    qtbot.keyClick(control(form, name), Qt.Key.Key_Up)
    assert getattr(form.value(), name) == value


def test_stepping_mends_what_is_out_of_range(qtbot: QtBot, form: ParamForm) -> None:
    type_over(qtbot, form, "count", "99")
    qtbot.keyClick(control(form, "count"), Qt.Key.Key_Down)
    assert form.value().count == 10
    type_over(qtbot, form, "count", "x")
    qtbot.keyClick(control(form, "count"), Qt.Key.Key_Up)
    assert form.value().count == 3


def test_the_fields_of_a_form_are_made_when_it_is_shown(qtbot: QtBot, theme: Theme) -> None:
    form = ParamForm(theme, Every)
    form.set_value(Every("kept", count=5))
    qtbot.addWidget(form)
    assert not form.findChildren(Field)
    assert form.valid() and form.value() == Every("kept", count=5)
    form.set_value(Every("other", count=7))
    form.show()
    assert all(field.isVisible() for field in form.findChildren(Field))
    assert form.field("count").value() == 7
    assert form.value() == Every("other", count=7)


def test_the_largest_seed_survives_a_step(qtbot: QtBot, theme: Theme) -> None:
    form = ParamForm(theme, Sampling)
    form.set_value(Sampling(seed=2**63 - 2))
    qtbot.addWidget(form)
    qtbot.keyClick(control(form, "seed"), Qt.Key.Key_Up)
    assert form.value().seed == 2**63 - 1
    qtbot.keyClick(control(form, "seed"), Qt.Key.Key_Up)
    assert form.value().seed == 2**63 - 1


@pytest.mark.parametrize("name", ["count", "kind"])
def test_scrolling_the_form_changes_nothing(qtbot: QtBot, form: ParamForm, name: str) -> None:
    event = QWheelEvent(
        QPointF(5, 5),
        QPointF(5, 5),
        QPoint(),
        QPoint(0, 120),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    widget = control(form, name)
    widget.clearFocus()
    QApplication.sendEvent(widget, event)
    assert form.value() == Every("kept")


def test_reset_goes_back_to_the_defaults(qtbot: QtBot, form: ParamForm) -> None:
    assert not reset_button(form).isEnabled()
    form.set_value(Every("kept", 8, 0.75, True, "two", "ab"))
    assert reset_button(form).isEnabled()
    with qtbot.waitSignal(form.changed):
        qtbot.mouseClick(reset_button(form), Qt.MouseButton.LeftButton)
    assert form.value() == Every("kept")
    type_over(qtbot, form, "count", "wrong")
    qtbot.mouseClick(reset_button(form), Qt.MouseButton.LeftButton)
    assert form.value() == Every("kept")
    assert form.field("count").error_text() == ""


def test_values_that_clash_are_named(qtbot: QtBot, theme: Theme) -> None:
    """Right one by one, wrong together: sampled drafts refuse n_min."""
    form = ParamForm(theme, DraftSimpleParams)
    qtbot.addWidget(form)
    form.show()
    type_over(qtbot, form, "n_min", "2")
    qtbot.mouseClick(control(form, "sample"), Qt.MouseButton.LeftButton)
    notice = form.findChild(Notice)
    assert notice is not None
    assert notice.isVisible()
    assert "n_min" in notice.message
    assert not form.valid()
    type_over(qtbot, form, "n_min", "0")
    assert not notice.isVisible()
    assert form.value() == DraftSimpleParams(sample=True)


def test_what_is_not_first_is_folded_away(qtbot: QtBot, theme: Theme) -> None:
    form = ParamForm(theme, Sampling, first=("temperature", "top_k"))
    qtbot.addWidget(form)
    form.show()
    assert form.field("temperature").isVisible()
    assert not form.field("min_p").isVisible()
    fold = form.findChild(FoldedPart)
    assert fold is not None
    qtbot.keyClick(fold.button, Qt.Key.Key_Space)
    assert form.field("min_p").isVisible()
    assert form.value() == Sampling()


def test_help_and_range_are_there_to_see_hover_and_hear(form: ParamForm) -> None:
    field = form.field("count")
    texts = [label.text() for label in field.findChildren(QLabel)]
    assert "How many." in texts
    assert "0 to 10 tokens" in texts
    assert "How many." in field.toolTip()
    for name in ("count", "share", "flag", "kind", "free"):
        assert control(form, name).accessibleName() == name
        assert "Allowed" in control(form, name).accessibleDescription()


def test_ranges_in_few_characters() -> None:
    texts = {param.name: short_range(param) for param in params_of(Every)}
    assert texts == {"count": "0 to 10 tokens", "share": "0 to 1", "flag": "", "kind": "", "free": ""}


def test_a_file_is_chosen_with_the_systems_dialog(
    qtbot: QtBot, theme: Theme, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = ParamForm(theme, NgramCacheParams)
    qtbot.addWidget(form)
    answers = ["/caches/large.bin", ""]
    asked: list[tuple[str, str]] = []
    for dialog in ("getOpenFileName", "getSaveFileName"):

        def choose(
            _parent: QWidget, _title: str, folder: str, *, dialog: str = dialog, **_: object
        ) -> tuple[str, str]:
            asked.append((folder, dialog))
            return answers.pop(0), ""

        monkeypatch.setattr(QFileDialog, dialog, choose)
    static, dynamic = form.field("lookup_cache_static"), form.field("lookup_cache_dynamic")
    assert isinstance(static, FileField) and isinstance(dynamic, FileField)
    with qtbot.waitSignal(form.changed):
        static.button.click()
    assert form.value() == NgramCacheParams(lookup_cache_static="/caches/large.bin")
    static.button.click()
    assert static.value() == "/caches/large.bin", "nothing chosen, nothing changed"
    answers.append("/caches/new.bin")
    dynamic.button.click()
    assert form.value().lookup_cache_dynamic == "/caches/new.bin"
    assert asked == [
        (str(Path.home()), "getOpenFileName"),
        ("/caches", "getOpenFileName"),
        (str(Path.home()), "getSaveFileName"),
    ]
    assert static.button.accessibleName() == "Choose the file lookup_cache_static"
