"""Errors of a plug-in drafter cost only a draft: the answer is the baseline's, and the round says why."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
from typing_extensions import override

from app.engine.drafters.base import Drafter, Proposal, StrategyKind
from app.engine.drafters.guarded import LATE_TIMES, SLOW_BEGIN_SECONDS, SLOW_SECONDS, GuardedDrafter
from app.engine.engine import Engine
from app.engine.errors import DrafterError, UserError
from app.engine.plugins import register
from app.engine.types import FinishReason, GenerationRequest, Race, Sampling
from tests.answers import answer
from tests.equality import Baselines

N_VOCAB = 100
CONTEXT = np.arange(10, dtype=np.int32)
AROUND: Any = SimpleNamespace()


class Scripted(Drafter):
    """A drafter whose methods are given by the test."""

    def __init__(self, **acts: Callable[..., Any]) -> None:
        self.acts = acts
        self.calls: list[str] = []

    def _act(self, name: str, *given: Any) -> Any:
        self.calls.append(name)
        return self.acts[name](*given) if name in self.acts else None

    @override
    def begin(self, context: Any, surroundings: Any) -> None:
        self._act("begin", context)

    @override
    def propose(self, context: Any, k: int) -> Proposal:
        return self._act("propose", context, k) if "propose" in self.acts else Proposal(ids=[1])

    @override
    def observe(self, context: Any, proposal: Proposal, accepted: int) -> None:
        self._act("observe", context, proposal, accepted)

    @override
    def finish(self, context: Any) -> None:
        self._act("finish", context)

    @override
    def reset(self) -> None:
        self._act("reset")


def fails(*_given: object) -> Any:
    raise KeyError(5)


def guard(make: Callable[[], Any]) -> GuardedDrafter:
    made = GuardedDrafter("trie", lambda _params: make(), None, N_VOCAB)
    made.begin(CONTEXT, AROUND)
    return made


def guarded(**acts: Callable[..., Any]) -> GuardedDrafter:
    return guard(lambda: Scripted(**acts))


def proposing(proposal: Any) -> GuardedDrafter:
    return guarded(propose=lambda _context, _k: proposal)


# ------------------------------------------------------------------------------------ what is proposed


@pytest.mark.parametrize("ids", [[], [0, 99], (1, 2), np.array([3, 4]), [np.int32(7)]])
def test_a_sound_proposal_goes_through(ids: Any) -> None:
    given = Proposal(ids=ids, match=np.int64(3), end="n_max")  # type: ignore[arg-type]
    proposal = proposing(given).propose(CONTEXT, 4)
    assert proposal.ids == list(ids)
    assert all(type(id) is int for id in proposal.ids)
    assert (proposal.match, type(proposal.match), proposal.end, proposal.fault) == (3, int, "n_max", "")
    assert proposal is not given


@pytest.mark.parametrize(
    ("proposal", "words"),
    [
        (None, "trie gave None instead of a Proposal"),
        ([1, 2], "trie gave a value of type list instead of a Proposal"),
        (Proposal(ids=None), "trie gave None instead of a list of ids"),
        (Proposal(ids="12"), "trie gave a value of type str instead of a list of ids"),  # type: ignore[arg-type]
        (Proposal(ids=[1, 2, 3, 4, 5]), "trie gave 5 tokens, but at most 4 were asked for"),
        (Proposal(ids=[1, 100]), "trie gave the id 100, but the vocabulary has 100"),
        (Proposal(ids=[-1]), "trie gave the id -1, but the vocabulary has 100"),
        (Proposal(ids=[2**70]), "trie gave the id 1,180,591,620,717,411,303,424, but the vocabulary has 100"),
        (Proposal(ids=[1.0]), "trie gave a value of type float instead of a token id"),  # type: ignore[list-item]
        (Proposal(ids=[True]), "trie gave a value of type bool instead of a token id"),
        (Proposal(ids=["a"]), "trie gave a value of type str instead of a token id"),  # type: ignore[list-item]
        (Proposal(ids=np.ones((2, 2), int)), "trie gave a value of type list instead of a token id"),  # type: ignore[arg-type]
        (Proposal(ids=[1], q=[np.ones(N_VOCAB)]), "trie gave a q, but plug-in drafts are one-hot"),  # type: ignore[list-item]
        (Proposal(ids=[1], races=[Race(0.0)]), "trie gave a q, but plug-in drafts are one-hot"),
        (Proposal(ids=[1], match=10), "trie gave a match that is not in the text"),
        (Proposal(ids=[1], match="1"), "trie gave a match that is not in the text"),  # type: ignore[arg-type]
        (Proposal(ids=[1], end=None), "trie gave None as the end of its draft"),
    ],
)
def test_rubbish_is_a_lost_draft_and_said_in_words(proposal: Any, words: str) -> None:
    lost = proposing(proposal).propose(CONTEXT, 4)
    assert (lost.ids, lost.end, lost.fault) == ([], words, words)


def test_words_from_outside_are_one_short_line_that_can_be_written_down() -> None:
    end = proposing(Proposal(ids=[1], end="two\nlines \ud800" + "x" * 1000)).propose(CONTEXT, 4).end
    assert end.startswith("two lines ?x")
    assert len(end) == 200
    msgspec.json.encode(end)


# ------------------------------------------------------------------------------------ what is raised


def test_a_drafter_that_raises_loses_that_draft_only() -> None:
    answers = iter([fails, lambda: Proposal(ids=[1])])
    guarded_one = guarded(propose=lambda _context, _k: next(answers)())
    lost = guarded_one.propose(CONTEXT, 4)
    assert lost.ids == []
    assert lost.end.startswith("trie raised KeyError: 5 (test_guarded.py, line ")
    assert guarded_one.propose(CONTEXT, 4).ids == [1]


@pytest.mark.parametrize(
    "error", [SystemExit(3), RecursionError("deep"), MemoryError(), asyncio.CancelledError()]
)
def test_nothing_that_is_raised_gets_out(error: BaseException) -> None:
    def act(*_given: object) -> None:
        raise error

    assert type(error).__name__ in guarded(propose=act).propose(CONTEXT, 4).end


def test_an_error_whose_own_text_is_broken_is_told_by_its_name() -> None:
    class BrokenError(Exception):
        @override
        def __str__(self) -> str:
            raise ValueError

    def act(*_given: object) -> None:
        raise BrokenError

    assert guarded(propose=act).propose(CONTEXT, 4).end.startswith("trie raised BrokenError (")


def test_what_observe_raises_costs_the_next_draft() -> None:
    wrapped = guarded(observe=fails)
    assert wrapped.propose(CONTEXT, 4).ids == [1]
    wrapped.observe(CONTEXT, Proposal(ids=[1]), 1)
    assert "KeyError: 5" in wrapped.propose(CONTEXT, 4).end
    assert wrapped.propose(CONTEXT, 4).ids == [1]


def test_a_begin_that_raises_stops_drafting_until_the_next_answer() -> None:
    made: list[Scripted] = []

    def make() -> Scripted:
        made.append(Scripted(**({} if made else {"begin": fails})))
        return made[-1]

    wrapped = guard(make)
    for _ in range(2):
        assert "KeyError: 5" in wrapped.propose(CONTEXT, 4).end
        wrapped.observe(CONTEXT, Proposal(), 0)
    wrapped.finish(CONTEXT)
    assert made[0].calls == ["begin"], "nothing more was asked of it"
    wrapped.begin(CONTEXT, AROUND)
    assert wrapped.propose(CONTEXT, 4).ids == [1]
    assert len(made) == 2


@pytest.mark.parametrize("method", ["finish", "reset"])
def test_what_finish_or_reset_raises_costs_nothing_but_what_was_learned(method: str) -> None:
    made: list[Scripted] = []

    def make() -> Scripted:
        made.append(Scripted(**{method: fails}))
        return made[-1]

    wrapped = guard(make)
    wrapped.finish(CONTEXT) if method == "finish" else wrapped.reset()
    wrapped.begin(CONTEXT, AROUND)
    assert len(made) == 2
    assert wrapped.propose(CONTEXT, 4).ids == [1]


@pytest.mark.parametrize(("make", "words"), [(fails, "KeyError: 5"), (dict, "a dict is not derived from")])
def test_what_cannot_be_made_drafts_nothing(make: Callable[[], Any], words: str) -> None:
    assert words in guard(make).propose(CONTEXT, 4).end


def test_a_drafter_says_what_it_needs_by_a_user_error_when_it_is_made() -> None:
    def make() -> Any:
        raise UserError("There is no list of phrases.")

    with pytest.raises(UserError, match="no list of phrases"):
        guard(make)


# ------------------------------------------------------------------------------------ what it is handed


def test_it_cannot_write_into_the_truth_or_into_what_is_recorded() -> None:
    def write(context: Any, *_given: object) -> None:
        context[0] = 7

    def tamper(_context: Any, proposal: Proposal, _accepted: int) -> None:
        proposal.ids.clear()

    wrapped = guarded(propose=write, observe=tamper)
    assert "ValueError: assignment destination is read-only" in wrapped.propose(CONTEXT, 4).end
    proposal = Proposal(ids=[1, 2])
    wrapped.observe(CONTEXT, proposal, 1)
    assert (CONTEXT[0], proposal.ids) == (0, [1, 2])
    assert CONTEXT.flags.writeable


# ------------------------------------------------------------------------------------ what is slow


def test_late_drafts_are_dropped_and_then_it_rests_until_the_next_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, step = 0.0, 2 * SLOW_SECONDS

    def clock() -> float:
        nonlocal now
        now += step
        return now

    monkeypatch.setattr(time, "perf_counter", clock)
    drafter = Scripted()
    wrapped = guard(lambda: drafter)
    for _ in range(LATE_TIMES):
        late = wrapped.propose(CONTEXT, 4)
        assert (late.ids, late.end) == ([], "trie took 200 ms, more than 100 ms")
    resting = wrapped.propose(CONTEXT, 4)
    assert resting.end == "trie rests for this answer: it was late 3 times"
    assert resting.fault == "", "told once, not with every other strategy's draft"
    wrapped.observe(CONTEXT, Proposal(), 0)
    assert "observe" not in drafter.calls
    step = 0.001
    wrapped.begin(CONTEXT, AROUND)
    assert wrapped.propose(CONTEXT, 4).ids == [1]
    step = 0.6 * SLOW_SECONDS  # each call is fast enough, both together are not
    wrapped.observe(CONTEXT, Proposal(ids=[1]), 0)
    assert "took 120 ms" in wrapped.propose(CONTEXT, 4).end


class Clock:
    """A fake clock that advances by `step` at every reading."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, step: float) -> None:
        self.now, self.step = 0.0, step
        monkeypatch.setattr(time, "perf_counter", self)

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def test_a_drafter_late_only_in_observe_rests_too_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 3 * SLOW_SECONDS)
    drafter = Scripted()
    wrapped = guard(lambda: drafter)
    for _ in range(16):
        wrapped.observe(CONTEXT, Proposal(), 0)
    assert drafter.calls.count("observe") == LATE_TIMES
    words = "trie took 300 ms to observe, more than 100 ms"
    with pytest.raises(DrafterError) as told:
        wrapped.finish(CONTEXT)
    assert str(told.value) == f"{words}; trie rests for this answer: it was late 3 times."
    wrapped.finish(CONTEXT)  # told once
    clock.step = 0.001
    wrapped.begin(CONTEXT, AROUND)
    clock.step = 3 * SLOW_SECONDS
    wrapped.observe(CONTEXT, Proposal(), 0)
    clock.step = 0.001
    lost = wrapped.propose(CONTEXT, 4)
    assert (lost.end, lost.fault) == (words, words)
    assert wrapped.propose(CONTEXT, 4).ids == [1], "a lateness counts once"
    wrapped.finish(CONTEXT)


def test_late_in_begin_costs_the_first_draft(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch, 2 * SLOW_BEGIN_SECONDS)
    wrapped = guarded()
    clock.step = 0.001
    assert wrapped.propose(CONTEXT, 4).fault == "trie took 2,000 ms to begin, more than 1,000 ms"
    assert wrapped.propose(CONTEXT, 4).ids == [1]


def test_of_several_faults_before_a_draft_the_first_is_told() -> None:
    drafter = Scripted(observe=fails)
    wrapped = guard(lambda: drafter)
    wrapped.observe(CONTEXT, Proposal(), 0)
    drafter.acts = {}
    wrapped.observe(CONTEXT, Proposal(), 0)
    assert "KeyError: 5" in wrapped.propose(CONTEXT, 4).end


# ------------------------------------------------------------------------------------ in the real loop


@dataclass(frozen=True, slots=True)
class NoParams:
    """No settings."""


def install(make: Callable[..., Any]) -> str:
    """Register it; returns its name."""
    register(StrategyKind("naughty", NoParams, "For a test.", make=make))
    return "naughty"


def every_third(wrong: Callable[[int], Any]) -> Callable[..., Any]:
    """Make a drafter that repeats the last token, and fails every third time."""

    def make(_params: Any, _resources: Any) -> Scripted:
        asked = 0

        def propose(context: Any, k: int) -> Any:
            nonlocal asked
            asked += 1
            return wrong(k) if asked % 3 == 0 else Proposal(ids=[int(context[-1])] * min(k, 2), end="two")

        return Scripted(propose=propose)

    return make


WRONGS: dict[str, tuple[Callable[[int], Any], str]] = {
    "raises": (fails, "naughty raised KeyError: 5"),
    "no-proposal": (lambda _k: 7, "instead of a Proposal"),
    "out-of-range": (lambda _k: Proposal(ids=[10**6]), "naughty gave the id 1,000,000"),
    "no-ids": (lambda _k: Proposal(ids=["a"]), "instead of a token id"),  # type: ignore[list-item]
    "too-many": (lambda k: Proposal(ids=[1] * (k + 1)), "tokens, but at most"),
    "q": (lambda _k: Proposal(ids=[1], q=[np.ones(3, np.float32)]), "one-hot"),  # type: ignore[list-item]
    "slow": (lambda _k: time.sleep(1.2 * SLOW_SECONDS) or Proposal(ids=[1]), "more than 100 ms"),
}


@pytest.mark.usefixtures("known_strategies")
@pytest.mark.parametrize("wrong", WRONGS)
@pytest.mark.parametrize("rule", ["greedy", "speculative", "match", "block"])
def test_the_answer_is_the_baselines_and_the_rounds_say_what_happened(
    engine: Engine, baselines: Baselines, wrong: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    act, words = WRONGS[wrong]
    if wrong == "slow":
        monkeypatch.setattr("app.engine.drafters.guarded.SLOW_SECONDS", SLOW_SECONDS)
    name = install(every_third(act))
    request = GenerationRequest(prompt="aaaa", max_tokens=16, ignore_eos=True)
    trace = baselines.check(engine, request, f"{name}:verify={rule}")
    ends = [round.draft_end for round in trace.rounds]
    lost = [round for round in trace.rounds if words in round.draft_end]
    assert lost, ends
    assert all(round.drafted == () and round.strategy is None for round in lost)
    assert sum(len(round.drafted) for round in trace.rounds) > 0, "the others were drafted"
    assert trace.totals is not None
    assert trace.totals.finish_reason is FinishReason.LENGTH


@pytest.mark.usefixtures("known_strategies")
def test_match_at_a_temperature_is_plain_sampling(engine: Engine, baselines: Baselines) -> None:
    name = install(every_third(fails))
    sampling = Sampling(temperature=0.8, seed=5)
    request = GenerationRequest(prompt="aaaa", max_tokens=40, ignore_eos=True, sampling=sampling)
    baselines.check(engine, request, f"{name}:verify=match")


@pytest.mark.usefixtures("known_strategies")
def test_another_strategy_drafts_in_its_place_and_the_fault_is_still_told(engine: Engine) -> None:
    name = install(lambda _params, _resources: Scripted(propose=fails))
    trace = answer(engine, strategy=f"{name}+draft-simple:n_max=2", max_tokens=12, ignore_eos=True)
    drafted = [round for round in trace.rounds if round.drafted]
    assert drafted
    for round in drafted:
        assert round.strategy == "draft-simple"
        assert round.draft_end.startswith("naughty raised KeyError: 5")
        assert round.draft_end.split("; ")[1:] in (["n_max"], ["answer at its length limit"])


@pytest.mark.usefixtures("known_strategies")
def test_a_token_that_is_not_there_has_no_piece(engine: Engine) -> None:
    """llama.cpp would end the process."""

    def make(_params: Any, resources: Any) -> Scripted:
        piece = functools.partial(resources.vocabulary.piece, 10**6)
        return Scripted(propose=lambda _context, _k: piece())

    trace = answer(engine, strategy=install(make), max_tokens=3, ignore_eos=True)
    assert "naughty raised KeyError: 1000000" in trace.rounds[0].draft_end


@pytest.mark.usefixtures("known_strategies")
def test_an_error_behind_a_strategy_that_always_drafts_is_reported(engine: Engine) -> None:
    first = dict.fromkeys(("begin", "observe"), lambda *_given: None)
    register(StrategyKind("first", NoParams, "For a test.", make=lambda _p, _r: Scripted(**first)))
    name = install(lambda _params, _resources: Scripted(observe=fails))
    # One token before the end no draft is wanted, and no drafter is asked.
    trace = answer(engine, strategy=f"first+{name}", max_tokens=12, ignore_eos=True)
    assert all(round.strategy in ("first", None) for round in trace.rounds)
    assert trace.totals is not None
    assert trace.totals.error.startswith("naughty raised KeyError: 5")
    assert trace.totals.finish_reason is FinishReason.LENGTH
