"""`draftscope advise`: a strategy for a kind of work. `draftscope explain`: what a command or log of
llama.cpp or vLLM says about drafting. Also the advice at the end of other commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from app.base import numbers
from app.base.files import explained, open_file
from app.base.numbers import file_size
from app.base.paths import find_paths
from app.cli.answer.options import DRAFT, TARGET, add_pair_names, chosen_pair
from app.cli.terminal.arguments import Parser, add_options
from app.cli.terminal.console import put, wrapped
from app.engine.errors import SettingError, UserError
from app.engine.explain.advice import OTHER_DRAFTS, next_advice, smaller_file
from app.engine.explain.explained import explain_text
from app.engine.explain.facts import AdviceFacts, DraftFile, Factor, Tried
from app.engine.explain.llama_command import llama_command, vllm_command
from app.engine.explain.purposes import PURPOSES, FirstStrategy, KindOfWork, first_strategy
from app.engine.explain.server_command import ServerCommand
from app.engine.record.trace import Trace
from app.engine.shards import size_of
from app.engine.types import ModelOptions, Sampling
from app.saved.measured import Calibrations

PROG = "draftscope advise"
_USAGE = f"{PROG} [--for WORK] [--target MODEL [--draft MODEL]] [options]"
_DESCRIPTION = """\
What are you doing? Without --for, list the kinds of work and a first strategy for each. With --for, print
that strategy, why, and the nearest commands of llama.cpp and vLLM. Your prompts decide: measure them with
bench, or let tune search."""
_TOKENS = 256  # of an answer


def advise(argv: list[str]) -> int:
    """Print the kinds of work, or a strategy for one; returns the exit code. Raises UserError."""
    parser = Parser(PROG, _DESCRIPTION, _USAGE)
    add_work_option(parser, "The kind of work")
    pair = parser.add_argument_group("the pair")
    add_pair_names(
        pair,
        "The model that answers, for the commands (default: the bundled pair)",
        "The model that drafts for it. If you give only --target, strategies need no draft model",
    )
    TARGET.add_to(parser.add_argument_group("loading the target"))
    DRAFT.add_to(parser.add_argument_group("loading the draft"))
    arguments = parser.parse_args(argv)
    target, draft = chosen_pair(arguments)
    work: KindOfWork | None = arguments.work
    put(_list(target, draft) if work is None else _answer(work, target, draft))
    return 0


def add_work_option(group: argparse._ActionsContainer, what: str) -> None:
    """Add --for; its value is a KindOfWork."""
    keys = ", ".join(purpose.key for purpose in PURPOSES)
    group.add_argument("--for", dest="work", metavar="WORK", type=_work, help=f"{what}: {keys}")


def advice_text(
    traces: Sequence[Trace],
    target: ModelOptions,
    draft: ModelOptions | None,
    plain: Iterable[Trace] = (),
    measured: Factor | None = None,
    tried: Mapping[str, Tried] | None = None,
) -> str:
    """The window's advice on one or several answers of a strategy; "" if it drafts nothing. `plain` are
    answers of the baseline, against which this strategy was `measured`; `tried` are other strategies on these
    prompts."""
    try:
        known = Calibrations(find_paths().calibrations).of(traces[0].header.pair)
        facts = AdviceFacts.of(traces, [*plain], measured, tried, known)
        facts = replace(facts, target=target, draft=draft)
    except SettingError:  # of a server
        return ""
    advice = next_advice(facts)
    if advice is not None and advice.finding in OTHER_DRAFTS and draft is not None:
        advice = next_advice(replace(facts, drafts=_library(target, draft)))
    return advice.text if advice is not None else ""


def _library(target: ModelOptions, draft: ModelOptions) -> tuple[DraftFile, ...]:
    """The other files of the library that suit a target as drafts; none if it cannot be read."""
    from app.cli.models.here import open_shelf  # slow to import
    from app.hub.library.model import names_apart

    try:
        with open_shelf() as shelf:
            models = [candidate.model for candidate in shelf.suiting(_file(target))]
    except UserError:
        return ()
    return tuple(
        DraftFile(str(model.path), model.size, name)
        for model, name in zip(models, names_apart(models), strict=True)
        if model.path.resolve() != _file(draft).resolve()
    )


def _file(options: ModelOptions) -> Path:
    return Path(find_paths().model(options.path))


def _smaller(target: ModelOptions, draft: ModelOptions) -> DraftFile | None:
    """A draft of the library that is smaller than the one in use; None if a file is not here."""
    try:
        sizes = [size_of(_file(options)) for options in (target, draft)]
    except OSError:
        return None
    return smaller_file(_library(target, draft), *sizes)


def _work(text: str) -> KindOfWork:
    known = {purpose.key: purpose for purpose in PURPOSES}
    if text not in known:
        raise argparse.ArgumentTypeError(f"cannot be {text!r}. Allowed: {', '.join(known)}.")
    return known[text]


def first_of(work: KindOfWork, target: ModelOptions, draft: ModelOptions | None) -> FirstStrategy:
    """The first strategy, by the pair's saved pass times."""
    files = str(_file(target)), str(_file(draft)) if draft is not None else ""
    return first_strategy(work, *files, Calibrations(find_paths().calibrations).of_files(*files))


def _list(target: ModelOptions, draft: ModelOptions | None) -> Iterator[str]:
    for purpose in PURPOSES:
        first = first_of(purpose, target, draft)
        yield f"{purpose.key}: {first.strategy}"
        yield from wrapped(first.reason, 2)


def _answer(work: KindOfWork, target: ModelOptions, draft: ModelOptions | None) -> Iterator[str]:
    """Reason and commands; the last line is the strategy."""
    first = first_of(work, target, draft)
    settings = (first.spec, target, draft, Sampling(), _TOKENS)
    yield first.reason
    if work.key == "little-memory" and draft is not None and (smaller := _smaller(target, draft)):
        yield f"As the draft, {smaller.name} from your library needs less memory: {file_size(smaller.size)}."
    for command in (llama_command(*settings), vllm_command(*settings)):
        yield ""
        yield command.text
        yield from (f"# {difference}" for difference in command.differences)
    yield ""
    yield first.strategy


EXPLAIN = "draftscope explain"
_OF_EXPLAIN = """\
Explain what a command does about speculation, why it does not draft, and which Draftscope command and lane
measure the same. It reads commands of llama-server, llama-cli, llama-speculative and vllm serve, and Python
with vLLM's LLM(...). For a log or lines of statistics, it says what each figure means. No model is loaded and
nothing is run."""
_SUBJECT = """
subject TEXT-OR-FILE  A command or lines of a log, in quotes, or a file with a command, a script or a log; -
    is standard input
"""
LARGEST = 64 * 2**20  # bytes of a file that is read
STANDARD_INPUT = "-"


def explain(argv: list[str]) -> int:
    """Read and print; returns the exit code. Raises UserError."""
    parser = Parser(EXPLAIN, _OF_EXPLAIN, f"{EXPLAIN} TEXT-OR-FILE")
    add_options(parser, _SUBJECT)
    subject: str = parser.parse_args(argv).subject
    if not subject.strip():
        raise UserError("There is nothing to explain.", "Give a command, or a log.")
    text, cut = subject, False
    # Unlike Path's, these functions answer for every name: of no such user, too long for a file.
    if subject == STANDARD_INPUT or os.path.lexists(subject):
        text, cut = _read(subject)
    elif len(subject.split()) == 1:
        raise UserError(
            f"{subject} is not a file.", "Give a command with its options, in quotes, or a file's name."
        )
    try:
        explanation = explain_text(text)
    except UserError as error:
        if text is subject or type(error) is not UserError:
            raise
        name = "standard input" if subject == STANDARD_INPUT else Path(subject).name
        raise UserError(f"{name}: {error.message}", error.hint) from error
    judged = _judged(explanation.command) if explanation.command is not None else ()
    put([*explanation.lines, *explanation.measured, *judged])
    if cut:
        put([f"Only the first {numbers.file_size(LARGEST)} of the text were read."])
    return 0


def _read(name: str) -> tuple[str, bool]:
    """(the beginning of a file, whether there is more of it)"""
    with (
        explained(f"{name} cannot be read", "Give a file with the command."),
        sys.stdin.buffer if name == STANDARD_INPUT else open_file(Path(name)) as file,
    ):
        return file.read(LARGEST).decode("utf-8", errors="replace"), bool(file.read(1))


def _judged(command: ServerCommand) -> list[str]:
    """The verdict on the two files as a pair, if both are on this machine."""
    names = [os.path.expanduser(name) for name in (command.target, command.draft)]
    if not all(map(os.path.isfile, names)):
        return []
    from app.cli.models.here import open_shelf  # slow to import

    paths = [Path(name) for name in names]
    with open_shelf() as shelf:
        target, draft = (shelf.at(path, ()) for path in paths)
        try:
            (candidate,) = shelf.candidates(target, [draft])
        except UserError as error:
            return [f"! {error}"]
    return ["", f"{draft.path.name} as a draft for {target.path.name}: {candidate}."]
