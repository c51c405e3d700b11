"""Changes between two reports: how much faster each lane became; and a history of results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from app.base import numbers
from app.base.numbers import listed
from app.engine.errors import UserError
from app.engine.strategy import is_synthetic
from app.lab.experiment import Prompt
from app.lab.facts import FileFacts, SystemFacts
from app.lab.report.charts import factor_rows, finding_class, shortened
from app.lab.report.page import HtmlCell, page
from app.lab.report.report import Report, ReportSettings
from app.lab.report.summary import SpeedFinding, Speedup, Summary, middle, speedup_words, summarise
from app.lab.runs.compare import is_measured
from app.lab.runs.disturbance import disturbances
from app.lab.runs.record import RunRecord

RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class Change(Generic[RowT]):
    """A row in both reports, over the answers in both."""

    name: str
    before: RowT
    after: RowT
    speed: Speedup | None  # tokens/s after / before
    gain: Speedup | None = None  # speed-up over the baseline, after / before; None for a baseline
    compared: int = 0  # pairs of runs of the same prompt and repeat
    same_tokens: int = 0  # of these, pairs of equal answers


@dataclass(frozen=True, slots=True)
class ReportChange(Generic[RowT]):
    """What changed from one report to another."""

    lanes: tuple[Change[RowT], ...]
    prompts: int  # in both
    only_before: tuple[str, ...]  # names of lanes
    only_after: tuple[str, ...]
    differences: tuple[str, ...]
    """Differences besides the measurements: programs, machine, files, settings. One line each."""
    doubts: tuple[str, ...] = ()  # what disturbed either measurement

    @property
    def verdict(self) -> str:
        """Which lanes became faster or slower, claiming no more than the intervals show."""
        found: dict[SpeedFinding, list[str]] = {finding: [] for finding in SpeedFinding}
        for lane in self.lanes:
            if lane.speed is not None:
                found[lane.speed.finding].append(f"{lane.name} ({speedup_words(lane.speed)})")
        parts = [f"{finding.capitalize()}: {listed(names)}." for finding, names in found.items() if names]
        return " ".join(parts) or "Nothing was measured in both."


def change_between(before: Report, after: Report) -> ReportChange[Summary]:
    """Compare lanes of the same name over the prompts that both reports have.

    Runs of the same prompt and repeat are paired. (The measurements are independent, so any pairing of
    repeats will do.) Raises UserError if the reports share no lane or no prompt.
    """
    theirs = {lane.name: index for index, lane in enumerate(after.lanes)}
    prompts = _shared_prompts(before.prompts, after.prompts)
    if not prompts:
        raise UserError(
            "The two files have no prompt in common.", "Measure the same prompts with both, then compare."
        )
    pairs = [(index, theirs[lane.name]) for index, lane in enumerate(before.lanes) if lane.name in theirs]
    if not pairs:
        raise UserError(
            "The two files have no lane in common.", "Measure the same strategies with both, then compare."
        )
    mine = _runs(before, {old: old for old in prompts})
    others = _runs(after, {new: old for old, new in prompts.items()})
    ours = {lane.name for lane in before.lanes}
    facts, settings = differences_between(
        (before.system, after.system),
        (before.settings, after.settings),
        seeded=_seeded(before) or _seeded(after),
    )
    return ReportChange(
        lanes=tuple(_lane(before, after, old, new, mine, others) for old, new in pairs),
        prompts=len(prompts),
        only_before=tuple(lane.name for lane in before.lanes if lane.name not in theirs),
        only_after=tuple(name for name in theirs if name not in ours),
        differences=(*facts, *_of_files(before, after), *settings),
        doubts=tuple(
            f"{which}: {text}"
            for which, report in (("Before", before), ("After", after))
            for text in disturbances(report)
        ),
    )


Runs = Mapping[tuple[int, int, int], RunRecord]
"""Measured runs by lane, repeat and the prompt's index in the first report."""


def _runs(report: Report, prompts: Mapping[int, int]) -> Runs:
    """The runs of `prompts`, which maps a report's own index to the first report's."""
    return {
        (run.lane, run.repeat, prompts[run.prompt_index]): run
        for run in report.runs
        if run.prompt_index in prompts and is_measured(run)
    }


def _shared_prompts(before: Sequence[Prompt], after: Sequence[Prompt]) -> dict[int, int]:
    """Index in `before` -> index in `after`, for prompts with the same text after the same turns. Repeated
    texts are matched in order."""

    def text_of(prompt: Prompt) -> tuple[object, ...]:
        return prompt.prompt, prompt.suffix, prompt.before

    places: dict[tuple[object, ...], list[int]] = {}
    for index, prompt in enumerate(after):
        places.setdefault(text_of(prompt), []).append(index)
    shared = {}
    for index, prompt in enumerate(before):
        if left := places.get(text_of(prompt)):
            shared[index] = left.pop(0)
    return shared


def _lane(before: Report, after: Report, old: int, new: int, mine: Runs, others: Runs) -> Change[Summary]:
    speeds: dict[int, dict[int, float]] = {}
    gains: dict[int, dict[int, float]] = {}
    paired: list[tuple[RunRecord, RunRecord]] = []
    for (lane, repeat, prompt), run in mine.items():
        other = others.get((new, repeat, prompt)) if lane == old else None
        if other is None:
            continue
        assert run.tokens_per_second is not None and other.tokens_per_second is not None
        paired.append((run, other))
        speeds.setdefault(repeat, {})[prompt] = other.tokens_per_second / run.tokens_per_second
        if old != before.lanes[old].baseline and run.speedup and other.speedup:
            gains.setdefault(repeat, {})[prompt] = other.speedup / run.speedup
    return Change(
        before.lanes[old].name,
        summarise(old, before.lanes[old].strategy, [run for run, _ in paired]),
        summarise(new, after.lanes[new].strategy, [other for _, other in paired]),
        Speedup.of(speeds),
        Speedup.of(gains),
        len(paired),
        sum(run.token_ids == other.token_ids for run, other in paired),
    )


def differences_between(
    systems: tuple[SystemFacts, SystemFacts], settings: tuple[ReportSettings, ReportSettings], *, seeded: bool
) -> tuple[list[str], list[str]]:
    """A line for each differing fact of the machines and each differing setting. If nothing is drawn (not
    `seeded`), the seed does not count."""
    first, second = (_settings(each) for each in settings)
    if not seeded:
        del first["seed"], second["seed"]
    return _unequal(*map(_facts, systems)), _unequal(first, second)


def _unequal(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    return [f"{name}: {old[name]} before, {new[name]} after" for name in old if old[name] != new[name]]


def _seeded(report: Report) -> bool:
    """Whether an answer depends on the seed."""
    return any(
        report.temperature_of(lane) > 0 or is_synthetic(described.strategy)
        for lane, described in enumerate(report.lanes)
    )


def _facts(system: SystemFacts) -> dict[str, object]:
    return {
        "Draftscope": system.app,
        "llama-cpp-python": system.llama_cpp_python,
        "processor": system.cpu,
        "cores": system.cores,
        "devices": system.devices,
        "threads": system.threads,
        "system": system.system,
    }


def _settings(settings: ReportSettings) -> dict[str, object]:
    """All settings of the runs by name, including sampling, in the order of the forms."""
    named: dict[str, object] = msgspec.to_builtins(settings)
    sampling = named.pop("sampling")
    assert isinstance(sampling, dict)
    return named | sampling


def _of_files(before: Report, after: Report) -> Iterator[str]:
    for old_pair, new_pair in zip(before.pairs, after.pairs, strict=False):
        for role in ("target", "draft"):
            files = getattr(old_pair, role), getattr(new_pair, role)
            if (differ := _files(*files)) is not None:
                yield f"{role}: {differ}"


def _files(old: FileFacts | None, new: FileFacts | None) -> str | None:
    """How two files differ, in words; None if they are the same."""
    if old is None or new is None:
        if old is new:
            return None
        return f"{old.file if old else 'none'} before, {new.file if new else 'none'} after"
    if old.file != new.file:
        return f"{old.file} before, {new.file} after"
    if old.size != new.size or (old.sha256 and new.sha256 and old.sha256 != new.sha256):
        return f"{old.file}: after, a different file of the same name"
    return None


HEAD = ("measured (UTC)", "Draftscope", "machine", "tokens/s", "speed-up (95 %)")


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A lane of one result."""

    lane: str
    created_at: str  # ISO 8601, UTC
    version: str
    machine: str
    tokens_per_second: float | None  # median
    speed: Speedup | None  # over the baseline of the same result
    doubtful: bool  # something disturbed the measurement

    @property
    def cells(self) -> tuple[str, ...]:
        """The row under HEAD, after the lane, as words."""
        when = self.created_at[:16].replace("T", " ")
        speeds = numbers.digits(self.tokens_per_second), speedup_words(self.speed)
        return when, self.version, self.machine, *speeds, "disturbed" if self.doubtful else ""


@dataclass(frozen=True, slots=True)
class History:
    """The lanes that answered the same prompts with the same target, from the earliest result."""

    title: str
    rows: tuple[HistoryRow, ...]

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the greatest factor, with 1 and the intervals between them."""
        known = [row.speed for row in self.rows if row.speed is not None]
        ends = [end for speed in known for end in (speed.factor, speed.low, speed.high) if end is not None]
        return min([1.0, *ends]), max([1.0, *ends])


def histories(reports: Iterable[Report]) -> list[History]:
    """The histories of results in any order; only results of the same target and prompts share one."""
    found: dict[tuple[object, ...], list[HistoryRow]] = {}
    for report in reports:
        target = report.pair.target.file if report.pair else "a server"
        title = f"{target} · {report.title or numbers.count(len(report.prompts), 'prompt')}"
        rows = found.setdefault((title, report.prompts, report.settings.max_tokens), [])
        rows += _rows(report)
    return [
        History(str(title), tuple(sorted(rows, key=lambda row: (row.lane, row.created_at))))
        for (title, *_), rows in sorted(found.items(), key=lambda item: str(item[0][0]))
    ]


def _rows(report: Report) -> Iterable[HistoryRow]:
    """A row for each measured lane; a baseline has one only if it is alone."""
    system, doubtful = report.system, bool(disturbances(report))
    baselines = {lane.baseline for lane in report.lanes}
    for summary in report.summary:
        if summary.tokens_per_second is None or (len(report.lanes) > 1 and summary.lane in baselines):
            continue
        yield HistoryRow(
            lane=report.lanes[summary.lane].name,
            created_at=report.created_at,
            version=f"{system.app}, llama-cpp-python {system.llama_cpp_python}",
            machine=f"{system.cpu}, {numbers.count(system.cores, 'core')}"
            + (f"; {system.devices}" if system.devices not in ("", "CPU") else ""),
            tokens_per_second=middle(summary.tokens_per_second),
            speed=summary.speedup if len(report.lanes) > 1 else None,
            doubtful=doubtful,
        )


def history_html(histories: Sequence[History]) -> str:
    """The histories as an HTML document: a plot and a table each."""
    return page(
        "history.html",
        "History of measurements",
        msgspec.json.encode(histories),
        histories=[(history.title, _chart(history), _table(history)) for history in histories],
        head=("lane", *HEAD, ""),
    )


def _chart(history: History) -> str:
    """A dot for each result's speed-up, with its interval, below the lane's earlier ones; "" if there are
    none."""
    rows = [
        (f"{shortened(row.lane, 30)}  {row.created_at[:10]}", row.speed, ())
        for row in history.rows
        if row.speed
    ]
    return factor_rows(rows, *history.reach, f"Speed-up over time: {history.title}") if rows else ""


def _table(history: History) -> list[list[HtmlCell]]:
    rows: list[list[HtmlCell]] = [[row.lane, *row.cells] for row in history.rows]
    for cells, row in zip(rows, history.rows, strict=True):
        cells[-2] = finding_class(row.speed), row.cells[-2]
    return rows
