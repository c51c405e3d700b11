"""Showing chats, and an answer while it is written."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QPushButton
from pytestqt.qtbot import QtBot

from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.types import FinishReason
from app.ui.state.answer import AnswerModel, Note
from app.ui.theme import Theme
from app.ui.transcript import AnswerTurn, SystemTurn, TranscriptView, UserTurn
from app.ui.transcript.text.paragraphs import Kind
from app.ui.widgets.words import SPACE
from tests.ui.traces import drawing, make_header, make_round, make_totals, make_trace, simulate
from tests.ui.transcript.places import add, answer, last, note, spans, token, turn

CODE = "Text before.\n\n```python\ndef f(x):\n    return x\n```\n\nText behind.\n"


def test_a_stored_chat(view: TranscriptView) -> None:
    view.set_turns([SystemTurn("Be brief."), UserTurn("Hi"), AnswerTurn(AnswerModel(drawing()), "demo 32M")])
    labels = [item.label for item in view.stack.items]
    assert labels == ["System prompt", "You", "demo 32M  ·  19 rounds  ·  greedy"]
    assert view.text_of(turn(view, "a")) == drawing().text
    assert view.text_of(turn(view, "u")) == "Hi"
    with pytest.raises(KeyError):
        view.text_of(UserTurn("Hi"))


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (make_header(), "greedy"),
        (make_header(strategy="none"), "no draft"),
        (make_header(verification="speculative", temperature=0.8), "speculative  ·  temperature 0.8"),
        (make_header(verification="match", temperature=1), "match  ·  temperature 1"),
    ],
)
def test_the_label_says_how_the_answer_was_made(view, header, words) -> None:
    view.set_turns([AnswerTurn(AnswerModel(Trace(header, [make_round(0, [], "x")])), "m")])
    assert view.stack.items[0].label == f"m  ·  1 round  ·  {words}"


@pytest.mark.parametrize(
    ("reason", "caption"),
    [
        (FinishReason.END, ""),
        (FinishReason.CANCELLED, "Stopped"),
        (FinishReason.LENGTH, "Ended at the token limit"),
        (FinishReason.CONTEXT, "Ended because the context is full"),
    ],
)
def test_the_caption_says_why_it_ended(view, reason: FinishReason, caption: str) -> None:
    view.set_turns([AnswerTurn(AnswerModel(make_trace([make_round(0, [], "x")], reason)), "m")])
    assert view.stack.items[0].caption == caption


def live(view: TranscriptView, trace: Trace, batch: int = 3) -> None:
    """Let a trace arrive in batches."""
    view.add_turn(AnswerTurn(AnswerModel(live=True), "demo 32M"))
    last(view).begin(trace.header)
    for start in range(0, len(trace.rounds), batch):
        add(view, trace.rounds[start : start + batch])


@pytest.mark.parametrize("drafts_shown", [True, False])
def test_live_and_stored_show_the_same(view: TranscriptView, drafts_shown: bool) -> None:
    view.set_drafts_shown(drafts_shown)
    trace = simulate(CODE * 5, seed=4, rate=0.7)
    assert trace.totals is not None
    live(view, trace)
    last(view).end(trace.totals)
    shown = [(block.text, block.paragraph.kind) for block in answer(view).blocks]  # type: ignore[attr-defined]
    picture = view.grab().toImage()
    view.set_turns([AnswerTurn(AnswerModel(trace), "demo 32M")])
    assert view.text_of(turn(view, "a")) == trace.totals.text
    assert [(block.text, block.paragraph.kind) for block in answer(view).blocks] == shown  # type: ignore[attr-defined]
    assert view.grab().toImage() == picture
    assert Kind.CODE in {kind for _, kind in shown}


@pytest.mark.parametrize("stored", [False, True])
def test_drafts_of_which_hardly_any_passed_fold_away(
    qtbot: QtBot, view: TranscriptView, stored: bool
) -> None:
    trace = simulate(CODE * 5, seed=4, rate=0.0)
    assert trace.totals is not None and Statistics.of(trace.rounds).acceptance_rate == 0
    if stored:
        view.set_turns([AnswerTurn(AnswerModel(trace), "demo 32M")])
    else:
        live(view, trace)
        assert not answer(view).setting.drafts_shown, "while it comes"
        last(view).end(trace.totals)
    item = answer(view)
    tall = item.height
    show = f"Show drafts (0{SPACE}% accepted)"
    button = next(made for made in view.findChildren(QPushButton) if made.text() == show)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert item.setting.drafts_shown and item.height > tall
    assert button.text().startswith("Hide drafts") and button.isVisible()
    view.set_drafts_shown(False)
    assert not button.isVisible(), "all are hidden"
    view.set_drafts_shown(True)
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)
    assert item.height == tall and button.text() == show


def test_a_label_gives_way_to_the_actions_that_there_are(view: TranscriptView) -> None:
    trace = simulate(CODE * 5, seed=4, rate=0.0)
    rooms = []
    for view.regenerates in (True, False):
        view.set_turns([AnswerTurn(AnswerModel(trace), "demo 32M")])
        view.resize(420, 600)
        rooms.append(answer(view).label_room)
    assert rooms[0] < rooms[1], "Copy alone needs less than Copy, Edit and Regenerate"


def test_a_label_beside_a_button_is_whole(view: TranscriptView) -> None:
    trace = simulate(CODE * 5, seed=4, rate=0.0)
    for name in ("m", "mi", "mil", "mill", "mille"):  # widths with different fractions of a pixel
        view.set_turns([AnswerTurn(AnswerModel(trace), name)])
        item = answer(view)
        assert item.label_room >= QFontMetricsF(item.setting.styles.label).horizontalAdvance(item.label), name


def test_drafts_of_an_answer_that_recovers_are_shown_at_its_end(view: TranscriptView) -> None:
    bad, good = simulate(CODE * 2, seed=4, rate=0.0), simulate(CODE * 9, seed=4, rate=0.9)
    live(view, bad)
    assert not answer(view).setting.drafts_shown
    moved = [replace(round, index=round.index + len(bad.rounds)) for round in good.rounds]
    add(view, moved)
    assert good.totals is not None and bad.totals is not None
    last(view).end(replace(good.totals, text=bad.totals.text + good.totals.text))
    assert answer(view).setting.drafts_shown


def test_every_batch_is_seen_at_once(view: TranscriptView) -> None:
    view.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    for index in range(5):
        add(view, [make_round(index, [f" a{index}"], f" b{index}")])
        assert view.stack.token_rects(token(view, f" b{index}", "bonus"))


def test_a_stop_string_never_shows(view: TranscriptView) -> None:
    header = make_header(stop=("\n\nUser:",))
    view.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    last(view).begin(header)
    add(view, [make_round(0, ["Yes", "."], "\n\nUser")])
    assert view.text_of(turn(view, "a")) == "Yes."
    add(view, [make_round(1, [":"], " what")])
    assert view.text_of(turn(view, "a")) == "Yes."
    last(view).end(make_totals("Yes.", FinishReason.STOP))
    assert view.text_of(turn(view, "a")) == "Yes."
    assert view.stack.items[0].caption == "Ended at a stop string"


def test_totals_have_the_last_word(view: TranscriptView) -> None:
    """Where the text differs from what was shown, the totals' text stays."""
    live(view, Trace(make_header(), [make_round(0, ["a\n", "b\n"], "c\nd")]))
    last(view).end(make_totals("a\nb"))
    assert view.text_of(turn(view, "a")) == "a\nb"
    assert [block.text for block in answer(view).blocks] == ["a", "b"]


def test_an_answer_that_broke_off_keeps_what_came(view: TranscriptView) -> None:
    live(view, Trace(make_header(stop=("xyz",)), [make_round(0, ["a"], "x")]))
    assert view.text_of(turn(view, "a")) == "a"
    last(view).end(None)
    note(view, Note("The engine is gone.", "Start it again.", "Start the engine again"))
    assert view.text_of(turn(view, "a")) == "ax"
    assert not view.live


def test_progress_shows_until_the_first_round(view: TranscriptView) -> None:
    view.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    last(view).tell("Reading the prompt")
    assert view.stack.items[0].caption == "Reading the prompt"
    add(view, [make_round(0, [], "x")])
    assert view.stack.items[0].caption == ""


def test_the_label_counts_at_most_ten_times_a_second(view: TranscriptView, qtbot: QtBot) -> None:
    view.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    labels = []
    for index in range(20):
        add(view, [make_round(index, [], "x")])
        labels.append(view.stack.items[0].label)
    assert len(set(labels)) <= 2
    qtbot.waitUntil(lambda: view.stack.items[0].label.startswith("m  ·  20 rounds"))


def test_remove_from(view: TranscriptView) -> None:
    view.set_turns([UserTurn("Hi"), AnswerTurn(AnswerModel(drawing()), "m"), UserTurn("More")])
    view.select_all()
    view.remove_from(turn(view, "a"))
    assert [type(turn) for turn in view.turns] == [UserTurn]
    assert view.selection.text() == ""


def test_removing_the_live_answer_ends_it(view: TranscriptView) -> None:
    view.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    answer = last(view)
    view.remove_from(turn(view, "a"))
    assert not view.live
    answer.begin(make_header())
    answer.add([make_round(0, [], "x")])
    assert len(view.stack) == 0


@pytest.mark.parametrize("rendered", [False, True])
def test_a_completion_goes_on_in_the_code_that_is_open(view: TranscriptView, rendered: bool) -> None:
    before = "Sort a list:\n```python\ndef sort("
    rounds = [make_round(0, [], "values):\n    pass\n```\nThat is all.")]
    view.set_rendered(rendered)
    view.set_turns([AnswerTurn(AnswerModel(make_trace(rounds)), "m", goes_on_from=before)])
    blocks = answer(view).blocks
    if rendered:
        assert [block.text for block in blocks] == ["values):\n    pass", "That is all."]
        return
    kinds = [block.paragraph.kind for block in blocks]  # type: ignore[attr-defined]
    assert kinds == [Kind.CODE, Kind.CODE, Kind.FENCE, Kind.PROSE]


def test_appending_costs_what_it_adds(view: TranscriptView) -> None:
    """However long the answer, a batch changes only a few paragraphs."""
    trace = simulate(CODE * 60, seed=4)
    live(view, trace)
    before = list(answer(view).blocks)
    add(view, [make_round(len(trace.rounds), ["more"], " text")])
    after = answer(view).blocks
    assert all(old is new for old, new in zip(before, after, strict=False))
    assert len(after) - len(before) <= 1
    laid_out = sum(block.laid_out for block in after)
    assert laid_out < 250 < len(after)


def test_copy_of_tokens_is_exact_after_the_chat_changes_width(view: TranscriptView) -> None:
    trace = simulate(CODE * 3, seed=1)
    view.set_turns([AnswerTurn(AnswerModel(trace), "m")])
    view.resize(300, 300)
    assert "".join(span.text for span in spans(view) if span.counts) == trace.text.replace("\n", "")


def test_nothing_is_left_behind(qtbot: QtBot, theme: Theme) -> None:
    made = TranscriptView(theme)
    made.show()
    made.set_turns([AnswerTurn(AnswerModel(drawing(), Note("Broken.", "", "Again")), "m")])
    with qtbot.waitSignal(made.destroyed):
        made.deleteLater()
    theme.set_mode("dark")  # no longer connected
