"""A measured baseline: an answer's request twice, from empty caches, without its strategy and with it."""

from __future__ import annotations

from pathlib import Path

from app.engine.errors import TraceError
from app.engine.explain.cost import CostModel
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace, salvage_trace, write_trace


class Measurement:
    """The traces of two consecutive runs, and the numbers computed from them."""

    def __init__(self, baseline: Trace, strategy: Trace) -> None:
        """`baseline` was made with strategy none. Raises TraceError where a run took no time."""
        self.baseline = baseline
        self.strategy = strategy
        self.baseline_speed = _speed(baseline)  # tokens/s
        self.strategy_speed = _speed(strategy)
        self.factor = self.strategy_speed / self.baseline_speed
        whole, base = _whole_speed(strategy), _whole_speed(baseline)
        self.end_to_end_factor = whole / base if whole and base else None
        self.cost = CostModel.of([*baseline.rounds, *strategy.rounds])
        self.statistics = Statistics.of(strategy.rounds)


def _speed(trace: Trace) -> float:
    speed = Statistics.of_answer(trace).tokens_per_second
    if not speed:
        raise TraceError("The measured run has no tokens, or took no time.", "Measure the baseline again.")
    return speed


def _whole_speed(trace: Trace) -> float | None:
    """Tokens per second from the request to the end, with reading the prompt; None where it took no time."""
    statistics = Statistics.of_answer(trace)
    seconds = statistics.seconds + (trace.totals.lead_seconds if trace.totals else 0.0)
    return statistics.emitted / seconds if seconds > 0 else None


def run_files(trace: Path) -> tuple[Path, Path]:
    """The files of a measurement's runs, beside the answer's trace; the baseline's is first."""
    return trace.with_suffix(".baseline.jsonl"), trace.with_suffix(".strategy.jsonl")


def write_measurement(trace: Path, measurement: Measurement) -> None:
    """Write both runs beside an answer's trace; raises OSError."""
    baseline, strategy = run_files(trace)
    write_trace(strategy, measurement.strategy)
    write_trace(baseline, measurement.baseline)  # last: its file marks the measurement as complete


def read_measurement(trace: Path) -> Measurement | None:
    """The measurement of an answer; None where there is none. Raises TraceError."""
    baseline, strategy = run_files(trace)
    return Measurement(_whole(baseline), _whole(strategy)) if baseline.exists() else None


def _whole(path: Path) -> Trace:
    """Read an undamaged trace; raises TraceError."""
    found = salvage_trace(path)
    if found.trace is None or found.damage is not None:
        raise found.damage or TraceError(f"{path.name} is empty.")
    return found.trace
