"""Answers of a real engine as traces, for the tests that look into them."""

from __future__ import annotations

from typing import Any

from app.engine.engine import Engine
from app.engine.process.messages import Event, Finished, RoundFinished, Started
from app.engine.record.trace import Trace
from app.engine.types import GenerationRequest
from app.lab.report.compare import first_divergence


def events_of(engine: Engine, request: GenerationRequest) -> list[Event]:
    return list(engine.generate(request))


def trace_of(events: list[Event]) -> Trace:
    """The trace that a window would keep of these events."""
    trace: Trace | None = None
    for event in events:
        if isinstance(event, Started):
            trace = Trace(event.header)
        elif isinstance(event, RoundFinished):
            assert trace is not None
            trace.rounds.append(event.round)
        elif isinstance(event, Finished):
            assert trace is not None
            trace.totals = event.totals
    assert trace is not None
    return trace


def answer(engine: Engine, prompt: str = "abcabcabd abc", **settings: Any) -> Trace:
    """Generate from a raw prompt; `settings` are those of GenerationRequest."""
    return trace_of(events_of(engine, GenerationRequest(prompt=prompt, **settings)))


def assert_same_answer(trace: Trace, expected: Trace) -> None:
    """The same tokens, or a first parting by rounding: caches hold what passes of other shapes made."""
    parting = first_divergence(trace.token_ids, expected.token_ids, trace, expected)
    assert parting is None or parting.near_tie, parting
