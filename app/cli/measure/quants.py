"""`draftscope quants`: makes quantisations of a model, and measures which is the fastest with drafts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from app.base.numbers import NONE, digits, file_size, listed, percent
from app.base.paths import find_paths
from app.cli.answer.options import local_pair
from app.cli.answer.strategies import asked_strategies, know_drafters, strategy_help
from app.cli.measure import options
from app.cli.measure.measuring import measure, outcome_lines
from app.cli.terminal.arguments import Parser, UsageError, add_options
from app.cli.terminal.console import say, say_over, table
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.engine.errors import UserError
from app.engine.native.header import FileHeader
from app.engine.process.host import make_home
from app.hub.quantiser import KINDS, LARGE, USUAL, QuantFile, Quantiser, QuantPlan
from app.lab.drafts import first_of_each
from app.lab.experiment import Experiment, Pair
from app.lab.quants import (
    ALONE,
    DRAFTS,
    WITH_DRAFT,
    PassRunner,
    QuantRow,
    quant_rows,
    quants_experiment,
    usual_strategy,
)
from app.lab.report.report import Report
from app.lab.report.summary import Spread, speedup_words
from app.lab.suites import Suite

PROG = "draftscope quants"
ANSWER_TOKENS = 128
_USAGE = f"{PROG} [MODEL] [--types {','.join(USUAL)}] [--strategy SPEC] [options]"
_DESCRIPTION = """\
Find the quantisation that drafts best. Make the usual ones of a model with llama.cpp's own quantiser, and
measure each without drafts and with a strategy, in turns. The cost of a pass over several tokens depends on
the format, and decides what drafts gain. The files are kept and used again; draftscope models lists and
deletes them."""
_MADE = f"""
--types LIST  Formats to compare with the file as it is (default {",".join(USUAL)}). Allowed: formats that
    need no importance matrix, {", ".join(KINDS)}
--yes  Write more than {file_size(LARGE)} without asking
--strategy SPEC ...  How to draft, see below (default {WITH_DRAFT} or the head's own strategy; without a
    draft model {ALONE})
"""


def quants(argv: list[str]) -> int:
    """Parse, make, measure, report; returns the exit code. Raises UserError."""
    know_drafters(PROG, argv)
    arguments = _parser().parse_args(argv)
    if arguments.model and arguments.target:
        raise UsageError("--target names a second model.", "Name one.")
    arguments.target = arguments.model or arguments.target
    if len(strategies := asked_strategies(arguments, arguments.strategy)) > 1:
        raise UsageError("--strategy is given twice.", "Give one.")
    files = options.outputs(arguments)
    base = options.asked_experiment(arguments, (), arguments.repeat, suite=_suite(arguments))
    strategy = strategies[0] if strategies else ""
    first = strategy or usual_strategy("" if base.pair.draft else None)
    quants_experiment(base, [("", base.pair.target.path)], first)  # what is wrong with it is said first
    options.check_outputs(files)
    return run_interruptible(lambda interrupt: _work(arguments, base, strategy, files, interrupt))


def _parser() -> Parser:
    parser = Parser(PROG, _DESCRIPTION, _USAGE, strategy_help())
    add_options(parser, "model [MODEL]  The model, named as for --target (default: the bundled one)")
    add_options(parser.add_argument_group("the formats"), _MADE, types=(_kinds, USUAL))
    options.add_measure_options(parser, prompts=False, tokens=str(ANSWER_TOKENS))
    options.add_output_options(parser)
    return parser


def _suite(arguments: argparse.Namespace) -> Suite:
    """The prompts; by default one of each category except long ones, which take minutes to read."""
    suite = options.asked_suite(arguments, default="general" if arguments.target else "bundled")
    if not any((arguments.prompts, arguments.suite, arguments.prompt, arguments.category)):
        short = tuple(prompt for prompt in first_of_each(suite) if prompt.category != "long context")
        suite = replace(suite, prompts=short)
    return replace(suite, max_tokens=ANSWER_TOKENS)


def _work(
    arguments: argparse.Namespace,
    base: Experiment,
    strategy: str,
    files: options.Outputs,
    interrupt: Interrupt,
) -> int:
    target, draft = local_pair(base.pair.target, base.pair.draft, interrupt)
    try:
        plan = _made(Path(target.path), arguments.types, arguments.yes, lambda: interrupt.pressed)
    except InterruptedError:
        say("Interrupted. Files that were complete are kept.")
        return INTERRUPTED
    if not strategy and draft is not None:
        with closing(FileHeader(Path(draft.path))) as header:
            strategy = usual_strategy(header.kind)
    strategy = strategy or usual_strategy(None)
    made = [(file.kind, str(file.path)) for file in plan.files]
    experiment = quants_experiment(replace(base, pair=Pair(target, draft)), made, strategy)
    runner = PassRunner(experiment, partial(make_home, arguments.engine))

    def lines(report: Report) -> list[str]:
        return [*quant_lines(report, strategy), *filter(None, [plan.warning]), *outcome_lines(report)]

    return measure(runner, interrupt, files, lines)


def _made(source: Path, kinds: tuple[str, ...], agreed: bool, stopped: Callable[[], bool]) -> QuantPlan:
    """Make the missing files, after printing what that takes, and return all. Raises UserError, and
    InterruptedError."""
    quantiser = Quantiser(find_paths().quantised)
    plan = quantiser.plan(source, kinds, stopped)
    names = listed([f"{file.kind} ({file_size(file.size)})" for file in plan.missing])
    if here := [file.kind for file in plan.files[1:] if file.is_here]:
        say(f"{listed(here)} {'is' if len(here) == 1 else 'are'} here already.")
    if plan.missing:
        free = file_size(quantiser.free)
        say(f"Making {names}: {file_size(plan.size)} in {quantiser.folder}, where {free} are free.")
    for file in plan.files:
        if file.note:
            say(file.note)
    if plan.size > LARGE and not agreed and not _agrees():
        raise UserError(f"{file_size(plan.size)} were not written.", "Add --yes, or name fewer with --types.")
    live = sys.stderr.isatty()

    def told(file: QuantFile, share: float) -> None:
        if live:
            say_over(f"{file.path.name} {percent(share, 0)}")

    try:
        quantiser.make(plan, told, stopped)
    finally:
        if live:
            say_over("")
    return plan


def _agrees() -> bool:
    """Whether the person at the terminal agrees."""
    if not sys.stdin.isatty():
        return False
    say("Write them? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def quant_lines(report: Report, strategy: str) -> list[str]:
    """Tables of passes and speeds, and their meaning."""
    rows = quant_rows(report)
    if not rows:
        return []
    passes = [[row.name, *(_spread(row.v(k)) for k in DRAFTS)] for row in rows]
    head = ["quantisation", "size", "none tokens/s", "drafting tokens/s", "speed-up (95 %)", "α"]
    return [
        *table(["quantisation", *(f"v({k})" for k in DRAFTS)], passes),
        "",
        *table(head, [_speeds(row) for row in rows]),
        "",
        "v(k): time of a target pass over k + 1 tokens / over one: median and range over the file's loads.",
        "tokens/s: median and range over all answers.",
        f"drafting: with {strategy}.",
        "speed-up: tokens/s with drafts over those of none, on the same file.",
    ]


def _speeds(row: QuantRow) -> list[str]:
    drafting = row.drafting
    return [
        row.name,
        file_size(row.file.size),
        _spread(row.plain.tokens_per_second),
        _spread(drafting.tokens_per_second),
        speedup_words(drafting.speedup),
        percent(drafting.alpha),
    ]


def _spread(spread: Spread | None) -> str:
    if spread is None:
        return NONE
    return f"{digits(spread.median)} ({digits(spread.min)}–{digits(spread.max)})"


def _kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(dict.fromkeys(kind.strip().upper() for kind in text.split(",")))
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        raise argparse.ArgumentTypeError(f"cannot contain {unknown[0]!r}. Allowed: {', '.join(KINDS)}.")
    return kinds
