"""Cards, rules and text of the strategy panel always say the same."""

from __future__ import annotations

import dataclasses
import re
import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QApplication,
    QLabel,
    QLineEdit,
    QListView,
    QMainWindow,
    QPushButton,
    QToolButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from app.engine.compat import FitKind, VocabularyFit
from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.explain.purposes import PURPOSES
from app.engine.lengths.registry import LENGTHS
from app.engine.plugins import use_drafters
from app.engine.process.messages import PassSeconds
from app.engine.rules.registry import RULES
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, PairInfo, Sampling
from app.ui.setup.strategy_cards import StrategyCard, StrategyList
from app.ui.setup.strategy_panel import IDLE, WIDTH, StrategyContext, StrategyPanel
from app.ui.theme import Theme
from app.ui.widgets.field import FileField, NumberBox
from app.ui.widgets.labels import MonoText
from app.ui.widgets.notice import Notice
from app.ui.widgets.popover import Popover
from app.ui.widgets.segmented import Segmented
from tests.files.drafter_files import PHRASE_TRIE
from tests.ui.named import all_named, named
from tests.ui.traces import model

MODELS = ModelOptions("/models/target.gguf"), ModelOptions("/models/draft.gguf")
Key = Qt.Key


@pytest.fixture
def panel(qtbot: QtBot, theme: Theme) -> StrategyPanel:
    made = StrategyPanel(theme)
    made.set_spec("draft-simple:n_max=4")
    use_with(made)
    qtbot.addWidget(made)
    made.resize(WIDTH, 900)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow)
    return made


@pytest.fixture
def a_plug_in(known_strategies: None) -> Iterator[str]:
    assert not use_drafters([str(PHRASE_TRIE)])
    yield "phrase-trie"


def use_with(
    panel: StrategyPanel, temperature: float = 0.0, draft: bool = True, vocabulary: str = ""
) -> None:
    sampling = Sampling(temperature=temperature)
    around = StrategyContext(MODELS[0], MODELS[1] if draft else None, sampling, 64, vocabulary)
    panel.set_surroundings(around)


def text(panel: StrategyPanel) -> QLineEdit:
    return next(
        field for field in panel.findChildren(QLineEdit) if field.accessibleName() == "Strategy as text"
    )


def retype(qtbot: QtBot, panel: StrategyPanel, spec: str) -> None:
    line = text(panel)
    line.selectAll()
    qtbot.keyClick(line, Key.Key_Delete)
    qtbot.keyClicks(line, spec)
    qtbot.keyClick(line, Key.Key_Return)


def card(panel: StrategyPanel, name: str) -> StrategyCard:
    return next(card for card in panel.findChildren(StrategyCard) if card.name == name and card.isVisible())


def number(panel: StrategyPanel, strategy: str, name: str) -> NumberBox:
    form = card(panel, strategy).form
    assert form is not None
    box = form.field(name).control  # type: ignore[attr-defined]
    assert isinstance(box, NumberBox)
    return box


def press(qtbot: QtBot, widget: QWidget) -> None:
    qtbot.mouseClick(widget, Qt.MouseButton.LeftButton)


def button(panel: StrategyPanel, name: str) -> QToolButton:
    return next(button for button in panel.findChildren(QToolButton) if button.accessibleName() == name)


def opened(panel: StrategyPanel) -> QListView:
    """The rows of the list that is open."""
    shown = panel.findChild(StrategyList)
    assert shown is not None and shown.isVisible()
    view = shown.findChild(QListView)
    assert view is not None
    return view


def offered(panel: StrategyPanel) -> list[str]:
    """What can be taken from the list that is open."""
    model = opened(panel).model()
    rows = [model.index(row, 0) for row in range(model.rowCount())]
    return [row.data() for row in rows if row.flags() & Qt.ItemFlag.ItemIsEnabled]


def click_row(qtbot: QtBot, panel: StrategyPanel, name: str) -> None:
    view = opened(panel)
    model = view.model()
    index = next(
        index for index in (model.index(row, 0) for row in range(model.rowCount())) if index.data() == name
    )
    view.scrollTo(index)
    qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(index).center())


def pick(qtbot: QtBot, panel: StrategyPanel, name: str, instead_of: str = "") -> None:
    """Choose a strategy in place of another one, by default of the first."""
    shown = picked(panel)
    press(qtbot, card(panel, instead_of or shown[0]).picker)
    click_row(qtbot, panel, name)


def add(qtbot: QtBot, panel: StrategyPanel, name: str) -> None:
    press(qtbot, panel.cards.add)
    click_row(qtbot, panel, name)


def picked(panel: StrategyPanel) -> list[str]:
    """The strategies whose cards are shown, from top to bottom."""
    cards = [card for card in panel.findChildren(StrategyCard) if card.isVisible()]
    return [card.name for card in sorted(cards, key=lambda card: card.y())]


def errors(panel: StrategyPanel) -> str:
    visible = [label for label in panel.findChildren(QLabel) if label.isVisible()]
    return "\n".join(label.text() for label in visible if label.property("role") == "error")


def notice(panel: StrategyPanel) -> str:
    shown = [notice.message for notice in panel.findChildren(Notice) if notice.isVisible()]
    return "\n".join(shown)


def command(panel: StrategyPanel) -> str:
    shown = panel.command.findChild(MonoText)
    assert shown is not None
    return shown.text().replace("\u00a0", " ") if shown.isVisible() else ""


def captions(widget: QWidget) -> list[str]:
    labels = [label for label in widget.findChildren(QLabel) if label.isVisible()]
    return [label.text() for label in labels if label.property("role") == "caption"]


# ------------------------------------------------------------------------------------- one spec


def test_a_spec_shows_everywhere(qtbot: QtBot, panel: StrategyPanel) -> None:
    spec = "prompt-lookup:num_pred_tokens=5:verify=match:length=ewma"
    panel.set_spec(spec)
    assert picked(panel) == ["prompt-lookup"]
    assert number(panel, "prompt-lookup", "num_pred_tokens").value() == 5
    assert panel.rule.choices.choice() == "match" and RULES["match"].summary in captions(panel.rule)
    assert panel.length.choices.choice() == "ewma" and LENGTHS["ewma"].summary in captions(panel.length)
    assert text(panel).text() == panel.spec() == spec
    panel.set_spec("suffix+ngram-mod:n_max=80+draft-simple")
    qtbot.waitUntil(lambda: picked(panel) == ["suffix", "ngram-mod", "draft-simple"])
    assert number(panel, "ngram-mod", "n_max").value() == 80


def test_the_form_writes_the_text(qtbot: QtBot, panel: StrategyPanel) -> None:
    with qtbot.waitSignal(panel.spec_changed) as told:
        qtbot.keyClick(number(panel, "draft-simple", "n_max"), Key.Key_Up)
    assert told.args == ["draft-simple:n_max=5"]
    assert text(panel).text() == "draft-simple:n_max=5"


def test_reset_brings_the_defaults_back(qtbot: QtBot, panel: StrategyPanel) -> None:
    reset = next(
        button
        for button in panel.findChildren(QPushButton)
        if button.text() == "Reset to defaults" and button.isVisible()
    )
    assert reset.isEnabled()
    press(qtbot, reset)
    assert panel.spec() == "draft-simple"
    assert not reset.isEnabled()


def test_a_wrong_field_leaves_the_last_right_spec(qtbot: QtBot, panel: StrategyPanel) -> None:
    box = number(panel, "draft-simple", "n_max")
    box.lineEdit().end(False)
    with qtbot.assertNotEmitted(panel.spec_changed):
        qtbot.keyClicks(box.lineEdit(), "x")
        qtbot.keyClick(box.lineEdit(), Key.Key_Return)
    assert panel.spec() == "draft-simple:n_max=4"
    assert "from 1 to 512" in errors(panel)
    qtbot.keyClick(panel.rule.choices, Key.Key_Right)
    assert panel.spec() == "draft-simple:n_max=4:verify=greedy"
    assert box.lineEdit().text() == "4x"  # kept, whatever else is changed


def test_the_text_fills_the_forms(qtbot: QtBot, panel: StrategyPanel) -> None:
    seen: list[str] = []
    panel.spec_changed.connect(seen.append)
    retype(qtbot, panel, "prompt-lookup:max_ngram_size=2")
    assert seen[-1] == "prompt-lookup:max_ngram_size=2"
    assert picked(panel) == ["prompt-lookup"]
    assert number(panel, "prompt-lookup", "max_ngram_size").value() == 2
    assert text(panel).text() == "prompt-lookup:max_ngram_size=2"  # untouched while typing
    assert errors(panel) == ""


def test_nothing_that_is_clicked_moves_while_the_panel_is_open(qtbot: QtBot, panel: StrategyPanel) -> None:
    number_box = number(panel, "draft-simple", "p_min")
    watched = (panel.length.choices, panel.rule.choices, text(panel), number_box)

    def places() -> list[QPoint]:
        QApplication.processEvents()
        return [widget.mapTo(panel, QPoint(0, 0)) for widget in watched]

    before = places()
    for rule in ("auto", *RULES):
        panel.rule.choices.set_choice(rule)
        panel.rule.choices.picked.emit(rule)
        assert places() == before, rule
    for length in LENGTHS:
        panel.length.choices.set_choice(length)
        panel.length.choices.picked.emit(length)
        assert places() == before, length
    use_with(panel, draft=False)
    assert "needs a draft model" in notice(panel) and places() == before
    retype(qtbot, panel, "medusa")
    assert errors(panel) and places() == before
    box = number(panel, "draft-simple", "n_max")
    box.lineEdit().selectAll()
    qtbot.keyClicks(box.lineEdit(), "x")
    qtbot.keyClick(box.lineEdit(), Key.Key_Return)
    assert "“x” is not" in errors(panel)
    qtbot.waitUntil(lambda: places() == before)


def test_ewma_has_fields_for_its_settings_while_it_is_chosen(qtbot: QtBot, panel: StrategyPanel) -> None:
    assert all_named(panel, "ewma_start", NumberBox) == []
    panel.length.choices.picked.emit("ewma")
    qtbot.keyClick(named(panel, "ewma_start", NumberBox), Key.Key_Up)
    assert panel.spec() == text(panel).text() == "draft-simple:n_max=4:length=ewma:ewma_start=4"

    retype(qtbot, panel, "draft-simple:length=ewma:ewma_lower=0.5")
    assert named(panel, "ewma_start", NumberBox).text() == "3"
    lower = named(panel, "ewma_lower", NumberBox)
    assert lower.text() == "0.5", "unfolded, because it is not the default"

    lower.selectAll()
    qtbot.keyClicks(lower.lineEdit(), "0.9")
    qtbot.keyClick(lower.lineEdit(), Key.Key_Return)
    assert "ewma_lower=0.9 is above ewma_raise=0.7" in notice(panel)
    assert panel.spec() == "draft-simple:length=ewma:ewma_lower=0.5"

    panel.length.choices.picked.emit("fixed")
    assert all_named(panel, "ewma_start", NumberBox) == []
    assert panel.spec() == "draft-simple"


def test_what_only_drafting_uses_is_dimmed_with_none(panel: StrategyPanel) -> None:
    assert IDLE not in captions(panel)
    panel.set_spec("none")
    assert captions(panel.length) == captions(panel.rule) == [IDLE]
    panel.set_spec("suffix")
    assert IDLE not in captions(panel)


@pytest.mark.parametrize(
    ("spec", "allowed"),
    [
        ("medusa", "prompt-lookup"),
        ("draft-simple:k=4", "n_max"),
        ("draft-simple:n_max=0", "from 1 to 512"),
        ("draft-simple+prompt-lookup", "prompt-lookup+draft-simple"),
        ("none:verify=maybe", "greedy"),
    ],
)
def test_wrong_text_is_kept_and_explained_in_place(
    qtbot: QtBot, panel: StrategyPanel, spec: str, allowed: str
) -> None:
    retype(qtbot, panel, spec)
    assert text(panel).text() == spec
    assert text(panel).property("state") == "wrong"
    assert allowed in errors(panel)


def test_a_wrong_text_leaves_the_strategy_that_was_in_use(qtbot: QtBot, panel: StrategyPanel) -> None:
    """Its beginning, draft-simple, is a strategy."""
    panel.set_spec("none")
    with qtbot.assertNotEmitted(panel.spec_changed):
        retype(qtbot, panel, "draft-simple:n_max=0:bogus=3")
    assert panel.spec() == "none"
    assert "bogus" in errors(panel)


@pytest.mark.parametrize(("choice", "key"), [("rule", "verify=greedy"), ("length", "length=ewma")])
def test_a_rule_is_part_of_the_spec(qtbot: QtBot, panel: StrategyPanel, choice: str, key: str) -> None:
    rule = getattr(panel, choice).choices
    with qtbot.waitSignal(panel.spec_changed) as told:
        qtbot.keyClick(rule, Key.Key_Right)
    assert told.args == [f"draft-simple:n_max=4:{key}"]
    with qtbot.waitSignal(panel.spec_changed) as told:
        qtbot.keyClick(rule, Key.Key_Left)
    assert told.args == ["draft-simple:n_max=4"]


def test_setting_a_spec_tells_nobody_and_a_wrong_one_is_refused(qtbot: QtBot, panel: StrategyPanel) -> None:
    with qtbot.assertNotEmitted(panel.spec_changed):
        panel.set_spec("none")
        with pytest.raises(SettingError):
            panel.set_spec("medusa")
    assert panel.spec() == "none"


# ------------------------------------------------------------------------------------- picking


def test_every_strategy_is_offered_with_when_it_helps(qtbot: QtBot, panel: StrategyPanel) -> None:
    press(qtbot, card(panel, "draft-simple").picker)
    assert offered(panel) == ["none", *KINDS]
    model = opened(panel).model()
    told = [model.index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole) for row in range(len(KINDS) + 1)]
    for kind, words in zip(KINDS.values(), told[1:], strict=True):
        assert words.endswith(kind.summary)
        assert words.startswith(f"{kind.name}, draft model") == (kind.name == "draft-simple")
        assert words.startswith(f"{kind.name}, needs a draft that reads this target") == (
            kind.needs_draft and kind.name != "draft-simple"
        )
    assert opened(panel).currentIndex().data() == "draft-simple"
    image = opened(panel).grab().toImage()
    qtbot.keyClick(opened(panel), Key.Key_Up)
    assert opened(panel).grab().toImage() != image  # the row in use is marked


def test_every_strategy_can_be_picked(qtbot: QtBot, panel: StrategyPanel) -> None:
    for name in ["none", *KINDS]:
        pick(qtbot, panel, name)
        assert picked(panel) == [name]
        assert text(panel).text().split(":")[0] == name
        kind = KINDS.get(name)
        assert kind is None or kind.summary in captions(card(panel, name).picker)


def test_picking_keeps_what_was_set_before(qtbot: QtBot, panel: StrategyPanel) -> None:
    seen: list[str] = []
    panel.spec_changed.connect(seen.append)
    pick(qtbot, panel, "prompt-lookup")
    pick(qtbot, panel, "none")
    pick(qtbot, panel, "draft-simple")
    assert seen == ["prompt-lookup", "none", "draft-simple:n_max=4"]
    assert text(panel).text() == "draft-simple:n_max=4"


def test_the_list_by_keyboard(qtbot: QtBot, panel: StrategyPanel) -> None:
    picker = card(panel, "draft-simple").picker
    for key in (Key.Key_Space, Key.Key_Return, Key.Key_Down):
        picker.setFocus()
        qtbot.keyClick(picker, key)
        qtbot.keyClick(opened(panel), Key.Key_Escape)
        assert panel.spec() == "draft-simple:n_max=4"
    qtbot.keyClick(picker, Key.Key_Space)
    qtbot.keyClicks(opened(panel), "ngram-mo")  # letters jump to a name
    qtbot.keyClick(opened(panel), Key.Key_Return)
    assert picked(panel) == ["ngram-mod"]
    assert card(panel, "ngram-mod").picker.hasFocus()
    qtbot.keyClick(card(panel, "ngram-mod").picker, Key.Key_Space)
    qtbot.keyClick(opened(panel), Key.Key_Up)
    qtbot.keyClick(opened(panel), Key.Key_Return)
    before = list(KINDS)[list(KINDS).index("ngram-mod") - 1]
    assert picked(panel) == [before]


def test_the_list_opens_inside_the_window(qtbot: QtBot, panel: StrategyPanel) -> None:
    panel.resize(WIDTH, 900)
    for control in (panel.cards.add, card(panel, "draft-simple").picker):
        press(qtbot, control)
        shown = opened(panel).window()
        assert shown is not panel
        assert panel.frameGeometry().contains(shown.geometry())
        qtbot.keyClick(opened(panel), Key.Key_Escape)


def test_a_list_that_is_too_long_for_the_window_scrolls(qtbot: QtBot, panel: StrategyPanel) -> None:
    panel.resize(WIDTH, 400)
    press(qtbot, panel.cards.add)
    assert panel.frameGeometry().contains(opened(panel).window().geometry())
    assert opened(panel).verticalScrollBar().maximum() > 0


def test_a_lookup_cache_that_cannot_be_used_is_told_at_once(panel: StrategyPanel, tmp_path: Path) -> None:
    cache = tmp_path / "large.bin"
    panel.set_spec(f"ngram-cache:lookup_cache_static={cache}")
    around = StrategyContext(*MODELS, Sampling(), 64, n_vocab=50)
    panel.set_surroundings(around)
    assert panel.notice.message == f"The lookup cache {cache} does not exist."
    cache.write_bytes(struct.pack("<7i", 1, 60, -1, -1, 1, 3, 5))
    panel.set_surroundings(around)
    assert "a different vocabulary than the target's" in panel.notice.message
    panel.set_surroundings(dataclasses.replace(around, n_vocab=100))
    assert not panel.notice.isVisible()


def test_long_values_have_a_row_of_their_own(qtbot: QtBot, panel: StrategyPanel) -> None:
    panel.set_spec("ngram-cache")
    form = card(panel, "ngram-cache").form
    assert form is not None
    field = form.field("lookup_cache_dynamic")
    assert isinstance(field, FileField)
    line, button = field.control, field.button.geometry
    qtbot.waitUntil(
        lambda: button().right() - line.x() > 0.9 * form.width() - 24 and line.width() > 3 * button().width()
    )
    with qtbot.waitSignal(panel.spec_changed) as told:
        qtbot.keyClicks(line, "a")
        qtbot.keyClick(line, Key.Key_Return)
    assert told.args == ["ngram-cache:lookup_cache_dynamic=a"]


def test_a_plug_in_is_offered(a_plug_in: str, qtbot: QtBot, panel: StrategyPanel) -> None:
    pick(qtbot, panel, a_plug_in)
    assert panel.spec() == a_plug_in
    assert card(panel, a_plug_in).form is not None


# ------------------------------------------------------------------------------------- mixing


def test_adding_keeps_the_order_legal(qtbot: QtBot, panel: StrategyPanel) -> None:
    add(qtbot, panel, "prompt-lookup")
    assert panel.spec() == "prompt-lookup+draft-simple:n_max=4"
    assert card(panel, "prompt-lookup").picker.hasFocus()
    add(qtbot, panel, "suffix")
    assert panel.spec() == "prompt-lookup+suffix+draft-simple:n_max=4"
    qtbot.waitUntil(lambda: picked(panel) == ["prompt-lookup", "suffix", "draft-simple"])
    press(qtbot, panel.cards.add)
    assert offered(panel) == [name for name in KINDS if name not in picked(panel)]
    qtbot.keyClick(opened(panel), Key.Key_Escape)
    press(qtbot, card(panel, "suffix").picker)
    assert "suffix" in offered(panel) and "none" not in offered(panel)
    qtbot.keyClick(opened(panel), Key.Key_Escape)
    pick(qtbot, panel, "ngram-mod", instead_of="prompt-lookup")
    assert panel.spec() == "ngram-mod+suffix+draft-simple:n_max=4"
    StrategySpec.parse(panel.spec())


def test_a_draft_strategy_picked_in_the_first_card_goes_last(qtbot: QtBot, panel: StrategyPanel) -> None:
    panel.set_spec("prompt-lookup+suffix")
    pick(qtbot, panel, "draft-simple", instead_of="prompt-lookup")
    assert panel.spec() == "suffix+draft-simple:n_max=4"
    assert card(panel, "draft-simple").picker.hasFocus()


def test_adding_to_none_replaces_it_and_removing_all_leaves_it(qtbot: QtBot, panel: StrategyPanel) -> None:
    panel.set_spec("none:verify=match")
    add(qtbot, panel, "suffix")
    add(qtbot, panel, "ngram-mod")
    assert panel.spec() == "suffix+ngram-mod:verify=match"
    press(qtbot, button(panel, "Remove suffix"))
    assert panel.spec() == "ngram-mod:verify=match"
    assert card(panel, "ngram-mod").picker.hasFocus()
    press(qtbot, button(panel, "Remove ngram-mod"))
    assert panel.spec() == "none:verify=match"
    assert picked(panel) == ["none"]
    assert not card(panel, "none").remove.isVisible()


def test_where_all_are_used_it_is_said_that_none_can_be_added(qtbot: QtBot, panel: StrategyPanel) -> None:
    names = sorted(KINDS, key=lambda name: KINDS[name].needs_draft)
    panel.set_spec("+".join(names[1:]))
    assert panel.cards.add.isEnabled()
    assert "Every strategy is in use." not in captions(panel.cards)
    add(qtbot, panel, names[0])
    assert not panel.cards.add.isEnabled()
    assert "Every strategy is in use." in captions(panel.cards)


def test_strategies_without_a_draft_model_change_places(qtbot: QtBot, panel: StrategyPanel) -> None:
    panel.set_spec("suffix+ngram-mod+prompt-lookup+draft-simple")
    up, down = button(panel, "Ask suffix earlier"), button(panel, "Ask suffix later")
    assert not up.isEnabled() and down.isEnabled()
    assert not button(panel, "Ask draft-simple earlier").isVisible()
    assert not button(panel, "Ask prompt-lookup later").isEnabled()
    press(qtbot, down)
    assert panel.spec() == "ngram-mod+suffix+prompt-lookup+draft-simple"
    assert down.hasFocus()
    press(qtbot, down)
    assert panel.spec() == "ngram-mod+prompt-lookup+suffix+draft-simple"
    qtbot.waitUntil(lambda: picked(panel)[2] == "suffix")
    assert not down.isEnabled() and up.hasFocus()  # never on a button that cannot be pressed


def test_several_strategies_come_by_text_too(qtbot: QtBot, panel: StrategyPanel) -> None:
    retype(qtbot, panel, "prompt-lookup+draft-simple:n_max=2")
    assert panel.spec() == "prompt-lookup+draft-simple:n_max=2"
    qtbot.waitUntil(lambda: picked(panel) == ["prompt-lookup", "draft-simple"])
    with qtbot.waitSignal(panel.spec_changed) as told:
        qtbot.keyClick(number(panel, "prompt-lookup", "num_pred_tokens"), Key.Key_Up)
    assert told.args == ["prompt-lookup:num_pred_tokens=9+draft-simple:n_max=2"]


def tab_stops(qtbot: QtBot) -> list[QWidget | None]:
    """What has the focus, and what Tab brings it to until it is there again."""
    qtbot.waitUntil(lambda: QApplication.focusWidget() is not None)
    stops = [QApplication.focusWidget()]
    while True:
        qtbot.keyClick(stops[-1], Key.Key_Tab)
        now = QApplication.focusWidget()
        if now in stops:
            return stops
        stops.append(now)


def test_tab_goes_from_card_to_card_in_their_order(qtbot: QtBot, theme: Theme) -> None:
    panel = StrategyPanel(theme)  # the popover's, and deleted with it
    panel.set_spec("draft-simple")
    panel.set_spec("suffix+draft-simple")
    panel.set_spec("ngram-mod+suffix+draft-simple")
    window = QMainWindow()
    qtbot.addWidget(window)
    window.resize(1000, 700)
    anchor = QPushButton(window)
    popover = Popover(theme, panel, WIDTH)
    window.show()
    popover.open_below(anchor)
    qtbot.waitUntil(lambda: popover.isAncestorOf(QApplication.focusWidget() or window))
    pickers = [card(panel, name).picker for name in ("ngram-mod", "suffix", "draft-simple")]
    order = tab_stops(qtbot)
    stops = [panel.cards.add, *pickers, panel.length.choices, panel.rule.choices, text(panel)]
    assert all(order.index(here) < order.index(there) for here, there in pairwise(stops))
    first, box, second = pickers[0], number(panel, "ngram-mod", "n_max"), pickers[1]
    assert order.index(first) < order.index(box) < order.index(second)


def test_a_narrow_panel_puts_the_rules_below(qtbot: QtBot, panel: StrategyPanel) -> None:
    assert panel.rule.mapTo(panel, panel.rule.rect().topLeft()).x() > panel.width() / 2
    panel.resize(500, 900)
    qtbot.waitUntil(lambda: panel.rule.x() == panel.cards.x())
    assert panel.rule.y() > panel.cards.geometry().bottom()


# -------------------------------------------------------------------- what it is used with, and llama.cpp


def test_sampling_with_a_draft_of_another_vocabulary_is_refused(panel: StrategyPanel) -> None:
    panel.set_spec("suffix+draft-simple:sample=1")
    use_with(panel, temperature=0.8, vocabulary=str(VocabularyFit(FitKind.PADDED, "2 tokens")))
    assert notice(panel) == ""
    use_with(panel, temperature=0.8, vocabulary=str(VocabularyFit(FitKind.THROUGH_TEXT, "sizes")))
    assert notice(panel).startswith("sample=1 needs a draft with the target's vocabulary.")
    assert command(panel), "llama.cpp's command is told all the same"
    panel.set_spec("suffix+draft-simple")
    assert notice(panel) == ""


@pytest.mark.parametrize(
    ("spec", "draft", "said"),
    [
        (
            "draft-eagle3",
            "llama",
            "draft-eagle3 needs a draft that was trained for this target, but d.gguf",
        ),
        ("draft-simple", "eagle3", "draft-simple cannot draft with d.gguf, which reads the target."),
        ("suffix+draft-mtp", "llama", "No MTP head of demo is loaded."),
        ("draft-eagle3", "eagle3", ""),
        ("draft-mtp", "mtp", ""),
    ],
)
def test_a_strategy_that_cannot_draft_with_the_loaded_draft_is_doubted(
    panel: StrategyPanel, spec: str, draft: str, said: str
) -> None:
    head = msgspec.structs.replace(model("draft"), path="/models/d.gguf", architecture=draft)
    panel.set_spec(spec)
    pair = PairInfo(model("demo"), head)
    panel.set_surroundings(StrategyContext(*MODELS, Sampling(), 64, pair=pair, has_mtp=draft == "mtp"))
    assert notice(panel).startswith(said) and bool(notice(panel)) == bool(said)


def test_what_does_not_go_together_is_said(qtbot: QtBot, panel: StrategyPanel) -> None:
    assert notice(panel) == ""
    panel.set_spec("draft-simple:verify=greedy")
    use_with(panel, temperature=0.8)
    assert "temperature 0" in notice(panel)
    assert command(panel) == ""
    assert any("temperature 0" in words for words in captions(panel.command))
    use_with(panel)
    assert notice(panel) == ""
    use_with(panel, draft=False)
    assert "needs a draft model" in notice(panel)
    press(qtbot, card(panel, "draft-simple").picker)
    model = opened(panel).model()
    told = [
        str(model.index(row, 0).data(Qt.ItemDataRole.AccessibleTextRole)) for row in range(len(KINDS) + 1)
    ]
    assert any("none is chosen" in words for words in told)
    click_row(qtbot, panel, "prompt-lookup")
    assert notice(panel) == ""


def test_copy(qtbot: QtBot, panel: StrategyPanel) -> None:
    press(qtbot, button(panel, "Copy the strategy"))
    assert QGuiApplication.clipboard().text() == "draft-simple:n_max=4"
    retype(qtbot, panel, "draft-simple:n_max=0")
    press(qtbot, button(panel, "Copy the strategy"))
    assert QGuiApplication.clipboard().text() == panel.spec()  # what is in use, not what is wrong


def test_the_llama_cpp_command_follows_the_settings(qtbot: QtBot, panel: StrategyPanel) -> None:
    assert command(panel).startswith(
        "llama-server --model /models/target.gguf --model-draft /models/draft.gguf"
    )
    assert "--spec-draft-n-max 4" in command(panel) and "--temp 0" in command(panel)
    assert not captions(panel.command)
    use_with(panel, temperature=0.5)
    assert "--temp 0.5" in command(panel)
    qtbot.keyClick(number(panel, "draft-simple", "n_max"), Key.Key_Up)
    assert "--spec-draft-n-max 5" in command(panel)
    add(qtbot, panel, "suffix")
    assert any("llama.cpp has no suffix" in words for words in captions(panel.command))
    press(qtbot, button(panel, "Copy the llama.cpp command"))
    assert QGuiApplication.clipboard().text() == command(panel)
    assert "\u00a0" not in QGuiApplication.clipboard().text()
    (program,) = panel.command.findChildren(Segmented)
    qtbot.keyClick(program, Key.Key_Right)
    assert program.accessibleName() == "Command for: vLLM"
    assert command(panel).startswith("vllm serve /models/target.gguf")
    assert any("vLLM drafts by a single method" in words for words in captions(panel.command))
    press(qtbot, button(panel, "Copy the vLLM command"))
    assert QGuiApplication.clipboard().text().startswith("vllm serve /models/target.gguf")


def test_options_of_a_command_are_not_broken(qtbot: QtBot, theme: Theme) -> None:
    shown = MonoText(theme)
    qtbot.addWidget(shown)
    shown.set_text("llama-server --spec-draft-n-max\u00a04 --temp\u00a00.5 " + "/a" * 40)
    whole = "".join(shown.text().split())
    for width in (140, 300, 700):
        lines = shown.lines(width)
        assert "".join("".join(lines).split()) == whole
        assert shown.heightForWidth(width) > len(lines) * 10
    broken = [shown.lines(width) for width in range(140, 300)]
    assert any("--spec-draft-n-max\u00a04" in lines for lines in broken)
    assert any("--spec-draft-n-max" in lines for lines in broken)  # no room beside it for the value


def test_a_value_too_long_for_a_line_breaks_after_semicolons(qtbot: QtBot, theme: Theme) -> None:
    shown = MonoText(theme)
    qtbot.addWidget(shown)
    shown.set_text("--samplers\u00a0'penalties;dry;top_k;temperature' --temp\u00a00")
    across = shown.fontMetrics().horizontalAdvance
    lines = shown.lines(across("0" * 30))
    assert "".join("".join(lines).split()) == "".join(shown.text().split())
    assert [line for line in lines if "penalties" in line or "temperature" in line] == lines[:2]
    assert lines[0].endswith(";"), lines


def choose_purpose(panel: StrategyPanel, name: str) -> QPushButton:
    panel.purpose.choice.setCurrentText(name)
    return panel.purpose.use


def of_the_bundled_pair(panel: StrategyPanel, passes: PassSeconds | None = None) -> None:
    pair = ModelOptions("/x/demo_pair/target.gguf"), ModelOptions("/x/demo_pair/draft.gguf")
    panel.set_surroundings(StrategyContext(*pair, Sampling(), 64, passes=lambda *_files: passes))


def test_a_purpose_proposes_a_strategy_and_says_why(qtbot: QtBot, panel: StrategyPanel) -> None:
    of_the_bundled_pair(panel)
    assert panel.purpose.use.isHidden() and panel.purpose.reason.isHidden()
    use = choose_purpose(panel, "Chat")
    assert use.text() == "Use draft-simple:n_max=4:p_min=0.5"
    reason = r"1\.\d\d× is expected, .* on single prompts: from 3 measured answers"
    assert re.search(reason, panel.purpose.reason.text())
    with qtbot.waitSignal(panel.spec_changed) as told:
        qtbot.mouseClick(use, Qt.MouseButton.LeftButton)
    assert told.args == ["draft-simple:n_max=4:p_min=0.5"] == [panel.spec()]
    assert use.text() == "In use" and not use.isEnabled()
    assert panel.purpose.choice.hasFocus()
    panel.set_spec("suffix")
    assert use.isEnabled(), "another strategy is in use"


def test_none_is_proposed_if_passes_over_several_tokens_save_nothing(panel: StrategyPanel) -> None:
    of_the_bundled_pair(panel)
    assert choose_purpose(panel, PURPOSES[0].name).text() != "Use none", "they are not timed yet"
    of_the_bundled_pair(panel, PassSeconds({k: float(k) for k in (1, 2, 3, 5, 9, 17)}, 0.5))
    assert panel.purpose.use.text() == "Use none"
    for purpose in PURPOSES:
        assert choose_purpose(panel, purpose.name).text() == "Use none"
        assert panel.purpose.compare.isHidden()


def test_without_a_draft_a_purpose_proposes_what_needs_none(panel: StrategyPanel) -> None:
    use_with(panel, draft=False)
    for purpose in PURPOSES:
        assert "draft-simple" not in choose_purpose(panel, purpose.name).text()


def test_a_purpose_leaves_the_verification_as_it_is(qtbot: QtBot, panel: StrategyPanel) -> None:
    of_the_bundled_pair(panel)
    panel.set_spec("draft-simple:verify=match")
    qtbot.mouseClick(choose_purpose(panel, "Chat"), Qt.MouseButton.LeftButton)
    assert panel.spec() == "draft-simple:n_max=4:p_min=0.5:verify=match"
    assert panel.purpose.use.text() == "In use"


def test_what_a_strategy_keeps_in_memory_stands_below_its_settings(panel: StrategyPanel) -> None:
    def kept(name: str) -> str:
        found = next(shown for shown in panel.cards.shown if shown.name == name)
        return found.memory.text().replace("\N{NO-BREAK SPACE}", " ") if not found.memory.isHidden() else ""

    panel.set_spec("ngram-mod+suffix+draft-simple")
    assert kept("ngram-mod") == "Uses up to 126 MB of main memory with these settings."
    assert "60.0 MB" in kept("suffix"), "before the context is known: earlier answers alone"
    assert kept("draft-simple") == "", "its panel shows it"
    panel.set_surroundings(StrategyContext(*MODELS, Sampling(), 64, n_ctx=8000))
    assert "64.8 MB" in kept("suffix")
    panel.set_spec("suffix:max_cached_tokens=0")
    assert "4.80 MB" in kept("suffix")
    field = next(shown for shown in panel.cards.shown).form.field("max_cached_tokens")
    field.set_value(10_000)
    field.edited.emit()
    assert "10.8 MB" in kept("suffix"), "while it is typed"
