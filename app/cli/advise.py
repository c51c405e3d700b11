"""`draftscope advise`: answers "What are you doing?"; and the advice that other commands end with."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from app.base.numbers import file_size
from app.base.paths import find_paths
from app.cli.answer.options import DRAFT, TARGET, add_pair_names, chosen_pair
from app.cli.terminal.arguments import Parser
from app.cli.terminal.console import put
from app.engine.errors import SettingError, UserError
from app.engine.explain.advice import OTHER_DRAFTS, next_advice, smaller_file
from app.engine.explain.facts import AdviceFacts, DraftFile, Factor, Tried
from app.engine.explain.llama_command import llama_command, vllm_command
from app.engine.explain.purposes import PURPOSES, FirstStrategy, KindOfWork, first_strategy
from app.engine.record.trace import Trace
from app.engine.shards import size_of
from app.engine.types import ModelOptions, Sampling
from app.saved.measured import Calibrations

PROG = "draftscope advise"
_USAGE = f"{PROG} [--for WORK] [--target MODEL [--draft MODEL]] [options]"
_DESCRIPTION = """\
What are you doing? Without --for, list the kinds of work with a strategy to begin with for each. With --for,
print that strategy, why, and the commands of llama.cpp and vLLM that come nearest to it. Your prompts decide:
measure them with bench, or let tune search."""
_WIDTH = 100
_TOKENS = 256  # of an answer


def advise(argv: list[str]) -> int:
    """Print the kinds of work, or the answer to one; returns the exit code. Raises UserError."""
    parser = Parser(PROG, _DESCRIPTION, _USAGE)
    add_work_option(parser, "The kind of work")
    pair = parser.add_argument_group("the pair")
    add_pair_names(
        pair,
        "The model that answers, for the commands (default: the bundled pair)",
        "The model that drafts for it; with --target and without it, strategies need no draft model",
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
    """What the window says about an answer, or about several of one strategy; "" if it drafts nothing.
    `plain` are answers of the baseline, against which this strategy is `measured`, and what else was `tried`
    on these prompts."""
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
    """The strategy to begin with, by the times of passes that are kept of the pair."""
    files = str(_file(target)), str(_file(draft)) if draft is not None else ""
    return first_strategy(work, *files, Calibrations(find_paths().calibrations).of_files(*files))


def _list(target: ModelOptions, draft: ModelOptions | None) -> Iterator[str]:
    for purpose in PURPOSES:
        first = first_of(purpose, target, draft)
        yield f"{purpose.key}: {first.strategy}"
        yield from _wrapped(first.reason)


def _answer(work: KindOfWork, target: ModelOptions, draft: ModelOptions | None) -> Iterator[str]:
    """Reason and commands; the last line is the strategy."""
    first = first_of(work, target, draft)
    settings = (first.spec, target, draft, Sampling(), _TOKENS)
    yield first.reason
    if work.key == "little-memory" and draft is not None and (smaller := _smaller(target, draft)):
        yield f"With a draft, {smaller.name} of your library takes less: {file_size(smaller.size)}."
    for command in (llama_command(*settings), vllm_command(*settings)):
        yield ""
        yield command.text
        yield from (f"# {difference}" for difference in command.differences)
    yield ""
    yield first.strategy


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")
