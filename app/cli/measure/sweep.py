"""`draftscope sweep`: measures one strategy over a grid of two of its parameters."""

from __future__ import annotations

from functools import partial

from app.base import numbers
from app.cli.answer.recorder import check_writable
from app.cli.answer.strategies import strategy_help
from app.cli.arguments import Parser
from app.cli.console import put
from app.cli.drafters import know_drafters
from app.cli.interrupt import Interrupt, run_interruptible
from app.cli.measure.measuring import ended, measured, outcome_lines
from app.cli.measure.options import (
    Outputs,
    add_journal_option,
    add_measure_options,
    add_output_options,
    asked_experiment,
    kept_seed,
    local_experiment,
    outputs,
)
from app.cli.table import table
from app.engine.process.host import make_home
from app.lab.report.report import Report, SweepFacts
from app.lab.runs.runner import Runner
from app.lab.sweep import Axis, heat_map, make_sweep

PROG = "draftscope sweep"
_USAGE = f"{PROG} (--prompts FILE | --suite NAME) --strategy SPEC --x KEY=V,V,... --y KEY=V,V,... [options]"
_DESCRIPTION = """\
Measure one strategy over a grid of two of its settings, like bench, each cell against strategy none. Three
maps go to standard output: tokens/s, speed-up and acceptance."""


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
            "where several parts have it",
        )
    add_measure_options(parser)
    add_output_options(parser)
    add_journal_option(parser)
    arguments = parser.parse_args(argv)
    files = outputs(arguments)
    base = kept_seed(asked_experiment(arguments, (), arguments.repeat), arguments.journal)
    experiment, facts = make_sweep(base, arguments.strategy, Axis.parse(arguments.x), Axis.parse(arguments.y))
    for path in files.paths:
        check_writable(path)
    home = partial(make_home, arguments.engine)

    def work(interrupt: Interrupt) -> int:
        here = local_experiment(experiment, interrupt)
        return _measure(Runner(here, home, journal=arguments.journal), facts, files, interrupt)

    return run_interruptible(work)


def _measure(runner: Runner, facts: SweepFacts, files: Outputs, interrupt: Interrupt) -> int:
    try:
        report, problem = measured(runner, interrupt, files, facts)
    finally:
        runner.close()
    put([*_maps(report, facts), *outcome_lines(report)])
    return ended(report, problem, interrupt)


def _maps(report: Report, facts: SweepFacts) -> list[str]:
    cells = heat_map(report)
    across = len(facts.x_values)
    rows = [cells[at : at + across] for at in range(0, len(cells), across)]
    lines = []
    for title, written in (
        ("tokens/s", lambda cell: numbers.digits(cell.tokens_per_second)),
        ("speed-up over none", lambda cell: numbers.factor(cell.speedup)),
        ("acceptance", lambda cell: numbers.percent(cell.acceptance_rate)),
    ):
        lines += [f"{title}; across {facts.x}, down {facts.y}"]
        lines += table(
            ["", *facts.x_values],
            [[value, *map(written, row)] for value, row in zip(facts.y_values, rows, strict=True)],
        )
        lines += [""]
    lines += dict.fromkeys(f"left out: {cell.cell.refused}" for cell in cells if cell.cell.refused)
    return lines
