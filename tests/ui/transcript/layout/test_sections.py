"""Reasoning: found however the tokens are cut, folded when it is over, never lost."""

from __future__ import annotations

import random
import re

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from pytestqt.qtbot import QtBot

from app.engine.record.trace import Trace
from app.engine.types import FinishReason
from app.ui.state.answer import AnswerModel
from app.ui.theme import LIGHT
from app.ui.transcript import AnswerTurn, TranscriptView, UserTurn
from app.ui.transcript.layout.sections import Part, ReasoningReader
from app.ui.transcript.layout.stack import Token
from app.ui.transcript.text.folds import FoldLine, ReasoningFold
from app.ui.transcript.text.spans import Span, text_of
from tests.ui.traces import make_header, make_round, make_totals, make_trace, simulate
from tests.ui.transcript.places import add, answer, centre, last, turn

THOUGHT = "<think>\nFirst the needle.\nThen the rest.\n</think>\n\nIt is done.\n"


def spans(*texts: str) -> list[Span]:
    return [Span(text, "plain", index, 0) for index, text in enumerate(texts)]


def placed(parts: list[Part]) -> list[tuple[int, str]]:
    """The section and the text of each span."""
    return [(part.section, span.text) for part in parts for span in part.spans]


def read(texts: list[str], prompt: str = "") -> list[tuple[int, str]]:
    """The text of each section, with the spans added one at a time."""
    reader = ReasoningReader(prompt)
    parts = [part for span in spans(*texts) for part in reader.add([span])] + reader.finish()
    found: dict[int, str] = {}
    for section, text in placed(parts):
        found[section] = found.get(section, "") + text
    return list(found.items())


# ------------------------------------------------------------------------------- where it begins and ends


def test_the_reasoning_and_the_answer_behind_it() -> None:
    assert read(["<think>", "Hm.", "</think>", "\n\n", "Yes."]) == [
        (1, "<think>Hm.</think>\n\n"),
        (2, "Yes."),
    ]


def test_a_block_that_the_template_opened() -> None:
    prompt = "<|im_start|>assistant\n<think>\n"
    assert read(["Hm.", "\n</think>", " Yes."], prompt) == [(1, "Hm.\n</think> "), (2, "Yes.")]
    # A template may also close what it opened: then there is nothing to fold.
    assert read(["Yes."], prompt + "\n</think>\n\n") == [(0, "Yes.")]


def test_every_cut_between_tokens_gives_the_same() -> None:
    text = "\n <thinking>a <b> </think> </thinkin\n``` \nc</thinking>\nSo:\n<think>d</think>e <think> f\n"
    whole = read([text])
    assert [number for number, _ in whole] == [1, 2, 3, 4]
    luck = random.Random(7)
    for _ in range(300):
        cuts = sorted(luck.sample(range(1, len(text)), luck.randint(1, len(text) - 1)))
        pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
        assert read(pieces) == whole
    assert read(list(text)) == whole


@pytest.mark.parametrize(
    "text",
    [
        "A model writes <think> first.",
        "Look:\n```\n<think>\n```\nthat is it.",
        "~~~~\n```\n<think>\n",
        "</think> alone",
        "<thin",
        "<thinker>no</thinker>",
        " \n",
        "",
    ],
)
def test_text_that_only_speaks_of_the_tag_is_an_answer(text: str) -> None:
    assert read(list(text)) == ([(0, text)] if text else [])


def test_nothing_is_held_back_that_cannot_be_a_tag() -> None:
    reader = ReasoningReader()
    assert len(reader.add(spans("Hello"))) == 1
    assert len(reader.add(spans(" <think"))) == 1  # not at the beginning of a line
    assert reader.add(spans("\n<th")) and not reader.add(spans("ink"))
    assert placed(reader.add(spans(">"))) == [(1, "<th"), (1, "ink"), (1, ">")]


def test_a_tag_that_is_a_control_token() -> None:
    reader = ReasoningReader()
    tag = Span("<think>", "plain", 0, 0, control=True)
    end = Span("</think>", "plain", 2, 0, control=True)
    parts = reader.add([tag, *spans("Hm."), end, *spans("Yes."), Span("<|end|>", "plain", 3, 0, True)])
    assert placed(parts) == [
        (1, "<think>"), (1, "Hm."), (1, "</think>"), (2, "Yes."), (2, "<|end|>"),
    ]  # fmt: skip


def test_a_struck_draft_stands_with_the_token_that_took_its_place() -> None:
    struck = Span("No", "rejected", 1, 0)
    reader = ReasoningReader()
    parts = reader.add([*spans("<think>a</think>\n"), struck, Span("Yes", "resampled", 1, 0)])
    assert [section for section, _text in placed(parts)] == [1, 2, 2]
    begin = ReasoningReader().add([struck, *spans("<think>a")])
    assert [section for section, _text in placed(begin)] == [1, 1]


def test_a_struck_tag_opens_nothing() -> None:
    parts = ReasoningReader().add([Span("<think>", "rejected", 0, 0), *spans("Yes")])
    assert [section for section, _text in placed(parts)] == [0, 0]


def test_adding_costs_what_is_added() -> None:
    reader = ReasoningReader()
    reader.add(spans("<think>"))
    kept = 0
    for _ in range(1000):
        given = spans(" word <", "/t")
        parts = reader.add(given)
        kept += len(text_of(given)) - sum(len(text) for _section, text in placed(parts))
        assert kept <= len("</t"), "only what may begin a tag is kept back, and read once more"


# ------------------------------------------------------------------------------------------ in the view


def lines(view: TranscriptView, kind: str = "a") -> list[tuple[int, FoldLine]]:
    blocks = answer(view, kind).blocks
    return [(row, block) for row, block in enumerate(blocks) if isinstance(block, FoldLine)]


def fold(view: TranscriptView) -> ReasoningFold:
    shown = lines(view)[0][1].fold
    assert isinstance(shown, ReasoningFold)
    return shown


def line_at(view: TranscriptView) -> QPoint:
    """A point on the first fold line, in viewport coordinates."""
    row, _ = lines(view)[0]
    index = view.stack.index_of(turn(view, "a"))
    y = view.stack.block_top(index, row) - view.scroller.top + 6
    return QPoint(view.column[0] + 20, y)


def shown(view: TranscriptView) -> str:
    """The text that is not folded."""
    parts = [b.text + b.joint for b in answer(view).blocks if not b.hidden]
    return "".join(parts)


def show(view: TranscriptView, trace: Trace) -> None:
    view.set_turns([UserTurn("Do it."), AnswerTurn(AnswerModel(trace), "demo")])


@pytest.fixture
def chat(view: TranscriptView) -> TranscriptView:
    show(view, simulate(THOUGHT, rate=0.6))
    return view


def test_stored_reasoning_is_folded_under_a_line(chat: TranscriptView) -> None:
    assert fold(chat).folded
    assert shown(chat).strip() == "It is done."
    assert answer(chat).text == THOUGHT
    words = fold(chat).words
    assert re.fullmatch(r"Reasoning  ·  \d+ tokens  ·  [\d.]+\xa0m?s", words)


def test_the_line_counts_tokens_and_time(view: TranscriptView) -> None:
    rounds = [
        make_round(0, [], "Well.\n", offset=0.0, seconds=1.0),
        make_round(1, ["<thi"], "nk>", offset=1.0, seconds=1.0),
        make_round(2, ["a", "b"], "c", "x", ["y"], offset=2.0, seconds=2.0),
        make_round(3, ["</", "think"], ">", offset=4.0, seconds=0.5),
        make_round(4, [], "So.", offset=4.5, seconds=1.0),
    ]
    show(view, make_trace(rounds))
    assert fold(view).words == "Reasoning  ·  8 tokens  ·  3.50\xa0s"


def test_a_click_on_the_line_unfolds_and_folds(qtbot: QtBot, chat: TranscriptView) -> None:
    at = line_at(chat)
    height = chat.stack.height
    qtbot.mouseClick(chat.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert not fold(chat).folded
    assert shown(chat).rstrip() == THOUGHT.rstrip()
    assert chat.stack.height > height
    assert line_at(chat) == at  # it stays in place
    qtbot.mouseClick(chat.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert fold(chat).folded and chat.stack.height == height
    assert chat.selection.text() == ""


def test_a_click_beside_the_line_does_not(qtbot: QtBot, chat: TranscriptView) -> None:
    at = line_at(chat)
    beside = QPoint(chat.column[0] + chat.column[1] - 4, at.y())
    qtbot.mouseClick(chat.viewport(), Qt.MouseButton.LeftButton, pos=beside)
    qtbot.mousePress(chat.viewport(), Qt.MouseButton.LeftButton, pos=at)
    qtbot.mouseRelease(chat.viewport(), Qt.MouseButton.LeftButton, pos=at + QPoint(0, 60))
    assert fold(chat).folded


@pytest.mark.parametrize("key", [Qt.Key.Key_Space, Qt.Key.Key_Return])
def test_the_keyboard_unfolds(qtbot: QtBot, chat: TranscriptView, key: Qt.Key) -> None:
    qtbot.keyClick(chat, key)
    assert not fold(chat).folded
    qtbot.keyClick(chat, key)
    assert fold(chat).folded


def test_the_menu_folds_and_copies_without(chat: TranscriptView) -> None:
    menu = chat.make_menu(line_at(chat))
    actions = {action.text(): action for action in menu.actions()}
    actions["Unfold reasoning"].trigger()
    assert not fold(chat).folded
    actions["Copy answer without reasoning"].trigger()
    assert QGuiApplication.clipboard().text() == "It is done.\n"
    chat.copy_turn(turn(chat, "a"))
    assert QGuiApplication.clipboard().text() == THOUGHT
    assert "Fold reasoning" in [action.text() for action in chat.make_menu(line_at(chat)).actions()]
    show(chat, simulate("Plain.\n"))
    words = [action.text() for action in chat.make_menu(QPoint(200, 100)).actions()]
    assert not [word for word in words if "reasoning" in word]


def test_selecting_over_it_copies_what_was_emitted(chat: TranscriptView) -> None:
    for text in (THOUGHT, THOUGHT.replace("\n\n", " "), "Well.\n" + THOUGHT, THOUGHT.replace("\n\n", "")):
        show(chat, simulate(text))
        chat.select_all()
        assert chat.selection.text() == "Do it.\n\n" + text


def test_find_unfolds_where_the_match_lies(chat: TranscriptView) -> None:
    assert chat.find("done") == (1, 1)
    assert fold(chat).folded
    assert chat.find("needle") == (1, 1)
    assert not fold(chat).folded
    match = chat.finder.current
    assert match is not None
    assert chat.stack.rects(match.first, match.end.offset)


def test_pointing_at_a_round_unfolds_it(chat: TranscriptView) -> None:
    chat.show_round(turn(chat, "a"), 1)
    assert not fold(chat).folded
    assert chat.hover.token is not None


def test_folded_tokens_are_not_under_the_pointer(chat: TranscriptView) -> None:
    chat.folding.toggle_seen()
    some = Token(1, next(span for span in answer(chat).spans if span.text == " needle"))
    at = centre(chat, some)
    assert chat.stack.token_at(*chat.to_column(at)) == some
    chat.folding.toggle_seen()
    assert chat.stack.token_rects(some) == []


def stream(view: TranscriptView, *texts: str, prompt: str = "Hello") -> None:
    if not view.live:
        view.set_turns([UserTurn("Do it.")])
        view.add_turn(AnswerTurn(AnswerModel(live=True), "demo"))
        last(view).begin(msgspec.structs.replace(make_header(), prompt=prompt))
    begin = len(last(view).rounds)
    add(view, [make_round(begin + at, [], text) for at, text in enumerate(texts)])


def test_unfolded_while_it_streams_then_folded(view: TranscriptView) -> None:
    stream(view, "<th", "ink>", "Hm", ".")
    assert not fold(view).folded and shown(view) == "<think>Hm.\n"
    stream(view, "\n</", "think")
    assert not fold(view).folded
    stream(view, ">")
    assert fold(view).folded and shown(view) == ""
    stream(view, "\n\n", "Yes", ".")
    assert shown(view) == "Yes.\n"
    text = "<think>Hm.\n</think>\n\nYes."
    last(view).end(make_totals(text))
    assert fold(view).folded and answer(view).text == text
    assert fold(view).tokens == 8


def test_what_the_template_opened_streams_alike(view: TranscriptView) -> None:
    stream(view, "Hm", ".", prompt="<|user|>Hi<|assistant|><think>\n")
    assert shown(view) == "Hm.\n" and not fold(view).folded
    stream(view, "</think>", "Yes")
    assert fold(view).folded and shown(view) == "Yes\n"


def test_the_readers_choice_stays(qtbot: QtBot, view: TranscriptView) -> None:
    stream(view, "<think>", "Hm")
    view.folding.toggle_seen()
    assert shown(view) == ""
    stream(view, " and", " so\non")
    assert shown(view) == ""  # more reasoning stays folded
    view.folding.toggle_seen()
    stream(view, "</think>", "Yes")
    last(view).end(make_totals("<think>Hm and so\non</think>Yes"))
    assert not fold(view).folded
    view.set_rendered(True)
    view.set_rendered(False)
    assert not fold(view).folded


def test_not_folded_under_the_eyes_of_a_reader(view: TranscriptView) -> None:
    stream(view, "<think>", *["line\n"] * 200)
    view.verticalScrollBar().setValue(200)
    assert not view.scroller.following
    top = view.scroller.top
    stream(view, "</think>", "Yes")
    assert not fold(view).folded and view.scroller.top == top


def test_reasoning_that_never_ended_stays_open(view: TranscriptView) -> None:
    stream(view, "<think>", "Hm")
    last(view).end(make_totals("<think>Hm", FinishReason.LENGTH))
    assert not fold(view).folded
    show(view, make_trace([make_round(0, ["<think>"], "Hm")]))
    assert not fold(view).folded


def test_streamed_and_stored_look_alike(view: TranscriptView) -> None:
    trace = simulate("Well.\n" + THOUGHT + "\n<think>again</think>More.", rate=0.5)
    show(view, trace)
    stored = [(type(b), b.text, b.joint, b.hidden) for b in answer(view).blocks]
    view.set_turns([UserTurn("Do it.")])
    view.add_turn(AnswerTurn(AnswerModel(live=True), "demo"))
    last(view).begin(trace.header)
    for round in trace.rounds:
        add(view, [round])
    last(view).end(trace.totals)
    assert [(type(b), b.text, b.joint, b.hidden) for b in answer(view).blocks] == stored
    assert len(lines(view)) == 2


def test_rendered_it_folds_too_and_shows_no_tags(view: TranscriptView) -> None:
    view.set_rendered(True)
    show(view, simulate("<think>\n*so* it is\n</think>\n\n# Done\n\nYes.\n"))
    assert fold(view).folded
    assert [b.text for b in answer(view).blocks] == ["", "so it is", "Done", "Yes."]
    assert view.find("so it") == (1, 1)
    assert not fold(view).folded and "so it is" in shown(view)


def test_rendered_it_streams(qtbot: QtBot, view: TranscriptView) -> None:
    view.set_rendered(True)
    stream(view, "<think>", "one\n\n", "two")
    texts = ["", "one", "two"]
    qtbot.waitUntil(lambda: [b.text for b in answer(view).blocks] == texts)
    stream(view, "\n</think>\n", "\nAll", " *done*")
    texts.append("All done")
    qtbot.waitUntil(lambda: [b.text for b in answer(view).blocks] == texts)
    stream(view, " now")
    last(view).end(make_totals("<think>one\n\ntwo\n</think>\n\nAll *done* now"))
    assert [b.text for b in answer(view).blocks] == ["", "one", "two", "All done now"]
    assert shown(view) == "All done now\n\n"


def test_code_that_fills_a_gap_has_no_reasoning(view: TranscriptView) -> None:
    view.set_turns([AnswerTurn(AnswerModel(simulate(THOUGHT)), "demo", suffix="")])
    assert not lines(view)


def test_reasoning_is_written_in_the_secondary_colour(chat: TranscriptView) -> None:
    def inks(text: str) -> set[str]:
        row = next(row for row, block in enumerate(answer(chat).blocks) if text in block.text)
        top = chat.stack.block_top(1, row) - chat.scroller.top
        image = chat.grab().toImage()
        left, _ = chat.column
        places = [(x, y) for x in range(left, left + 160) for y in range(top, top + 26)]
        return {image.pixelColor(*place).name().upper() for place in places}

    chat.folding.toggle_seen()
    assert LIGHT.secondary in inks("First the") and LIGHT.text not in inks("First the")
    assert LIGHT.text in inks("It is done")
    assert {LIGHT.tint("accepted"), LIGHT.fate("accepted")} & inks("Then the")


def test_a_theme_and_a_width_change_keep_it_folded(chat: TranscriptView) -> None:
    chat.resize(500, 400)
    chat.set_drafts_shown(False)
    assert fold(chat).folded
    hidden = [row for row, block in enumerate(answer(chat).blocks) if block.hidden]
    assert hidden and all(answer(chat).heights[row] == 0 for row in hidden)
