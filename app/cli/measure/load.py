"""`draftscope bench --load`: servers with n requests at once."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from app.base import numbers
from app.cli.answer.recorder import write_file
from app.cli.measure.options import Outputs
from app.cli.terminal.arguments import UsageError
from app.cli.terminal.console import put, say, say_over
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt
from app.cli.terminal.table import definitions, table
from app.engine.errors import SettingError, UserError
from app.lab.load.export import LOAD_COLUMNS, load_cells, load_csv, load_html, load_markdown
from app.lab.load.levels import parse_levels
from app.lab.load.report import BurstDone, BurstReport, load_sentences

if TYPE_CHECKING:
    from app.lab.load.runner import LoadRunner


def load_levels(text: str) -> tuple[int, ...]:
    """The levels of --load, such as 1,2,4; an argparse type."""
    try:
        return parse_levels(text)
    except SettingError as error:
        raise argparse.ArgumentTypeError(f"cannot be {text!r}. {error.hint}") from None


def check_load(arguments: argparse.Namespace) -> None:
    """Raise UsageError for what has no meaning under load."""
    others = {
        "--strategy": arguments.strategy,
        "--lanes": arguments.lanes,
        "--depth": arguments.depth,
        "--export": arguments.export,
        "--target": arguments.target,
        "--journal": arguments.journal,
        "--traces": arguments.traces,
    }
    if not arguments.server:
        raise UsageError("--load needs a server.", "Give one with --server.")
    if given := next((name for name, value in others.items() if value), None):
        raise UsageError(f"{given} cannot be used with --load.", "Leave it out.")


def measure_load(runner: LoadRunner, files: Outputs, interrupt: Interrupt) -> int:
    """Measure, print and write; returns the exit code. Raises UserError."""
    interrupt.stops(runner.control.cancel)
    for event in runner.run():
        if not isinstance(event, BurstDone):
            continue
        burst = event.burst
        speed = numbers.digits(burst.tokens_per_second, "tokens/s")
        text = f"{event.done}/{event.total}  {burst.at_once} at once: {speed}"
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
