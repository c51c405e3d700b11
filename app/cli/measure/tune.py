"""`draftscope tune`: finds the fastest strategy on the user's prompts, within a time budget."""

from __future__ import annotations

import argparse
from functools import partial

from app.base import numbers
from app.cli.advise import add_work_option, first_of
from app.cli.answer.strategies import asked_strategies, draft_flags, know_drafters, strategy_help
from app.cli.measure import options
from app.cli.measure.measuring import ProgressLine, write_report
from app.cli.terminal.arguments import Parser, UsageError, add_options, positive
from app.cli.terminal.console import definitions, put, say, table
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.engine.errors import UserError
from app.engine.process.host import make_home
from app.lab.experiment import Experiment
from app.lab.facts import sha256
from app.lab.report.columns import COLUMNS
from app.lab.tune.search import Planned
from app.lab.tune.tuned import Tuned, TuneReport, tried
from app.lab.tune.tuner import RungBegun, RungDone, Tuner

PROG = "draftscope tune"
DEFAULT_SECONDS = 120.0
_SHOWN = ("speedup", "whole_speedup", "acceptance_rate")
_USAGE = f"{PROG} (--prompts FILE | --suite NAME) [--seconds N] [--strategy SPEC ...] [options]"
_DESCRIPTION = """\
Find the fastest strategy and settings on these prompts. A few answers and timed passes show which settings
cannot win; these are not run. The others are measured briefly, the better half of them for longer, and so on.
The last line of standard output is the winner, or none if speculation does not pay. The line before it says
why. Earlier lines list the best for each kind of prompt, if they differ, and what was not tried."""
_SEARCH = f"""
--seconds N  Time budget in seconds, without loading (default {DEFAULT_SECONDS:g})
--strategy SPEC ...  Try this strategy instead of Draftscope's own candidates; may be given several times
"""
_WRITTEN = """
--json OUT.json  Write everything that was tried
--html OUT.html  Write a report that opens in any browser, without a network
"""


def tune(argv: list[str]) -> int:
    """Parse, search, report; returns the exit code. Raises UserError."""
    know_drafters(PROG, argv)
    parser = Parser(PROG, _DESCRIPTION, _USAGE, strategy_help())
    search = parser.add_argument_group("the search")
    add_options(search, _SEARCH, seconds=(positive("Allowed: a number above 0."), DEFAULT_SECONDS))
    add_work_option(search, "Try the strategy for this kind of work first")
    options.add_measure_options(parser, repeats=False)
    options.add_output_options(parser, _WRITTEN)
    arguments = parser.parse_args(argv)
    if not arguments.strategy and (flags := draft_flags(arguments)):
        raise UsageError(f"{flags[0]} needs a strategy.", "Without --strategy, tune finds its settings.")
    arguments.strategy = asked_strategies(arguments, arguments.strategy)
    asked = options.asked_experiment(arguments, (), repeats=1)
    options.check_outputs(files := options.outputs(arguments))
    return run_interruptible(lambda interrupt: _search(arguments, files, asked, interrupt))


def _search(
    arguments: argparse.Namespace, files: options.Outputs, asked: Experiment, interrupt: Interrupt
) -> int:
    home = partial(make_home, arguments.engine)
    first = first_of(arguments.work, asked.pair.target, asked.pair.draft) if arguments.work else None
    if first is not None:
        say(f"{first.strategy} is tried first. {first.reason}" if first.spec.parts else first.reason)
    before = first.strategy if first is not None and first.spec.parts else ""
    tuner = Tuner(asked, home, arguments.seconds, strategies=arguments.strategy, first=before)
    tuner.experiment = options.local_experiment(tuner.experiment, interrupt)  # after the options are checked
    interrupt.stops(tuner.control.cancel)
    progress = ProgressLine(counted=False)
    try:
        for event in tuner.run():
            if isinstance(event, RungBegun):
                progress.end()
                candidates = numbers.count(len(event.strategies), "candidate")
                say(f"Round {event.rung + 1} of {event.of}: {candidates}, {numbers.duration(event.seconds)}.")
            elif isinstance(event, Planned):
                progress.end()
                say(event.words)
            elif isinstance(event, RungDone):
                progress.end()
            else:
                progress.show(event)
    finally:
        progress.end()
    result = tuner.result
    assert result is not None
    digest = partial(sha256, stopped=lambda: interrupt.pressed)
    report = TuneReport.of(result, tuner.experiment, tuner.pair, digest)
    problems = write_report(files, report)
    left_out = [f"not tried: {left_out.what}: {left_out.reason}" for left_out in result.left_out]
    kinds = [f"best for {kind}" for kind in result.kinds] if result.by_kind else []
    put([*_tried(result), "", *left_out, *kinds, result.reason, result.winner])
    for fault in progress.faults():
        say(fault)
    if problems:
        raise UserError(" ".join(map(str, problems)))
    if interrupt.pressed:
        return INTERRUPTED
    if result.speedup is None:
        raise UserError(result.reason)
    return 0


def _tried(result: Tuned) -> list[str]:
    """The table of every setting's last stage, the furthest first."""
    lines = [
        [setting, number, answers, *shares]
        for _score, (setting, *shares, answers, number, _fate) in tried(result)
    ]
    shown = [column for column in COLUMNS if column.key in _SHOWN]
    head = ["strategy", "stage", "answers", *(column.title for column in shown)]
    return [*table(head, lines), "", *definitions(shown)]
