"""A round in words."""

from __future__ import annotations

import pytest

from app.engine.fates import Origin, Verdict
from app.engine.types import DraftedToken, Draw, EmittedToken, Round
from app.ui.instruments.round_rows import cells, draft_text, has_q, round_rows, times_text, token_text
from app.ui.widgets.words import SPACE

ACCEPTED = DraftedToken(1, b" Return", Verdict.ACCEPTED, 1.0, 0.93, 0.97, target_id=1)
REJECTED = DraftedToken(2, b" average", Verdict.REJECTED, 1.0, 0.61, 0.118, target_id=9)
IGNORED = DraftedToken(3, b" of", Verdict.IGNORED, 1.0, 0.7)
RESAMPLED = EmittedToken(9, b" arithmetic", Origin.RESAMPLED, 0.724)


def make(drafted=(), emitted=(), **changes) -> Round:
    fields = {
        "index": 2, "position": 0, "offset": 0.1, "seconds": 0.011, "draft_seconds": 0.0011,
        "verify_seconds": 0.0096, "sample_seconds": 0.0002, "native_seconds": 0.01,
        "drafted": tuple(drafted), "emitted": tuple(emitted), "strategy": "draft-simple",
    }  # fmt: skip
    return Round(**{**fields, **changes})


def test_the_round_of_the_drawing() -> None:
    emitted = EmittedToken(1, b" Return", Origin.ACCEPTED, 0.97)
    rows = round_rows(make([ACCEPTED, REJECTED, IGNORED], [emitted, RESAMPLED]))
    assert [cells(row) for row in rows] == [
        ("·Return", "0.930", "1.000", "0.970", "", "accepted"),
        ("·average", "0.610", "1.000", "0.118", "", "rejected"),
        ("·of", "0.700", "1.000", "–", "", "ignored"),
        ("·arithmetic", "–", "–", "0.724", "", "resampled"),
    ]


def test_an_answer_cut_by_a_stop_has_no_own_token() -> None:
    emitted = EmittedToken(1, b" Return", Origin.ACCEPTED, 0.97)
    rows = round_rows(make([ACCEPTED, IGNORED], [emitted]))
    assert [row.fate for row in rows] == ["accepted", "ignored"]


@pytest.mark.parametrize(
    ("piece", "label", "shown"),
    [
        (b" of a", "", "·of·a"),
        (b"\n\n\t", "", "↵↵→"),
        (b"\xc3", "", "\\xc3"),
        ("é".encode(), "", "é"),
        (b"\x00", "", "\\x00"),
        (b"", "<|im_end|>", "<|im_end|>"),
    ],
)
def test_tokens_are_visible(piece: bytes, label: str, shown: str) -> None:
    assert token_text(piece, label) == shown


def test_q_matters_only_where_a_token_was_drawn() -> None:
    assert not has_q(make([ACCEPTED, REJECTED]))
    drawn = DraftedToken(1, b"x", Verdict.ACCEPTED, 0.4, 0.4, 0.5, 0.2)
    assert has_q(make([ACCEPTED, drawn]))


def test_details_let_a_verdict_be_checked() -> None:
    drawn = DraftedToken(1, b"x", Verdict.REJECTED, 0.4, 0.4, 0.1, 0.8123)
    (row,) = round_rows(make([drawn]))
    assert "u 0.812: u × q ≥ p" in row.details
    (row,) = round_rows(make([REJECTED]))
    assert "the target chose token 9" in row.details
    out = EmittedToken(9, b"y", Origin.RESAMPLED, 0.7, Draw(0.43, 0.21, 0.93))
    (row,) = round_rows(make([], [out]))
    assert "drawn from the residual" in row.details
    assert "between 0.210 and 0.930" in row.details


def test_a_block_is_explained_by_its_acceptance_values() -> None:
    judged = DraftedToken(1, b"x", Verdict.IGNORED, 0.4, p=0.1, u=0.8123, h=0.25)
    (row,) = round_rows(make([judged]))
    assert "block acceptance h 0.250" in row.details
    assert "u 0.812: u ≥ h" in row.details
    assert "never judged" not in row.details


def test_words_about_the_draft() -> None:
    assert draft_text(make([ACCEPTED], draft_end="n_max")) == "draft-simple · end: at n_max"
    copied = make([ACCEPTED], strategy="prompt-lookup", match=1234, draft_end="num_pred_tokens")
    assert draft_text(copied) == ("prompt-lookup, copied from token 1,235 · end: at num_pred_tokens")
    assert draft_text(make(strategy=None, draft_end="no match")) == "No draft: no match."
    assert draft_text(make(strategy=None)) == "No draft in this round."


def test_times() -> None:
    assert times_text(make([ACCEPTED])).replace(SPACE, " ") == "draft 1.10 ms · verify 9.60 ms"
    assert times_text(make()).replace(SPACE, " ") == "verify 9.60 ms"
