"""The line on an answer that `run` and `replay` print before llama.cpp's."""

from __future__ import annotations

from msgspec.structs import replace

from app.cli.answer.strategies import statistics_lines
from app.engine.record.trace import Trace
from tests.ui.traces import simulate

TRACE = simulate("one two three four", seed=1)


def test_an_answer_that_began_with_a_filled_cache_is_told_to_be_warm() -> None:
    assert "warm" not in statistics_lines(TRACE)[0]
    warm = Trace(replace(TRACE.header, cold=False, cached_tokens=3), TRACE.rounds, TRACE.totals)
    assert statistics_lines(warm)[0].startswith("prompt 5 tokens (warm: 3 were cached) in 0.0200 s; answer ")
