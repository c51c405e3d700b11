"""oracle: drafts the rehearsed answer with planted errors, at the asked cost, and says what it is."""

from __future__ import annotations

import math
import time
from itertools import pairwise
from statistics import median

import numpy as np
import pytest

from app.engine.drafters.base import Rehearsal, RunContext
from app.engine.drafters.oracle import Oracle, OracleParams
from app.engine.engine import Engine
from app.engine.errors import SettingError
from app.engine.explain.advice import next_advice
from app.engine.explain.cost import CostModel
from app.engine.explain.facts import AdviceFacts, Finding
from app.engine.fates import Verdict
from app.engine.native import Context
from app.engine.process.messages import Finished, RoundFinished
from app.engine.record.recheck import recheck
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.rules.registry import GREEDY, MATCH
from app.engine.sampling.draws import Draws
from app.engine.sampling.sampler import Sampler
from app.engine.strategy import StrategySpec, is_synthetic
from app.engine.types import FinishReason, GenerationRequest, Sampling
from app.lab.runs.record import RunRecord
from tests.answers import answer, assert_same_answer

PROMPT = "the same words, and other words"


def given(engine: Engine, strategy: str, **more: object) -> Trace:
    request: dict[str, object] = {"max_tokens": 120, "ignore_eos": True, "cold": True, **more}
    return answer(engine, PROMPT, strategy=strategy, **request)


def judged(trace: Trace) -> list[Verdict]:
    verdicts = [token.verdict for round in trace.rounds for token in round.drafted]
    return [verdict for verdict in verdicts if verdict is not Verdict.IGNORED]


def test_without_errors_every_draft_passes(engine: Engine) -> None:
    trace = given(engine, "oracle:alpha=1:cost=0:n_max=5")
    assert len(judged(trace)) == 100
    assert set(judged(trace)) == {Verdict.ACCEPTED}
    assert len(trace.rounds) == 20
    assert not recheck(trace)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.7])
def test_alpha_is_the_chance_that_a_judged_token_passes(engine: Engine, alpha: float) -> None:
    passed = total = 0
    for seed in range(6):
        trace = given(engine, f"oracle:alpha={alpha}:cost=0:n_max=4", sampling=Sampling(seed=seed))
        passed += judged(trace).count(Verdict.ACCEPTED)
        total += len(judged(trace))
    spread = math.sqrt(alpha * (1 - alpha) / total)
    assert total > 100
    assert abs(passed / total - alpha) <= 4 * spread


def test_drafts_take_the_time_that_was_asked_for(engine: Engine) -> None:
    free, dear = (given(engine, f"oracle:alpha=0.5:cost={cost}:n_max=4").rounds for cost in (0, 10))
    drafting = median(round.draft_seconds for round in dear)
    assert drafting > median(round.draft_seconds for round in free)
    # 10 passes for each drafted token, of a median pass that the rehearsal measured: far above the passes.
    assert drafting > 2 * median(round.verify_seconds for round in dear)


def test_the_rehearsal_is_in_no_measured_time(engine: Engine) -> None:
    plain = given(engine, "none", max_tokens=200)
    assert plain.totals is not None
    before = []
    for _ in range(3):  # a busy machine may delay one
        trace = given(engine, "oracle:alpha=1:cost=0", max_tokens=200)
        assert trace.totals is not None and trace.header.cached_tokens == 0
        before.append(trace.totals.prompt_seconds + trace.totals.draft_prompt_seconds)
    assert min(before) < plain.totals.seconds / 2


def test_the_rehearsal_waits_for_no_step(engine: Engine) -> None:
    """It would take the steps that somebody asks for, and show nothing for them."""
    engine.pace.set(True, steps=1)
    request = GenerationRequest(prompt=PROMPT, strategy="oracle:alpha=1:cost=0:n_max=5", max_tokens=60)
    events = engine.generate(request)
    shown = next(event for event in events if isinstance(event, RoundFinished))
    engine.stop()
    assert shown.round.accepted == 5
    assert [type(event) for event in events] == [Finished]
    engine.pace.set(False)


def test_the_rehearsal_ends_where_the_answer_does(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = given(engine, "none").text[5:7]
    passes: list[int] = []
    real = Context.decode

    def decode(self: Context, ids: np.ndarray, logits: int = 0) -> np.ndarray:
        passes.append(len(ids))
        return real(self, ids, logits)

    monkeypatch.setattr(Context, "decode", decode)
    stopped = given(engine, "oracle:alpha=1:cost=0", stop=(stop,))
    assert stopped.totals is not None and stopped.totals.finish_reason is FinishReason.STOP
    assert len(passes) < 30, "120 tokens were asked for"


def test_a_warm_answer_reads_what_its_header_says(engine: Engine) -> None:
    given(engine, "none", cold=False, max_tokens=4)
    trace = given(engine, "oracle:alpha=1:cost=0", cold=False, max_tokens=20)
    assert trace.header.cached_tokens == trace.header.prompt_tokens - 1
    assert_same_answer(trace, given(engine, "none", max_tokens=20))


def test_at_a_temperature_the_rule_is_match() -> None:
    spec = StrategySpec.parse("oracle")
    assert spec.verification_at(0.8) is MATCH
    assert spec.verification_at(0) is GREEDY
    with pytest.raises(SettingError, match="may change it"):
        StrategySpec.parse("oracle:verify=speculative").verification_at(0.8)


def test_where_the_answer_leaves_the_rehearsed_one_it_stops() -> None:
    drafter = Oracle(OracleParams(alpha=1, cost=0), 100)
    rehearsal = Rehearsal([7, 8, 9, 10], 0.0)
    around = RunContext(Sampler(Sampling()), Draws(0), 2, frozenset(), rehearsal)

    def proposed(*context: int) -> tuple[list[int], str]:
        proposal = drafter.propose(np.array(context, np.int32), 2)
        return proposal.ids, proposal.end

    drafter.begin(np.array([1, 2], np.int32), around)
    assert proposed(1, 2) == ([7, 8], "")
    assert proposed(1, 2, 7, 3) == ([], "the answer diverged from the rehearsal")
    assert proposed(1, 2, 7, 8, 9) == ([10], "")
    assert proposed(1, 2, 7, 8, 9, 10) == ([], "end of the rehearsed answer")


def test_a_dear_draft_ends_when_the_answer_is_stopped() -> None:
    drafter = Oracle(OracleParams(alpha=1, cost=10), 100)
    rehearsal = Rehearsal([7, 8], pass_seconds=1.0)
    drafter.begin(
        np.array([1], np.int32),
        RunContext(Sampler(Sampling()), Draws(0), 1, frozenset(), rehearsal, is_stopped=lambda: True),
    )
    began = time.monotonic()
    assert drafter.propose(np.array([1], np.int32), 2).ids == [7, 8]
    assert time.monotonic() - began < 10


def test_everything_says_that_it_is_synthetic(engine: Engine) -> None:
    trace = given(engine, "oracle:alpha=0.5:cost=0")
    record = RunRecord.of(trace)
    assert record.synthetic and not RunRecord.of(given(engine, "none")).synthetic
    advice = next_advice(AdviceFacts(StrategySpec.parse("oracle"), Statistics.of(trace.rounds), CostModel()))
    assert advice is not None and advice.finding is Finding.SYNTHETIC
    assert is_synthetic("ngram-mod+oracle:alpha=0.5") and not is_synthetic("ngram-mod")
    assert not is_synthetic("a-strategy-of-another-version")


def planted(prompt: list[int], seed: int = 0, repeat: int = 0) -> list[bool]:
    """Where the drafts of an answer are wrong."""
    drafter = Oracle(OracleParams(alpha=0.5, cost=0, n_max=60), 100)
    right = list(range(60))
    around = RunContext(
        Sampler(Sampling()), Draws(seed), len(prompt), frozenset(), Rehearsal(right, 0.0, repeat)
    )
    context = np.array(prompt, np.int32)
    drafter.begin(context, around)
    return [drafted != token for drafted, token in zip(drafter.propose(context, 60).ids, right, strict=True)]


def test_errors_differ_by_seed_prompt_and_repeat_and_by_nothing_else() -> None:
    first = planted([1, 2])
    assert planted([1, 2]) == first
    assert len({tuple(first), *map(tuple, (planted([1, 3]), planted([1, 2], 1), planted([1, 2], 0, 1)))}) == 4


@pytest.mark.same_text
def test_a_repeat_reaches_the_drafter(engine: Engine) -> None:
    def verdicts(repeat: int) -> list[Verdict]:
        trace = given(engine, "oracle:alpha=0.5:cost=0:n_max=4", repeat=repeat, sampling=Sampling(seed=3))
        assert not recheck(trace)
        return judged(trace)

    assert verdicts(0) == verdicts(0) != verdicts(1)


def test_errors_of_two_rounds_are_independent(engine: Engine) -> None:
    """A token that was drafted wrongly is drafted again after the rejection, and may be right then."""
    trace = given(engine, "oracle:alpha=0.5:cost=0:n_max=1")
    verdicts = judged(trace)
    assert {True, False} <= {before is after for before, after in pairwise(verdicts)}
