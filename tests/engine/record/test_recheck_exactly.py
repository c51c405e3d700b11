"""What a record may just be, and what is said of one step further: one contradiction, one sentence.

The sound answer touches every limit: its drafts, context, tokens and times are as large as they may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as replace_data
from typing import Any

import pytest
from msgspec.structs import replace

from app.engine.drafters.base import DRAFT_ENDED, DRAFT_FULL, ENOUGH, TARGET_FULL
from app.engine.fates import Origin, Verdict
from app.engine.record.recheck import recheck
from app.engine.record.trace import FORMAT, Trace
from app.engine.sampling.logits import TOP
from app.engine.types import (
    Alternatives,
    DraftedToken,
    EmittedToken,
    FinishReason,
    Message,
    ModelInfo,
    PairInfo,
    Round,
    Sampling,
    Totals,
    TraceHeader,
)

A, R, I = Verdict.ACCEPTED, Verdict.REJECTED, Verdict.IGNORED  # noqa: E741


def piece(id: int) -> bytes:
    return bytes([97 + id])


def row(best: int, other: int, p: Sequence[float] = (0.75, 0.25, *[0.0] * 8)) -> Alternatives:
    """All of the vocabulary, these two first."""
    ids = (best, other, *(id for id in range(TOP) if id not in (best, other)))
    return Alternatives(ids, tuple(map(piece, ids)), tuple(p))


def a_round(
    index: int,
    position: int,
    drafted: Sequence[tuple[int, Verdict]],
    emitted: Sequence[tuple[int, Origin]],
    rest: Sequence[int],
    **fields: Any,
) -> Round:
    """A round judged by greedy; `rest` are the ids that the target finds second best."""
    model = fields["asked"][-1] == "draft-simple"
    own = ("n_max" if len(drafted) == 3 else ENOUGH) if model else "num_pred_tokens"
    drafts = []
    for place, (id, verdict) in enumerate(drafted):
        judged = verdict is not I
        p = (0.75 if id == emitted[place][0] else 0.25) if judged else None
        target = emitted[place][0] if judged else None
        drafts.append(
            DraftedToken(id, piece(id), verdict, 1.0, p=p, target_id=target, draft_p=0.75 if model else None)
        )
    return Round(
        index=index, position=position, offset=0.25 * index, seconds=0.25, draft_seconds=0.125,
        verify_seconds=0.0625, sample_seconds=0.0625, native_seconds=0.25, accept_seconds=0.0625,
        drafted=tuple(drafts),
        emitted=tuple(EmittedToken(id, piece(id), origin, 0.75) for id, origin in emitted),
        target_top=tuple(row(id, other) for (id, _), other in zip(emitted, rest, strict=True)),
        draft_top=tuple(row(id, 0 if id else 1) for id, _ in drafted) if model else (),
        draft_end=own if drafts else "no match",
        **({"strategy": fields["asked"][-1] if drafts else None} | fields),
    )  # fmt: skip


def a_model(name: str) -> ModelInfo:
    return ModelInfo(
        path=name, name=name, architecture="llama", quantisation="F32", size=1, n_params=1, n_layers=1,
        n_vocab=TOP, n_ctx_train=64, n_ctx=11, threads=1, has_chat_template=False,
    )  # fmt: skip


def sound() -> Trace:
    """Four rounds by two strategies: a rejection, a copy that passes whole, no draft, the last two tokens."""
    lookup, both = ("prompt-lookup",), ("prompt-lookup", "draft-simple")
    header = TraceHeader(
        format=FORMAT, app_version="0.2.0", strategy="prompt-lookup:num_pred_tokens=2+draft-simple:n_max=3",
        verification="greedy", sampling=Sampling(), seed=7, max_tokens=8,
        pair=PairInfo(a_model("target"), a_model("draft"), "same vocabulary"), prompt="abcd", prompt_tokens=4,
        cached_tokens=3, cold=False, started_at="2026-01-01T00:00:00Z", stop=("zz",),
        messages=(Message("user", " bc\n"),), context_ids=(0, 1, 2, 3),
    )  # fmt: skip
    rounds = [
        a_round(
            0, 0, [(1, A), (2, R), (0, I)], [(1, Origin.ACCEPTED), (3, Origin.RESAMPLED)], [2, 2], asked=both,
            read_seconds=0.125, begin_seconds={"draft-simple": 0.0},
        ),
        a_round(
            1, 2, [(1, A), (3, A)], [(1, Origin.ACCEPTED), (3, Origin.ACCEPTED), (5, Origin.BONUS)],
            [2, 2, 2], asked=lookup, match=4,
        ),
        a_round(2, 5, [], [(2, Origin.PLAIN)], [0], asked=both),
        a_round(3, 6, [(6, A)], [(6, Origin.ACCEPTED), (7, Origin.BONUS)], [0, 0], asked=both),
    ]  # fmt: skip
    totals = Totals(
        finish_reason=FinishReason.LENGTH, text="bdbdfcgh", seconds=1.0, prompt_seconds=0.5,
        draft_prompt_seconds=0.125, draft_prompt_in_rounds=0.125, first_token_seconds=0.75,
    )  # fmt: skip
    return Trace(header, rounds, totals)


def with_values(trace: Trace, changes: dict[str, Any]) -> Trace:
    """A copy of the trace in which the values at these paths are others."""
    whole: Any = {"header": trace.header, "rounds": tuple(trace.rounds), "totals": trace.totals}
    for path, new in changes.items():
        whole = put(whole, path.split("."), new)
    return Trace(whole["header"], list(whole["rounds"]), whole["totals"])


def put(value: Any, path: list[str], new: Any) -> Any:
    if not path:
        return new
    head, *rest = path
    if isinstance(value, tuple):
        place = int(head)
        return (*value[:place], put(value[place], rest, new), *value[place + 1 :])
    if isinstance(value, dict):
        return value | {head: put(value[head], rest, new)}
    changed = {head: put(getattr(value, head), rest, new)}
    return replace_data(value, **changed) if isinstance(value, Sampling) else replace(value, **changed)


def test_an_answer_that_touches_every_limit_is_sound() -> None:
    assert recheck(sound()) == []


ONE_STEP_TOO_FAR: dict[str, tuple[Any, list[str]]] = {
    "rounds.1.index": (2, ["Round 2: its index in the file is 2, not 1."]),
    "rounds.1.position": (3, ["Round 2: it starts at token 4, not 3."]),
    "header.cached_tokens": (4, ["Header: 4 of 4 prompt tokens were cached."]),
    "header.cold": (True, ["Header: 3 prompt tokens were cached in a cold run."]),
    "header.pair.target.n_ctx": (10, ["Round 4: its context of 10 tokens and its draft exceed 10."]),
    "header.sampling.seed": (8, ["Header: its seed is 7, but 8 was asked for."]),
    "header.sampling.top_p": (2.0, ["Header: top_p cannot be 2.0."]),
    "header.pair.vocabulary": (
        "",
        ["Header: the pair's vocabularies were compared without a draft, or not with one."],
    ),
    "header.max_tokens": (
        7,
        [
            "Round 4: it has 1 drafted tokens, more than were wanted.",
            "Round 4: it drafted 1 tokens, and ended by “answer at its length limit”.",
            "Totals: 8 tokens were emitted, but at most 7 were requested.",
            "Totals: it ended at 8 tokens, but 7 were requested.",
        ],
    ),
    "header.strategy": (
        "prompt-lookup:num_pred_tokens=2+draft-simple:n_max=2",
        [
            "Round 1: it has 3 drafted tokens, and draft-simple drafts at most 2.",
            "Round 1: it drafted 3 tokens, and ended by “n_max”.",
        ],
    ),
    "header.stop": (
        ("gh",),
        [
            "Totals: it ended by length, but a stop was reached.",
            "Totals: the text is not that of the emitted tokens.",
        ],
    ),
    "header.pair.target.n_vocab": (
        9,
        [f"Round {at}: token id 9 is not in a vocabulary of 9." for at in (1, 1, 2, 2, 2, 3, 4, 4)],
    ),
    "header.pair.draft.n_vocab": (
        9,
        [f"Round {at}: token id 9 is not in a vocabulary of 9." for at in (1, 1, 1, 4)],
    ),
    "header.prompt": (
        "acbd",
        [
            "Header: its prompt does not contain “bc” of its messages.",
            "Header: its prompt does not contain token 3, b'c'.",
        ],
    ),
    "header.context_ids": ((), ["Header: it does not list the prompt's tokens."]),
    "rounds.2.strategy": (
        "draft-simple",
        ["Round 3: its strategy is draft-simple, and it has 0 drafted tokens."],
    ),
    "rounds.1.asked": (None, ["Round 2: it does not say which strategies were asked."]),
    "rounds.0.asked": (
        ("prompt-lookup",),
        ["Round 1: draft-simple drafted, but was not the last that was asked."],
    ),
    "rounds.2.asked": (
        ("draft-simple", "prompt-lookup"),
        [
            "Round 3: it asked draft-simple, prompt-lookup, and the strategy is "
            "“prompt-lookup:num_pred_tokens=2+draft-simple:n_max=3”."
        ],
    ),
    "rounds.0.match": (4, ["Round 1: it says where its draft was copied from, but it was not copied."]),
    "rounds.2.match": (4, ["Round 3: it says where its draft was copied from, but it was not copied."]),
    "rounds.2.offset": (0.49, ["Round 3: it starts before the previous round ends."]),
    "rounds.1.seconds": (0.249, ["Round 2: its parts took 0.25 s, and the whole 0.249 s."]),
    "rounds.1.native_seconds": (0.251, ["Round 2: llama.cpp took 0.251 s of 0.25 s."]),
    "rounds.0.native_seconds": (0.0, ["Round 1: llama.cpp took 0 s of 0.25 s."]),
    "rounds.1.read_seconds": (0.126, ["Round 2: its draft was read for 0.126 s of 0.125 s."]),
    "rounds.1.accept_seconds": (0.063, ["Round 2: learning what was accepted took 0.063 s of 0.0625 s."]),
    "rounds.2.native_seconds": (-0.001, ["Round 3: one of its times is negative."]),
    "rounds.2.accept_seconds": (-0.001, ["Round 3: one of its times is negative."]),
    "rounds.0.begin_seconds": ({"draft-simple": -0.1}, ["Round 1: one of its times is negative."]),
    "rounds.0.emitted.1.origin": (
        Origin.BONUS,
        ["Round 1: it emitted accepted, bonus, not accepted, resampled."],
    ),
    "rounds.2.emitted.0.origin": (Origin.BONUS, ["Round 3: it emitted bonus, not plain."]),
    "rounds.0.drafted.0.u": (0.5, ["Round 1: the draft at place 1 has u, which greedy never gives."]),
    "rounds.0.drafted.2.target_id": (
        3,
        ["Round 1: the draft at place 3 has target_id, which greedy never gives."],
    ),
    "rounds.0.drafted.2.p": (0.1, ["Round 1: the draft at place 3 is ignored, but has a p."]),
    "rounds.0.drafted.2.verdict": (
        R,
        ["Round 1: 2 tokens are rejected.", "Round 1: the draft at place 3 was judged without its p or q."],
    ),
    "rounds.0.drafted.0.q": (0.5, ["Round 1: the draft at place 1 was not drawn, but its q is 0.5."]),
    "rounds.0.drafted.1.q": (None, ["Round 1: a token has no p or q, which only a server leaves out."]),
    "rounds.3.drafted.0.q": (None, ["Round 4: a token has no p or q, which only a server leaves out."]),
    "rounds.3.emitted.1.p": (None, ["Round 4: a token has no p or q, which only a server leaves out."]),
    "rounds.2.emitted.0.p": (
        0.5,
        ["Round 3: the target's alternatives at place 1 do not give token id 2 the p 0.5."],
    ),
    "rounds.0.drafted.1.p": (
        0.5,
        ["Round 1: the target's alternatives at place 2 do not give token id 2 the p 0.5."],
    ),
    "rounds.0.drafted.1.draft_p": (
        0.5,
        ["Round 1: the draft's alternatives at place 2 do not give token id 2 the p 0.5."],
    ),
    "rounds.3.drafted.0.draft_p": (
        None,
        ["Round 4: its draft tokens have a draft_p without alternatives, or alternatives without it."],
    ),
    "rounds.2.target_top": ((), ["Round 3: it has 0 rows of alternatives for 1 emitted tokens."]),
    "rounds.2.target_top.0.p": (
        (0.75, *[0.0] * 8, -0.1),
        ["Round 3: the target's alternatives at place 1 sum to 0.65."],
    ),
    "rounds.3.target_top.1.p": (
        (0.75, 0.26, *[0.0] * 8),
        ["Round 4: the target's alternatives at place 2 sum to 1.01."],
    ),
    "rounds.0.draft_top.0": (
        row(1, 0, (0.75, 0.24, *[0.0] * 8)),
        ["Round 1: the draft's alternatives at place 1 sum to 0.99."],
    ),
    "rounds.0.draft_top.1": (
        Alternatives((2, 0), (b"c", b"a"), (0.75, 0.25)),
        ["Round 1: the draft's alternatives at place 2 are only 2."],
    ),
    "rounds.2.target_top.0": (
        Alternatives((2, 0), (b"c", b"a"), (0.75, 0.25)),
        ["Round 3: the target's alternatives at place 1 are only 2."],
    ),
    "rounds.2.target_top.0.ids": (
        (2, 10, 1, *range(3, 10)),
        ["Round 3: token id 10 is not in a vocabulary of 10."],
    ),
    "rounds.3.target_top.0.ids": (
        (6, -1, *range(1, 6), *range(7, 10)),
        ["Round 4: token id -1 is not in a vocabulary of 10."],
    ),
    "rounds.2.target_top.0.pieces": (
        (b"c", b"q", b"b", *map(piece, range(3, 10))),
        ["Round 3: token id 0 is b'q' here and b'a' before."],
    ),
    "rounds.2.emitted.0.label": ("<x>", ["Round 3: token id 2 is labelled “<x>”."]),
    "totals.text": ("b", ["Totals: the text is not that of the emitted tokens."]),
    "totals.seconds": (0.99, ["Totals: its rounds took 1 s, and the whole 0.99 s."]),
    "totals.first_token_seconds": (
        0.751,
        ["Totals: the first token came after 0.751 s, but its parts make 0.75 s."],
    ),
    "totals.finish_reason": (FinishReason.FAILED, ["Totals: it failed without an error."]),
}


@pytest.mark.parametrize("path", ONE_STEP_TOO_FAR)
def test_a_contradiction_is_all_that_is_said(path: str) -> None:
    value, sentences = ONE_STEP_TOO_FAR[path]
    assert recheck(with_values(sound(), {path: value})) == sentences


COPIED = {0: [], 3: [], 4: [], 5: ["its draft differs from the text at token 6"]} | {
    at: [f"it copies from token {at + 1}, and the text before it has 6"] for at in (-1, 6)
}  # 0 to 3 are the prompt, whose ids are not recorded
COPIED[None] = ["it does not say where its draft was copied from"]


@pytest.mark.parametrize("match", COPIED)
def test_a_copy_starts_in_the_text_before_it(match: int | None) -> None:
    expected = [f"Round 2: {problem}." for problem in COPIED[match]]
    unlisted = {"header.format": "1.8", "header.context_ids": ()}
    assert recheck(with_values(sound(), unlisted | {"rounds.1.match": match})) == expected


@pytest.mark.parametrize(
    ("at", "end", "possible"),
    [
        *((0, "n_max", True), (0, DRAFT_ENDED, True), (0, ENOUGH, False), (0, "p_min", False)),
        *((0, "", False), (1, "n_max", False), (1, "end of the text", False)),
        *((1, "it failed; num_pred_tokens", True), (2, "n_max", False)),
        *((2, "", False), (2, "anything", True), (2, ENOUGH, False), (3, "n_max", False), (3, ENOUGH, True)),
        *((3, TARGET_FULL, True), (2, TARGET_FULL, False), (3, "another reason", True)),
    ],
)  # fmt: skip
def test_a_draft_ends_as_its_length_says(at: int, end: str, possible: bool) -> None:
    drafted = len(sound().rounds[at].drafted)
    said = [] if possible else [f"Round {at + 1}: it drafted {drafted} tokens, and ended by “{end}”."]
    assert recheck(with_values(sound(), {f"rounds.{at}.draft_end": end})) == said


FIELDS_SINCE = {
    "1.7": set(),
    "1.6": set(),
    "1.5": {"accept_seconds", "begin_seconds"},
    "1.3": {"accept_seconds", "begin_seconds"},
    "1.2": {"accept_seconds", "begin_seconds", "read_seconds"},
    "1.1": {"accept_seconds", "begin_seconds", "read_seconds", "asked"},
}


@pytest.mark.parametrize("version", FIELDS_SINCE)
def test_a_field_that_is_newer_than_its_format_is_said(version: str) -> None:
    found = recheck(with_values(sound(), {"header.format": version}))
    assert {problem.split()[2] for problem in found} == FIELDS_SINCE[version]
    assert all(problem.endswith(f", and this is {version}.") for problem in found)


CUT = {"rounds.3": a_round(3, 6, [(6, A)], [(6, Origin.ACCEPTED)], [0], asked=("draft-simple",))}
ENDED = {"totals.finish_reason": FinishReason.END, "totals.text": "bdbdfc"}
STOPPED = {"totals.finish_reason": FinishReason.STOP, "totals.text": "bdbdfc", "header.stop": ("g",)}
LONGER = {"header.max_tokens": 9, "rounds.3.draft_end": DRAFT_FULL}
ENDS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "the model's end in a draft": (CUT | ENDED, []),
    "a stop in a draft": (CUT | STOPPED, []),
    "a cancelled answer": (CUT | {"totals.finish_reason": FinishReason.CANCELLED, "totals.text": "bdbdfcg"}, [
        "Round 4: it emitted accepted, not accepted, bonus.",
    ]),
    "a failure that says why": (
        {"totals.finish_reason": FinishReason.FAILED, "totals.error": "It broke."},
        [],
    ),
    "a full context": (LONGER | {"totals.finish_reason": FinishReason.CONTEXT}, []),
    "a context with room for one more": (
        LONGER | {"totals.finish_reason": FinishReason.CONTEXT, "header.pair.target.n_ctx": 12},
        ["it ended for a full context, but the context was not full"],
    ),
    "cancelled in a full context": (
        LONGER | {"totals.finish_reason": FinishReason.CANCELLED},
        ["it ended by cancelled, but the context was full"],
    ),
    "cancelled with room for one more": (
        LONGER | {"totals.finish_reason": FinishReason.CANCELLED, "header.pair.target.n_ctx": 12},
        [],
    ),
    "cancelled after the last token": (
        {"totals.finish_reason": FinishReason.CANCELLED, "header.pair.target.n_ctx": 12},
        ["it ended by cancelled, but all 8 tokens came"],
    ),
    "the length, one token early": (LONGER, ["it ended at 8 tokens, but 9 were requested"]),
    "a stop that is not there": (
        {"totals.finish_reason": FinishReason.STOP},
        ["it ended by stop, but a stop was not reached"],
    ),
    "text behind a stop": (
        STOPPED,
        ["text continues after a stop at token 7"],
    ),
    "a prompt read in no round": (
        {"rounds.0.read_seconds": 0.0},
        ["a draft read the prompt for 0.125 s, its round for 0 s"],
    ),
    "a prompt read in less than no time": (
        {"totals.prompt_seconds": -0.5, "totals.first_token_seconds": -0.25},
        ["the time of reading a prompt is negative"],
    ),
    "no first token": (
        {"totals.first_token_seconds": None},
        ["the time of the first token is missing, or there is no token"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_an_answer_ends_as_its_rounds_say(name: str) -> None:
    changes, problems = ENDS[name]
    expected = [problem if problem.startswith("Round") else f"Totals: {problem}." for problem in problems]
    assert recheck(with_values(sound(), changes)) == expected


def test_tokens_are_ignored_without_a_rejection_only_at_an_end() -> None:
    drafted = [(6, A), (0, I)]
    stopped = {**STOPPED, "header.max_tokens": 9, "header.pair.target.n_ctx": 12}
    last = a_round(3, 6, drafted, [(6, Origin.ACCEPTED)], [0], asked=("draft-simple",))
    assert recheck(with_values(sound(), stopped | {"rounds.3": last})) == []
    more = a_round(3, 6, drafted, [(6, Origin.ACCEPTED), (7, Origin.BONUS)], [0, 0], asked=("draft-simple",))
    failed = {"totals.finish_reason": FinishReason.FAILED, "totals.error": "It broke.", "rounds.3": more}
    assert recheck(
        with_values(sound(), failed | {"header.max_tokens": 9, "header.pair.target.n_ctx": 12})
    ) == ["Round 4: tokens are ignored without a rejected token or an end before them."]


@pytest.mark.parametrize(("p", "possible"), [(0.02, True), (0.03, False)])
def test_a_token_behind_a_full_list_has_at_most_its_last_p(p: float, possible: bool) -> None:
    ids = (3, *range(4, 13))
    listed = Alternatives(ids, tuple(map(piece, ids)), (0.75, *[0.02] * 9))
    changes = {"header.pair.target.n_vocab": 13, "rounds.0.target_top.1": listed, "rounds.0.drafted.1.p": p}
    assert bool(recheck(with_values(sound(), changes))) is not possible


def test_a_token_is_never_rejected_and_emitted() -> None:
    found = recheck(with_values(sound(), {"rounds.0.drafted.1.id": 3}))
    assert "Round 1: token id 3 was rejected and emitted." in found
