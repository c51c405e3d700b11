"""An experiment's report: `bench --json` writes it, and every other export is made from it."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain

import msgspec

from app.engine.explain.llama_command import llama_command, of_the_hub, template_kwargs
from app.engine.strategy import StrategySpec
from app.engine.templates.options import TemplateOptions
from app.engine.types import ModelOptions, PairInfo, Sampling, ServerInfo
from app.lab.experiment import Experiment, Job, Pair, Prompt
from app.lab.facts import Digest, PairFacts, SystemFacts, no_digest, pair_facts, system_facts
from app.lab.lanes import lane_names
from app.lab.report.summary import Summary, UncomparedPrompt, left_out, summarise
from app.lab.runs.record import JsonFile, RunRecord
from app.servers.address import is_address

FORMAT = "1.0"


class ReportSettings(msgspec.Struct, frozen=True):
    """The settings of every run."""

    sampling: Sampling
    max_tokens: int
    repeats: int
    chat: bool
    stop: tuple[str, ...]
    ignore_eos: bool
    template_options: TemplateOptions = {}

    @classmethod
    def of(cls, experiment: Experiment) -> ReportSettings:
        return cls(**{name: getattr(experiment, name) for name in cls.__struct_fields__})


class ReportLane(msgspec.Struct, frozen=True):
    """A lane, and the nearest llama.cpp command."""

    name: str  # with its models, where the lanes have several
    strategy: str
    pair: int  # index in `pairs`
    baseline: int | None  # the lane it is compared with; None for a server that cannot but draft
    memory: int | None  # bytes
    command: str
    differences: tuple[str, ...]  # where llama.cpp differs
    sampling: Sampling | None = None  # None: that of the settings
    server: ServerInfo | None = None  # the server that answers, as it described itself


class Cell(msgspec.Struct, frozen=True):
    """One cell of a sweep."""

    x: str
    y: str
    lane: int | None  # None if the setting is not allowed
    refused: str = ""
    name: str = ""  # the strategy and the values of both axes, even defaults


class SweepFacts(msgspec.Struct, frozen=True):
    """A sweep's grid: the values of two parameters, and the lane of every cell."""

    x: str
    y: str
    x_values: tuple[str, ...]
    y_values: tuple[str, ...]
    cells: tuple[Cell, ...]
    baselines: int = 1  # one for each load and sampler setting

    def values_of(self, lanes: Collection[int]) -> tuple[str, str]:
        """The x and y values that cells on these lanes share; "" if they differ."""
        mine = [cell for cell in self.cells if cell.lane in lanes]
        shared = [{cell.x for cell in mine}, {cell.y for cell in mine}]
        x, y = (next(iter(values)) if len(values) == 1 else "" for values in shared)
        return x, y


class Report(JsonFile, frozen=True):
    """An experiment's measurements. Every other number can be recomputed from `runs`."""

    format: str
    title: str
    created_at: str  # ISO 8601, UTC
    complete: bool  # False if it was cancelled
    system: SystemFacts
    pair: PairFacts | None  # the experiment's own pair; None if nothing was loaded
    pairs: tuple[PairFacts, ...]
    settings: ReportSettings
    lanes: tuple[ReportLane, ...]
    prompts: tuple[Prompt, ...]
    runs: tuple[RunRecord, ...]
    summary: tuple[Summary, ...]  # one for each lane, in order
    by_category: tuple[Summary, ...]  # one for each category and lane
    sweep: SweepFacts | None = None
    by_depth: tuple[Summary, ...] = ()  # one for each depth and lane
    resumed: int = 0  # how often the measurement was resumed from its journal
    left_out: tuple[UncomparedPrompt, ...] = ()
    """What the summaries over all prompts leave out, so that they compare the same prompts. Summaries of a
    category or depth leave out what lanes failed to answer there."""

    @property
    def baselines(self) -> int:
        """The number of baselines: one for each target; in a sweep, one for each load and sampler setting."""
        return len({lane.baseline for lane in self.lanes if lane.baseline is not None})

    def temperature_of(self, lane: int) -> float:
        return (self.lanes[lane].sampling or self.settings.sampling).temperature

    @property
    def threads(self) -> str:
        """The threads in use; several numbers if pairs differ."""
        used = dict.fromkeys(str(pair.target.threads) for pair in self.pairs)
        return ", ".join(used) or str(self.system.threads)

    @property
    def categories(self) -> tuple[str, ...]:
        return categories_of([prompt.category for prompt in self.prompts])


def now() -> str:
    """The current time, ISO 8601, UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def categories_of(names: Sequence[str | None]) -> tuple[str, ...]:
    """The distinct names, in order of appearance."""
    return tuple(dict.fromkeys(name for name in names if name))


def summaries(
    strategies: Sequence[str], runs: Sequence[RunRecord], categories: Sequence[str]
) -> tuple[tuple[Summary, ...], tuple[Summary, ...]]:
    """(a summary for each lane, a summary for each category and lane)"""
    parts = (_lanes(strategies, runs, category=name) for name in categories)
    return tuple(_lanes(strategies, runs)), tuple(chain.from_iterable(parts))


def _lanes(
    strategies: Sequence[str],
    runs: Sequence[RunRecord],
    category: str | None = None,
    depth: int | None = None,
) -> Iterator[Summary]:
    """A summary for each lane, over what every lane answered of `runs`, or of one category or depth."""
    meant = [run for run in runs if category in (None, run.category) and depth in (None, run.depth)]
    without = left_out(meant)
    for lane, strategy in enumerate(strategies):
        yield summarise(lane, strategy, [run for run in meant if run.lane == lane], category, depth, without)


def depths_of(prompts: Sequence[Prompt]) -> tuple[int, ...]:
    """The distinct depths, the smallest first."""
    return tuple(sorted({prompt.depth for prompt in prompts if prompt.depth is not None}))


def make_report(
    experiment: Experiment,
    records: Mapping[Job, RunRecord],
    pairs: Mapping[int, PairInfo],
    digest: Digest = no_digest,
    sweep: SweepFacts | None = None,
    passes: Mapping[Pair, Sequence[dict[int, float]]] | None = None,
) -> Report:
    """The report of the runs so far. `records` include their comparisons; `pairs` are by lane; `passes` as in
    `PairFacts`."""
    known: dict[Pair, PairFacts] = {}
    digest = cache(digest)  # a file that several pairs share is read once
    for lane, info in sorted(pairs.items()):
        pair = experiment.pair_of(lane)
        if pair not in known:
            known[pair] = pair_facts(info, digest, (passes or {}).get(pair, ()))
    indices = {pair: index for index, pair in enumerate(known)}
    runs = tuple(records[job] for job in experiment.jobs() if job in records)
    strategies = [lane.strategy for lane in experiment.lanes]
    categories = categories_of([prompt.category for prompt in experiment.prompts])
    whole, parts = summaries(strategies, runs, categories)
    by_depth = (_lanes(strategies, runs, depth=depth) for depth in depths_of(experiment.prompts))
    return Report(
        format=FORMAT,
        title=experiment.title,
        created_at=now(),
        complete=len(runs) == len(experiment.jobs()),
        system=system_facts(next(iter(pairs.values()), None)),
        pair=known.get(experiment.pair),
        pairs=tuple(known.values()),
        settings=ReportSettings.of(experiment),
        lanes=tuple(
            _lane(experiment, lane, name, known, indices, pairs.get(lane))
            for lane, name in enumerate(lane_names(experiment))
        ),
        prompts=experiment.prompts,
        runs=runs,
        summary=whole,
        by_category=parts,
        sweep=sweep,
        by_depth=tuple(chain.from_iterable(by_depth)),
        resumed=max((run.resumed for run in runs), default=0),
        left_out=left_out(runs),
    )


def _lane(
    experiment: Experiment,
    lane: int,
    name: str,
    known: Mapping[Pair, PairFacts],
    indices: Mapping[Pair, int],
    info: PairInfo | None,
) -> ReportLane:
    pair, described = experiment.pair_of(lane), experiment.lanes[lane]
    shown = ReportLane(
        name=name,
        strategy=described.strategy,
        pair=indices.get(pair, -1),
        baseline=experiment.baseline_of(lane),
        memory=None,
        command="",
        differences=(),
    )
    if is_address(pair.target.path):
        return msgspec.structs.replace(shown, server=info.server if info is not None else None)
    spec, facts = StrategySpec.parse(described.strategy), known.get(pair)
    thinking = info.thinking if info else None
    command = llama_command(
        spec,
        _without_folder(pair.target),
        pair.draft and _without_folder(pair.draft),
        experiment.sampling_of(lane),
        experiment.max_tokens,
        facts.target.n_ctx if facts else 0,
        template_kwargs(experiment.template_options, thinking) if experiment.chat else {},
        info.draft.architecture if info and info.draft else "",
    )
    return msgspec.structs.replace(
        shown,
        memory=facts.memory(spec.needs_draft) if facts else None,
        command=command.text,
        differences=command.differences,
        sampling=described.sampling,
    )


def _without_folder(options: ModelOptions) -> ModelOptions:
    """The options without the file's folder, because other people read a report. A model of the Hub keeps its
    name there."""
    if of_the_hub(options.path):
        return options
    return replace(options, path=options.path.replace("\\", "/").rsplit("/", 1)[-1])
