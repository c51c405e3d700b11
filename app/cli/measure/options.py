"""The options that bench, sweep and tune share: pair, prompts, sampling, files."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from app.base.paths import find_paths
from app.cli.answer import options as answer_options
from app.cli.answer.recorder import check_writable
from app.cli.answer.strategies import DRAFTER
from app.cli.answer.template_options import add_template_options, asked_options
from app.cli.terminal.arguments import Parser, UsageError, add_engine_option, add_options, plain_text, typed
from app.cli.terminal.console import say
from app.cli.terminal.interrupt import Interrupt
from app.engine.params import Param, check_params
from app.engine.types import ModelOptions, Sampling
from app.lab.experiment import Experiment, Lane, Pair, Prompt
from app.lab.lanes import path_beside
from app.lab.runs.journal import Journal
from app.lab.suites import Suite, built_in, read_suite
from app.servers.address import is_address

DEFAULT_REPEATS = 3
_repeats = typed(Param("repeat", int, DEFAULT_REPEATS, "", low=1).parse)

Outputs = Mapping[str, Path]
"""The files to write at the end, by the names of their options."""

_REPEAT = f"""
--repeat R  Measure everything R times; with fewer than 3, an interval needs at least 3 prompts (default
    {DEFAULT_REPEATS})
"""
OF_RUNS = """
--json OUT.json  Write every run and the summary
--csv OUT.csv  Write a line for every run
--html OUT.html  Write a report that opens in any browser, without a network
--markdown OUT.md  Write the table for an issue or a message
--traces OUT.zip  Write the traces of all runs in one archive
--export FOLDER  Export each lane for other tools: NAME.speed-bench.json, as llama.cpp's speed_bench.py does,
    and NAME.acceptance.jsonl, AIPerf's acceptance records
"""
JOURNAL = """\
--journal FILE.jsonl  Save every run as soon as it is done; if the file exists, resume after its last run
"""
_FILES = ("json", "csv", "html", "markdown", "traces", "export", "journal")


def add_measure_options(
    parser: Parser, *, repeats: bool = True, prompts: bool = True, tokens: str = "the suite's, 256 for most"
) -> None:
    """Add all options except strategies. If `prompts` is true they are required; `tokens` is the default of
    --max-tokens."""
    answer_options.add_pair_options(parser)
    asked = parser.add_argument_group("the prompts")
    add_prompt_options(asked, required=prompts)
    add_template_options(asked)
    answers = parser.add_argument_group("the answers")
    answer_options.add_end_options(answers, tokens)
    add_options(answers, DRAFTER)
    if repeats:
        add_options(answers, _REPEAT, repeat=(_repeats, DEFAULT_REPEATS))
    add_engine_option(answers)
    answer_options.add_model_options(parser)


_PROMPTS = """
--prompts FILE  A JSON list of strings or of {"category": "...", "prompt": "..."}, one prompt per line, or the
    questions of Spec-Bench or SPEED-Bench as JSON Lines
--suite NAME  Prompts that come with Draftscope (SUITES), or a file as for --prompts
--prompt TEXT  A single prompt
"""
_CHOSEN = """
--category NAME ...  Use only the prompts of this category, by its name here or in SPEED-Bench (code or
    coding); may be given several times
--chat  Wrap each prompt as one user message with the model's chat template (the chat suites always do)
"""


def add_prompt_options(group: argparse._ArgumentGroup, *, required: bool = True) -> None:
    """Add the options that name the prompts; `asked_suite` reads them."""
    source = group.add_mutually_exclusive_group(required=required)
    suites = ", ".join(path.stem for path in sorted((find_paths().resources / "suites").glob("*.json")))
    add_options(source, _PROMPTS.replace("SUITES", suites), prompts=Path, prompt=plain_text)
    add_options(group, _CHOSEN)


def add_output_options(parser: Parser, text: str = OF_RUNS) -> None:
    """Add the options of files, from their text."""
    add_options(parser.add_argument_group("files written"), text, Path)


def outputs(arguments: argparse.Namespace) -> Outputs:
    """The requested files, without the journal. Raises UsageError if two files, or one and the journal, are
    the same."""
    given = {name: path for name in _FILES if (path := getattr(arguments, name, None)) is not None}
    files = [os.path.abspath(path) for name, path in given.items() if name != "export"]
    if len(set(files)) < len(files):
        raise UsageError("Two outputs name the same file.", "Give each its own name.")
    given.pop("journal", None)
    return given


def check_outputs(outputs: Outputs) -> None:
    """Raise UserError if a file cannot be written."""
    for name, path in outputs.items():
        if name != "export":
            check_writable(path)


def asked_experiment(
    arguments: argparse.Namespace,
    lanes: tuple[Lane, ...],
    repeats: int,
    pair: Pair | None = None,
    suite: Suite | None = None,
) -> Experiment:
    """The experiment from the options, before its baselines and seed are set; `pair` and `suite` replace
    those of the options. Raises UserError."""
    sampling = Sampling(**answer_options.SAMPLING.given(arguments))
    check_params(sampling)
    suite = suite or asked_suite(arguments)
    length: dict[str, Any] = answer_options.LENGTH.given(arguments)
    max_tokens = length.get("max_tokens", suite.max_tokens)
    chat = arguments.chat or suite.chat
    return Experiment(
        pair=pair or _absolute(Pair(*answer_options.chosen_pair(arguments))),
        lanes=lanes,
        prompts=suite.prompts,
        sampling=sampling,
        max_tokens=max_tokens,
        repeats=repeats,
        chat=chat,
        stop=tuple(arguments.stop),
        ignore_eos=arguments.ignore_eos,
        drafters=tuple(map(os.path.abspath, arguments.drafter)),
        title=suite.title,
        template_options=asked_options(arguments, chat=chat),
    )


def local_experiment(experiment: Experiment, interrupt: Interrupt) -> Experiment:
    """The experiment on local files, as `local_pair`."""

    def local(pair: Pair) -> Pair:
        if is_address(pair.target.path):
            return pair
        return _absolute(Pair(*answer_options.local_pair(pair.target, pair.draft, interrupt)))

    lanes = [msgspec.structs.replace(lane, pair=lane.pair and local(lane.pair)) for lane in experiment.lanes]
    return msgspec.structs.replace(experiment, pair=local(experiment.pair), lanes=tuple(lanes))


def lane_model(written: str, folder: Path) -> str:
    """The path of a model in a lanes file; a Hub name stays, unless there is such a file."""
    real = find_paths().model(written)
    path = path_beside(real, folder)
    if real != written or os.path.exists(path):
        return path
    from app.cli.models.fetching import on_the_hub  # the Hub's client takes a moment to import

    return written if on_the_hub(written) is not None else path


def _absolute(pair: Pair) -> Pair:
    """The pair with absolute paths, so that a journal can be resumed from any folder. Links stay, because
    they carry a cached file's name. A missing path may be a Hub name."""

    def model(options: ModelOptions) -> ModelOptions:
        path = options.path
        return replace(options, path=os.path.abspath(path) if os.path.exists(path) else path)

    return Pair(model(pair.target), pair.draft and model(pair.draft))


def kept_seed(experiment: Experiment, journal: Path | None) -> Experiment:
    """The experiment; if it has no seed, with that of the resumed journal, if any."""
    if journal is None or not journal.exists() or experiment.sampling.seed >= 0:
        return experiment
    seed = Journal.read(journal).experiment.sampling.seed
    return msgspec.structs.replace(experiment, sampling=replace(experiment.sampling, seed=seed))


def asked_suite(arguments: argparse.Namespace, default: str | None = None) -> Suite:
    """The suite from the options; `default` names the one to use if none is given. Raises UserError."""
    if arguments.prompt is not None:
        if not arguments.prompt.strip():
            raise UsageError("--prompt is empty.", "Give a text.")
        suite = Suite("prompt", "One prompt", (Prompt(arguments.prompt),), chat=False)
    elif arguments.prompts is None and (name := arguments.suite or default) is not None:
        suites = {suite.name: suite for suite in built_in(find_paths().resources)}
        if name not in suites and not Path(name).exists():
            raise UsageError(f"There is no suite “{name}”.", f"Allowed: {', '.join(suites)}, or a file.")
        suite = suites.get(name) or read_suite(Path(name))
    else:
        suite = read_suite(arguments.prompts)
    for note in suite.notes:
        say(note)
    return suite.only(tuple(arguments.category)) if arguments.category else suite
