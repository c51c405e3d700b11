"""What is known of an answer when advice on it is asked for, without Qt and without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.engine.explain.cost import CostModel
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, PairInfo, Round


class Factor(NamedTuple):
    """A speed-up of whole answers over strategy none, and its range."""

    value: float
    low: float
    high: float


class DraftFile(NamedTuple):
    """A model file that can draft for the target."""

    path: str
    size: int  # bytes
    name: str


@dataclass(frozen=True, slots=True)
class Facts:
    """An answer, what passes cost on this machine, and what was measured before. The more is known, the more
    settings can be compared."""

    spec: StrategySpec
    statistics: Statistics  # of the answer
    cost: CostModel  # of its passes, with those of a baseline or a calibration where there is one
    rounds: Sequence[Round] = ()  # of the answer
    prompt_ids: Sequence[int] = ()
    token_ids: Sequence[int] = ()  # of the answer
    measured: Factor | None = None  # of the answer's strategy on this prompt
    tried: Mapping[str, Factor] = field(default_factory=dict)
    """Other strategies that were measured on this prompt, by spec."""
    pair: PairInfo | None = None
    target: ModelOptions | None = None
    draft: ModelOptions | None = None
    drafts: Sequence[DraftFile] = ()  # others in the library that suit the target

    @classmethod
    def of(
        cls,
        trace: Trace,
        plain: Sequence[Trace] = (),
        measured: Factor | None = None,
        tried: Mapping[str, Factor] | None = None,
    ) -> Facts:
        """The facts of a recorded answer; `plain` are answers of the baseline to the same prompt. Raises
        SettingError for a strategy that is not known here."""
        return cls(
            StrategySpec.parse(trace.header.strategy),
            Statistics.of_answer(trace),
            CostModel.of(round for run in (trace, *plain) for round in run.rounds),
            trace.rounds,
            trace.header.context_ids,
            trace.token_ids,
            measured,
            tried or {},
            trace.header.pair,
        )
