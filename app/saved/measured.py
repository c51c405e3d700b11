"""Saved measurements: an answer's baseline, and times of each pair's passes on this machine. A baseline is
the answer's request from empty caches, without and with its strategy, in turns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.base.files import DamagedError, decode, open_file, read_file, write_atomic
from app.engine.errors import TraceError
from app.engine.explain.cost import CostModel
from app.engine.explain.facts import Factor
from app.engine.process.messages import PassSeconds
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace, read_trace, write_trace
from app.engine.types import ModelInfo, PairInfo

MOST_PAIRS = 4
"""The most runs; if these leave a factor unclear, its range says so."""
FASTER, SLOWER, UNCLEAR = "faster", "slower", "no clear difference"
UNDRAFTED = "nothing was drafted"  # so that a difference is the machine's
_FREE = 0.01  # share of a run's time in which looking for drafts costs nothing that matters
_LEAST_PAIRS = 2
_NARROW = 1.2  # from the lowest to the highest factor of pairs that agree
_MOST_BYTES = 2**16  # of the sentences about disturbances

_doubts = msgspec.json.Decoder(tuple[str, ...])


class Measurement:
    """The traces of pairs of runs, and numbers computed from them. A speed is the tokens of all runs over
    their time; `low` and `high` are the factors of the slowest and fastest pair."""

    def __init__(self, baseline: Trace, strategy: Trace, *more: Trace, doubts: Sequence[str] = ()) -> None:
        """Take the first pair, and the runs of `more` pairs; `doubts` are sentences on disturbances. Raises
        TraceError if a run took no time."""
        self.runs = (baseline, strategy, *more)
        self.baseline = baseline
        self.strategy = strategy
        self.doubts = tuple(doubts)
        baselines, strategies = self.runs[::2], self.runs[1::2]
        self.pairs = len(strategies)
        factors = [_speed(pair[1:]) / _speed(pair[:1]) for pair in zip(baselines, strategies, strict=True)]
        self.low, self.high = min(factors), max(factors)
        self.baseline_speed = _speed(baselines)  # tokens/s
        self.strategy_speed = _speed(strategies)
        self.factor = self.strategy_speed / self.baseline_speed
        whole, base = _whole_speed(strategies), _whole_speed(baselines)
        self.end_to_end_factor = whole / base if whole and base else None
        self.cost = CostModel.of(
            (round for run in strategies for round in run.rounds),
            (round for run in baselines for round in run.rounds),
        )
        self.statistics = Statistics.of(strategy.rounds)
        all_drafts = Statistics.of([round for run in strategies for round in run.rounds])
        self._undrafted = not all_drafts.drafted and all_drafts.draft_seconds < _FREE * all_drafts.seconds

    @property
    def range(self) -> Factor:
        """The factor, with those of the slowest and fastest pair; 1 if nothing was drafted."""
        if self._undrafted:
            return Factor(1.0, min(self.low, 1.0), max(self.high, 1.0))
        return Factor(self.factor, self.low, self.high)

    @property
    def verdict(self) -> str:
        """The result on which the pairs agree."""
        if self._undrafted:
            return UNDRAFTED
        if self.low > 1:
            return FASTER
        return SLOWER if self.high < 1 else UNCLEAR

    @property
    def is_clear(self) -> bool:
        """Whether more pairs would hardly change the result."""
        agree = self.verdict is UNDRAFTED or (self.verdict is not UNCLEAR and self.high <= self.low * _NARROW)
        return self.pairs >= MOST_PAIRS or (agree and self.pairs >= _LEAST_PAIRS)


def _speed(traces: Sequence[Trace]) -> float:
    folds = [Statistics.of_answer(trace) for trace in traces]
    seconds = math.fsum(statistics.seconds for statistics in folds)
    if not all(statistics.tokens_per_second for statistics in folds):
        raise TraceError("The measured run has no tokens, or took no time.", "Measure the baseline again.")
    return sum(statistics.emitted for statistics in folds) / seconds


def _whole_speed(traces: Sequence[Trace]) -> float | None:
    """Tokens per second from the request to the end, including reading the prompt; None if it took no
    time."""
    folds = [Statistics.of_answer(trace) for trace in traces]
    lead = math.fsum(trace.totals.lead_seconds for trace in traces if trace.totals)
    seconds = math.fsum(statistics.seconds for statistics in folds) + lead
    return sum(statistics.emitted for statistics in folds) / seconds if seconds > 0 else None


def run_files(trace: Path) -> tuple[Path, ...]:
    """The files that a measurement may have beside the answer's trace: two for each pair of runs (first
    baseline first), and one for doubts."""
    numbers = ["", *(f"-{number}" for number in range(2, MOST_PAIRS + 1))]
    runs = [f".{run}{number}.jsonl" for number in numbers for run in ("baseline", "strategy")]
    return tuple(trace.with_suffix(suffix) for suffix in (*runs, ".doubts.json"))


def write_measurement(trace: Path, measurement: Measurement) -> None:
    """Write the runs beside an answer's trace, replacing an earlier measurement; raises OSError."""
    first, *others, doubts = run_files(trace)
    for file in (first, *others, doubts):
        file.unlink(missing_ok=True)
    if measurement.doubts:
        write_atomic(doubts, msgspec.json.encode(measurement.doubts))
    for file, run in zip(others, measurement.runs[1:], strict=False):
        write_trace(file, run)
    write_trace(first, measurement.baseline)  # last: its file marks the measurement as complete


def read_measurement(trace: Path) -> Measurement | None:
    """The measurement of an answer; None if there is none. Raises TraceError."""
    *files, doubts = run_files(trace)
    if not files[0].exists():
        return None
    pairs = sum(file.exists() for file in files[::2])
    return Measurement(*map(read_trace, files[: 2 * pairs]), doubts=_read_doubts(doubts))


def _read_doubts(path: Path) -> tuple[str, ...]:
    if not path.exists():
        return ()
    try:
        with open_file(path) as file:
            return decode(_doubts, file.read(_MOST_BYTES))
    except (OSError, DamagedError) as error:
        raise TraceError(f"{path.name} cannot be read: {error}.", "Measure the baseline again.") from error


_MOST = 200  # pairs; the oldest go first
_decoder = msgspec.json.Decoder(dict[str, PassSeconds])


class Calibrations:
    """The file with the times, by pair: its models' files, sizes and threads."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def of(self, pair: PairInfo) -> PassSeconds | None:
        """The times of a pair; None if unknown."""
        return self._read().get(_key(pair))

    def of_files(self, target: str, draft: str = "") -> PassSeconds | None:
        """The newest times of two files, with any load options; "" means no draft."""
        for key, seconds in reversed(self._read().items()):
            if key.startswith(f"{target} ") and (f" {draft} " in key if draft else key.endswith(" ")):
                return seconds
        return None

    def keep(self, pair: PairInfo, seconds: PassSeconds) -> None:
        """Keep the times of a pair; raises OSError."""
        known = self._read()
        known.pop(_key(pair), None)
        newest = [*known.items(), (_key(pair), seconds)][-_MOST:]
        write_atomic(self._path, msgspec.json.encode(dict(newest)))

    def _read(self) -> dict[str, PassSeconds]:
        """All known times; none if the file is missing or damaged, because they can be measured again."""
        try:
            return decode(_decoder, read_file(self._path))
        except (OSError, DamagedError):
            return {}


def _key(pair: PairInfo) -> str:
    def of(model: ModelInfo | None) -> str:
        if model is None:
            return ""
        return f"{model.path} {model.size} {model.threads} {model.n_gpu_layers}"

    return f"{of(pair.target)} {pair.devices} {of(pair.draft)}"
