"""Advice on real answers, with times that are set: those of a busy machine are unreliable."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from app.engine.engine import Engine
from app.engine.explain.advice import Advice, advise
from app.engine.explain.cost import CostModel
from app.engine.explain.remedies import AnswerSetup, Remedy
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.engine.types import Round
from tests.answers import answer


def at_costs(rounds: list[Round], draft: float) -> list[Round]:
    """The rounds with times set: a draft token takes `draft`, a target pass 1 and a little more for every
    token."""
    last = rounds[-1]
    single = msgspec.structs.replace(last, drafted=(), strategy=None, emitted=last.emitted[:1], asked=())
    return [
        msgspec.structs.replace(
            round,
            draft_seconds=draft * len(round.drafted),
            verify_seconds=1 + 0.05 * len(round.drafted),
            read_seconds=0.0,
        )
        for round in [*rounds, single]
    ]


def advice_on(trace: Trace, rounds: list[Round], setup: AnswerSetup, speedup: float | None = None) -> Advice:
    spec = StrategySpec.parse(trace.header.strategy)
    setup = replace(setup, pair=trace.header.pair, token_ids=trace.token_ids)
    advice = advise(spec, Statistics.of(rounds), CostModel.of(rounds), speedup, setup)
    assert advice is not None
    return advice


def applied(engine: Engine, remedy: Remedy, prompt: str, max_tokens: int) -> Statistics:
    """The answer with a remedy's strategy."""
    assert remedy.spec is not None
    strategy = str(remedy.spec)
    trace = answer(engine, prompt, strategy=strategy, ignore_eos=True, cold=True, max_tokens=max_tokens)
    return Statistics.of(trace.rounds)
