"""The tokens among the spans of an answer: those of a round, and from one to the next."""

from __future__ import annotations

import pytest

from app.ui.transcript.text.spans import UNKNOWN, Span, SpanList

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
