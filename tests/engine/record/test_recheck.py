"""Rechecking: every real trace holds, and every kind of tampering is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replace_data
from pathlib import Path

import pytest
from msgspec.structs import replace

from app.engine.engine import Engine
from app.engine.errors import TraceError
from app.engine.fates import Origin, Verdict
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace, line_of, parse_trace
from app.engine.sampling.logits import TOP
from app.engine.types import Alternatives, DraftedToken, EmittedToken, FinishReason, Round, Sampling
from tests.answers import answer

WARM = Sampling(temperature=0.9, seed=11)
FILTERED = Sampling(temperature=1.2, top_k=60, top_p=0.95, min_p=0.01, repeat_penalty=1.2, seed=12)
STRATEGIES = [
    "none",
    "draft-simple:n_max=5",
    "draft-simple:n_max=5:sample=1",
    "draft-simple:n_max=5:verify=match",
    "draft-simple:sample=1:verify=match",
    "draft-simple:verify=speculative",
    "draft-simple:n_max=5:verify=block",
    "draft-simple:n_max=5:sample=1:verify=block",
    "prompt-lookup:num_pred_tokens=4",
    "prompt-lookup:verify=match",
    "prompt-lookup+draft-simple:n_max=2",
]


@pytest.mark.parametrize("sampling", [Sampling(), WARM, FILTERED], ids=["greedy", "warm", "filtered"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_real_traces_hold(engine: Engine, strategy: str, sampling: Sampling) -> None:
    for settings in ({}, {"stop": ("a", "\n")}, {"ignore_eos": True, "max_tokens": 90}):
        trace = answer(engine, strategy=strategy, sampling=sampling, **({"max_tokens": 40} | settings))
        assert recheck(trace) == []


def test_answers_that_are_cut_hold(engine: Engine) -> None:
    seen = set()
    for seed in range(20):
        trace = answer(
            engine,
            strategy="draft-simple:n_max=4:sample=1",
            sampling=Sampling(temperature=3, seed=seed),
            max_tokens=150,
            stop=("ab",),
        )
        assert trace.totals is not None
        seen.add(trace.totals.finish_reason)
        assert recheck(trace) == []
        assert recheck(Trace(trace.header, trace.rounds[:-1])) == [], "a trace cut short holds as well"
    assert {FinishReason.END, FinishReason.LENGTH} <= seen


Edit = Callable[[Trace], None]


def change_round(number: int, **fields: object) -> Edit:
    def edit(trace: Trace) -> None:
        trace.rounds[number] = replace(trace.rounds[number], **fields)

    return edit


def first(trace: Trace, wanted: Callable[[Round], bool]) -> int:
    return next(index for index, round in enumerate(trace.rounds) if wanted(round))


def change_draft(verdict: Verdict, change: Callable[[DraftedToken], DraftedToken]) -> Edit:
    """Change the first drafted token of that verdict."""

    def edit(trace: Trace) -> None:
        index = first(trace, lambda round: any(token.verdict is verdict for token in round.drafted))
        drafted = list(trace.rounds[index].drafted)
        place = next(i for i, token in enumerate(drafted) if token.verdict is verdict)
        drafted[place] = change(drafted[place])
        trace.rounds[index] = replace(trace.rounds[index], drafted=tuple(drafted))

    return edit


def change_emitted(origin: Origin, change: Callable[[EmittedToken], EmittedToken]) -> Edit:
    def edit(trace: Trace) -> None:
        index = first(trace, lambda round: any(token.origin is origin for token in round.emitted))
        emitted = list(trace.rounds[index].emitted)
        place = next(i for i, token in enumerate(emitted) if token.origin is origin)
        emitted[place] = change(emitted[place])
        trace.rounds[index] = replace(trace.rounds[index], emitted=tuple(emitted))

    return edit


def change_header(**fields: object) -> Edit:
    def edit(trace: Trace) -> None:
        trace.header = replace(trace.header, **fields)

    return edit


def change_totals(**fields: object) -> Edit:
    def edit(trace: Trace) -> None:
        assert trace.totals is not None
        trace.totals = replace(trace.totals, **fields)

    return edit


def drop_round(index: int) -> Edit:
    def edit(trace: Trace) -> None:
        del trace.rounds[index]

    return edit


def swap_alternatives(trace: Trace) -> None:
    """Make the second best token the best one."""
    top = trace.rounds[0].target_top[0]
    swapped = replace(top, ids=(top.ids[1], top.ids[0], *top.ids[2:]))
    trace.rounds[0] = replace(trace.rounds[0], target_top=(swapped, *trace.rounds[0].target_top[1:]))


def shifted(token: EmittedToken) -> EmittedToken:
    assert token.race is not None
    return replace(token, race=replace(token.race, score=token.race.score + 9))


def lower_the_value_that_passed(trace: Trace) -> None:
    """Block: the acceptance value falls below the draw that it is compared with."""
    index = first(trace, lambda round: bool(round.accepted))
    drafted = tuple(
        token if token.u is None or token.h is None or token.u >= token.h else replace(token, h=token.u / 2)
        for token in trace.rounds[index].drafted
    )
    trace.rounds[index] = replace(trace.rounds[index], drafted=drafted)


ANY_RULE: dict[str, Edit] = {
    "index": change_round(1, index=7),
    "position": change_round(1, position=99),
    "offset": change_round(1, offset=-1.0),
    "lost round": drop_round(1),
    "accepted is rejected": change_draft(Verdict.ACCEPTED, lambda t: replace(t, verdict=Verdict.REJECTED)),
    "rejected is accepted": change_draft(Verdict.REJECTED, lambda t: replace(t, verdict=Verdict.ACCEPTED)),
    "ignored is accepted": change_draft(Verdict.IGNORED, lambda t: replace(t, verdict=Verdict.ACCEPTED)),
    "rejected is ignored": change_draft(Verdict.REJECTED, lambda t: replace(t, verdict=Verdict.IGNORED)),
    "accepted id": change_draft(Verdict.ACCEPTED, lambda t: replace(t, id=t.id + 1)),
    "accepted p": change_draft(Verdict.ACCEPTED, lambda t: replace(t, p=0.123)),
    "no p": change_draft(Verdict.REJECTED, lambda t: replace(t, p=None)),
    "emitted id": change_emitted(Origin.ACCEPTED, lambda t: replace(t, id=t.id + 1)),
    "origin": change_emitted(Origin.RESAMPLED, lambda t: replace(t, origin=Origin.BONUS)),
    "bonus is plain": change_emitted(Origin.BONUS, lambda t: replace(t, origin=Origin.PLAIN)),
    "no strategy": change_round(0, strategy=None),
    "max_tokens": change_header(max_tokens=5),
    "text": change_totals(text="something else"),
    "finish": change_totals(finish_reason=FinishReason.CONTEXT),
    "stop": change_totals(finish_reason=FinishReason.STOP),
}
DRAWN: dict[str, Edit] = {
    "seed": change_header(seed=12345),
    "no draw": change_emitted(Origin.BONUS, lambda t: replace(t, race=None)),
    "score of the bonus": change_emitted(Origin.BONUS, shifted),
    "score of the resampled": change_emitted(Origin.RESAMPLED, shifted),
    "emitted p": change_emitted(Origin.BONUS, lambda t: replace(t, p=t.p / 2)),
}
EDITS: dict[str, tuple[str, Sampling, dict[str, Edit]]] = {
    "greedy": (
        "draft-simple:n_max=4",
        Sampling(),
        ANY_RULE
        | {
            "argmax": change_draft(Verdict.REJECTED, lambda t: replace(t, target_id=(t.target_id or 0) + 1)),
            "alternatives": swap_alternatives,
            "rejected and emitted": change_draft(Verdict.REJECTED, lambda t: replace(t, id=t.target_id)),
            "q without a draw": change_draft(Verdict.ACCEPTED, lambda t: replace(t, q=0.5)),
        },
    ),
    "speculative": (
        "draft-simple:n_max=4",
        WARM,
        ANY_RULE
        | DRAWN
        | {
            "u": change_draft(Verdict.ACCEPTED, lambda t: replace(t, u=0.5)),
            "no u": change_draft(Verdict.ACCEPTED, lambda t: replace(t, u=None)),
            "q": change_draft(Verdict.ACCEPTED, lambda t: replace(t, q=0.5)),
            "p of the rejected": change_draft(Verdict.REJECTED, lambda t: replace(t, p=1.0)),
            "emitted p of the resampled": change_emitted(Origin.RESAMPLED, lambda t: replace(t, p=t.p / 2)),
        },
    ),
    "sampled": (
        "draft-simple:n_max=4:sample=1",
        WARM,
        ANY_RULE
        | DRAWN
        | {
            "u": change_draft(Verdict.REJECTED, lambda t: replace(t, u=0.0)),
            "q": change_draft(Verdict.IGNORED, lambda t: replace(t, q=t.q / 2)),
            "draft draw": change_draft(
                Verdict.ACCEPTED, lambda t: replace(t, draft_race=replace(t.draft_race, score=0.5))
            ),
            "p of the rejected": change_draft(Verdict.REJECTED, lambda t: replace(t, p=1.0)),
        },
    ),
    "block": (
        "draft-simple:n_max=4:sample=1:verify=block",
        WARM,
        ANY_RULE
        | DRAWN
        | {
            "u": change_draft(Verdict.REJECTED, lambda t: replace(t, u=0.0)),
            "u of the ignored": change_draft(Verdict.IGNORED, lambda t: replace(t, u=0.0)),
            "no u": change_draft(Verdict.REJECTED, lambda t: replace(t, u=None)),
            "h": change_draft(Verdict.REJECTED, lambda t: replace(t, h=1.0)),
            "h of what passed": lower_the_value_that_passed,
            "no h": change_draft(Verdict.REJECTED, lambda t: replace(t, h=None)),
            "no h of the ignored": change_draft(Verdict.IGNORED, lambda t: replace(t, h=None)),
            "no probabilities": change_draft(Verdict.REJECTED, lambda t: replace(t, p=-1.0, q=0.0)),
            "no p of the ignored": change_draft(Verdict.IGNORED, lambda t: replace(t, p=None)),
            "q": change_draft(Verdict.REJECTED, lambda t: replace(t, q=t.q / 2)),
            "p of the rejected": change_draft(Verdict.REJECTED, lambda t: replace(t, p=1.0)),
        },
    ),
    "block, one-hot": (
        "draft-simple:n_max=4:verify=block",
        WARM,
        {
            "h": change_draft(Verdict.REJECTED, lambda t: replace(t, h=t.h * 0.99)),
            "p of the rejected": change_draft(Verdict.REJECTED, lambda t: replace(t, p=t.p * 1.01)),
            "u": change_draft(Verdict.REJECTED, lambda t: replace(t, u=0.0)),
            "score of the resampled": change_emitted(Origin.RESAMPLED, shifted),
        },
    ),
    "match": (
        "draft-simple:n_max=2:verify=match",
        WARM,
        ANY_RULE
        | DRAWN
        | {
            "target's draw": change_draft(
                Verdict.REJECTED, lambda t: replace(t, target_id=(t.target_id or 0) + 1)
            ),
            "no draw of the target": change_draft(Verdict.ACCEPTED, lambda t: replace(t, race=None)),
            "the second": change_draft(
                Verdict.ACCEPTED, lambda t: replace(t, race=replace(t.race, rival=t.race.rival + 1))
            ),
            "the second's score": change_draft(
                Verdict.ACCEPTED,
                lambda t: replace(t, race=replace(t.race, rival_score=t.race.rival_score - 5)),
            ),
        },
    ),
}


@pytest.fixture(scope="module")
def traces(pair_files: tuple[Path, Path]) -> dict[str, Trace]:
    """One sound trace for each kind."""
    with Engine(*pair_files) as engine:
        made = {
            kind: answer(engine, strategy=strategy, sampling=sampling, max_tokens=80, ignore_eos=True)
            for kind, (strategy, sampling, _) in EDITS.items()
        }
    assert all(recheck(trace) == [] for trace in made.values())
    return made


@pytest.mark.parametrize(
    ("kind", "edit"), [(kind, name) for kind, (_, _, edits) in EDITS.items() for name in edits]
)
def test_tampering_is_found(traces: dict[str, Trace], kind: str, edit: str) -> None:
    whole = traces[kind]
    trace = Trace(whole.header, list(whole.rounds), whole.totals)
    EDITS[kind][2][edit](trace)
    found = recheck(trace)
    assert found, f"{edit} was not noticed"
    assert all(sentence.endswith(".") for sentence in found)


@pytest.mark.parametrize("kind", ["greedy", "speculative"])
def test_a_record_without_its_end_may_be_cut_in_its_last_round(traces: dict[str, Trace], kind: str) -> None:
    """As a stop in a draft does."""
    trace = traces[kind]
    index = first(trace, lambda round: round.accepted > 1)
    whole = trace.rounds[index]
    unjudged = {"verdict": Verdict.IGNORED, "p": None, "u": None, "race": None, "target_id": None}
    ignored = tuple(replace(token, **unjudged) for token in whole.drafted[1:])
    cut = replace(
        whole,
        drafted=(whole.drafted[0], *ignored),
        emitted=whole.emitted[:1],
        target_top=whole.target_top[:1],
    )
    assert recheck(Trace(trace.header, [*trace.rounds[:index], cut])) == []
    found = recheck(Trace(trace.header, [*trace.rounds[:index], cut, *trace.rounds[index + 1 :]]))
    assert any(problem.startswith(f"Round {index + 1}: it emitted accepted, not ") for problem in found)


@pytest.mark.parametrize("seed", [-2, 2**63, 2**80])
def test_a_file_with_what_is_no_seed_is_damaged(traces: dict[str, Trace], seed: int) -> None:
    """The Inspector draws by it."""
    with pytest.raises(TraceError, match="seed"):
        parse_trace([line_of(replace(traces["match"].header, seed=seed))])


def test_alternatives_without_probability_win_nothing(traces: dict[str, Trace]) -> None:
    trace = traces["match"]
    nothing = Alternatives(tuple(range(TOP)), (b"",) * TOP, (0.0,) * TOP)
    rounds = [replace(each, target_top=(nothing,) * len(each.emitted)) for each in trace.rounds]
    assert recheck(Trace(trace.header, rounds, trace.totals))


@pytest.mark.parametrize("kind", EDITS)
def test_a_resampled_token_without_a_draft_is_said(traces: dict[str, Trace], kind: str) -> None:
    trace = traces[kind]
    index = first(trace, lambda round: round.emitted[-1].origin is Origin.RESAMPLED)
    bare = replace(trace.rounds[index], drafted=(), emitted=trace.rounds[index].emitted[-1:])
    found = recheck(Trace(trace.header, [*trace.rounds[:index], bare]))
    assert f"Round {index + 1}: it emitted resampled, not plain." in found


@pytest.mark.parametrize("kind", ["block", "block, one-hot"])
def test_a_block_is_accepted_as_far_as_it_passes(traces: dict[str, Trace], kind: str) -> None:
    trace = traces[kind]
    index = first(trace, lambda round: round.accepted > 0 and round.emitted[-1].origin is not Origin.ACCEPTED)
    passed = trace.rounds[index].accepted
    drafted = list(trace.rounds[index].drafted)
    drafted[passed - 1] = replace(drafted[passed - 1], verdict=Verdict.REJECTED)
    found = recheck(
        Trace(trace.header, [*trace.rounds[:index], replace(trace.rounds[index], drafted=tuple(drafted))])
    )
    assert (
        f"Round {index + 1}: {passed - 1} drafted tokens are accepted, but {passed} pass as a block." in found
    )


@pytest.mark.parametrize("kind", ["block", "block, one-hot"])
def test_a_block_that_the_end_cuts_passes_further_than_it_is_accepted(
    traces: dict[str, Trace], kind: str
) -> None:
    trace = traces[kind]
    assert trace.totals is not None
    index = first(trace, lambda round: round.accepted > 1)
    whole = trace.rounds[index]
    ignored = tuple(replace(token, verdict=Verdict.IGNORED) for token in whole.drafted[1:])
    cut = replace(
        whole,
        drafted=(whole.drafted[0], *ignored),
        emitted=whole.emitted[:1],
        target_top=whole.target_top[:1],
    )
    text = Trace(trace.header, trace.rounds[:index]).text
    totals = replace(trace.totals, finish_reason=FinishReason.END, text=text)
    assert recheck(Trace(trace.header, [*trace.rounds[:index], cut], totals)) == []


def test_a_block_that_passes_surely_has_no_other_acceptance_value(engine: Engine) -> None:
    trace = answer(engine, strategy="draft-simple:n_max=4:verify=block", max_tokens=30, ignore_eos=True)
    index = first(trace, lambda round: round.accepted > 1)
    drafted = list(trace.rounds[index].drafted)
    place = trace.rounds[index].accepted - 1  # judged from the end: only the last one accepted has a value
    assert drafted[place].h == 1 and all(token.p == 1 for token in drafted[: place + 1])
    drafted[place] = replace(drafted[place], h=0.5)
    trace.rounds[index] = replace(trace.rounds[index], drafted=tuple(drafted))
    said = f"the draft at place {place + 1} has the acceptance value 0.5, which its p and q do not give"
    assert f"Round {index + 1}: {said}." in recheck(trace)


def test_alternatives_without_their_p_are_said(traces: dict[str, Trace]) -> None:
    trace = traces["greedy"]
    top = trace.rounds[0].target_top
    bare = replace(trace.rounds[0], target_top=(replace(top[0], p=()), *top[1:]))
    assert any("do not have a p each" in problem for problem in recheck(Trace(trace.header, [bare])))


def test_the_rule_of_the_header_is_the_one_that_is_rechecked(engine: Engine) -> None:
    trace = answer(engine, strategy="draft-simple", sampling=WARM, max_tokens=30)
    trace.header = replace(trace.header, verification="match")
    assert recheck(trace)


def test_greedy_at_a_temperature_is_found(engine: Engine) -> None:
    trace = answer(engine, strategy="draft-simple", max_tokens=30)
    trace.header = replace(trace.header, sampling=replace_data(trace.header.sampling, temperature=1))
    assert recheck(trace) == ["Header: the rule is greedy at temperature 1."]


def test_text_behind_a_stop_is_found(traces: dict[str, Trace]) -> None:
    trace = traces["greedy"]
    early = trace.text[3:6]
    stopped = Trace(replace(trace.header, stop=(early,)), trace.rounds, trace.totals)
    assert any(
        problem.startswith("Totals: text continues after a stop at token") for problem in recheck(stopped)
    )


def test_an_end_without_a_token_is_found(traces: dict[str, Trace]) -> None:
    trace = traces["greedy"]
    assert trace.totals is not None
    ended = replace(trace.totals, finish_reason=FinishReason.END, text="")
    assert "Totals: the model ended it, but nothing was emitted." in recheck(Trace(trace.header, [], ended))


def test_only_strategies_that_were_asked_for_begin(engine: Engine) -> None:
    trace = answer(engine, strategy="draft-simple:n_max=2", max_tokens=8, ignore_eos=True)
    assert recheck(trace) == []
    trace.rounds[1] = replace(trace.rounds[1], begin_seconds={"suffix": 0.1})
    assert any("suffix began in it" in str(problem) for problem in recheck(trace))
