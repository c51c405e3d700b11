from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.engine.loop.text import TextStream
from app.engine.record.trace import Trace
from app.engine.types import FinishReason, Round
from app.ui.transcript.text.spans import (
    UNKNOWN,
    Span,
    SpanBuilder,
    SpanList,
    coloured,
    spans_of,
    text_of,
)
from tests.ui.traces import drawing, make_header, make_round, make_totals, make_trace

FAMILY = "👨‍👩‍👧".encode()


def shown(spans: Sequence[Span]) -> list[tuple[str, str]]:
    return [(span.text, span.fate) for span in spans]


def ended(rounds: list[Round], stop: tuple[str, ...] = ()) -> Trace:
    """A trace whose totals are made as the engine makes them."""
    stream = TextStream(stop)
    for round in rounds:
        for token in round.emitted:
            stream.add(token.piece)
    stream.finish()
    trace = Trace(make_header(stop=stop), rounds)
    trace.totals = make_totals(stream.text, FinishReason.STOP if stop else FinishReason.END)
    return trace


def test_struck_drafts_stand_before_the_token_in_their_place() -> None:
    trace = make_trace([make_round(0, ["the"], " mean", " sum", [" of", " a"])])
    assert shown(spans_of(trace)) == [
        ("the", "accepted"),
        (" sum", "rejected"),
        (" of", "ignored"),
        (" a", "ignored"),
        (" mean", "resampled"),
    ]


def test_places_count_drafted_tokens_where_struck_else_emitted_ones() -> None:
    spans = spans_of(make_trace([make_round(4, ["a", "b"], "e", "c", ["d"])]))
    assert [(span.text, span.round, span.place) for span in spans] == [
        ("a", 4, 0),
        ("b", 4, 1),
        ("c", 4, 2),
        ("d", 4, 3),
        ("e", 4, 2),
    ]


def test_bonus_and_plain() -> None:
    spans = spans_of(make_trace([make_round(0, [], "a"), make_round(1, ["b"], "c")]))
    assert shown(spans) == [("a", "plain"), ("b", "accepted"), ("c", "bonus")]


def test_cursor_shows_the_rounds_before_it() -> None:
    trace = drawing()
    assert spans_of(trace, cursor=0) == []
    assert {span.round for span in spans_of(trace, cursor=5)} == set(range(5))


def test_a_character_over_several_tokens_takes_the_colour_of_its_last() -> None:
    face = "😀".encode()
    trace = make_trace([make_round(0, [b"a" + face[:2]], face[2:] + b"b")])
    assert shown(spans_of(trace)) == [("a", "accepted"), ("😀b", "bonus")]


def test_struck_bytes_complete_a_character_without_touching_the_answer() -> None:
    face, heart = "😀".encode(), "😂".encode()
    assert face[:3] == heart[:3]
    trace = make_trace([make_round(0, [face[:3]], face[3:], heart[3:])])
    assert shown(spans_of(trace)) == [("😂", "rejected"), ("😀", "resampled")]


def test_bytes_that_are_no_text_show_as_replacement_characters() -> None:
    trace = ended([make_round(0, [b"a\xff"], b"b"), make_round(1, [], b"\xe4\xbd")])
    assert shown(spans_of(trace)) == [("a\ufffd", "accepted"), ("b", "bonus"), ("\ufffd", "plain")]
    cut = make_trace([make_round(0, [], "x", b"\xe4", [])])
    assert shown(spans_of(cut))[0] == ("\ufffd", "rejected")


def test_newlines_in_struck_tokens_do_not_break_lines() -> None:
    trace = make_trace([make_round(0, [], "a", "\n\n  x")])
    assert shown(spans_of(trace))[0] == ("↵↵  x", "rejected")


def test_control_tokens_are_named_but_no_text() -> None:
    trace = make_trace([make_round(0, ["done"], label="<|end|>")])
    last = spans_of(trace)[-1]
    assert (last.text, last.fate, last.control, last.counts) == ("<|end|>", "bonus", True, False)
    assert text_of(spans_of(trace)) == "done"


def test_a_possible_stop_string_is_held_back_until_it_is_known() -> None:
    builder = SpanBuilder(["\n\nUser:"])
    assert text_of(builder.add(make_round(0, ["Hi"], "\n"))) == "Hi"
    assert text_of(builder.add(make_round(1, ["\n"], "So"))) == "\n\nSo"
    assert text_of(builder.add(make_round(2, ["\n\n"], "User:"))) == ""


def test_text_is_cut_before_a_stop_string_inside_a_token() -> None:
    rounds = [make_round(0, ["Yes", "."], "\n\nUser", "x"), make_round(1, [":"], " no", " struck", [" too"])]
    trace = ended(rounds, ("\n\nUser:",))
    spans = spans_of(trace)
    assert text_of(spans) == "Yes." == trace.text
    assert shown(spans) == [("Yes", "accepted"), (".", "accepted"), ("x", "rejected")]


def test_a_held_back_beginning_appears_when_the_answer_ends() -> None:
    trace = ended([make_round(0, ["Yes"], "\n\nUs")], ("\n\nUser:",))
    assert text_of(spans_of(trace)) == "Yes\n\nUs"


@pytest.mark.parametrize("text", ["ab", "abcd", "aXcd", "", "abcdef", "a\ufffdcd"])
def test_colouring_gives_exactly_the_text(text: str) -> None:
    spans = [Span("a", "plain", 0, 0), Span("b\ufffd", "plain", 1, 0), Span("cd", "plain", 2, 0)]
    assert text_of(coloured(spans, text)) == text


def test_adding_a_round_returns_that_round_only() -> None:
    builder = SpanBuilder()
    for index in range(50):
        spans = builder.add(make_round(index, ["a"], "b", "x"))
        assert {span.round for span in spans} == {index}


pieces = st.one_of(
    st.sampled_from([b"\n", b" the", b"User", b":", b"\xff", b"", "é".encode(), FAMILY]),
    st.sampled_from([FAMILY[:3], FAMILY[3:5], FAMILY[5:], "好".encode()[:1], "好".encode()[1:]]),
)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    rounds = []
    for index in range(draw(st.integers(0, 6))):
        accepted = draw(st.lists(pieces, max_size=3))
        rejected = draw(st.one_of(st.none(), pieces))
        ignored = draw(st.lists(pieces, max_size=2)) if rejected is not None else []
        rounds.append(make_round(index, accepted, draw(pieces), rejected, ignored))
    return ended(rounds, draw(st.sampled_from([(), ("\nUser:",), (" the", "好")])))


@given(traces())
def test_spans_hold_exactly_the_text_of_the_totals(trace: Trace) -> None:
    assert trace.totals is not None
    spans = spans_of(trace)
    assert text_of(spans) == trace.totals.text
    assert all(span.text for span in spans)


@given(traces())
def test_what_was_shown_live_never_has_to_be_taken_back(trace: Trace) -> None:
    """After every round, the spans are a prefix of the final ones."""
    builder = SpanBuilder(trace.header.stop)
    live: list[Span] = []
    for round in trace.rounds:
        live += builder.add(round)
    assert spans_of(trace)[: len(live)] == live


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the mean is", [("the", "plain"), (" sum", "rejected"), (" mean", "resampled"), (" is", UNKNOWN)]),
        ("the mean", [("the", "plain"), (" sum", "rejected"), (" mean", "resampled")]),
        ("the me", [("the", "plain"), (" sum", "rejected"), (" me", "resampled")]),
        ("the sun", [("the", "plain"), (" sum", "rejected"), (" sun", UNKNOWN)]),
        ("a", [("a", UNKNOWN)]),
        ("", []),
    ],
)
def test_tokens_colour_a_text_as_far_as_they_say_the_same(text: str, expected: list[tuple[str, str]]) -> None:
    spans = spans_of(make_trace([make_round(0, [], "the"), make_round(1, [], " mean", " sum")]))
    assert shown(coloured(spans, text)) == expected


def test_bytes_that_the_text_leaves_out_do_not_end_its_colours() -> None:
    spans = [Span("a\ufffd", "plain", 0, 0), Span("\ufffd", "plain", 1, 0), Span("b", "plain", 2, 0)]
    assert shown(coloured(spans, "ab")) == [("a", "plain"), ("b", "plain")]


A, B = Span("a", "accepted", 0, 0), Span("b", "bonus", 0, 1)
C, D = Span("c", "rejected", 1, 0), Span("d", "resampled", 1, 0)
E, F = Span("e", "plain", 3, 0), Span("f", "plain", 3, 0)  # one token, in two paragraphs
REST = Span("rest", UNKNOWN, 4, 0)
SPANS = SpanList([A, B, C, D, E, F, REST])


def test_a_round_has_its_drafts_where_they_are_asked_for() -> None:
    assert SPANS.of_round(1, drafts=True) == [C, D]
    assert SPANS.of_round(1, drafts=False) == [D]
    assert SPANS.of_round(3, drafts=False) == [E, F]
    assert SPANS.of_round(2, drafts=True) == SPANS.of_round(4, drafts=True) == []
    first = [SPANS.first_of_round(index, drafts=True) for index in range(5)]
    assert first == [A, C, None, E, None]
    assert SPANS.first_of_round(1, drafts=False) == D


def test_emitted_tokens_are_counted_from_a_place_on() -> None:
    assert SPANS.emitted_from(0, 1, 2) == [B, D]
    assert SPANS.emitted_from(1, 0, 9) == [D, E, F]
    assert SPANS.emitted_from(0, 0, 0) == SPANS.emitted_from(5, 0, 1) == []


@pytest.mark.parametrize(
    ("begin", "by", "drafts", "end"),
    [
        (None, 1, True, A),
        (None, -1, True, F),
        (B, 1, True, C),
        (B, 1, False, D),
        (D, 1, False, E),
        (E, 1, True, None),
        (F, -1, False, D),
        (A, -1, True, None),
        (C, 1, False, None),
    ],
)
def test_a_step_leads_to_the_next_token(begin: Span | None, by: int, drafts: bool, end: Span | None) -> None:
    assert SPANS.step(begin, by, drafts) == end
    assert SpanList().step(begin, by, drafts) is None
