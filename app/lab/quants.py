"""Compares quantisations: one model in several files, each without drafts and with a strategy."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from app.base import numbers
from app.engine.errors import SettingError
from app.engine.process.messages import Forced, ForcedText
from app.engine.strategy import NONE, StrategySpec, drafting_with
from app.lab.experiment import Experiment, Lane, Pair, make_experiment
from app.lab.facts import FileFacts
from app.lab.report.report import Report
from app.lab.report.summary import SpeedFinding, Speedup, Spread, Summary, middle, speedup_words
from app.lab.runs.compare import is_measured
from app.lab.runs.disturbance import disturbances
from app.lab.runs.events import LabEvent
from app.lab.runs.runner import MakeHome, Runner

WITH_DRAFT, ALONE = "draft-simple:length=auto", "prompt-lookup:length=auto"
"""The default strategies, which stop drafting if it does not pay."""


def usual_strategy(draft: str | None) -> str:
    """The default strategy with a draft model or head of this architecture; None: without one."""
    return ALONE if draft is None else drafting_with(WITH_DRAFT, draft)


def quant_lanes(pair: Pair, files: Sequence[tuple[str, str]], strategy: str) -> tuple[Lane, ...]:
    """A lane for each (kind, path), on the pair with this file as its target. Raises SettingError for a
    strategy that does not draft."""
    if not StrategySpec.parse(strategy).parts:
        raise SettingError(f"{strategy} does not draft.", "Choose a different strategy.")
    return tuple(
        Lane(strategy, f"{kind} {strategy}", Pair(replace(pair.target, path=path), pair.draft))
        for kind, path in files
    )


def quants_experiment(base: Experiment, files: Sequence[tuple[str, str]], strategy: str) -> Experiment:
    """`base`, which has no lanes, with two for each (kind, path): none and the strategy. Raises
    SettingError."""
    drafting = quant_lanes(base.pair, files, strategy)
    lanes = [
        lane
        for (kind, _path), drafts in zip(files, drafting, strict=True)
        for lane in (Lane(NONE, f"{kind} {NONE}", drafts.pair), drafts)
    ]
    own = msgspec.structs.replace(base, pair=drafting[0].pair or base.pair)
    return make_experiment(own.with_lanes(lanes), most_lanes=len(lanes))


class PassRunner(Runner):
    """A Runner that also times passes over several tokens after each load. Targets take turns, so the timed
    passes do too."""

    def __init__(self, experiment: Experiment, make_home: MakeHome) -> None:
        super().__init__(experiment, make_home)
        self.passes: dict[Pair, list[dict[int, float]]] = {}
        """By pair, then load: seconds by the number of tokens."""

    def _load(self, pair: Pair) -> Iterator[LabEvent]:
        yield from super()._load(pair)
        prompt = ForcedText(self.experiment.request(0, NONE), ())
        for event in self._engine.force((prompt,)):
            if isinstance(event, Forced):
                self.passes.setdefault(pair, []).append(event.seconds.target)


DRAFTS = (1, 2, 3, 4, 8, 16)
"""The lengths k whose v(k) the table shows."""


@dataclass(frozen=True, slots=True)
class QuantRow:
    """One quantisation: its file, without drafts, and with its fastest strategy."""

    name: str
    file: FileFacts
    plain: Summary
    drafting: Summary
    passes: tuple[dict[int, float], ...]

    def v(self, k: int) -> Spread | None:
        """The time of a pass over k + 1 tokens / over one, over all loads."""
        return Spread.of(each[k + 1] / each[1] for each in self.passes if k + 1 in each)


def quant_rows(report: Report) -> tuple[QuantRow, ...]:
    """The rows of a report on one model in several quantisations, each with and without drafts; none for
    other reports."""
    if report.sweep is not None or report.by_depth:
        return ()
    measured = [summary for summary in report.summary if summary.tokens_per_second is not None]
    by_base: defaultdict[int, list[Summary]] = defaultdict(list)
    for summary in measured:
        lane = report.lanes[summary.lane]
        if lane.pair >= 0 and lane.baseline is not None:
            by_base[lane.baseline].append(summary)
    rows = []
    for base, summaries in by_base.items():
        plain = next((summary for summary in summaries if summary.lane == base), None)
        drafting = [summary for summary in summaries if summary.strategy != NONE]
        if plain is not None and drafting:
            pair = report.pairs[report.lanes[base].pair]
            best = max(drafting, key=lambda summary: middle(summary.tokens_per_second) or 0.0)
            rows.append(QuantRow(_kind(pair.target), pair.target, plain, best, pair.passes))
    models = {(row.file.architecture, row.file.n_params) for row in rows}
    kinds = {row.name for row in rows}
    return tuple(rows) if len(models) == 1 < len(rows) == len(kinds) else ()


def quants_verdict(report: Report, rows: Sequence[QuantRow]) -> str:
    """Which quantisation is the fastest with drafts, and its size, as far as the intervals show it."""
    best = max(rows, key=lambda row: middle(row.drafting.tokens_per_second) or 0.0)
    against = {row.name: _ratio(report, best.drafting, row.drafting) for row in rows if row is not best}
    open_ = [name for name, ratio in against.items() if ratio.finding is not SpeedFinding.FASTER]
    if open_:
        return (
            f"With drafts, {best.name} had the most tokens/s, {_speed(best.drafting)}, but is not shown to "
            f"be faster than {numbers.listed(open_)}."
        )
    if disturbances(report):  # files are loaded one after the other: what changes meanwhile looks like a gain
        return (
            f"With drafts, {best.name} had the most tokens/s, {_speed(best.drafting)}. The machine was not "
            "steady, so the others may be as fast."
        )
    next_, ratio = min(against.items(), key=lambda each: each[1].factor)
    text = (
        f"{best.name} is the fastest with drafts: {_speed(best.drafting)} tokens/s, {speedup_words(ratio)} "
        f"the speed of {next_}. Its file has {numbers.file_size(best.file.size)}, {_share(best, rows)}."
    )
    plain = max(rows, key=lambda row: middle(row.plain.tokens_per_second) or 0.0)
    if _ratio(report, plain.plain, best.drafting).finding is SpeedFinding.FASTER:
        text += f" {plain.name} without drafts is faster still: {_speed(plain.plain)} tokens/s."
    return text


def _ratio(report: Report, ours: Summary, theirs: Summary) -> Speedup:
    """The ratio of two lanes' speeds, over the prompts and repeats that both answered."""
    speeds: dict[int, dict[tuple[int, int], float]] = {ours.lane: {}, theirs.lane: {}}
    for run in report.runs:
        if run.lane in speeds and is_measured(run) and run.tokens_per_second:
            speeds[run.lane][run.repeat, run.prompt_index] = run.tokens_per_second
    ratios: defaultdict[int, dict[int, float]] = defaultdict(dict)
    for place, speed in speeds[ours.lane].items():
        if place in speeds[theirs.lane]:
            ratios[place[0]][place[1]] = speed / speeds[theirs.lane][place]
    return Speedup.of(ratios) or Speedup(1.0)


def _speed(summary: Summary) -> str:
    return numbers.digits(middle(summary.tokens_per_second))


def _share(best: QuantRow, rows: Sequence[QuantRow]) -> str:
    """A file's size beside the smallest."""
    smallest = min(rows, key=lambda row: row.file.size)
    if smallest is best:
        return "the smallest of these"
    return f"{numbers.factor(best.file.size / smallest.file.size)} the smallest, {smallest.name}"


def _kind(file: FileFacts) -> str:
    """llama.cpp's "Q4_K - Medium" in file names' spelling: "Q4_K_M"."""
    words = file.quantisation.removeprefix("all ")
    return re.sub(r" - ([SML])[a-z]+$", r"_\1", words).split(" - ")[0] or file.file
