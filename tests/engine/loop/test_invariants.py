"""METRICS.md's invariants for every answer, whatever the strategy, sampling, prompt and limits."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.engine.engine import Engine
from app.engine.fates import Origin, Verdict
from app.engine.process.messages import trace_of
from app.engine.record.recheck import recheck
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.sampling.draws import Draws, Purpose
from app.engine.strategy import StrategySpec
from app.engine.types import FinishReason, GenerationRequest, Sampling
from tests.answers import events_of

CUT = (FinishReason.END, FinishReason.STOP)

strategies = st.sampled_from(
    [
        "none",
        "draft-simple:n_max=1",
        "draft-simple:n_max=4",
        "draft-simple:n_max=6:n_min=2:p_min=0.2",
        "draft-simple:n_max=4:sample=1",
        "draft-simple:n_max=5:sample=1:p_min=0.1",
        "prompt-lookup",
        "prompt-lookup:max_ngram_size=1:num_pred_tokens=12",
        "prompt-lookup:num_pred_tokens=3+draft-simple:n_max=2",
        "ngram-simple:size_n=1:size_m=4",
        "ngram-map-k:size_n=2:size_m=3+ngram-map-k4v:size_n=1:size_m=2+draft-simple:n_max=2",
    ]
)
rules = st.sampled_from(["", ":verify=match", ":verify=speculative", ":verify=block"])
samplings = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    top_k=st.sampled_from([0, 5]),
    top_p=st.sampled_from([1.0, 0.8]),
    repeat_penalty=st.sampled_from([1.0, 1.3]),
    seed=st.integers(0, 2**63 - 1),
)
requests = st.builds(
    GenerationRequest,
    prompt=st.one_of(
        st.text(min_size=1, max_size=30), st.sampled_from(["abcabcabcabc", "aaaaaaaaaaaaaaaa", "x"])
    ),
    strategy=st.builds(str.__add__, strategies, rules),
    sampling=samplings,
    max_tokens=st.integers(1, 40),
    stop=st.sampled_from([(), ("a",), ("e", "\n", "zz")]),
    ignore_eos=st.booleans(),
    cold=st.booleans(),
)


@given(requests)
@settings(max_examples=60)
def test_the_invariants(shared_engine: Engine, request: GenerationRequest) -> None:
    events = events_of(shared_engine, request)
    trace = trace_of(events)
    assert trace.totals is not None
    finish = trace.totals.finish_reason
    statistics = Statistics.of(trace.rounds)

    assert statistics.drafted == statistics.accepted + statistics.rejected + statistics.ignored
    missing = statistics.accepted + statistics.rounds - statistics.emitted
    assert missing in ((0, 1) if finish in CUT else (0,))
    assert statistics.origins[Origin.ACCEPTED] == statistics.accepted
    assert sum(statistics.origins.values()) == statistics.emitted == len(trace.token_ids)
    assert statistics.emitted <= request.max_tokens
    assert (finish is FinishReason.LENGTH) <= (statistics.emitted == request.max_tokens)
    assert recheck(trace) == []

    most = max((part.longest for part in StrategySpec.parse(request.strategy).parts), default=0)
    for round in trace.rounds:
        assert round.rejected <= 1
        assert len(round.drafted) <= min(most, request.max_tokens - round.position - 1)
        assert 1 <= len(round.emitted) <= len(round.drafted) + 1
        assert len(round.target_top) == len(round.emitted)
        if trace.header.verification != "block":  # it judges ignored tokens too
            assert all((token.p is None) == (token.verdict is Verdict.IGNORED) for token in round.drafted)
        assert all(0 < token.q <= 1 for token in round.drafted)
        assert all(0 < token.p <= 1 for token in round.emitted)
        assert all(0 <= token.p <= 1 for token in round.drafted if token.p is not None)
        assert (round.strategy is None) == (not round.drafted)
        assert round.seconds >= round.draft_seconds + round.verify_seconds + round.sample_seconds - 1e-9
        assert 0 <= round.native_seconds <= round.seconds

    # The text begins with what was streamed, and holds only emitted tokens.
    streamed = "".join(event.text for event in events if hasattr(event, "text"))
    assert trace.totals.text.startswith(streamed)
    emitted = b"".join(token.piece for round in trace.rounds for token in round.emitted)
    readable = emitted.decode(errors="replace")
    assert readable.startswith(trace.totals.text)
    if finish is not FinishReason.STOP:
        assert readable == trace.totals.text
    assert not any(stop in trace.totals.text for stop in request.stop)


@given(requests)
@settings(max_examples=25)
def test_no_draw_is_ever_used_twice(shared_engine: Engine, request: GenerationRequest) -> None:
    keys: list[tuple[int, Purpose, int]] = []
    real = Draws.uniform

    def uniform(self: Draws, position: int, purpose: Purpose, round_start: int = 0) -> float:
        keys.append((position, purpose, round_start))
        return real(self, position, purpose, round_start)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draws, "uniform", uniform)
        events_of(shared_engine, request)
    assert max(Counter(keys).values(), default=1) == 1


@pytest.mark.same_text
@given(requests)
@settings(max_examples=25)
def test_a_cold_answer_repeats_exactly(shared_engine: Engine, request: GenerationRequest) -> None:
    settings = {
        name: getattr(request, name) for name in ("prompt", "strategy", "sampling", "stop", "ignore_eos")
    }
    first, second = (_cold(shared_engine, settings) for _ in range(2))
    assert first.token_ids == second.token_ids
    verdicts = [[[token.verdict for token in round.drafted] for round in t.rounds] for t in (first, second)]
    assert verdicts[0] == verdicts[1]


def _cold(engine: Engine, settings: dict) -> Trace:
    return engine.answer(GenerationRequest(**settings, max_tokens=20, cold=True))
