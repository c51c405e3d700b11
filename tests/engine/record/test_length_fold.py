"""What a draft length rule went by, computed again from rounds: compared with the rule itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray
from typing_extensions import override

from app.engine.engine import Engine
from app.engine.lengths.auto import AutoLength
from app.engine.lengths.base import Attempt, DraftLength, LengthAt, LengthRule, RoundCost
from app.engine.lengths.known import LengthFacts
from app.engine.lengths.registry import LENGTHS
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace, line_of
from app.engine.strategy import length_fold
from app.engine.types import Round
from tests.answers import answer
from tests.simulated import Pair, by_chance, simulate
from tests.ui.traces import make_round

PROMPT = "abcabcabd abcabcabcabd abc"


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[DraftLength]]:
    """The rules that answers are made with."""
    made: list[DraftLength] = []

    def watch(rule: type[LengthRule]) -> None:
        make = rule.make

        def watched(self: LengthRule) -> DraftLength:
            made.append(make(self))
            return made[-1]

        monkeypatch.setattr(rule, "make", watched)

    for rule in LENGTHS.values():
        watch(rule)
    yield made


def folded(trace: Trace) -> list[LengthAt]:
    fold = length_fold(trace.header.strategy)
    assert fold is not None
    return [fold.add(round) for round in trace.rounds]


@pytest.mark.parametrize("strategy", ["draft-simple:n_max=6", "prompt-lookup:num_pred_tokens=8+draft-simple"])
def test_a_cold_ewma_is_computed_exactly(engine: Engine, rules: list, strategy: str) -> None:
    trace = answer(engine, PROMPT, strategy=f"{strategy}:length=ewma", max_tokens=60, cold=True)
    states = folded(trace)
    drafted = [round for round in trace.rounds if round.drafted]
    last = drafted[-1].strategy
    assert states[-1].acceptance == rules[0].acceptance(last)
    assert max(state.k for state in states) <= 8
    for state, round in zip(states, trace.rounds, strict=True):
        assert state.k >= len(round.drafted) and not state.at_least
        assert (round.k, round.smoothed) == (state.k, state.acceptance)
    assert folded(Trace(trace.header, [without_rule(round) for round in trace.rounds])) == states


def without_rule(round: Round) -> Round:
    """The round as formats before 1.8 have it."""
    return replace(round, k=None, smoothed=None)


def test_a_warm_ewma_records_what_it_learned_before(engine: Engine) -> None:
    engine.reset()
    strategy = "draft-simple:n_max=8:length=ewma"
    first, second = (answer(engine, PROMPT, strategy=strategy, max_tokens=40) for _ in range(2))
    both = Trace(first.header, list(map(without_rule, [*first.rounds, *second.rounds])))
    assert folded(second) == folded(both)[len(first.rounds) :]
    assert folded(second)[0] != folded(first)[0]
    assert recheck(second) == []


def test_a_false_k_fails_the_check_of_a_cold_answer(engine: Engine) -> None:
    trace = answer(engine, PROMPT, strategy="draft-simple:n_max=8:length=ewma", max_tokens=20, cold=True)
    assert recheck(trace) == []
    for told in ((7, trace.rounds[1].smoothed), (trace.rounds[1].k, 0.9), (None, None)):
        altered = list(trace.rounds)
        altered[1] = replace(altered[1], k=told[0], smoothed=told[1])
        (problem,) = recheck(Trace(trace.header, altered, trace.totals))
        assert problem.startswith(f"Round 2: its k is {told[0]}, smoothed {told[1]}, and its drafts give ")
    older = replace(trace.header, format="1.7")
    assert recheck(Trace(older, [without_rule(round) for round in trace.rounds], trace.totals)) == []
    assert "k came with format 1.8" in recheck(Trace(older, trace.rounds, trace.totals))[0]


def test_other_rules_record_no_k(engine: Engine) -> None:
    for strategy in ("none:length=ewma", "draft-simple:n_max=2", "draft-simple:length=auto"):
        trace = answer(engine, PROMPT, strategy=strategy, max_tokens=8, cold=True)
        assert b'"k":' not in line_of(trace.rounds[0]) and b'"smoothed":' not in line_of(trace.rounds[0])
        altered = [replace(trace.rounds[0], k=3, smoothed=0.5), *trace.rounds[1:]]
        (problem,) = recheck(Trace(trace.header, altered, trace.totals))
        assert problem == "Round 1: it has a k or a smoothed acceptance, which its length rule does not give."


class RecordedAuto(AutoLength):
    """The rule, with a round for each that it saw or sat out."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds: list[Round] = []

    @override
    def sit_out(self, truth: NDArray[np.int32]) -> bool:
        sat_out = super().sit_out(truth)
        if sat_out:
            self.rounds.append(make_round(len(self.rounds), emitted="x", asked=()))
        return sat_out

    @override
    def observe(self, cost: RoundCost) -> None:
        super().observe(cost)
        drafted = [attempt for attempt in cost.attempts if attempt.ids]
        size = len(drafted[0].ids) if drafted else 0
        made = make_round(
            len(self.rounds),
            ["x"] * cost.accepted,
            "x" if len(cost.emitted) > cost.accepted else None,
            "y" if size > cost.accepted else None,
            ["y"] * max(0, size - cost.accepted - 1),
            asked=("draft-simple",) if cost.attempts else (),
        )
        self.rounds.append(made)


@pytest.mark.parametrize("alpha", [0.4, 0.8])
def test_the_acceptance_of_a_cold_auto_is_the_rules_own(
    alpha: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule, seen = RecordedAuto(), {}
    learn = LengthFacts.learn

    def watched(facts: LengthFacts, attempt: Attempt, accepted: int, place: int) -> None:
        learn(facts, attempt, accepted, place)
        seen[len(rule.rounds)] = facts.acceptance.overall

    monkeypatch.setattr(LengthFacts, "learn", watched)
    simulate(rule, Pair(lambda k: 1 + 0.02 * k, 0.05), by_chance(alpha, 300))
    fold = length_fold("draft-simple:length=auto")
    assert fold is not None
    states = [fold.add(round) for round in rule.rounds]
    assert len(seen) > 20
    assert [states[index].acceptance for index in seen] == pytest.approx(list(seen.values()))
    assert [state.k for state in states] == [len(round.drafted) for round in rule.rounds]


def test_the_k_of_a_warm_ewma_is_read_off_its_drafts() -> None:
    fold = length_fold("draft-simple:n_max=16:length=ewma")
    assert fold is not None
    end = "as long as acceptance allows"
    pieces = list("abcdefghi")
    told = make_round(0, pieces, "j", draft_end=end, strategy="draft-simple")
    assert fold.add(told).k == 9
    cut = make_round(1, ["a"], "b", draft_end="p_min", strategy="draft-simple")
    assert fold.add(cut).k >= 9, "the rule allowed more than the draft had"


def test_a_fixed_length_has_nothing_to_fold() -> None:
    assert length_fold("draft-simple:n_max=4") is None
    assert length_fold("none:length=auto") is None
