"""`draftscope sweep`: measures one strategy over a grid of two of its parameters."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from app.cli.answer.draft_options import asked_strategies
from app.cli.answer.recorder import check_writable
from app.cli.answer.strategies import strategy_help
from app.cli.drafters import know_drafters
from app.cli.measure.measuring import ended, measured, outcome_lines
from app.cli.measure.options import (
    Outputs,
    add_journal_option,
    add_measure_options,
    add_output_options,
    asked_experiment,
    kept_seed,
    lane_model,
    local_experiment,
    outputs,
)
from app.cli.terminal.arguments import Parser
from app.cli.terminal.console import definitions, put, table
from app.cli.terminal.interrupt import Interrupt, run_interruptible
from app.engine.process.host import make_home
from app.lab.axes import Axis, make_sweep
from app.lab.report.plots import MAPS, grid_cells, heat_map, left_out
from app.lab.report.report import Report, SweepFacts
from app.lab.runs.runner import Runner

PROG = "draftscope sweep"
_USAGE = f"{PROG} (--prompts FILE | --suite NAME) --strategy SPEC --x KEY=V,V,... --y KEY=V,V,... [options]"
_DESCRIPTION = """\
Measure one strategy over a grid of two settings, like bench, each cell against strategy none: settings of the
strategy, of the sampler (temperature, top_p) or of loading (threads, cache_type_k, n_gpu_layers, flash_attn,
target, and threads_draft and so on for the draft). Each load setting is loaded once. Maps go to standard
output: tokens/s, speed-up, speed-up end to end, acceptance."""


def sweep(argv: list[str]) -> int:
    """Parse, measure, report; returns the exit code. Raises UserError."""
    know_drafters(PROG, argv)
    parser = Parser(PROG, _DESCRIPTION, _USAGE, strategy_help())
    grid = parser.add_argument_group("the grid")
    grid.add_argument("--strategy", metavar="SPEC", required=True, help="The strategy, see below")
    for name, where in (("--x", "along a row"), ("--y", "down a column")):
        grid.add_argument(
            name,
            metavar="KEY=VALUES",
            required=True,
            help=f"The setting that varies {where}, with its values: n_max=1,2,4 or n_max=1..8; PART.n_max=… "
            "where several parts have it; threads=1,2; target=A.gguf,B.gguf; keys joined by + take the same "
            "value: cache_type_k+cache_type_v=f16,q8_0",
        )
    add_measure_options(parser)
    add_output_options(parser)
    add_journal_option(parser)
    arguments = parser.parse_args(argv)
    (strategy,) = asked_strategies(arguments, [arguments.strategy])
    files = outputs(arguments)
    base = kept_seed(asked_experiment(arguments, (), arguments.repeat), arguments.journal)
    x, y = Axis.parse(arguments.x), Axis.parse(arguments.y)
    experiment, facts = make_sweep(base, strategy, x, y, partial(lane_model, folder=Path.cwd()))
    for path in files.paths:
        check_writable(path)
    home = partial(make_home, arguments.engine)

    def work(interrupt: Interrupt) -> int:
        here = local_experiment(experiment, interrupt)
        return _measure(Runner(here, home, journal=arguments.journal), facts, files, interrupt)

    return run_interruptible(work)


def _measure(runner: Runner, facts: SweepFacts, files: Outputs, interrupt: Interrupt) -> int:
    try:
        report, faults, problem = measured(runner, interrupt, files, facts)
    finally:
        runner.close()
    put([*_maps(report, facts), *outcome_lines(report)])
    return ended(report, faults, problem, interrupt)


def _maps(report: Report, facts: SweepFacts) -> list[str]:
    cells = heat_map(report)
    lines = []
    for each in MAPS:
        lines += [f"{each.title}; across {facts.x}, down {facts.y}"]
        lines += table(["", *facts.x_values], grid_cells(facts, cells, each))
        lines += [""]
    return [*lines, *definitions(MAPS), "", *left_out(facts, cells)]
