"""`draftscope bench` and `draftscope sweep`: measure strategies side by side, or one over a grid."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.base import numbers
from app.base.paths import find_paths
from app.cli.answer.strategies import asked_strategies, know_drafters, strategy_help
from app.cli.measure import measuring, options
from app.cli.servers import add_server_options, described, keys
from app.cli.terminal.arguments import Parser, UsageError, add_options, typed
from app.cli.terminal.console import definitions, put, say, say_over, table
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.engine.errors import UserError
from app.engine.process.host import make_home
from app.lab.axes import Axis, make_sweep
from app.lab.depths import at_depths, parse_depths
from app.lab.experiment import MOST_LANES, Experiment, Lane, make_experiment
from app.lab.lanes import read_lanes, server_lanes
from app.lab.load.export import LOAD_COLUMNS, load_cells, load_sentences
from app.lab.load.levels import Limits, LoadPlan, level_words, parse_levels, parse_limits, parse_rates
from app.lab.load.report import BurstDone
from app.lab.report.plots import MAPS, grid_cells, heat_map, left_out
from app.lab.report.report import Report, SweepFacts
from app.lab.report.verdict import server_notes
from app.lab.runs.runner import Runner
from app.lab.suites import LONG, read_suite

if TYPE_CHECKING:
    from app.lab.load.runner import LoadRunner

PROG = "draftscope bench"
_USAGE = (
    f"{PROG} (--prompts FILE | --suite NAME) (--strategy SPEC | --server URL) [--strategy SPEC ...] [options]"
)
_DESCRIPTION = """\
Measure strategies side by side: with the same prompts, seed and sampling, on the same loaded weights, each
from a cold state after a warm-up. Strategy none is always measured too; the order is random for every prompt
and repeat. A running server drafts by its own settings. If it can turn drafts off, it is compared with itself
without drafts. Otherwise it needs a second server of the same model that does not draft. The table goes to
standard output, the progress to standard error."""
_LANES = f"""
--strategy SPEC ...  A strategy to measure, see below; may be given several times: at most {MOST_LANES} lanes,
    each target's baseline included
--lanes FILE.json  More lanes, also on other pairs: a JSON list of {{"strategy", "label", "target", "draft"}},
    models named as for --target
--depth N,N,...  Put this many tokens of a long document before each prompt, such as 0,1k,4k. Shows how
    speed-up, acceptance and first-token time change with the context's length
"""
_LOADS = """
--load N,N,...  Send this many requests at once to each server, such as 1,2,4,8. Measure tokens/s in total
    and per request, latency, and where drafting stops paying
--request-rate R,R,...  The same with R requests a second at random times (a Poisson process, drawn by the
    seed), such as 0.5,1,2
--limits NAME=S,...  With --load or --request-rate: count the requests a second that keep these limits in
    seconds (goodput), such as first_token=0.5,inter_token=0.1. inter_token is for 95 % of an answer's tokens
"""


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """An experiment, and the files to write."""

    experiment: Experiment
    journal: Path | None
    outputs: options.Outputs
    engine: str
    key_of: Callable[[str], str]
    """Gives the key of a server."""
    load: LoadPlan | None = None
    """None for requests one at a time."""


def bench(argv: list[str]) -> int:
    """Parse, measure, report; returns the exit code. Raises UserError."""
    plan = parse_bench(argv)
    options.check_outputs(plan.outputs)
    return run_interruptible(lambda interrupt: _measure(plan, interrupt))


def parse_bench(argv: list[str]) -> BenchPlan:
    """Read the arguments; raises UsageError, SettingError, DrafterError or PromptError."""
    know_drafters(PROG, argv)
    parser = Parser(PROG, _DESCRIPTION, _USAGE, strategy_help())
    lanes = parser.add_argument_group("the lanes")
    add_options(lanes, _LANES, lanes=Path, depth=(typed(parse_depths), ()))
    add_server_options(lanes, "A server to measure", several=True)
    levels, rates = (typed(parse_levels), ()), (typed(parse_rates), ())
    add_options(lanes, _LOADS, load=levels, request_rate=rates, limits=(typed(parse_limits), Limits()))
    options.add_measure_options(parser)
    options.add_output_options(parser, options.OF_RUNS + options.JOURNAL)
    arguments = parser.parse_args(argv)
    arguments.strategy = asked_strategies(arguments, arguments.strategy)
    load = asked_load(arguments)
    if not arguments.strategy and arguments.lanes is None and not arguments.server:
        raise UsageError("There is nothing to measure.", "Give --strategy, --lanes or --server.")
    key_of = keys(arguments)
    servers = tuple(lane for info in described(arguments) for lane in server_lanes(info))
    here = arguments.strategy or arguments.lanes or arguments.target
    asked = options.asked_experiment(
        arguments,
        (*map(Lane, arguments.strategy), *servers),
        arguments.repeat,
        None if here else servers[0].pair,
    )
    if arguments.lanes is not None:
        more = read_lanes(arguments.lanes, asked.pair, options.lane_model)
        asked = asked.with_lanes((*asked.lanes, *more))
    if arguments.depth:
        documents = read_suite(find_paths().resources / "suites" / f"{LONG}.json")
        asked = at_depths(asked, arguments.depth, documents)
    experiment = make_experiment(options.kept_seed(asked, arguments.journal))
    return BenchPlan(
        experiment, arguments.journal, options.outputs(arguments), arguments.engine, key_of, load
    )


def _measure(plan: BenchPlan, interrupt: Interrupt) -> int:
    if plan.load:
        from app.lab.load.runner import LoadRunner  # the HTTP client takes a moment to import

        load_runner = LoadRunner(plan.experiment, plan.load, key_of=plan.key_of)
        return measure_load(load_runner, plan.outputs, interrupt)
    runner = Runner(
        options.local_experiment(plan.experiment, interrupt),
        partial(make_home, plan.engine),
        journal=plan.journal,
        key_of=plan.key_of,
    )

    def lines(report: Report) -> list[str]:
        return [
            *measuring.summary_lines(report),
            *measuring.depth_lines(report),
            "",
            *server_notes(report),
            *measuring.outcome_lines(report),
            *measuring.advice_lines(report, runner),
        ]

    return measuring.measure(runner, interrupt, plan.outputs, lines)


def asked_load(arguments: argparse.Namespace) -> LoadPlan | None:
    """The load from the options; None for requests one at a time. Raises UsageError for contradictory
    options."""
    load = LoadPlan(arguments.load, arguments.request_rate, arguments.limits)
    if load.levels:
        _check_load(arguments)
        return load
    if load.limits:
        raise UsageError("--limits needs --load or --request-rate.", "Give one of them.")
    return None


def _check_load(arguments: argparse.Namespace) -> None:
    given_as = "--load" if arguments.load else "--request-rate"
    others = {
        "--strategy": arguments.strategy,
        "--lanes": arguments.lanes,
        "--depth": arguments.depth,
        "--export": arguments.export,
        "--target": arguments.target,
        "--journal": arguments.journal,
        "--traces": arguments.traces,
        "--request-rate": given_as == "--load" and arguments.request_rate,
    }
    if not arguments.server:
        raise UsageError(f"{given_as} needs a server.", "Give one with --server.")
    if given := next((name for name, value in others.items() if value), None):
        raise UsageError(f"{given} cannot be used with {given_as}.", "Leave it out.")


def measure_load(runner: LoadRunner, files: options.Outputs, interrupt: Interrupt) -> int:
    """Measure, print and write; returns the exit code. Raises UserError."""
    interrupt.stops(runner.control.cancel)
    for event in runner.run():
        if not isinstance(event, BurstDone):
            continue
        burst = event.burst
        speed = numbers.digits(burst.tokens_per_second, "tokens/s")
        load = level_words(burst.level, by_rate=burst.rate is not None)
        text = f"{event.done}/{event.total}  {load}: {speed}"
        (say_over if sys.stderr.isatty() else say)(text)
    if sys.stderr.isatty():
        say_over("")
    if not runner.described:
        return INTERRUPTED
    report = runner.report()
    head, rows = load_cells(report)
    put([*table(head, rows), "", *definitions(LOAD_COLUMNS), "", *load_sentences(report)])
    if problems := measuring.write_report(files, report):
        raise UserError(" ".join(map(str, problems)))
    if interrupt.pressed:
        return INTERRUPTED
    runs = [run for burst in report.bursts for run in burst.runs]
    if failures := [run.failure for run in runs if run.failure]:
        told = f"{len(failures):,} of {numbers.count(len(runs), 'request')} failed."
        measured = any(row.tokens_per_second for row in report.rows)
        raise UserError(told if measured else "Nothing could be measured.", failures[0])
    return 0


SWEEP = "draftscope sweep"
_SWEEP_USAGE = (
    f"{SWEEP} (--prompts FILE | --suite NAME) --strategy SPEC --x KEY=V,V,... --y KEY=V,V,... [options]"
)
_OF_SWEEP = """\
Measure one strategy over a grid of two settings, like bench, each cell against strategy none. The settings
are the strategy's, the sampler's (temperature, top_p) or load options. Load options are threads,
cache_type_k, n_gpu_layers, flash_attn, target and so on; threads_draft and so on for the draft. Each load
setting is loaded once. Maps go to standard output: tokens/s, speed-up, speed-up end to end, acceptance."""
_VALUES = """\
with its values: n_max=1,2,4 or n_max=1..8; PART.n_max=… if several parts have it; threads=1,2;
    target=A.gguf,B.gguf. Keys joined by + take the same value: cache_type_k+cache_type_v=f16,q8_0"""


def sweep(argv: list[str]) -> int:
    """Parse, measure, report; returns the exit code. Raises UserError."""
    know_drafters(SWEEP, argv)
    parser = Parser(SWEEP, _OF_SWEEP, _SWEEP_USAGE, strategy_help())
    grid = parser.add_argument_group("the grid")
    add_options(grid, "--strategy SPEC  The strategy, see below", required=True)
    for name, where in (("--x", "along a row"), ("--y", "down a column")):
        add_options(grid, f"{name} KEY=VALUES  The setting that varies {where}, {_VALUES}", required=True)
    options.add_measure_options(parser)
    options.add_output_options(parser, options.OF_RUNS + options.JOURNAL)
    arguments = parser.parse_args(argv)
    (strategy,) = asked_strategies(arguments, [arguments.strategy])
    files = options.outputs(arguments)
    base = options.kept_seed(options.asked_experiment(arguments, (), arguments.repeat), arguments.journal)
    x, y = Axis.parse(arguments.x), Axis.parse(arguments.y)
    experiment, facts = make_sweep(base, strategy, x, y, partial(options.lane_model, folder=Path.cwd()))
    options.check_outputs(files)

    def work(interrupt: Interrupt) -> int:
        home = partial(make_home, arguments.engine)
        runner = Runner(options.local_experiment(experiment, interrupt), home, journal=arguments.journal)
        return measuring.measure(runner, interrupt, files, partial(_sweep_lines, facts), facts)

    return run_interruptible(work)


def _sweep_lines(facts: SweepFacts, report: Report) -> list[str]:
    cells = heat_map(report)
    lines = []
    for each in MAPS:
        lines += [f"{each.title}; across {facts.x}, down {facts.y}"]
        lines += table(["", *facts.x_values], grid_cells(facts, cells, each))
        lines += [""]
    return [*lines, *definitions(MAPS), "", *left_out(facts, cells), *measuring.outcome_lines(report)]
