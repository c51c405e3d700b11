"""`draftscope tune`: the fastest strategy on one's own prompts, within a time budget."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from app.cli.arguments import Parser
from app.cli.console import put, say
from app.cli.drafters import know_drafters
from app.cli.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.cli.measure_options import add_measure_options, asked_experiment
from app.cli.measuring import Progress
from app.cli.recorder import check_writable, write_file
from app.cli.strategies import strategy_help
from app.cli.table import table
from app.engine.host import make_home
from app.engine.strategy import NONE
from app.lab import words
from app.lab.experiment import Experiment
from app.lab.tune import RungBegun, RungDone, Tuner
from app.lab.tuned import Tuned

PROG = "draftscope tune"
DEFAULT_SECONDS = 120.0
_USAGE = f"{PROG} (--prompts FILE | --suite NAME) [--seconds N] [--strategy SPEC ...] [options]"
_DESCRIPTION = """\
Find the fastest strategy and settings on these prompts: many are tried a little, the better half more, and
so on (successive halving). The last line of standard output is the strategy; it is none where speculation
does not pay, and the line before says why."""


def tune(argv: list[str]) -> int:
    """Parse, search, report; returns the exit code. Raises UserError."""
    know_drafters(PROG, argv)
    parser = Parser(PROG, _DESCRIPTION, _USAGE, strategy_help())
    search = parser.add_argument_group("the search")
    search.add_argument(
        "--seconds",
        metavar="N",
        type=_seconds,
        default=DEFAULT_SECONDS,
        help=f"How long it may take, loading apart (default {DEFAULT_SECONDS:g})",
    )
    search.add_argument(
        "--strategy",
        metavar="SPEC",
        action="append",
        default=[],
        help="Try these instead of what Draftscope would; may be given several times",
    )
    search.add_argument("--json", metavar="OUT.json", type=Path, help="Write everything that was tried")
    add_measure_options(parser, repeats=False)
    arguments = parser.parse_args(argv)
    asked = asked_experiment(arguments, (), repeats=1)
    if arguments.json is not None:
        check_writable(arguments.json)
    return run_interruptible(lambda interrupt: _search(arguments, asked, interrupt))


def _search(arguments: argparse.Namespace, asked: Experiment, interrupt: Interrupt) -> int:
    home = partial(make_home, arguments.engine)
    tuner = Tuner(asked, home, arguments.seconds, strategies=arguments.strategy)
    interrupt.stops(tuner.control.cancel)
    progress = Progress(counted=False)
    try:
        for event in tuner.run():
            if isinstance(event, RungBegun):
                progress.end()
                what = words.count(len(event.strategies), "candidate")
                say(f"Step {event.rung + 1} of {event.of}: {what}, {words.duration(event.seconds)}.")
            elif isinstance(event, RungDone):
                progress.end()
            else:
                progress.show(event)
    finally:
        progress.end()
    result = tuner.result
    assert result is not None
    if arguments.json is not None:
        write_file(arguments.json, result.to_json())
    put([*_tried(result), "", result.reason, result.winner])
    if interrupt.pressed:
        return INTERRUPTED
    return 0 if result.speedup is not None or result.winner != NONE else 1


def _tried(result: Tuned) -> list[str]:
    """The last that was measured of every strategy, the longest measured first."""
    lines: dict[str, list[str]] = {}
    for number, rung in reversed(list(enumerate(result.rungs, start=1))):
        for one in rung.scores:
            row = [
                str(number),
                str(one.prompts),
                words.speedup(one.speedup),
                words.percent(one.acceptance_rate),
            ]
            lines.setdefault(one.strategy, [one.strategy, *row])
    return table(["strategy", "step", "answers", "speed-up (95 %)", "acceptance"], list(lines.values()))


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"cannot be {text!r}. Allowed: a number above 0.")
    return seconds
