"""`draftscope drafts`: which of the files at hand drafts best for a target, by teacher forcing."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from app.base import numbers
from app.base.paths import BUNDLED_TARGET, find_paths
from app.cli.answer.options import DRAFT, SAMPLING, TARGET, add_end_options, local_pair
from app.cli.answer.recorder import write_file
from app.cli.answer.template_options import add_template_options
from app.cli.measure import options
from app.cli.models.here import open_shelf
from app.cli.terminal.arguments import Parser, UsageError, add_engine_option, add_options
from app.cli.terminal.console import definitions, put, say, table
from app.cli.terminal.interrupt import INTERRUPTED, Interrupt, run_interruptible
from app.engine.errors import UserError, no_model_at
from app.engine.process.host import make_home
from app.engine.types import ModelOptions
from app.lab import drafts as ranking
from app.lab.experiment import Experiment, Pair
from app.lab.runs.events import Control

PROG = "draftscope drafts"
_DESCRIPTION = """\
Find the best draft among the files at hand: the target answers a few prompts, then target and each draft read
these answers once. The command prints how long that takes, how often each draft would be right, what a draft
token costs, and the speed-up predicted from both. The share of right tokens is α by teacher forcing, with its
95 % interval over the prompts."""
_JUDGED = """
files [FILE|FOLDER ...]  Drafts to judge, or folders of them (default: all that the library has for this
    target)
--target MODEL  The model to draft for: a file, or a name on the Hub (default: the bundled target)
"""


def drafts(argv: list[str]) -> int:
    """Judge and print; returns the exit code. Raises UserError."""
    arguments = _parser().parse_args(argv)
    experiment = _experiment(arguments)
    options.check_outputs(options.outputs(arguments))
    return run_interruptible(partial(_judge, arguments, experiment))


def _parser() -> Parser:
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} --target T.gguf [FILE|FOLDER ...] [options]")
    add_options(parser, _JUDGED, files=Path)
    prompts = parser.add_argument_group("the prompts")
    options.add_prompt_options(prompts, required=False)
    add_template_options(prompts)
    answers = parser.add_argument_group("the answers")
    add_end_options(answers, str(ranking.ANSWER_TOKENS))
    add_engine_option(answers)
    options.add_output_options(parser, "--json OUT.json  Write the numbers of every draft")
    SAMPLING.add_to(parser.add_argument_group("sampling"))
    TARGET.add_to(parser.add_argument_group("loading the target"))
    DRAFT.add_to(parser.add_argument_group("loading the drafts"))
    parser.set_defaults(drafter=())
    return parser


def _judge(arguments: argparse.Namespace, experiment: Experiment, interrupt: Interrupt) -> int:
    target, _ = local_pair(experiment.pair.target, None, interrupt)
    experiment = replace(experiment, pair=Pair(target))
    files = _files(arguments.files, target) if arguments.files else _of_the_library(Path(target.path))
    loading = DRAFT.resolved(arguments, TARGET.given(arguments))
    drafts = [ModelOptions(str(file), **loading) for file in files]
    control = Control()
    interrupt.stops(control.cancel)
    trials = ranking.DraftTrials(experiment, drafts, lambda: make_home(arguments.engine), control)
    answers = numbers.count(len(experiment.prompts), "answer")
    limit, these = numbers.count(experiment.max_tokens, "token"), numbers.count(len(drafts), "draft")
    say(f"{Path(target.path).name} writes {answers} of up to {limit}; then it and {these} read them.")
    done = 0
    began = time.monotonic()
    for event in trials.run():
        if isinstance(event, ranking.TargetAnswers) and event.done:
            say(f"{event.done} of {answers}{_left(began, event.done, event.total)}")
        elif isinstance(event, ranking.DraftReads) and not event.done and not done:
            began = time.monotonic()  # what the target took to answer tells nothing of the drafts
        elif isinstance(event, ranking.DraftJudged):
            done += 1
            say(f"{done}/{len(drafts)}  {event.score.file}{_left(began, done, len(drafts))}")
    if interrupt.pressed:
        say(f"Interrupted: {done} of {len(drafts)} drafts judged.")
        if not done:
            return INTERRUPTED
    report = trials.report()
    put(_lines(report))
    if arguments.json is not None:
        write_file(arguments.json, report.to_json())
    if not interrupt.pressed and all(draft.problem for draft in report.drafts):
        raise UserError("No draft could be judged.", report.drafts[0].problem)
    return INTERRUPTED if interrupt.pressed else 0


def _left(began: float, done: int, of: int) -> str:
    """The remaining time, if the rest is like the work since `began`."""
    seconds = (time.monotonic() - began) / done * (of - done)
    return f", about {numbers.duration(max(1.0, seconds))} left" if done < of else ""


def _experiment(arguments: argparse.Namespace) -> Experiment:
    """The prompts as an experiment; from a suite with categories, the first of each."""
    suite = replace(options.asked_suite(arguments, default="general"), max_tokens=ranking.ANSWER_TOKENS)
    if arguments.prompts is None and not arguments.category:
        suite = replace(suite, prompts=ranking.first_of_each(suite))
    target = ModelOptions(arguments.target or find_paths().model(BUNDLED_TARGET), **TARGET.given(arguments))
    return options.asked_experiment(arguments, (), 1, Pair(target), suite)


def _files(given: Sequence[Path], target: ModelOptions) -> list[Path]:
    """The model files of paths and folders, each once; folders do not contribute the target. Raises
    UserError."""
    found: list[Path] = []
    for path in given:
        if path.is_dir():
            found += [file for file in sorted(path.glob("*.gguf")) if not file.samefile(target.path)]
        elif path.is_file():
            found.append(path)
        else:
            raise no_model_at(path)
    if not found:
        raise UsageError("There is no draft in these folders.", "Name a GGUF file, or another folder.")
    return list(dict.fromkeys(Path(os.path.abspath(path)) for path in found))


def _of_the_library(target: Path) -> list[Path]:
    """The library's files that have the target's vocabulary. Raises UserError without any."""
    with open_shelf() as shelf:
        models = shelf.scan()
        candidates = list(shelf.candidates(shelf.at(target, models), models))
        shelf.save([shelf.read(model) for model in models])
    found = [candidate.model.path for candidate in candidates if candidate.shares_vocabulary]
    if not found:
        raise UserError(
            f"The library has no draft for {target.name}.",
            "Name files, or add them: draftscope models --add.",
        )
    return found


def _lines(report: ranking.DraftsReport) -> list[str]:
    head = ("draft", *(column.title for column in ranking.DRAFT_COLUMNS))
    judged = [draft for draft in report.drafts if not draft.problem]
    lines = table(
        head, [[draft.file, *(column.text(draft) for column in ranking.DRAFT_COLUMNS)] for draft in judged]
    )
    lines += [f"{draft.file} was not judged: {draft.problem}" for draft in report.drafts if draft.problem]
    lines += ["", *definitions(ranking.DRAFT_COLUMNS)]
    texts, tokens = numbers.count(report.texts, "answer"), numbers.count(report.tokens, "token")
    lines += ["", f"Over {texts} of {report.target}, {tokens}. These are predictions; bench measures."]
    if report.sampling.temperature > 0:
        lines.append(
            "At this temperature the numbers are for draft-simple:sample=1, which samples its tokens."
        )
    return lines
