"""The rows of the table: a summary for each lane, folded from its runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import fsum

import msgspec

from app.engine.record.alternative_stats import AlternativeStatistics
from app.engine.record.stats import Statistics
from app.lab.latency import Latency, percentiles
from app.lab.report.compare import is_measured
from app.lab.report.interval import Speedup, Spread, mean_factor
from app.lab.runs.journal.run_record import RunRecord, StrategyShare, strategy_shares


class Summary(Latency, frozen=True):
    """A lane's numbers over all prompts and repeats, or over those of one category.

    Counts and times are sums over the measured runs; ratios are pooled, never means of ratios. A ratio
    whose denominator is zero is None.
    """

    lane: int
    strategy: str
    category: str | None  # None: all prompts
    runs: int  # measured, and answered by every lane
    failed: int
    tokens_per_second: Spread | None
    speedup: Speedup | None
    whole_speedup: float | None  # from the request to the end, with reading the prompt
    acceptance_rate: float | None
    alpha: float | None
    tau: float | None
    draft_share: float | None
    engine_overhead: float | None
    n_tokens: int
    rounds: int
    drafted: int
    accepted: int
    seconds: float
    draft_seconds: float | None  # this and the next: None for a server
    target_seconds: float | None
    first_token_seconds: Spread | None
    prompt_seconds: Spread | None
    compared: int  # runs with a baseline; these three count runs that are left out too
    identical: int  # of these, runs with the same tokens
    near_ties: int  # of these, runs whose parting is explained by the batch shapes alone
    tokens_per_pass: float | None = None  # these and the following are defined in app.engine.record.stats
    draft_length: float | None = None
    acc_per_pos: tuple[float, ...] = ()
    acceptance_by_place: tuple[float, ...] = ()
    judged_acceptance_by_place: tuple[float | None, ...] = ()
    accepted_per_round: tuple[int, ...] = ()
    lengths: tuple[int, ...] = ()
    strategies: dict[str, StrategyShare] = msgspec.field(default_factory=dict)
    alternatives: AlternativeStatistics = msgspec.field(default_factory=AlternativeStatistics)
    joules: float | None = None  # of all measured runs; None where the system does not tell it
    energy_of: str = ""  # what was counted
    failure: str = ""  # why the first run that failed did
    depth: int | None = None  # tokens of documents before the prompt; None: all prompts
    prompt_tokens: Spread | None = None
    left_out: int = 0  # measured runs that count nowhere but below: another lane failed to answer

    @property
    def equal(self) -> bool | None:
        """Whether all compared runs equal the baseline, near-ties apart; None where nothing was compared."""
        return self.identical + self.near_ties == self.compared if self.compared else None


class UncomparedPrompt(msgspec.Struct, frozen=True):
    """A prompt in a repeat that is not compared: some lanes answered it, and `lanes` failed."""

    prompt_index: int
    repeat: int
    lanes: tuple[int, ...]


def left_out(runs: Sequence[RunRecord]) -> tuple[UncomparedPrompt, ...]:
    """What lanes failed to answer that answered others of these `runs`: medians of different prompts do not
    compare. A lane that answered nothing takes nothing from the others."""
    answering, failed = set(), []
    for run in runs:
        if is_measured(run):
            answering.add(run.lane)
        else:
            failed.append(run)
    lanes: dict[tuple[int, int], list[int]] = {}
    for run in failed:
        if run.lane in answering:
            lanes.setdefault((run.prompt_index, run.repeat), []).append(run.lane)
    return tuple(UncomparedPrompt(*place, tuple(sorted(lanes[place]))) for place in sorted(lanes))


def summarise(
    lane: int,
    strategy: str,
    mine: Sequence[RunRecord],
    category: str | None = None,
    depth: int | None = None,
    without: Collection[UncomparedPrompt] = (),
) -> Summary:
    """The summary of a lane; `mine` are all its runs, or those of a `category` or at a `depth`, with their
    comparisons. The answers to `without` are not compared."""
    places = {(out.prompt_index, out.repeat) for out in without}
    answered = [run for run in mine if is_measured(run)]
    measured = [run for run in answered if (run.prompt_index, run.repeat) not in places]
    baselines = [run for run in measured if run.speedup is not None]
    texts = [run for run in answered if run.speedup is not None]
    total = Statistics.pooled(run.statistics for run in measured)
    untold = any(run.target_seconds is None for run in measured)
    return Summary(
        lane=lane,
        strategy=strategy,
        category=category,
        runs=len(measured),
        failed=len(mine) - len(answered),
        tokens_per_second=Spread.of(run.tokens_per_second for run in measured),
        speedup=Speedup.of(ratios_of(baselines)),
        whole_speedup=mean_factor(
            (run.prompt_index, run.end_to_end_speedup) for run in baselines if run.end_to_end_speedup
        ),
        acceptance_rate=total.acceptance_rate,
        alpha=total.alpha,
        tau=total.tau,
        draft_share=total.draft_share,
        engine_overhead=total.engine_overhead,
        n_tokens=total.emitted,
        rounds=total.rounds,
        drafted=total.drafted,
        accepted=total.accepted,
        seconds=total.seconds,
        draft_seconds=None if untold else total.draft_seconds,
        target_seconds=None if untold else total.target_seconds,
        first_token_seconds=Spread.of(run.first_token_seconds for run in measured),
        prompt_seconds=Spread.of(run.prompt_seconds + run.draft_prompt_seconds for run in measured),
        compared=len(texts),
        identical=sum(bool(run.identical_to_baseline) for run in texts),
        near_ties=sum(bool(run.first_divergence and run.first_divergence.near_tie) for run in texts),
        tokens_per_pass=total.tokens_per_pass,
        draft_length=total.draft_length,
        acc_per_pos=total.acc_per_pos,
        acceptance_by_place=total.acceptance_by_place,
        judged_acceptance_by_place=total.judged_acceptance_by_place,
        accepted_per_round=tuple(total.accepted_per_round),
        lengths=tuple(total.lengths),
        strategies=strategy_shares(total),
        alternatives=AlternativeStatistics.pooled(run.alternatives for run in measured),
        joules=_joules(measured),
        energy_of=next((run.energy_of for run in measured if run.energy_of), ""),
        depth=depth,
        prompt_tokens=Spread.of(run.prompt_tokens for run in measured),
        failure=next((run.failure for run in mine if run.failure), ""),
        left_out=len(answered) - len(measured),
        **percentiles(
            (run.first_token_seconds for run in measured),
            ((run.n_tokens, run.arrival_gaps) for run in measured),
        ),
    )


def _joules(measured: Sequence[RunRecord]) -> float | None:
    """The energy of all runs; None where it is not known of each."""
    known = [run.joules for run in measured if run.joules is not None]
    return fsum(known) if known and len(known) == len(measured) else None


def ratios_of(runs: Iterable[RunRecord]) -> dict[int, dict[int, float]]:
    """The speed-ups of compared runs by repeat, then by prompt."""
    ratios: dict[int, dict[int, float]] = {}
    for run in runs:
        ratios.setdefault(run.repeat, {})[run.prompt_index] = run.speedup or 1.0
    return ratios
