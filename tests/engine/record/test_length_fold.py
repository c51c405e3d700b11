"""What a draft length rule went by, computed again from rounds: compared with the rule itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from typing_extensions import override

from app.engine import engine as engine_module
from app.engine.engine import Engine
from app.engine.lengths.auto import AutoLength
from app.engine.lengths.base import Attempt, DraftLength, RoundCost
from app.engine.lengths.known import LengthFacts
from app.engine.lengths.registry import make_length
from app.engine.record.length_fold import LengthAt, length_fold
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.engine.types import Round
from tests.answers import answer
from tests.simulated import Pair, by_chance, simulate
from tests.ui.traces import make_round

PROMPT = "abcabcabd abcabcabcabd abc"


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[DraftLength]]:
    """The rules that answers are made with."""
    made: list[DraftLength] = []

    def make(*arguments: object) -> DraftLength:
        made.append(make_length(*arguments))  # type: ignore[arg-type]
        return made[-1]

    monkeypatch.setattr(engine_module, "make_length", make)
    yield made


def folded(trace: Trace) -> list[LengthAt]:
    fold = length_fold(StrategySpec.parse(trace.header.strategy))
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


class RecordedAuto(AutoLength):
    """The rule, with a round for each that it saw or sat out."""

    def __init__(self) -> None:
        super().__init__()
        self.rounds: list[Round] = []

    @override
    def sit_out(self) -> bool:
        sat_out = super().sit_out()
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
    fold = length_fold(StrategySpec.parse("draft-simple:length=auto"))
    assert fold is not None
    states = [fold.add(round) for round in rule.rounds]
    assert len(seen) > 20
    assert [states[index].acceptance for index in seen] == pytest.approx(list(seen.values()))
    assert [state.k for state in states] == [len(round.drafted) for round in rule.rounds]


def test_the_k_of_a_warm_ewma_is_read_off_its_drafts() -> None:
    fold = length_fold(StrategySpec.parse("draft-simple:n_max=16:length=ewma"))
    assert fold is not None
    end = "as long as acceptance allows"
    pieces = list("abcdefghi")
    told = make_round(0, pieces, "j", draft_end=end, strategy="draft-simple")
    assert fold.add(told).k == 9
    cut = make_round(1, ["a"], "b", draft_end="p_min", strategy="draft-simple")
    assert fold.add(cut).k >= 9, "the rule allowed more than the draft had"


def test_a_fixed_length_has_nothing_to_fold() -> None:
    assert length_fold(StrategySpec.parse("draft-simple:n_max=4")) is None
    assert length_fold(StrategySpec.parse("none:length=auto")) is None
