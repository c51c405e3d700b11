"""The window at every size: nothing is clipped; parts without room fold or shrink."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QMargins, QObject, QPoint, QRect
from PySide6.QtGui import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QLineEdit, QPushButton, QWidget
from typing_extensions import override

from app.engine.record.trace import write_trace
from app.engine.types import Sampling
from app.ui.transcript.controls import FateSample
from app.ui.widgets.chip import Chip
from app.ui.widgets.labels import ElidedLabel, GivingLabel
from app.ui.widgets.segmented import Segmented
from tests.ui.traces import simulate
from tests.ui.windows import Desk, Windows

LONG_NAME = "A model with quite a long name that nobody would ever shorten, 70B"
SHADOW = QMargins(16, 16, 16, 16)  # around the card of a popover


def clipped(window: QWidget) -> list[str]:
    """The visible widgets that are narrower than their words, or lie beyond their parent."""
    found = []
    for widget in window.findChildren(QWidget):
        if not widget.isVisible() or isinstance(widget, (ElidedLabel, GivingLabel, Chip)):
            continue
        kinds = (QLabel, QAbstractButton, FateSample)
        if not isinstance(widget, kinds) or (isinstance(widget, QLabel) and widget.wordWrap()):
            continue
        if isinstance(widget.parentWidget(), QLineEdit):
            continue  # Qt's own
        words = widget.accessibleName() if isinstance(widget, FateSample) else widget.text()
        if isinstance(widget, QPushButton) and widget.hasHeightForWidth():  # as many lines as it takes
            lower = widget.heightForWidth(widget.width()) > widget.height()
            needed = widget.width() + 2 if lower else 0
        elif isinstance(widget, (QLabel, QPushButton)) and not Qt.mightBeRichText(words):
            needed = widget.fontMetrics().horizontalAdvance(words.replace("&&", "&"))
        else:
            needed = widget.minimumSizeHint().width()
        parent = widget.parentWidget()
        if needed > widget.width() + 1 or not parent.rect().contains(widget.geometry()):
            found.append(
                f"{type(widget).__name__} {words or widget.toolTip()!r}: {needed} in {widget.geometry()}"
            )
    return found


def resize(desk: Desk, width: int, height: int) -> None:
    desk.window.resize(width, height)
    desk.qtbot.waitUntil(lambda: desk.window.width() == width)
    desk.until_laid_out()


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_nothing_is_clipped(windows: Windows, scale: float) -> None:
    desk = windows.open(text_scale=scale)
    for width, height in ((1920, 1080), (1440, 900), (1100, 700), (1000, 640)):
        resize(desk, width, height)
        assert clipped(desk.window) == [], (width, height)
    desk.ask("Hello")
    desk.until_laid_out()
    assert clipped(desk.window) == []


@pytest.mark.parametrize("scale", [1.0, 1.6])
def test_every_place_has_its_room_at_every_size(windows: Windows, tmp_path: Path, scale: float) -> None:
    desk = windows.open(ready=False, text_scale=scale)
    trace = tmp_path / "answer.jsonl"
    write_trace(trace, simulate("The windows overlap, so every value is seen. " * 20, seed=3))
    desk.open_trace(trace)
    for width, height in ((1024, 768), (1600, 1000), (1920, 1080)):
        resize(desk, width, height)
        for place in (each.name for each in desk.window.places if each.name != "chat"):
            desk.window.go(place)
            desk.until_laid_out()
            desk.until(lambda: not clipped(desk.window))  # some words come from threads
            if place == "inspector":
                cards = desk.place(place).round.parentWidget().parentWidget()
                assert cards.height() > 0.35 * desk.place(place).height(), (width, height)
    desk.window.go("chat")
    desk.until_laid_out()
    for card in desk.page.instruments.cards[:3]:
        before = card.canvas.plot_rect()
        card.read_out(3)
        desk.until_laid_out()
        assert card.canvas.reading and card.canvas.plot_rect() == before, "the axis moves at a hover"


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_chips_do_not_overlap_and_the_strategy_is_the_last_to_be_cut(windows: Windows, scale: float) -> None:
    desk = windows.open(text_scale=scale)
    header = desk.header
    resize(desk, 1100, 700)
    order: list[Chip] = [header.target, header.draft, header.strategy, header.sampling]
    for left, right in pairwise(order):
        assert left.geometry().right() < right.geometry().left()
    _strategy_is_cut_last(desk, scale)
    header.target.set_text(LONG_NAME)
    header.draft.set_text(f"The draft of it: {LONG_NAME}")
    desk.until_laid_out()
    _strategy_is_cut_last(desk, scale)
    assert header.target.text_shown(header.target.width())[0] != LONG_NAME


def _strategy_is_cut_last(desk: Desk, scale: float) -> None:
    """The strategy is whole, or in large text cut where the others have their least."""
    header = desk.header
    whole = header.strategy.text_shown(header.strategy.width())[0] == desk.saved()["strategy"]
    others = (header.target, header.draft, header.sampling)
    assert whole or (scale > 1 and all(chip.width() == chip.widths()[3] for chip in others))


def test_a_temperature_is_whole_beside_a_long_strategy_in_large_text(windows: Windows) -> None:
    long = "ngram-map-k:size_n=4:size_m=12+draft-simple:n_max=4"
    desk = windows.open(text_scale=1.6, strategy=long, sampling=Sampling(temperature=0.8))
    resize(desk, 1024, 768)
    sampling, strategy = desk.header.sampling, desk.header.strategy
    assert sampling.text_shown(sampling.width())[0] == "temperature 0.8"
    assert "…" in strategy.text_shown(strategy.width())[0]


def test_the_list_of_chats_folds_where_there_is_no_room_and_comes_back(windows: Windows) -> None:
    desk = windows.open()
    chats, header = desk.page.chats, desk.header
    resize(desk, 1280, 800)
    assert chats.isVisible() and not header.sidebar.isVisible()
    resize(desk, 960, 700)
    assert not chats.isVisible() and header.sidebar.isVisible()
    header.sidebar.click()  # for now
    assert chats.isVisible() and desk.saved()["sidebar_shown"]
    resize(desk, 1280, 800)
    assert chats.isVisible()
    desk.page.toggle_sidebar()  # for good
    assert not chats.isVisible() and not desk.saved()["sidebar_shown"]
    resize(desk, 960, 700)
    resize(desk, 1280, 800)
    assert not chats.isVisible()


def test_instruments_fold_where_large_text_leaves_no_room(windows: Windows) -> None:
    desk = windows.open(text_scale=1.5)
    resize(desk, 900, 700)
    assert not desk.page.instruments.isVisible() and desk.header.instruments.isVisible()
    assert desk.saved()["instruments_shown"]
    desk.header.instruments.click()
    desk.until_laid_out()
    assert desk.page.instruments.isVisible()
    middle, side = desk.page.splitter.widget(1).geometry(), desk.page.instruments.geometry()
    assert middle.right() < side.left() and side.right() <= desk.page.width()
    resize(desk, 1600, 900)
    assert desk.page.instruments.isVisible() and not desk.header.instruments.isVisible()


def test_instruments_unfolded_beside_large_text_leave_the_prompt_its_choices(windows: Windows) -> None:
    desk = windows.open(text_scale=2.0)
    resize(desk, 1024, 700)
    desk.page.toggle_instruments()
    desk.until_laid_out()
    assert desk.page.instruments.isVisible()
    for choices in desk.page.prompt.findChildren(Segmented):
        assert choices.width() >= choices.minimumSizeHint().width()
    assert clipped(desk.page.prompt) == []
    assert clipped(desk.page.transcript) == []


@pytest.mark.parametrize(("scale", "below"), [(1.0, False), (1.6, True)])
def test_the_buttons_of_compare_move_below_its_chips(windows: Windows, scale: float, below: bool) -> None:
    desk = windows.open(ready=False, text_scale=scale)
    resize(desk, 1024, 700)
    desk.window.go("compare")
    head = desk.place("compare").head
    desk.until_laid_out()
    assert clipped(head) == []
    chips = [chip.geometry() for chip in (head.pair, head.lanes, head.prompts, head.sampling)]
    assert all(left.right() < right.left() for left, right in pairwise(chips))
    run = head.run.mapTo(head, QPoint(0, 0))
    assert (run.y() > chips[-1].bottom()) is below
    resize(desk, 1900, 900)
    assert head.run.mapTo(head, QPoint(0, 0)).y() < chips[-1].bottom()


def test_wide_instruments_give_way_where_the_window_becomes_narrow(windows: Windows) -> None:
    desk = windows.open(ready=False)
    resize(desk, 1600, 1000)
    desk.page.splitter.setSizes([200, 600, 700])
    desk.until_laid_out()
    assert desk.page.instruments.width() > 600
    resize(desk, 1100, 700)
    chats, middle, side = desk.page.splitter.sizes()
    assert middle >= side >= 264 and chats >= 180
    resize(desk, 1600, 1000)
    assert desk.page.splitter.sizes()[2] == side, "what becomes free is the text's"


def test_the_keyboard_goes_to_the_prompt_when_the_pressed_button_is_gone(windows: Windows) -> None:
    desk = windows.open(max_tokens=400)
    desk.type("Hello")
    desk.until_streaming()
    desk.header.stop.setFocus()
    desk.header.stop.click()
    desk.until_ready()
    assert desk.prompt.hasFocus()
    desk.until(desk.window.status.measure.isEnabled)
    desk.window.status.measure.setFocus()
    desk.window.status.measure.click()
    assert desk.prompt.hasFocus()
    desk.until_ready()


def test_how_an_answer_ended_is_said_once(windows: Windows) -> None:
    desk = windows.open(max_tokens=8)
    answer = desk.ask("Hello")
    assert desk.notes() == ["The answer reached its length limit."]
    assert answer.caption == ""
    answer.answer.end(answer.answer.totals, None)
    assert answer.caption == "Ended at the token limit"


def test_the_places_of_the_popover_are_inside_the_window(windows: Windows) -> None:
    desk = windows.open()
    resize(desk, 1000, 640)
    for chip in desk.header.chips:
        chip.click()
        card = chip.popover
        assert card is not None and card.isVisible()
        shown = QRect(card.mapTo(desk.window, QPoint(16, 16)), card.size().shrunkBy(SHADOW))
        assert desk.window.rect().contains(shown)
        chip.click()


def test_text_and_placeholder_of_the_prompt_box_follow_the_text_size(windows: Windows) -> None:
    desk = windows.open(ready=False)
    desk.window.go("settings")
    for scale in (2.0, 1.0, 1.5):
        desk.window.appearance.set_scale(scale)
        wanted = desk.window.appearance.theme.sans(0.5).pointSizeF()
        QApplication.processEvents()
        assert desk.prompt.font().pointSizeF() == desk.prompt.viewport().font().pointSizeF() == wanted


def test_a_header_that_is_short_of_room_is_laid_out_once(windows: Windows) -> None:
    """Its buttons show words or icons, whichever fit; trying both every time would never end."""
    desk = windows.open(ready=False, text_scale=2.0)
    desk.until_ready()
    asked: list[QEvent] = []

    class Watch(QObject):
        @override
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if watched is desk.header and event.type() == QEvent.Type.LayoutRequest:
                asked.append(event)
            return False

    watch = Watch()
    for _ in range(20):
        QApplication.processEvents()
    desk.header.installEventFilter(watch)
    for _ in range(20):
        QApplication.processEvents()
    assert asked == []


def test_large_text_leaves_plots_their_height_and_instruments_scroll(windows: Windows) -> None:
    desk = windows.open(ready=False)
    resize(desk, 1920, 800)
    panel = desk.page.instruments
    for scale in (1.0, 2.0):
        desk.window.appearance.set_scale(scale)
        desk.page.set_instruments(True)
        QApplication.processEvents()
        for card in panel.cards:
            assert card.canvas.plot_rect().height() >= 40 * scale
    assert panel.verticalScrollBar().maximum() > 0


@pytest.mark.parametrize(("width", "shown"), [(899, False), (901, True)])
def test_the_instruments_fold_in_a_window_below_900_pixels(windows: Windows, width: int, shown: bool) -> None:
    desk = windows.open(ready=False)
    resize(desk, width, 700)
    assert desk.page.instruments.isVisible() is shown
