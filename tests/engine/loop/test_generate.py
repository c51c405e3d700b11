"""The loop: a round is recorded while the next pass runs, without effect on the record."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Generator
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from app.engine.drafters.base import ALIKE, DEEPER, Proposal
from app.engine.drafters.draft_simple import DraftSimple
from app.engine.engine import Engine
from app.engine.lengths.auto import AutoLength
from app.engine.lengths.base import RoundCost
from app.engine.loop import generate
from app.engine.loop.generate import Generation, TokenBuffer, Verified
from app.engine.loop.handover import Handover
from app.engine.native import Cancelled, Context
from app.engine.process.messages import RoundFinished
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.sampling.rows import TargetRows
from app.engine.types import GenerationRequest, Round, Sampling
from tests.answers import answer, events_of
from tests.equality import measured
from tests.reference import probabilities, softmax

PROMPT = "abcabcabd abc"
SETTINGS = {
    "greedy": Sampling(),
    "greedy, penalised": Sampling(repeat_penalty=1.4, repeat_last_n=9),
    "greedy, DRY": Sampling(dry_multiplier=2, dry_allowed_length=1, dry_penalty_last_n=-1),
    "plain": Sampling(temperature=0.8, seed=3),
    "filtered": Sampling(temperature=0.8, top_k=12, top_p=0.95, seed=3),
    "penalised": Sampling(temperature=0.8, repeat_penalty=1.4, seed=3),
}


@pytest.fixture
def passes_end_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pass of the target is over, and has overwritten the logits, before the round is recorded."""
    wait_taken, finished = Handover.wait_taken, generate.finished
    over = threading.Semaphore(0)

    def wait_and_tell(self: Handover[Verified]) -> None:
        if self._on_the_way:
            over.release()
        wait_taken(self)

    def finished_late(run: Generation, last: Verified) -> tuple[Round, str]:
        assert over.acquire(timeout=10)
        return finished(run, last)

    monkeypatch.setattr(Handover, "wait_taken", wait_and_tell)
    monkeypatch.setattr(generate, "finished", finished_late)


def without_times(trace: Trace) -> list[tuple[object, ...]]:
    return [
        (round.drafted, round.emitted, round.target_top, round.draft_top, round.draft_end)
        for round in trace.rounds
    ]


@pytest.mark.usefixtures("passes_end_first")
@pytest.mark.parametrize("rule", ["", ":verify=match", ":verify=speculative"])
@pytest.mark.parametrize("kind", SETTINGS)
def test_records_are_of_their_own_pass(engine: Engine, kind: str, rule: str) -> None:
    """Against logits of a fresh context, at every place."""
    sampling = SETTINGS[kind]
    request = GenerationRequest(
        prompt=PROMPT,
        strategy=f"draft-simple:n_max=3{':sample=1' if sampling.temperature else ''}{rule}",
        sampling=sampling,
        max_tokens=25,
        ignore_eos=False,
        cold=True,
    )
    trace = engine.answer(request)
    assert recheck(trace) == []
    prompt = engine.tokenize(request)[1]
    drawn = sampling.temperature > 0 or rule
    for round in trace.rounds:
        for place, (token, top) in enumerate(zip(round.emitted, round.target_top, strict=True)):
            logits = measured(engine, prompt, trace, round.position + place)
            # `measured` has applied the penalty already.
            unpenalised = Sampling(sampling.temperature, sampling.top_k, sampling.top_p)
            p = probabilities(logits, unpenalised) if drawn else softmax(logits)
            assert token.p == pytest.approx(p[token.id], abs=1e-4)
            beside = p if sampling.temperature else softmax(logits)  # a one-hot row has no alternatives
            np.testing.assert_allclose(top.p, beside[list(top.ids)], atol=1e-4)
            assert max(top.p) == pytest.approx(beside.max(), abs=1e-4)
            if place < len(round.drafted):
                assert round.drafted[place].p == pytest.approx(p[round.drafted[place].id], abs=1e-4)
        for drafted, thought in zip(round.drafted, round.draft_top, strict=True):
            if sampling.temperature == 0:
                assert (thought.ids[0], thought.p[0]) == (drafted.id, drafted.draft_p)
            assert list(thought.p) == sorted(thought.p, reverse=True)


@pytest.mark.same_text
@pytest.mark.parametrize("kind", SETTINGS)
def test_records_do_not_depend_on_how_fast_a_pass_is(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    settings: dict[str, Any] = {
        "strategy": "draft-simple:n_max=3:sample=1",
        "sampling": SETTINGS[kind],
        "max_tokens": 30,
    }
    at_once = answer(engine, cold=True, **settings)
    put = Handover.put

    def put_and_wait(self: Handover[Verified], verified: Verified) -> None:
        put(self, verified)
        time.sleep(0.005)

    monkeypatch.setattr(Handover, "put", put_and_wait)
    assert without_times(answer(engine, cold=True, **settings)) == without_times(at_once)


def test_drafters_learn_what_became_of_their_own_proposals(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, int, int]] = []

    def observe(self: DraftSimple, context: np.ndarray, proposal: Proposal, accepted: int) -> None:
        seen.append((len(context), len(proposal.ids), accepted))

    monkeypatch.setattr(DraftSimple, "observe", observe)
    trace = answer(engine, strategy="prompt-lookup+draft-simple:n_max=4", max_tokens=60, stop=("zz",))
    expected = [
        (len(PROMPT) + round.position + len(round.emitted), len(round.drafted), round.accepted)
        if round.strategy == "draft-simple"
        else (len(PROMPT) + round.position + len(round.emitted), 0, 0)
        for round in trace.rounds
    ]
    assert seen == expected
    assert {round.strategy for round in trace.rounds} >= {"draft-simple", "prompt-lookup"}
    assert sum(accepted for _, _, accepted in seen) > 0


def test_a_length_rule_is_charged_for_what_was_learned_since(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A strategy learns each round in 1 s, and the rule every third one in 10 s; nothing else takes time."""
    costs: list[RoundCost] = []
    clock, sits = SimpleNamespace(now=0.0), cycle([False, True, True])

    def learn(*_: object) -> None:
        clock.now += 1

    def observe(_: AutoLength, cost: RoundCost) -> None:
        costs.append(cost)
        clock.now += 10

    monkeypatch.setattr(generate, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(DraftSimple, "observe", learn)
    monkeypatch.setattr(AutoLength, "sit_out", lambda *_: next(sits))
    monkeypatch.setattr(AutoLength, "choose", lambda *_: 0)
    monkeypatch.setattr(AutoLength, "observe", observe)
    answer(engine, strategy="draft-simple:length=auto", max_tokens=9, ignore_eos=True, cold=True)
    assert [cost.upkeep_seconds for cost in costs] == [1, 3, 3]
    assert [cost.draft_seconds for cost in costs] == [0, 10, 10]
    assert {cost.target_seconds for cost in costs} == {0}


def test_no_thread_is_left_whether_an_answer_is_read_or_not(engine: Engine) -> None:
    threads = threading.active_count()
    request = GenerationRequest(prompt=PROMPT, strategy="draft-simple", max_tokens=50, ignore_eos=True)
    events_of(engine, request)
    assert threading.active_count() <= threads
    unread = engine.generate(request)
    next(event for event in unread if isinstance(event, RoundFinished))
    assert isinstance(unread, Generator)
    unread.close()
    assert threading.active_count() <= threads


def test_a_round_leaves_nothing_for_the_garbage_collector(engine: Engine) -> None:
    """Proposals hold whole vocabulary rows: they must be freed at once, not when the collector runs."""
    settings: dict[str, Any] = {
        "strategy": "draft-simple:n_max=4:sample=1",
        "sampling": Sampling(temperature=1, seed=1),
    }
    answer(engine, max_tokens=10, **settings)

    def left(tokens: int) -> int:
        gc.collect()
        gc.disable()
        try:
            assert len(answer(engine, max_tokens=tokens, ignore_eos=True, **settings).token_ids) == tokens
            return gc.collect()
        finally:
            gc.enable()

    # An answer leaves some types of ctypes' arrays, whatever its length; other tests' threads may leave more.
    assert min(left(120) for _ in range(3)) <= min(left(10) for _ in range(3))


def test_a_stopped_answer_leaves_no_rows_behind(engine: Engine) -> None:
    request = GenerationRequest(
        prompt=PROMPT,
        strategy="draft-simple:n_max=4:sample=1",
        sampling=Sampling(temperature=1, seed=1),
        max_tokens=200,
        ignore_eos=True,
    )
    gc.collect()
    gc.disable()
    try:
        for event in engine.generate(request):
            if isinstance(event, RoundFinished) and event.round.index == 3:
                engine.stop()
        assert not [alive for alive in gc.get_objects() if isinstance(alive, Verified | TargetRows)]
    finally:
        gc.enable()


def test_the_first_token_does_not_wait_for_the_second_draft(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafts: list[float] = []

    def propose(self: DraftSimple, context: np.ndarray, k: int) -> Proposal:
        drafts.append(time.perf_counter())
        return Proposal(ids=[1])

    monkeypatch.setattr(DraftSimple, "propose", propose)
    began = time.perf_counter()
    trace = answer(engine, strategy="draft-simple", max_tokens=4)
    assert trace.totals is not None and trace.totals.first_token_seconds is not None
    assert trace.rounds[0].seconds <= trace.totals.first_token_seconds <= drafts[1] - began


def test_the_truth_with_a_draft_behind_it_stays_the_truth() -> None:
    truth = TokenBuffer(np.array([1, 2, 3], np.int32), 8)
    assert truth.with_draft([7, 8]).tolist() == [1, 2, 3, 7, 8]
    assert truth.ids.tolist() == [1, 2, 3]
    truth.extend([9])
    assert truth.ids.tolist() == [1, 2, 3, 9]
    assert truth.with_draft([]).tolist() == [1, 2, 3, 9]


@pytest.mark.same_text
def test_match_keeps_drafts_to_passes_that_sum_as_single_ones(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here the widest such pass has three tokens, five after 256 in the cache, and two after 512. A pass that
    needs a larger view of the cache than its first token sums in another way, too."""
    decode, noise, widest = Context.decode, np.random.default_rng(0), (3, 5, 2)

    def other_kernels(self: Context, ids: NDArray[np.int32], logits: int = 0) -> NDArray[np.float32]:
        if self is not engine.target or logits < 2:
            return decode(self, ids, logits)
        assert len(ids) == logits
        at = self.n_cached
        if logits > widest[at // 256] or (at + logits - 1) // 256 > at // 256:
            return (rows := decode(self, ids, logits)) + noise.normal(0, 3, rows.shape).astype(np.float32)
        return np.concatenate([decode(self, ids[at : at + 1], 1).copy() for at in range(logits)])

    monkeypatch.setattr(Context, "decode", other_kernels)
    monkeypatch.setattr(engine.target, "_alike", {})
    prompt = PROMPT * 17  # 222 tokens
    none, match, block = (
        answer(
            engine,
            prompt,
            strategy=strategy,
            sampling=Sampling(temperature=0.3, seed=0),
            max_tokens=20 if "block" in strategy else 330,
            ignore_eos=True,
            cold=True,
        )
        for strategy in ("none", "draft-simple:n_max=6:verify=match", "draft-simple:n_max=6:verify=block")
    )
    assert match.token_ids == none.token_ids
    assert recheck(match) == []
    longest = [0, 0, 0]
    for round in match.rounds:
        depth = (match.header.prompt_tokens + round.position - 1) // 256
        longest[depth] = max(longest[depth], len(round.drafted))
    assert longest == [2, 4, 1]
    ends = {round.draft_end for round in match.rounds}
    assert {ALIKE, DEEPER} <= ends
    assert max(len(round.drafted) for round in block.rounds) == 6


def test_a_stop_while_passes_are_compared_keeps_all_rounds(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []

    def stopped(self: Context, ids: NDArray[np.int32], most: int) -> int:
        begun.append(len(ids))
        if len(begun) > 3:
            raise Cancelled
        return most

    monkeypatch.setattr(Context, "alike", stopped)
    sampling = Sampling(temperature=0.3, seed=0)
    trace = answer(engine, strategy="draft-simple:n_max=2:verify=match", sampling=sampling, max_tokens=40)
    assert trace.totals is not None and trace.totals.finish_reason == "cancelled"
    assert len(trace.rounds) == 3
    assert len(trace.token_ids) == begun[3] - begun[0]
    assert recheck(trace) == []
