"""`draftscope bench --load`: servers with n requests at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from app.base import numbers
from app.cli.answer.recorder import write_file
from app.cli.measure.options import Outputs
from app.cli.terminal.arguments import UsageError
from app.cli.terminal.console import put, say, say_over
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt
from app.cli.terminal.table import definitions, table
from app.engine.errors import SettingError, UserError
from app.lab.load.export import LOAD_COLUMNS, load_cells, load_csv, load_html, load_markdown
from app.lab.load.findings import load_sentences
from app.lab.load.levels import Limits, LoadPlan, level_words, parse_levels, parse_limits, parse_rates
from app.lab.load.report import BurstDone, BurstReport

if TYPE_CHECKING:
    from app.lab.load.runner import LoadRunner


T = TypeVar("T")


def add_load_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--load",
        metavar="N,N,...",
        type=_typed(parse_levels),
        default=(),
        help="Send this many requests at once to each server, such as 1,2,4,8. Measure tokens/s of all and "
        "of one, latency, and where drafting stops paying",
    )
    group.add_argument(
        "--request-rate",
        metavar="R,R,...",
        type=_typed(parse_rates),
        default=(),
        help="The same with R requests a second at random times (a Poisson process, drawn by the seed), such "
        "as 0.5,1,2",
    )
    group.add_argument(
        "--limits",
        metavar="NAME=S,...",
        type=_typed(parse_limits),
        default=Limits(),
        help="With --load or --request-rate: count the requests a second that keep these limits in seconds "
        "(goodput): first_token, and inter_token for 95 %% of an answer's tokens, such as "
        "first_token=0.5,inter_token=0.1",
    )


def asked_load(arguments: argparse.Namespace) -> LoadPlan | None:
    """The load of the options; None for requests one after another. Raises UsageError for what has no meaning
    together."""
    load = LoadPlan(arguments.load, arguments.request_rate, arguments.limits)
    if load.levels:
        _check_load(arguments)
        return load
    if load.limits:
        raise UsageError("--limits needs --load or --request-rate.", "Give one of them.")
    return None


def _typed(parse: Callable[[str], T]) -> Callable[[str], T]:
    """An argparse type."""

    def typed(text: str) -> T:
        try:
            return parse(text)
        except SettingError as error:
            raise argparse.ArgumentTypeError(f"cannot be {text!r}. {error.hint}") from None

    return typed


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


def measure_load(runner: LoadRunner, files: Outputs, interrupt: Interrupt) -> int:
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
    _write(files, report)
    if interrupt.pressed:
        return INTERRUPTED
    runs = [run for burst in report.bursts for run in burst.runs]
    if failures := [run.failure for run in runs if run.failure]:
        told = f"{len(failures):,} of {numbers.count(len(runs), 'request')} failed."
        measured = any(row.tokens_per_second for row in report.rows)
        raise UserError(told if measured else "Nothing could be measured.", failures[0])
    return 0


def _write(files: Outputs, report: BurstReport) -> None:
    contents: list[tuple[Path | None, Callable[[], bytes]]] = [
        (files.json, report.to_json),
        (files.csv, lambda: load_csv(report).encode()),
        (files.html, lambda: load_html(report).encode()),
        (files.markdown, lambda: load_markdown(report).encode()),
    ]
    problems = []
    for path, content in contents:
        if path is not None:
            try:
                write_file(path, content())
            except UserError as error:  # the others are written
                problems.append(str(error))
    if problems:
        raise UserError(" ".join(problems))
