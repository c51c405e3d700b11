"""Running a measurement on the terminal: progress on standard error, files at the end."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from app.base import numbers
from app.base.files import read_file
from app.cli.advise import advice_text
from app.cli.answer.options import without_gpu
from app.cli.answer.recorder import cannot_write, is_special, write_file
from app.cli.answer.template_options import unread
from app.cli.measure.options import Outputs
from app.cli.terminal.console import definitions, put, say, say_over, table
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt
from app.engine.drafters.guarded import fault_words
from app.engine.errors import UserError
from app.engine.explain.facts import Factor, Tried
from app.engine.record.stats import strategy_names
from app.engine.record.trace import Trace
from app.engine.templates.options import TemplateOptions
from app.lab.depths import DEFINITION, HEAD, depth_rows, depths_left_out
from app.lab.experiment import Experiment
from app.lab.facts import sha256
from app.lab.files import WRITERS, AnyReport
from app.lab.lanes import lane_names
from app.lab.quants import PassRunner
from app.lab.report import columns as tables
from app.lab.report.export import lane_files
from app.lab.report.report import Report, SweepFacts, make_report
from app.lab.report.verdict import verdict
from app.lab.runs.compare import TraceStore
from app.lab.runs.disturbance import disturbances
from app.lab.runs.events import Begun, EngineReplaced, LabEvent, PairLoaded, RunDone, RunStarted, WarmedUp
from app.lab.runs.runner import Runner

_SHOWN = (
    "tokens_per_second", "speedup", "whole_speedup", "acceptance_rate", "alpha", "tau", "draft_share",
    "joules_per_token", "equal",
)  # fmt: skip
_ADVISED = 30  # answers of a lane
_LATENCY = ("first_token_seconds", "inter_token")
_SHAPE = (
    "acc_per_pos", "acceptance_by_place", "judged_acceptance_by_place", "accepted_per_round", "strategies",
)  # fmt: skip


class ProgressLine:
    """Progress on standard error: a line for every run; on a terminal, a line that is overwritten."""

    def __init__(self, *, counted: bool = True) -> None:
        """`counted`: whether the number of runs is known."""
        self._counted = counted
        self._live = sys.stderr.isatty()
        self._experiment: Experiment | None = None
        self._names: tuple[str, ...] = ()
        self._asked: TemplateOptions = {}
        self._told: set[str] = set()
        self._ends: dict[str, Counter[str]] = {}  # of drafts, by the names of strategies
        self._rounds: Counter[str] = Counter()
        self._answers: Counter[str] = Counter()

    def show(self, event: LabEvent) -> None:
        """Report an event. Raises PromptError if thinking cannot be switched off."""
        if isinstance(event, Begun):
            self._names = lane_names(event.experiment)
            self._experiment = event.experiment
            self._asked = event.experiment.template_options
            experiment = event.experiment
            lanes = numbers.count(len(experiment.lanes), "lane")
            prompts = numbers.count(len(experiment.prompts), "prompt")
            repeats = numbers.count(experiment.repeats, "repeat")
            most = numbers.count(experiment.max_tokens, "token")
            if self._counted:
                total = numbers.count(event.total, "answer")
                say(f"{lanes} × {prompts} × {repeats}: {total} of up to {most}.")
            if event.done:
                say(f"Resumed: {event.done} of {numbers.count(event.total, 'run')} are done.")
        elif isinstance(event, PairLoaded):
            draft = f" with {event.pair.draft.file}" if event.pair.draft else ""
            server = event.pair.server
            self._line(
                f"{server.kind} at {server.address} is ready."
                if server is not None
                else f"Loaded {event.pair.target.file}{draft}."
            )
            asked = self._experiment.pair_of(event.lanes[0]) if self._experiment is not None else None
            if asked is not None and (told := without_gpu(asked.target, event.pair)):
                self._line(told)
        elif isinstance(event, WarmedUp) and self._counted:
            self._line(f"That takes at most about {numbers.duration(max(1.0, event.most_seconds))}.")
        elif isinstance(event, EngineReplaced):
            self._line(f"{event.message} A new engine continues.")
        elif isinstance(event, RunStarted):
            self._run_started(event)
        elif isinstance(event, RunDone):
            self._run_done(event)

    def end(self) -> None:
        """Clear the line that is overwritten."""
        if self._live:
            say_over("")

    def faults(self) -> list[str]:
        """A sentence on each drafter's faults."""
        told = (
            fault_words(name, ends, self._rounds[name], self._answers[name])
            for name, ends in self._ends.items()
        )
        return list(filter(None, told))

    def _run_started(self, event: RunStarted) -> None:
        told = unread(self._asked, event.header)
        if told and told not in self._told:
            self._told.add(told)
            self._line(told)
        if self._live:
            say_over(f"{self._name(event.job.lane)} …")

    def _run_done(self, event: RunDone) -> None:
        if event.trace is not None:
            for name in strategy_names(event.trace.header.strategy):
                ends = self._ends.setdefault(name, Counter())
                ends.update(round.draft_end for round in event.trace.rounds)
                self._rounds[name] += len(event.trace.rounds)
                self._answers[name] += 1
        left = f", {numbers.duration(event.seconds_left)} left" if event.seconds_left is not None else ""
        speed = numbers.digits(event.record.tokens_per_second, "tokens/s")
        failure = event.record.failure
        text = f"{self._name(event.job.lane)}: {failure or speed}"
        if self._counted:
            text = f"{event.done}/{event.total}  {text}{left}"
        if failure or not self._live:
            self._line(text)
        else:
            say_over(text)

    def _name(self, lane: int) -> str:
        return self._names[lane] if self._names else ""

    def _line(self, text: str) -> None:
        if self._live:
            say_over("")
        say(text)


def measure(
    runner: Runner,
    interrupt: Interrupt,
    outputs: Outputs,
    lines: Callable[[Report], Iterable[str]],
    sweep: SweepFacts | None = None,
) -> int:
    """Measure to the end or until Ctrl+C, print `lines` of the report, and write the requested files. After
    an error they contain the runs before it. Returns the exit code. Raises UserError if nothing was measured,
    a file cannot be written, or a run failed."""
    problems: list[UserError] = []
    progress = ProgressLine()
    interrupt.stops(runner.control.cancel)
    try:
        try:
            for event in runner.run():
                progress.show(event)
        except UserError as error:
            if not runner.records:
                raise
            problems.append(error)
        finally:
            progress.end()
        digest = partial(sha256, stopped=lambda: interrupt.pressed)
        passes = runner.passes if isinstance(runner, PassRunner) else None
        report = make_report(runner.experiment, runner.records, runner.pairs, digest, sweep, passes)
        others = {"export": partial(_write_lanes, report), "traces": partial(_write_traces, runner.traces)}
        problems += [*write_report(outputs, report), *_written(outputs, others)]
        shown = list(lines(report))
    finally:
        runner.close()
    put(shown)
    for fault in progress.faults():
        say(fault)
    if problems:
        raise UserError(" ".join(map(str, problems)))
    if interrupt.pressed:
        return INTERRUPTED
    _check_runs(report)
    return 0


def _check_runs(report: Report) -> None:
    """Raise UserError if a run failed."""
    failed = [run for run in report.runs if run.failure]
    if not failed:
        return
    compared = [summary for summary in report.summary if summary.lane != report.lanes[summary.lane].baseline]
    text = f"{len(failed):,} of {numbers.count(len(report.runs), 'run')} failed."
    if not any(summary.runs + summary.left_out for summary in compared or report.summary):
        but = " but the baseline" if any(summary.runs for summary in report.summary) else ""
        text = f"Nothing{but} could be measured."
    raise UserError(text, failed[0].failure)


def write_report(outputs: Outputs, report: AnyReport) -> list[UserError]:
    """Write a report's files; returns the errors of those that cannot be written."""

    def writer(make: Callable[[Any], bytes]) -> Callable[[Path], None]:
        return lambda path: write_file(path, make(report))

    names = {".md": "markdown"}
    writers = {names.get(end, end[1:]): writer(make) for end, make in WRITERS[type(report)].items()}
    return _written(outputs, writers)


def _written(outputs: Outputs, writers: Mapping[str, Callable[[Path], None]]) -> list[UserError]:
    problems = []
    for name, write in writers.items():
        if name in outputs:
            try:
                write(outputs[name])
            except UserError as error:  # the others are written
                problems.append(error)
    return problems


def _write_lanes(report: Report, folder: Path) -> None:
    """Write each lane's files for other tools."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    for name, content in lane_files(report).items():
        write_file(folder / name, content)


def _write_traces(traces: TraceStore, path: Path) -> None:
    try:
        if is_special(path):  # writing an archive needs a file that can seek
            with TemporaryDirectory() as folder:
                whole = Path(folder, "traces.zip")
                traces.archive(whole)
                write_file(path, read_file(whole))
        else:
            traces.archive(path.resolve())  # a link stays
    except OSError as error:
        raise cannot_write(path, error) from error


def summary_lines(report: Report) -> list[str]:
    """The tables for the terminal: lanes, drafts, categories; then the meaning of the columns."""
    rows = tables.lane_rows(report)
    drafting = [row for row in rows if row[0].lengths]
    main = [column for column in tables.COLUMNS if column.key in _SHOWN]
    main = tables.filled_columns(main, rows) if len(rows) > 1 else main
    shape = tables.filled_columns([column for column in tables.SHAPE if column.key in _SHAPE], drafting)
    latency = [column for column in tables.COLUMNS if column.key in _LATENCY]
    lines = [*_lane_table(main, rows), "", *_lane_table(latency, rows)]
    if drafting:
        lines += ["", *_lane_table(shape, drafting)]
    if len(report.categories) > 1:
        lines += [
            "",
            *table(["strategy", *report.categories], tables.category_cells(report)),
            tables.CATEGORIES,
        ]
    return [*lines, "", *definitions((*main, *latency, *shape))]


def _lane_table(columns: Sequence[tables.Column[tables.Row]], rows: Sequence[tables.Row]) -> list[str]:
    return table(["strategy", *(column.title for column in columns)], tables.lane_cells(columns, rows))


def depth_lines(report: Report) -> list[str]:
    """The table of the depths, and the depths left out; no lines without depths."""
    if not report.by_depth:
        return []
    rows = ["", *table(list(HEAD), list(depth_rows(report))), *depths_left_out(report)]
    return [*rows, DEFINITION]


def advice_lines(report: Report, runner: Runner) -> list[str]:
    """The window's advice on each lane that drafts, from its newest answers."""
    traces: dict[int, list[Trace]] = {}
    for job in reversed(runner.records):
        mine = traces.setdefault(job.lane, [])
        if len(mine) < _ADVISED and (trace := runner.traces.readable(job)) is not None and trace.rounds:
            mine.append(trace)
    lines, measured = [], dict[int, Factor]()
    for summary in report.summary:
        if (found := summary.speedup) is not None:
            low, high = found.low or found.factor, found.high or found.factor
            measured[summary.lane] = Factor(found.factor, low, high)
    for summary, lane in zip(report.summary, report.lanes, strict=True):
        mine, base = traces.get(summary.lane, []), lane.baseline
        pair = runner.experiment.pair_of(summary.lane)
        if mine and base not in (None, summary.lane):
            tried = {
                report.lanes[other].strategy: Tried(factor, traces[other][0].rounds)
                for other, factor in measured.items()
                if other != summary.lane and traces.get(other) and runner.experiment.pair_of(other) == pair
            }
            plain, own = traces.get(base or 0, ()), measured.get(summary.lane)
            text = advice_text(mine, pair.target, pair.draft, plain, own, tried)
            lines += [f"{lane.name}: {text}"] if text else []
    return lines


def outcome_lines(report: Report) -> list[str]:
    """The verdict, disturbances and failures, in lines."""
    lines = [verdict(report), *disturbances(report)]
    failed = sum(summary.failed for summary in report.summary)
    if failed:
        told = {(row.lane, row.depth) for row in report.by_depth if not row.runs}  # with the depths
        others = [run for run in report.runs if run.failure and (run.lane, run.depth) not in told]
        lines.append(f"{numbers.count(failed, 'run')} failed{':' if others else '.'}")
        lines += dict.fromkeys(f"  {report.lanes[run.lane].name}: {run.failure}" for run in others)
    if not report.complete:
        lines.append("Interrupted: only the runs that were done are counted.")
    return lines
