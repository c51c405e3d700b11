"""The record of a run, written by `run --json` and `bench --json`, and latency percentiles.

The tokens of a round arrive together at its end. So the time between two of them is 0, and the first waited
since the end of the previous round. Percentiles are interpolated linearly, as in numpy and vLLM's benchmark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Self

import msgspec
import numpy as np

from app.base import numbers
from app.engine.fates import Verdict
from app.engine.record.alternative_stats import AlternativeStatistics
from app.engine.record.stats import DraftStatistics, Statistics
from app.engine.record.trace import Trace
from app.engine.strategy import is_synthetic, lengths_of
from app.engine.types import FinishReason, Round, WholeServer
from app.lab.experiment import Experiment, Job

FIRST_TOKEN_TITLE = "first token p50/95/99"
FIRST_TOKEN = "p50, p95 and p99 of the time from the request to the first emitted token."
INTER_TOKEN_TITLE = "between tokens p50/95/99"
INTER_TOKEN = (
    "p50, p95 and p99 of the time between one token and the next. The tokens of a round arrive together, "
    "with 0 ms between them."
)


class JsonFile(msgspec.Struct, frozen=True):
    """Written as one JSON object on one line."""

    def to_json(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"

    @classmethod
    def from_json(cls, data: bytes | str) -> Self:
        """Read it; raises msgspec.DecodeError."""
        return msgspec.json.decode(data, type=cls)


class Latency(JsonFile, frozen=True, kw_only=True):
    """Percentiles in seconds; None if nothing is known."""

    first_token_p50: float | None = None
    first_token_p95: float | None = None
    first_token_p99: float | None = None
    inter_token_p50: float | None = None
    inter_token_p95: float | None = None
    inter_token_p99: float | None = None

    @property
    def first_token_words(self) -> str:
        return _words(self.first_token_p50, self.first_token_p95, self.first_token_p99)

    @property
    def inter_token_words(self) -> str:
        return _words(self.inter_token_p50, self.inter_token_p95, self.inter_token_p99)


def arrival_gaps(rounds: Sequence[Round]) -> tuple[float, ...]:
    """Seconds between the ends of rounds that emitted tokens, in whole microseconds."""
    ends = [round.offset + round.seconds for round in rounds if round.emitted]
    return tuple(round(max(0.0, later - earlier), 6) for earlier, later in pairwise(ends))


def percentiles(
    first_tokens: Iterable[float | None], gaps: Iterable[tuple[int, Sequence[float] | None]]
) -> dict[str, Any]:
    """The fields of a Latency, over all tokens of several answers. `gaps` are (tokens of an answer, times
    between its rounds), None if an early record lacks them."""
    known = [(tokens, each) for tokens, each in gaps if each is not None]
    together = sum(max(0, tokens - 1 - len(each)) for tokens, each in known)  # with the token before
    between = [0.0] * together + [gap for _, each in known for gap in each]
    return _named("first_token", [each for each in first_tokens if each is not None]) | _named(
        "inter_token", between
    )


def _named(name: str, values: Sequence[float]) -> dict[str, float | None]:
    found = np.percentile(values, (50, 95, 99)).tolist() if values else (None, None, None)
    return {f"{name}_p{at}": value for at, value in zip((50, 95, 99), found, strict=True)}


def _words(*seconds: float | None) -> str:
    """ "12.0 · 45.1 · 60.2 ms"."""
    if None in seconds:
        return numbers.NONE
    parts = ("0" if not each else numbers.digits(each * 1000) for each in seconds if each is not None)
    return f"{' · '.join(parts)} ms"


class Divergence(msgspec.Struct, frozen=True):
    """Where an answer first diverged from its baseline. A token is None if that answer had ended."""

    index: int  # in the answer
    baseline_token: int | None
    token: int | None
    baseline_text: str = ""
    token_text: str = ""
    logit_gap: float | None = None
    """The gap between the baseline's logits of the two tokens; None if a trace lacks one."""
    difference: float | None = None
    """How much the gap differs in this answer's pass: the effect of the batch widths."""
    near_tie: bool | None = None
    """Whether the batch widths alone explain it. None if unknown, and for rules that keep only the law."""

    @property
    def perhaps_tie(self) -> bool:
        """Whether rounding moves logits this far with some models, but not with others."""
        return self.near_tie is None and self.difference is not None


class StrategyShare(msgspec.Struct, frozen=True):
    """What one strategy of a mix contributed."""

    asked: int | None  # rounds in which it was asked for a draft; None if a trace does not report
    drafted: int
    accepted: int
    draft_seconds: float  # of the rounds that it drafted in


def strategy_shares(statistics: Statistics) -> dict[str, StrategyShare]:
    """The share of every strategy that was asked or drafted, by name."""
    calls, drafts = statistics.calls, statistics.strategies
    return {
        name: StrategyShare(
            calls.get(name, 0) if calls else None, part.drafted, part.accepted, part.draft_seconds
        )
        for name in dict.fromkeys((*calls, *drafts))
        for part in [drafts.get(name, DraftStatistics())]
    }


def folds_of(statistics: Statistics, owner: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields of a record or summary that have the same name in the statistics."""
    named = _same_named(statistics, owner)
    lists = {name: tuple(value) for name, value in named.items() if isinstance(value, list)}
    return named | lists | {"strategies": strategy_shares(statistics)}


def _same_named(source: object, owner: type[msgspec.Struct]) -> dict[str, Any]:
    return {name: getattr(source, name) for name in owner.__struct_fields__ if hasattr(source, name)}


def _place(experiment: Experiment, job: Job) -> dict[str, Any]:
    """The fields of a job's record that its trace does not contain."""
    prompt = experiment.prompts[job.prompt]
    given = {"category": prompt.category, "depth": prompt.depth, "turn": prompt.turn}
    return given | {"prompt_index": job.prompt, "repeat": job.repeat, "lane": job.lane}


class RunRecord(Latency, frozen=True):
    """The numbers of a run. Seconds are wall time; a ratio whose denominator is zero is None.

    Fields named as in app.engine.record.stats are defined there. A run that could not be done has zeros.
    """

    strategy: str
    category: str | None  # of the prompt, where the prompts have one
    prompt_index: int
    repeat: int
    cold: bool  # began with empty caches and fresh drafters
    seed: int  # the seed in use
    token_ids: tuple[int, ...] = ()
    text: str = ""
    n_tokens: int = 0
    seconds: float = 0.0  # from the start of round 0
    tokens_per_second: float | None = None
    prompt_tokens: int = 0
    prompt_seconds: float = 0.0
    draft_prompt_seconds: float = 0.0
    first_token_seconds: float | None = None
    rounds: int = 0
    drafted: int = 0
    accepted: int = 0
    rejected: int = 0
    ignored: int = 0
    acceptance_rate: float | None = None
    alpha: float | None = None
    tau: float | None = None
    draft_share: float | None = None
    drafted_rounds: int = 0
    target_seconds: float | None = 0.0  # this and the next: None for a server, which does not report them
    draft_seconds: float | None = 0.0
    engine_overhead: float | None = None
    speedup: float | None = None  # these compare with a baseline: None if none was measured
    identical_to_baseline: bool | None = None
    first_divergence: Divergence | None = None
    finish_reason: FinishReason = FinishReason.FAILED
    lane: int = 0  # index in the experiment
    baseline_lane: int | None = None  # the lane that the comparisons are with
    error: str = ""  # why it failed, or what a drafter could not do after a whole answer
    draft_prompt_in_rounds: float = 0.0  # part of draft_prompt_seconds, also in `seconds` (length=auto)
    synthetic: bool = False  # drafted from a rehearsal of the answer itself
    other_load: float | None = None  # processor cores that other programs kept busy; None if unknown
    tokens_per_pass: float | None = None
    end_to_end_seconds: float | None = None  # from the request to the end: reading the prompt and generating
    end_to_end_speedup: float | None = None  # the same comparison as `speedup`, over these seconds
    target_entropy: float | None = None  # bits; this and the next are defined in AlternativeStatistics
    target_rest: float | None = None
    acc_per_pos: tuple[float, ...] = ()
    acceptance_by_place: tuple[float, ...] = ()
    judged_acceptance_by_place: tuple[float | None, ...] = ()
    accepted_per_round: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    rejections: tuple[int, ...] = ()
    k_by_round: tuple[int, ...] = ()
    """With length=ewma or auto: the most tokens that each round was allowed to draft, as LengthAt."""
    smoothed_by_round: tuple[float, ...] = ()
    """The rule's smoothed acceptance, with each round counted."""
    strategies: dict[str, StrategyShare] = msgspec.field(default_factory=dict)
    alternatives: AlternativeStatistics = msgspec.field(default_factory=AlternativeStatistics)
    whole_server: WholeServer | None = None  # where a server only counts for all its users together
    joules: float | None = None  # from the request to the end; None if the system does not report it
    energy_of: str = ""  # what was counted, such as "RAPL package-0"
    depth: int | None = None  # tokens of a document before the prompt; None if none was asked for
    turn: int = 1  # of the prompt's conversation
    started_at: str = ""  # ISO 8601, UTC; "" in early records, which ran prompt by prompt
    resumed: int = 0  # how often the measurement had been resumed from its journal before
    arrival_gaps: tuple[float, ...] | None = None  # between the ends of rounds; None in early records

    @property
    def failure(self) -> str:
        """Why it failed; "" if it did not."""
        return (self.error or self.finish_reason) if self.finish_reason is FinishReason.FAILED else ""

    @property
    def whole_seconds(self) -> float:
        """From the request to the end: reading the prompt and generating."""
        return self.prompt_seconds + self.draft_prompt_seconds - self.draft_prompt_in_rounds + self.seconds

    @classmethod
    def of(cls, trace: Trace, **place: Any) -> RunRecord:
        """The record of a trace; one without totals (a crash) counts as failed. `place` are the fields that a
        trace does not contain: those of its prompt, the repeat and the lane."""
        header, totals = trace.header, trace.totals
        statistics, alternatives = Statistics.of_answer(trace), AlternativeStatistics.of(trace.rounds)
        lengths, gaps = lengths_of(header.strategy, trace.rounds), arrival_gaps(trace.rounds)
        first = totals.first_token_seconds if totals else None
        named: dict[str, Any] = {"category": None, "prompt_index": 0, "repeat": 0}
        for source in (trace, header, totals, alternatives):
            named |= _same_named(source, cls)
        named |= folds_of(statistics, cls)
        if header.pair.server:  # it does not report these times: a fold over its rounds has zeros
            named |= {"target_seconds": None, "draft_seconds": None}
        named |= place | percentiles([first], [(statistics.emitted, gaps)])
        return cls(
            n_tokens=statistics.emitted,
            synthetic=is_synthetic(header.strategy),
            end_to_end_seconds=statistics.seconds + (totals.lead_seconds if totals else 0.0),
            alternatives=alternatives,
            k_by_round=tuple(at.k for at in lengths),
            smoothed_by_round=tuple(at.acceptance for at in lengths),
            arrival_gaps=gaps,
            **named,
        )

    @classmethod
    def of_job(cls, trace: Trace, experiment: Experiment, job: Job) -> RunRecord:
        """The record of a job's trace."""
        return cls.of(trace, **_place(experiment, job))

    @classmethod
    def of_failed(cls, experiment: Experiment, job: Job, problem: str) -> RunRecord:
        """The record of a run that could not be done; `problem` says why."""
        strategy, seed = experiment.lanes[job.lane].strategy, experiment.sampling.seed
        return cls(strategy=strategy, cold=True, seed=seed, error=problem, **_place(experiment, job))

    @property
    def statistics(self) -> Statistics:
        """The statistics of its rounds, as far as the record contains them: counts and times."""
        return Statistics(
            drafted_rounds=self.drafted_rounds,
            drafted=self.drafted,
            verdicts={verdict: getattr(self, verdict) for verdict in Verdict},
            draft_seconds=self.draft_seconds or 0.0,
            lengths=list(self.lengths),
            accepted_per_round=list(self.accepted_per_round),
            rejections=list(self.rejections),
            calls={name: share.asked for name, share in self.strategies.items() if share.asked is not None},
            strategies={
                name: DraftStatistics(
                    drafted=share.drafted,
                    verdicts=dict.fromkeys(Verdict, 0) | {Verdict.ACCEPTED: share.accepted},
                    draft_seconds=share.draft_seconds,
                )
                for name, share in self.strategies.items()
            },
            blocks=int(self.alpha is None and self.accepted + self.rejected > 0),
            rounds=self.rounds,
            # A server reports no target_seconds; early journals have no tokens_per_pass in any case.
            untold=0 if self.target_seconds is not None or self.tokens_per_pass else self.rounds,
            emitted=self.n_tokens,
            target_seconds=self.target_seconds or 0.0,
            native_seconds=0.0 if self.engine_overhead is None else (1 - self.engine_overhead) * self.seconds,
            end=self.seconds,
        )
