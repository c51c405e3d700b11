from __future__ import annotations

import pytest

from app.base.paths import resource_folder
from app.engine.fates import FATES, Origin, Verdict
from app.engine.record.trace import read_trace
from app.engine.rules.formula import visible
from app.engine.types import DraftedToken, Draw, EmittedToken, Round
from app.lessons.lesson import lesson_files, trace_file
from app.ui.inspector.contents import cards_of
from app.ui.transcript.text.facts import TokenFacts, facts_of
from app.ui.transcript.text.spans import Span, spans_of
from app.ui.widgets.words import SPACE
from tests.ui.traces import drawing, make_header, make_round, raw_round, simulate


def facts(round: Round, fate: str, place: int) -> TokenFacts:
    return facts_of(round, Span("?", fate, round.index, place), make_header())


def said(words: str) -> str:
    """The words as shown, with no-break spaces between numbers and units."""
    return words.replace(" %", f"{SPACE}%")


def test_visible() -> None:
    assert visible(b" a b") == "·a·b"
    assert visible(b"\n\t") == "↵⇥"
    assert visible(b"\xf0\x9f") == "<F0> <9F>"
    assert visible(b"", "<|end|>") == "<|end|>"
    assert visible(b"") == "(no text)"


def test_the_card_of_the_drawing() -> None:
    round = drawing().rounds[3]
    shown = facts(round, "resampled", 2)
    assert (shown.token, shown.fate) == ("·arithmetic", "resampled")
    assert shown.word == "resampled"
    assert shown.rows == (
        ("Round · place", "4 · 3 of 5"),
        ("Draft proposed", "·average"),
        ("draft_p", "0.610"),
        ("q (draft)", "1.000"),
        ("p (target) of ·average", "0.118"),
        ("p (target) of ·arithmetic", "0.724"),
    )
    verdict = "The draft proposed “average” (61 %). The target wanted “arithmetic” (72 %): rejected."
    assert shown.verdict == (said(verdict), "The target's own choice replaces it.")
    assert [(row.token, row.chosen) for row in shown.target][:2] == [
        ("·arithmetic", True),
        ("·average", False),
    ]
    assert shown.draft[0].token == "·average"


def test_rejected_and_ignored() -> None:
    round = drawing().rounds[3]
    rejected, shown_instead = facts(round, "rejected", 2), facts(round, "resampled", 2)
    assert ("Emitted instead", "·arithmetic") in rejected.rows
    assert rejected.verdict == shown_instead.verdict
    ignored = facts(round, "ignored", 3)
    assert ignored.verdict == ("Not judged: it comes after “·average”, which was rejected.",)
    assert not any(name.startswith("p ") for name, _ in ignored.rows)
    behind_end = make_round(0, ["."], None, None, ["x"], label="<|end|>")
    assert facts(behind_end, "ignored", 1).verdict == ("Not judged: it comes after the end of the answer.",)


def speculative(u: float, p: float, q: float, accepted: bool) -> str:
    verdict = Verdict.ACCEPTED if accepted else Verdict.REJECTED
    origin = Origin.ACCEPTED if accepted else Origin.RESAMPLED
    draft = DraftedToken(1, b"a", verdict, q, 0.5, p, u)
    round = raw_round(0, [draft], [EmittedToken(2, b"b", origin, p)])
    return facts(round, "accepted" if accepted else "rejected", 0).verdict[-1]


def test_speculative_verdicts_show_the_comparison() -> None:
    assert speculative(0.31, 0.72, 1.0, True) == "p / q = 0.720 / 1 = 0.720. u: 0.310 < 0.720."
    assert speculative(0.91, 0.12, 1.0, False) == "p / q = 0.120 / 1 = 0.120. u: 0.910 ≥ 0.120."


def test_close_comparisons_get_the_digits_they_need() -> None:
    assert speculative(0.72391, 0.72394, 1.0, True).endswith("u: 0.72391 < 0.72394.")
    assert speculative(0.5, 0.5, 1.0, False).endswith("u: 0.500 ≥ 0.500.")
    assert (
        speculative(0.815, 2e-9, 0.006, False)
        == "p / q = 2.00e-09 / 0.00600 = 3.33e-07. u: 0.815 ≥ 3.33e-07."
    )


def test_match_shows_the_draw() -> None:
    draw = Draw(0.42, 0.31, 0.93)
    draft = DraftedToken(1, b" a", Verdict.ACCEPTED, 1.0, None, 0.62, None, 1, draw)
    round = raw_round(
        0, [draft], [EmittedToken(1, b" a", Origin.ACCEPTED, 0.62, draw)],
        strategy="prompt-lookup", match=1234,
    )  # fmt: skip
    shown = facts(round, "accepted", 0)
    assert shown.verdict == (
        said("prompt-lookup proposed “a”. The target drew the same (62 %): accepted."),
        "The target's draw: v 0.420 in [0.310, 0.930).",
    )
    assert ("Copied (prompt-lookup)", "from token 1,235") in shown.rows
    assert ("q (draft)", "1.000") in shown.rows


def test_a_sampled_draft_shows_its_q_and_its_draw() -> None:
    draft = DraftedToken(1, b"a", Verdict.ACCEPTED, 0.25, 0.25, 0.5, 0.9, draft_draw=Draw(0.3, 0.2, 0.45))
    round = raw_round(0, [draft], [EmittedToken(1, b"a", Origin.ACCEPTED, 0.5)])
    rows = dict(facts(round, "accepted", 0).rows)
    assert rows["q (draft)"] == "0.250"
    assert rows["The draft's draw"] == "0.300 in [0.200, 0.450)"


def joined(words: str) -> str:
    """The words as shown, with no-break spaces beside equals signs."""
    return words.replace(" = ", f"{SPACE}={SPACE}")


def test_a_block_says_which_draw_decided() -> None:
    """The second of four tokens passes, and the first with it; the last cannot pass and was not judged."""
    drafts = [
        DraftedToken(1, b" a", Verdict.ACCEPTED, 0.8, p=0.4),
        DraftedToken(2, b" b", Verdict.ACCEPTED, 0.5, p=0.7, u=0.31, h=0.62),
        DraftedToken(3, b" c", Verdict.REJECTED, 0.9, p=0.0, u=0.42, h=0.0),
        DraftedToken(4, b" d", Verdict.IGNORED, 0.9),
    ]
    emitted = [
        EmittedToken(1, b" a", Origin.ACCEPTED, 0.4),
        EmittedToken(2, b" b", Origin.ACCEPTED, 0.7),
        EmittedToken(5, b" e", Origin.RESAMPLED, 0.6, Draw(0.5, 0.4, 0.7)),
    ]
    round = raw_round(0, drafts, emitted)
    decided = joined("lock acceptance h = 0.620, u = 0.310: u < h")
    refused = joined("Block acceptance h = 0, u = 0.420: u ≥ h, rejected.")
    assert facts(round, "accepted", 0).verdict == (
        said("draft-simple proposed “a”."),
        f"Accepted with the block up to “·b”: b{decided}.",
    )
    assert facts(round, "accepted", 1).verdict[1:] == (f"B{decided}, accepted up to here.",)
    assert facts(round, "rejected", 2).verdict[1:] == (refused,)
    assert facts(round, "resampled", 2).verdict[1:] == (
        refused,
        "Drawn from the residual: v 0.500 in [0.400, 0.700).",
    )
    assert facts(round, "ignored", 3).verdict == ("Not judged: it comes after “·c”, which was rejected.",)


def test_an_ignored_token_of_a_block_was_judged() -> None:
    drafts = [
        DraftedToken(1, b" a", Verdict.REJECTED, 0.8, p=0.4, u=0.9, h=0.3),
        DraftedToken(2, b" b", Verdict.IGNORED, 0.8, p=0.6, u=0.72, h=0.375),
    ]
    round = raw_round(0, drafts, [EmittedToken(5, b" e", Origin.RESAMPLED, 0.6, Draw(0.5, 0.4, 0.7))])
    shown = facts(round, "ignored", 1)
    assert ("p (target)", "0.600") in shown.rows
    assert shown.verdict == (
        joined("Block acceptance h = 0.375, u = 0.720: u ≥ h, not accepted by itself."),
        "It comes after “·a”, which was rejected.",
    )


def test_resampled_from_the_residual() -> None:
    draft = DraftedToken(1, b"a", Verdict.REJECTED, 1.0, 0.6, 0.1, 0.9)
    draw = Draw(0.5, 0.4, 0.7)
    round = raw_round(0, [draft], [EmittedToken(2, b"b", Origin.RESAMPLED, 0.3, draw)])
    assert facts(round, "resampled", 0).verdict == (
        said("The draft proposed “a” (60 %). The target gave it 10 %: rejected."),
        "p / q = 0.100 / 1 = 0.100. u: 0.900 ≥ 0.100.",
        "Drawn from the residual: v 0.500 in [0.400, 0.700).",
    )
    assert facts(round, "resampled", 0).word == "resampled"


def test_the_card_has_the_numbers_of_the_inspector() -> None:
    """A drawn token's q, not the share of the draft's ten best."""
    (lesson,) = (file for file in lesson_files(resource_folder()) if "temperature" in file.name)
    trace = read_trace(trace_file(lesson))
    seen = 0
    for span in spans_of(trace):
        shown = facts_of(trace.rounds[span.round], span, trace.header)
        card = next(
            (card for card in cards_of(trace.rounds[span.round], trace.header)
             if card.headings == ("q", "p") and card.place.startswith(f"Place {span.place + 1} ")), None,
        )  # fmt: skip
        bars = {bar.token: bar.values for bar in card.bars} if card is not None else {}
        for column, rows in enumerate((shown.draft, shown.target)):
            for row in rows:
                if row.token in bars:
                    seen += 1
                    assert row.p == pytest.approx(bars[row.token][column])
    assert seen > 200


def test_a_draw_is_shown_inside_its_interval() -> None:
    draft = DraftedToken(1, b"a", Verdict.REJECTED, 1.0, 0.6, 0.1, 0.9)
    draw = Draw(0.99991, 0.99987, 0.99995)
    round = raw_round(0, [draft], [EmittedToken(2, b"b", Origin.RESAMPLED, 0.3, draw)])
    (*_, drawn) = facts(round, "resampled", 0).verdict
    assert drawn == "Drawn from the residual: v 0.99991 in [0.99987, 0.99995)."


def test_a_chance_is_none_or_all_only_when_it_is() -> None:
    draft = DraftedToken(1, b"a", Verdict.REJECTED, 1.0, 1e-8, 0.0, 0.9)
    round = raw_round(0, [draft], [EmittedToken(2, b"b", Origin.RESAMPLED, 1.0)])
    assert facts(round, "rejected", 0).verdict[0] == said(
        "The draft proposed “a” (<1 %). The target gave it 0 %: rejected."
    )
    assert facts(make_round(0, ["a"], "b"), "accepted", 0).verdict == (
        said("The draft proposed “a” (61 %). The target wanted the same (90 %): accepted."),
    )


@pytest.mark.parametrize(
    ("p", "words"),
    [(0.0, "0 %"), (0.005, "<1 %"), (0.0051, "1 %"), (0.9949, "99 %"), (0.995, ">99 %"), (1.0, "100 %")],
)
def test_only_what_is_certain_reads_as_none_or_all(p: float, words: str) -> None:
    shown = facts(raw_round(0, [], [EmittedToken(2, b"b", Origin.PLAIN, p)]), "plain", 0)
    assert shown.verdict[-1] == said(f"The target wanted “b” ({words}).")


@pytest.mark.parametrize(
    ("accepted", "words"),
    [(1, "The drafted token was"), (2, "Both drafted tokens were"), (4, "All 4 drafted tokens were")],
)
def test_bonus(accepted: int, words: str) -> None:
    shown = facts(make_round(7, ["a"] * accepted, "b"), "bonus", accepted)
    assert shown.verdict == (f"{words} accepted.", said("The target wanted “b” (72 %)."))
    assert shown.rows[0] == ("Round · place", f"8 · after {accepted} of {accepted}")


def test_plain_says_why_there_was_no_draft() -> None:
    shown = facts(make_round(0, [], "b", draft_end="no match"), "plain", 0)
    assert shown.verdict == ("No draft in this round: no match.", said("The target wanted “b” (72 %)."))
    assert shown.rows[0] == ("Round", "1")


def test_every_token_of_a_trace_has_facts() -> None:
    trace = simulate("def mean(values):\n    return sum(values) / len(values)\n" * 5, rate=0.6)
    seen = set()
    for span in spans_of(trace):
        shown = facts_of(trace.rounds[span.round], span, trace.header)
        seen.add(shown.fate)
        assert shown.fate == span.fate
        assert shown.verdict and shown.rows
        assert shown.token in shown.spoken()
        assert len(shown.target) <= 5 and len(shown.draft) <= 5
    assert seen == set(FATES) - {"plain"}
