"""The Inspector: what it shows of an answer, and the ways in and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QScrollArea, QScrollBar, QWidget
from pytestqt.qtbot import QtBot

from app.engine.engine import Engine
from app.engine.explain.copied import ContextText
from app.engine.record.alternative_stats import AlternativeStatistics
from app.engine.record.trace import Trace, write_trace
from app.engine.types import FinishReason
from app.ui.inspector.card import CardGrid
from app.ui.inspector.place import InspectorPlace
from app.ui.inspector.player import SLOW
from app.ui.instruments.by_round import LengthPlot
from app.ui.state.answer import AnswerModel, Note
from app.ui.state.chat_side import Inspection
from app.ui.state.engine_session import EngineSession
from app.ui.theme import Theme
from app.ui.transcript.layout.stack import Token
from app.ui.transcript.text.spans import SpanBuilder
from tests.answers import answer
from tests.quiet import stays
from tests.ui.homes import Homes
from tests.ui.traces import emitted_text, make_header, make_round, make_totals, make_trace, simulate
from tests.ui.transcript.places import answer as answer_item
from tests.ui.windows import Windows

ROUNDS = [
    make_round(0, (b"It", b" is"), b" a", position=0),
    make_round(1, (), b" word", rejected=b" no", position=3),
    make_round(2, (b" and",), b".", position=4),
]


@pytest.fixture
def inspection() -> Inspection:
    return Inspection()


@pytest.fixture
def place(qtbot: QtBot, theme: Theme, inspection: Inspection) -> InspectorPlace:
    made = InspectorPlace(theme, inspection, EngineSession(Homes()), lambda _file, _tell: None)
    qtbot.addWidget(made)
    made.resize(1000, 640)
    made.show()
    return made


def test_before_the_first_answer_it_says_what_to_do(place: InspectorPlace) -> None:
    assert place.title.isVisible() and "No answer" in place.title.text() and "Chat" in place.hint.text()


def test_an_answer_is_named_and_shown_from_its_last_round(
    place: InspectorPlace, inspection: Inspection
) -> None:
    answer = AnswerModel(make_trace(ROUNDS))
    inspection.follow_chat(answer, "A word")
    assert place.head.title.text() == "A word"
    facts = place.head.facts.text()
    assert facts.startswith("recorded · demo 32M Q8_0 ← demo 1.4M Q8_0 · draft-simple:n_max=4")
    assert facts.endswith("temperature 0 · seed 7")
    assert place.text.turns and place.text.text_of(place.text.turns[0]) == "It is a word and."
    assert place.round.answer is answer and place.timeline.answer is answer
    assert answer.inspected == 2


def test_a_live_answer_is_followed_and_its_end_is_told(place: InspectorPlace, inspection: Inspection) -> None:
    answer = AnswerModel(live=True)
    inspection.follow_chat(answer, "Live")
    answer.tell("Reading the prompt")
    assert place.title.text() == "Reading the prompt"
    answer.begin(make_header())
    answer.add(ROUNDS[:1])
    assert place.text.isVisible() and place.head.facts.text().startswith("running")
    answer.add(ROUNDS[1:])
    assert answer.inspected == 2
    text = emitted_text(ROUNDS)
    answer.end(make_totals(text, FinishReason.FAILED, error="The engine ended."), Note("Gone", "Try again"))
    assert place.head.facts.text().startswith("recorded, interrupted")


def test_the_last_line_of_a_live_answer_is_in_sight_in_little_room(
    place: InspectorPlace, inspection: Inspection, theme: Theme
) -> None:
    theme.set_scale(1.6)
    answer = AnswerModel(live=True)
    inspection.follow_chat(answer, "Live")
    answer.begin(make_header())
    for round in ROUNDS:
        answer.add([round])
        text, room = place.text, place.text.viewport().height()
        _above, (top, bottom) = list(text.stack.lines(0, text.stack.height))
        QApplication.processEvents()
        assert text.scroller.top <= top and bottom <= text.scroller.top + room


def test_answers_without_rounds_say_why(place: InspectorPlace, inspection: Inspection) -> None:
    inspection.follow_chat(AnswerModel(None, Note("The tokens were not saved.", "Its text is.")), "Old")
    assert "not known" in place.title.text() and "not saved" in place.hint.text()
    inspection.follow_chat(AnswerModel(make_trace([])), "Empty")
    assert place.title.text() == "This answer has no rounds"
    assert place.hint.text() == "It ended before the first round."
    inspection.follow_chat(AnswerModel(make_trace([], finish=None)), "Header")
    assert place.hint.text() == "It broke off before the first round."


def test_arrows_go_from_round_to_round(place: InspectorPlace, inspection: Inspection) -> None:
    answer = AnswerModel(make_trace(ROUNDS))
    inspection.follow_chat(answer, "A word")
    for key, index in (
        (Qt.Key.Key_Left, 1),
        (Qt.Key.Key_Left, 0),
        (Qt.Key.Key_Left, 0),
        (Qt.Key.Key_Right, 1),
        (Qt.Key.Key_End, 2),
        (Qt.Key.Key_Home, 0),
    ):
        QTest.keyClick(place.round, key)
        assert answer.inspected == index


def test_tab_goes_from_the_round_over_its_cards_to_what_stands_below(
    place: InspectorPlace, inspection: Inspection
) -> None:
    answer = AnswerModel(make_trace(ROUNDS))
    inspection.follow_chat(answer, "A word")
    answer.pin(1)
    answer.pin(0)  # it has a card more
    place.round.setFocus(Qt.FocusReason.OtherFocusReason)
    for card in place.round.grid.cards:
        QTest.keyClick(place.focusWidget() or place.round, Qt.Key.Key_Tab)
        assert card.hasFocus()
    QTest.keyClick(place.focusWidget() or place.round, Qt.Key.Key_Tab)
    assert place.shape.isAncestorOf(place.focusWidget())
    QTest.keyClick(place.focusWidget(), Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier)
    assert place.round.grid.cards[-1].hasFocus()


def test_the_text_follows_the_replay(place: InspectorPlace, inspection: Inspection) -> None:
    lines = [make_round(index, (), b"line\n" * 6, position=index) for index in range(20)]
    answer = AnswerModel(make_trace(lines))
    inspection.follow_chat(answer, "Lines")
    answer.move(0)
    for cursor in range(1, 21):
        answer.move(cursor)
        item = place.text.stack.answer(0)
        span = item.spans.first_of_round(cursor - 1, place.text.drafts_shown) if item is not None else None
        assert span is not None
        rect = place.text.to_viewport(place.text.stack.token_rects(Token(0, span))[0])
        assert place.text.viewport().rect().contains(rect.center().toPoint())


def test_stepping_behind_the_cursor_shows_the_next_round(inspection: Inspection) -> None:
    answer = AnswerModel(make_trace(ROUNDS))
    answer.move(1)
    answer.step(1)
    assert (answer.cursor, answer.inspected) == (2, 1)
    answer.pin(1)
    answer.move(1)
    assert answer.inspected == 0, "a round that is no longer shown is not pinned"
    answer.move(0)
    assert answer.inspected is None
    answer.step(1)
    assert (answer.cursor, answer.inspected) == (1, 0)


def test_an_answer_of_another_place_stays_until_the_chat_is_shown(inspection: Inspection) -> None:
    chat, lane = AnswerModel(make_trace(ROUNDS)), AnswerModel(make_trace(ROUNDS))
    inspection.follow_chat(chat, "Chat")
    inspection.open(lane, 1, "none")
    assert inspection.answer is lane and lane.pinned_at == 1 and inspection.name == "none"
    renewed = AnswerModel(make_trace(ROUNDS))
    inspection.follow_chat(renewed, "Chat")
    assert inspection.answer is lane
    inspection.show_chat()
    assert inspection.answer is renewed and inspection.name == "Chat"


def test_a_new_chats_first_answer_has_its_title_at_once(windows: Windows) -> None:
    desk = windows.open()
    inspection = desk.window.inspection
    names: list[str] = []
    inspection.changed.connect(
        lambda: names.append(inspection.name) if inspection.answer and inspection.answer.live else None
    )
    desk.ask("What is a draft?")
    assert names[-1] == inspection.name == "What is a draft?"


def test_esc_goes_back_to_where_one_was_with_the_focus(windows: Windows) -> None:
    desk = windows.open()
    item = desk.ask("hello")
    desk.page.transcript.setFocus()
    desk.window.inspection.open(item.answer, 1)
    place = desk.place("inspector")
    assert place.isVisible() and place.isAncestorOf(QApplication.focusWidget())
    assert place.answer is item.answer and item.answer.inspected == 1
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert desk.page.isVisible() and QApplication.focusWidget() is desk.page.transcript
    assert desk.page.transcript.hover.token is None, "the text is as it was left"
    assert item.answer.pinned_at == 1, "the round stays pinned"
    desk.window.go("compare")
    desk.window.go("inspector")
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert desk.place("compare").isVisible()


def test_a_click_on_the_pinned_rounds_token_inspects_it(windows: Windows) -> None:
    desk = windows.open()
    desk.window.resize(1000, 620)
    first, second = desk.ask("hello"), desk.ask("and now")
    transcript = desk.page.transcript
    transcript.token_clicked.emit(first.turn, 1, 0)
    assert desk.page.isVisible() and first.answer.pinned_at == 1, "the first click pins"
    transcript.token_clicked.emit(first.turn, 1, 0)
    place = desk.place("inspector")
    assert place.isVisible() and place.answer is first.answer and place.answer.inspected == 1
    card = place.round.grid.cards[0]
    assert place.round.grid.chosen is card, "the card of that token"
    desk.until(lambda: card.visibleRegion().boundingRect() == card.rect())
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    transcript.inspect_requested.emit(second.turn, 0)
    assert place.isVisible() and place.answer is second.answer and place.answer.inspected == 0


def test_the_menu_of_a_token_offers_to_inspect_its_round(windows: Windows) -> None:
    desk = windows.open()
    item = desk.ask("hello")
    transcript = desk.page.transcript
    transcript.show_round(item.turn, 1)
    rect = transcript.to_viewport(transcript.stack.token_rects(transcript.hover.token)[0])
    menu = transcript.make_menu(rect.center().toPoint())
    action = next(action for action in menu.actions() if action.text().startswith("Inspect round"))
    assert action.text() == "Inspect round 2"
    action.trigger()
    assert desk.place("inspector").answer is item.answer and item.answer.inspected == 1


def test_a_lane_of_compare_opens_and_esc_goes_back_to_it(windows: Windows) -> None:
    desk = windows.open()
    chat = desk.ask("hello").answer
    desk.window.go("compare")
    compare = desk.place("compare")
    card = compare.outcome.stage.lanes.cards[0]
    card.set_answer(AnswerModel(make_trace(ROUNDS)))
    card.text.token_clicked.emit(card.text.turns[0], 1, 0)
    place = desk.place("inspector")
    assert place.isVisible() and place.answer is card.answer and place.answer.inspected == 1
    assert place.head.title.text() == card.name
    QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Escape)
    assert compare.isVisible()
    card.set_answer(AnswerModel(make_trace(ROUNDS)))  # nothing was measured: the place began anew
    card.plot.set_axes(card.plot.tokens, 1.0, None)
    QTest.mouseClick(card.plot, Qt.MouseButton.LeftButton, pos=card.plot.rect().center())
    assert place.isVisible() and place.answer is card.answer
    desk.window.go("chat")
    desk.window.go("inspector")
    assert place.answer is chat, "the chat's answer is shown again once the chat was"


def test_the_source_of_a_copy_is_outlined_in_the_text(
    place: InspectorPlace, inspection: Inspection, engine: Engine
) -> None:
    trace = answer(engine, "ab ab", strategy="prompt-lookup", max_tokens=80)
    inspection.follow_chat(AnswerModel(trace), "Copies")
    text = ContextText(trace.header)
    text.read(trace.rounds)
    seen = 0
    for round in trace.rounds:
        place.answer.pin(round.index)
        found = text.copied(round)
        source = found.source if found is not None else None
        assert place.round.source == ((*source, len(round.drafted)) if source is not None else None)
        if source is not None:
            seen += 1
            item = place.text.stack.answer(0)
            assert item is not None
            spans = item.spans.emitted_from(*source, len(round.drafted))
            assert (spans[0].round, spans[0].place) >= source
            assert len({(span.round, span.place) for span in spans}) <= len(round.drafted)
    assert seen > 2


def test_outlined_tokens_are_painted(place: InspectorPlace, inspection: Inspection) -> None:
    inspection.follow_chat(AnswerModel(make_trace(ROUNDS)), "A word")
    turn = place.text.turns[0]
    without = place.text.grab().toImage()
    place.text.outline_tokens(turn, 0, 1, 3)
    assert place.text.grab().toImage() != without
    place.text.outline_tokens(turn, 0, 0, 0)
    assert place.text.grab().toImage() == without


def test_no_words_flash_up_where_a_replay_begins(place: InspectorPlace, inspection: Inspection) -> None:
    answer = AnswerModel(make_trace(ROUNDS))
    inspection.follow_chat(answer, "A word")
    place.replay.player.play()
    assert answer.cursor == 0 and not place.title.isVisible() and place.timeline.isVisible()
    place.replay.player.pause()
    answer.move(0)
    answer.move(1)
    answer.move(0)
    assert place.title.isVisible() and "Before the first round" in place.title.text(), (
        "somebody scrubbed there"
    )
    place.replay.player.set_speed(SLOW)
    place.replay.player.step()
    assert answer.cursor == 0 and place.title.text() == "The first round in slow motion"
    place.replay.player.first()
    assert place.title.text() == "Before the first round"


def written(file: Path) -> Trace:
    """A trace of many rounds, and its file."""
    trace = simulate("The fox ran over the hill, and the dog ran after it.\n" * 20)
    write_trace(file, trace)
    return trace


def test_a_trace_opened_here_lays_out_no_text_in_the_hidden_chat(
    windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = written(tmp_path / "long.jsonl")
    desk = windows.open()
    desk.window.go("inspector")
    read: list[int] = []
    add = SpanBuilder.add
    monkeypatch.setattr(SpanBuilder, "add", lambda self, round: read.append(round.index) or add(self, round))
    desk.open_trace(tmp_path / "long.jsonl")
    assert read == list(range(len(trace.rounds))), "once, for the text of the Inspector"
    transcript = desk.page.transcript
    assert transcript.text_of(transcript.turns[-1]) == trace.text
    read.clear()
    desk.window.go("chat")
    assert read == list(range(len(trace.rounds)))
    assert transcript.text_of(transcript.turns[-1]) == trace.text
    transcript.select_all()
    assert trace.text in transcript.selection.text()


def test_the_hidden_chats_instruments_wait_until_they_are_shown(
    windows: Windows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "long.jsonl")
    desk = windows.open()
    desk.window.go("inspector")
    drawn: list[int] = []
    draw = LengthPlot.draw_values
    monkeypatch.setattr(
        LengthPlot, "draw_values", lambda self, first, last: drawn.append(last) or draw(self, first, last)
    )
    desk.open_trace(tmp_path / "long.jsonl")
    answer = desk.page.instruments.answer
    answer.move(5)
    answer.pin(2)
    assert not drawn and stays(lambda: len(drawn))
    desk.window.go("chat")
    panel = desk.page.instruments
    assert drawn and panel.length.value.text() != "–" and panel.length.canvas.marked == 2


def test_figures_out_of_sight_are_computed_once_they_are_scrolled_to(
    place: InspectorPlace, inspection: Inspection, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    folded: list[int] = []
    add = AlternativeStatistics.add
    monkeypatch.setattr(
        AlternativeStatistics, "add", lambda self, round: folded.append(round.index) or add(self, round)
    )
    place.resize(1000, 480)
    answer = AnswerModel(simulate("The fox ran over the hill, and the dog ran after it. " * 8))
    inspection.follow_chat(answer, "A word")
    qtbot.waitUntil(lambda: place.round.height() > 200)
    for _ in range(5):
        answer.move(answer.cursor - 1)
    assert place.shape.visibleRegion().isEmpty() and not folded
    area = place.shape.parentWidget().parentWidget().parentWidget()
    assert isinstance(area, QScrollArea)
    area.verticalScrollBar().setValue(area.verticalScrollBar().maximum())
    qtbot.waitUntil(lambda: folded == list(range(answer.cursor)))


def test_cards_follow_a_fast_cursor_at_a_readable_pace(
    place: InspectorPlace, inspection: Inspection, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = AnswerModel(simulate("The fox ran over the hill, and the dog ran after it. " * 30))
    inspection.follow_chat(answer, "A word")
    drawn: list[int | None] = []
    show = CardGrid.show_cards
    monkeypatch.setattr(
        CardGrid, "show_cards", lambda self, *what: drawn.append(answer.inspected) or show(self, *what)
    )
    for _ in range(40):
        answer.move(answer.cursor - 1)
    assert len(drawn) < 20
    qtbot.waitUntil(lambda: drawn[-1:] == [answer.inspected])


def test_a_round_over_several_lines_is_in_sight_whole(place: InspectorPlace, inspection: Inspection) -> None:
    lines = [
        make_round(at, (f"Line {at}".encode(), b".\n\n", b"- ", b"first,"), b" the", position=5 * at)
        for at in range(40)
    ]
    answer = AnswerModel(make_trace(lines))
    inspection.follow_chat(answer, "Lines")
    text = place.text
    for at in (39, *range(40)):
        answer.pin(at)
        span = next(span for span in answer_item(text).spans if span.round == at)
        rects = [text.to_viewport(rect).toRect() for rect in text.stack.round_rects(Token(0, span))]
        assert len(rects) > 1
        assert all(text.viewport().rect().contains(rect) for rect in rects), at


def test_the_first_line_in_sight_is_whole(place: InspectorPlace, inspection: Inspection) -> None:
    rounds = [make_round(at, (f" word{at}".encode(),), b" the", position=2 * at) for at in range(300)]
    answer = AnswerModel(make_trace(rounds))
    inspection.follow_chat(answer, "Lines")
    text = place.text
    for at in (299, *range(0, 300, 7)):
        answer.pin(at)
        top, end = text.scroller.top, text.stack.height - text.scroller.room
        tops = [0, *(round(above) for above, _below in text.stack.lines(top, end))]
        assert top in tops or top == end, at


def test_with_large_type_in_a_low_window_nothing_overlaps(
    qtbot: QtBot, place: InspectorPlace, inspection: Inspection, theme: Theme
) -> None:
    inspection.follow_chat(AnswerModel(simulate("The fox ran over the hill. " * 20, seed=3)), "Fox")
    theme.set_scale(2.0)
    window = QWidget()  # which may be lower than all parts want
    place.setParent(window)
    window.show()
    place.setGeometry(0, 0, 960, 480)
    place.show()

    def apart() -> bool:
        text, timeline = place.text.geometry(), place.timeline.geometry()
        below = place.round.mapTo(place.text.parentWidget(), QPoint()).y()
        return text.bottom() < timeline.top() and timeline.bottom() < below

    qtbot.waitUntil(apart)
    assert place.text.height() > 30
    place.setParent(None)


def test_a_chosen_card_stays_in_sight_and_no_line_is_cut(
    place: InspectorPlace, inspection: Inspection, qtbot: QtBot, theme: Theme
) -> None:
    answer = AnswerModel(simulate("The fox ran over the hill. " * 20, seed=3))
    inspection.follow_chat(answer, "Fox")
    answer.pin(4, 1)
    cards = place.round.grid

    def lowest() -> set[str]:
        """The colours of the lowest row of the text: its ground alone, if no line is cut."""
        text = place.text.viewport().grab().toImage()
        return {text.pixelColor(x, text.height() - 1).name() for x in range(text.width())}

    for size in ((1000, 500), (1600, 900), (700, 500), (1000, 500)):
        place.resize(*size)
        # The card's top, whether or not it has room as a whole.
        qtbot.waitUntil(
            lambda: cards.chosen is not None and cards.chosen.visibleRegion().contains(QPoint(20, 2))
        )
        qtbot.waitUntil(lambda: lowest() == {theme.palette.ground.lower()})
    area = cards.parentWidget().parentWidget().parentWidget().parentWidget()
    assert isinstance(area, QScrollArea)
    bar = area.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() > 0)
    answer.pin(None)  # as a step does: the head of the round that comes
    assert bar.value() == 0
    answer.pin(4, 1)

    def away() -> bool:
        """Someone scrolls to the end, which may come further down yet."""
        bar.triggerAction(QScrollBar.SliderAction.SliderToMaximum)
        return cards.chosen is not None and cards.chosen.visibleRegion().isEmpty()

    qtbot.waitUntil(away)
    place.resize(1000, 480)
    assert cards.chosen is not None
    chosen = cards.chosen  # it does not come back
    assert stays(lambda: chosen.visibleRegion().isEmpty()) and chosen.visibleRegion().isEmpty()
