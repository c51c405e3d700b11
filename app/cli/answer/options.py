"""The options of `draftscope run`, and the plan made from them."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.base.files import read_file, reason
from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, REAL_TARGET, find_paths
from app.cli.answer import strategies
from app.cli.answer.template_options import add_template_options, asked_options
from app.cli.servers import add_server_options, keys
from app.cli.terminal.arguments import (
    ParamOptions,
    Parser,
    UsageError,
    add_engine_option,
    add_options,
    plain_text,
)
from app.cli.terminal.interrupt import Interrupt
from app.engine.errors import PromptError
from app.engine.explain.llama_flags import other_names
from app.engine.params import check_params
from app.engine.strategy import NONE, SERVER, StrategySpec
from app.engine.types import LIKE_TARGET, GenerationRequest, Message, ModelOptions, PairInfo, Sampling
from app.saved.settings import Settings
from app.servers.address import find_key, server_address

PROG = "draftscope run"
STANDARD_INPUT = "-"
_IDS = re.compile(r"[\s\[]*\d{1,10}(?:[\s,]+\d{1,10})*[\s,\]]*")

_PROMPTS = "(--prompt TEXT | --prompt-file FILE | --prompt-ids IDS)"
_USAGE = f"{PROG} {_PROMPTS} [--target MODEL [--draft MODEL]] [options]"
_DESCRIPTION = """\
Generate one answer. The text goes to standard output as it is written; the drafting statistics go to
standard error, in llama.cpp's own format."""
_DRAFTING = f"""
--draft-only  Let the draft model answer alone, to see what it would propose. The target is not loaded. With a
    strategy that needs no draft model: its draft after the prompt, as text and ids
--strategy SPEC  How to draft, see below (default {NONE}; for a server: its own settings)
{strategies.DRAFTER}"""
_WRITTEN = f"""
--trace OUT.jsonl  Record every round, for the window and for replay
--json OUT.json  Write the numbers of the run
{strategies.DRAFTED}
"""

_DRAFT_SUFFIX = "-draft"

SAMPLING = ParamOptions(Sampling)
LENGTH = ParamOptions(Settings, only=("max_tokens",))
TARGET = ParamOptions(ModelOptions)
DRAFT = ParamOptions(ModelOptions, suffix=_DRAFT_SUFFIX, shared=LIKE_TARGET)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """An answer to generate, and the files to write."""

    target: ModelOptions
    draft: ModelOptions | None
    request: GenerationRequest
    drafters: tuple[str, ...]
    """Files of the plug-ins in use."""
    trace: Path | None
    json: Path | None
    engine: str
    """Where the models run."""
    server: str = ""
    """The address of the server that answers instead; "" without one."""
    key_of: Callable[[str], str] = find_key
    """Returns the server's key."""
    drafted: bool = False
    """Whether each round's draft and verdict are printed."""
    strategy_alone: bool = False
    """Whether only a draft of the strategy is wanted, without a target."""


def parse_run(argv: list[str]) -> RunPlan:
    """Read the arguments; raises UsageError, SettingError, DrafterError or PromptError."""
    strategies.know_drafters(PROG, argv)  # first: help and grammar list them
    arguments = _parser().parse_args(argv)
    sampling = Sampling(**SAMPLING.given(arguments))
    check_params(sampling)
    server = server_address(arguments.server) if arguments.server else ""
    spec = asked_strategy(arguments, sampling, NONE)
    if arguments.draft_only and arguments.target is None:
        arguments.target = arguments.draft  # the target is not loaded: it need not be named
    target, draft = chosen_pair(arguments)
    strategy_alone = arguments.draft_only and bool(spec.parts)
    if strategy_alone:
        _check_alone(spec, arguments)
    elif arguments.draft_only:
        target, draft = _draft_model_alone(draft)
    check_draft(spec, draft)
    if arguments.trace is not None and arguments.trace == arguments.json:
        raise UsageError("--trace and --json name the same file.", "Give two names.")
    by_server = server and not arguments.strategy  # else it is asked not to draft
    request = asked_request(arguments, SERVER if by_server else str(spec), sampling)
    files = arguments.trace, arguments.json
    return RunPlan(
        target,
        draft,
        request,
        tuple(arguments.drafter),
        *files,
        arguments.engine,
        server,
        keys(arguments),
        arguments.drafted,
        strategy_alone,
    )


def asked_strategy(arguments: argparse.Namespace, sampling: Sampling, usual: str) -> StrategySpec:
    """The strategy from --strategy and the draft's options; `usual` without them. Raises UsageError or
    SettingError, also for options that a server ignores."""
    if arguments.server and (own := _own_options(arguments)):
        raise UsageError(f"{own} cannot be used with --server.", "The server drafts by its own settings.")
    asked = strategies.asked_strategies(arguments, [arguments.strategy] if arguments.strategy else [])
    spec = StrategySpec.parse("".join(asked) or usual)
    spec.verification_at(sampling.temperature)
    spec.check_lengths()
    return spec


def check_draft(spec: StrategySpec, draft: ModelOptions | None) -> None:
    """Raise UsageError if a strategy lacks its draft model."""
    if spec.needs_draft and draft is None:
        raise UsageError(f"{spec} needs a draft model.", "Give one with --draft.")


def asked_request(arguments: argparse.Namespace, strategy: str, sampling: Sampling) -> GenerationRequest:
    """The request for the prompt, cold. Raises UsageError or PromptError."""
    return GenerationRequest(
        **_asked_prompt(arguments),
        strategy=strategy,
        sampling=sampling,
        stop=tuple(arguments.stop),
        ignore_eos=arguments.ignore_eos,
        cold=True,
        template_options=asked_options(arguments, chat=arguments.chat),
        **LENGTH.given(arguments),
    )


def _own_options(arguments: argparse.Namespace) -> str:
    """A given option that only our own engine has; "" without one."""
    given = {
        "--target": arguments.target,
        "--draft": arguments.draft,
        "--draft-only": arguments.draft_only,
        "--suffix": arguments.suffix is not None or arguments.suffix_file,
        f"--strategy {arguments.strategy}": arguments.strategy not in (None, NONE),
        **dict.fromkeys(strategies.draft_flags(arguments), True),
        **dict.fromkeys((*TARGET.flags_given(arguments), *DRAFT.flags_given(arguments)), True),
    }
    return next((name for name, value in given.items() if value), "")


def _asked_prompt(arguments: argparse.Namespace) -> dict[str, Any]:
    """The prompt's fields of a request; raises UsageError or PromptError."""
    suffix = arguments.suffix
    if arguments.suffix_file is not None:
        suffix = _read_prompt(arguments.suffix_file)
    for name, given in (("--suffix", suffix is not None), ("--prompt-ids", arguments.prompt_ids is not None)):
        if arguments.chat and given:
            raise UsageError(f"{name} cannot be used with --chat.", "Leave out --chat.")
    if arguments.prompt_ids is not None:
        if suffix is not None:
            raise UsageError("--suffix needs a text before it.", "Give --prompt or --prompt-file.")
        return {"prompt_ids": _read_ids(arguments.prompt_ids)}
    text = arguments.prompt if arguments.prompt_file is None else _read_prompt(arguments.prompt_file)
    if arguments.chat:
        return {"messages": (Message("user", text),)}
    return {"prompt": text, "suffix": suffix}


def _draft_model_alone(draft: ModelOptions | None) -> tuple[ModelOptions, None]:
    """The draft model as the target, without a draft; raises UsageError."""
    if draft is None:
        raise UsageError(
            "--draft-only needs a draft model, or a strategy without one.",
            "Give --draft, or --strategy prompt-lookup.",
        )
    return draft, None


def _check_alone(spec: StrategySpec, arguments: argparse.Namespace) -> None:
    """Raise UsageError if a strategy cannot draft without a target, or a file would need rounds."""
    hint = "Leave out --strategy: the draft model answers alone."
    if spec.needs_draft:
        raise UsageError(f"--draft-only with {spec} needs a target.", hint)
    if spec.is_synthetic:
        raise UsageError(f"--draft-only cannot be used with {spec}.", "It drafts what the target would say.")
    asked = {"--trace": arguments.trace, "--json": arguments.json, "--drafted": arguments.drafted}
    if name := next((name for name, given in asked.items() if given), ""):
        raise UsageError(f"{name} needs rounds, and --draft-only with a strategy has none.", "Leave it out.")


def _parser() -> Parser:
    parser = Parser(PROG, _DESCRIPTION, _USAGE, strategies.strategy_help())
    add_answer_options(parser, _DRAFTING, "Let a server answer, instead of models loaded here", several=False)
    add_options(parser.add_argument_group("files written"), _WRITTEN, Path)
    add_model_options(parser)
    return parser


_PROMPT = """
--prompt TEXT  Text to continue
--prompt-file FILE  Read the prompt from a UTF-8 file, without the line break at its end; - is standard input
--prompt-ids IDS  Token ids to continue, such as 1,2,3, or a file with them; no token is added before them
"""
_SUFFIX = """
--suffix TEXT  Text that follows the answer: the answer fills the gap between the prompt and this text. For
    models with fill-in-the-middle tokens
--suffix-file FILE  Read the suffix from a file, as --prompt-file does
"""
_END = """
--stop S ...  End the answer before this text; may be given several times
--ignore-eos  Continue after the model would end the answer
"""


def add_answer_options(parser: Parser, drafting: str, server: str, *, several: bool) -> None:
    """Add the options for the pair, and for the prompt and the answer, which `asked_request` reads.
    `drafting` is a text of options; `server` is the role of a server."""
    add_pair_options(parser)
    answer = parser.add_argument_group("the answer")
    add_options(answer.add_mutually_exclusive_group(required=True), _PROMPT, prompt=plain_text)
    add_options(answer.add_mutually_exclusive_group(), _SUFFIX, suffix=plain_text)
    add_options(answer, "--chat  Wrap the prompt as one user message with the model's chat template")
    add_template_options(answer)
    add_options(answer, drafting)
    add_end_options(answer)
    add_engine_option(answer)
    add_server_options(answer, server, several=several)


def add_pair_options(parser: Parser) -> None:
    """Add the options that name the models; `chosen_pair` reads them."""
    pair = parser.add_argument_group("the pair")
    add_pair_names(
        pair,
        "The model that answers: a file, or a name on the Hub (owner/name[:QUANTISATION] or "
        "owner/name/file.gguf), downloaded if needed. real:target is SmolLM2, the window's first "
        "target, and real:draft its head (default: the small bundled pair)",
        "The model that drafts for it, named in the same way; a number is llama.cpp's old --draft-max",
    )
    strategies.add_draft_options(pair)


def add_pair_names(group: argparse._ActionsContainer, target: str, draft: str) -> None:
    """Add --target and --draft with their help, and llama.cpp's names for them."""
    group.add_argument("--target", *other_names("--target"), metavar="MODEL", help=target)
    group.add_argument(
        "--draft", *other_names("--draft"), metavar="MODEL", action=strategies.DraftOption, help=draft
    )


def add_end_options(group: argparse._ArgumentGroup, tokens: str = "") -> None:
    """Add the options for the end of an answer; `tokens` is the command's default of `--max-tokens`."""
    LENGTH.add_to(group, tokens)
    add_options(group, _END, stop=stop_text)


def add_model_options(parser: Parser) -> None:
    """Add the options for sampling and loading."""
    SAMPLING.add_to(parser.add_argument_group("sampling"))
    TARGET.add_to(parser.add_argument_group("loading the target"))
    DRAFT.add_to(parser.add_argument_group("loading the draft"))
    add_options(parser, strategies.PARALLEL, parallel=strategies.one)


def stop_text(argument: str) -> str:
    """A stop string from the command line."""
    if not argument:
        raise argparse.ArgumentTypeError("cannot be empty. Allowed: text of one character or more.")
    return plain_text(argument)


def chosen_pair(arguments: argparse.Namespace) -> tuple[ModelOptions, ModelOptions | None]:
    """The models of --target, --draft and the load options, by default the bundled ones. Raises
    UsageError."""
    target, draft = arguments.target, arguments.draft
    if target is None:
        if draft is not None:
            raise UsageError("--draft needs a target.", "Give one with --target.")
        paths = find_paths()
        target, draft = paths.model(BUNDLED_TARGET), paths.model(BUNDLED_DRAFT)
    else:
        target, draft = _local_name(target), draft and _local_name(draft)
    values = TARGET.given(arguments)
    first = ModelOptions(target, **values)
    if draft is None:
        if flags := DRAFT.flags_given(arguments):
            raise UsageError(f"{flags[0]} needs a draft model.", "Give one with --draft.")
        return first, None
    return first, ModelOptions(draft, **DRAFT.resolved(arguments, values))


def _local_name(written: str) -> str:
    """A model named on the command line; `bundled:` and `real:` become our own models' paths."""
    path = find_paths().model(written)
    if written == REAL_TARGET and not os.path.exists(path):
        raise UsageError("SmolLM2 is not on this machine.", "Connect to the network; make run fetches it.")
    return path


def local_pair(
    target: ModelOptions, draft: ModelOptions | None, interrupt: Interrupt
) -> tuple[ModelOptions, ModelOptions | None]:
    """The pair as local files: models of the Hub are downloaded if missing.

    Raises HubError, and KeyboardInterrupt if Ctrl+C came first.
    """
    if all(os.path.exists(model.path) for model in (target, draft) if model is not None):
        return target, draft
    from app.cli.models.fetching import fetch_pair  # the Hub's client takes a moment to import

    return fetch_pair(target, draft, interrupt)


def without_gpu(target: ModelOptions, pair: PairInfo) -> str:
    """A sentence if layers were requested on a GPU but none is used; else ""."""
    if target.n_gpu_layers <= 0 or pair.server is not None or pair.target.n_gpu_layers:
        return ""
    return "--n-gpu-layers has no effect: no GPU is used here. draftscope devices lists what can be."


def _read_ids(given: str) -> tuple[int, ...]:
    """Token ids, separated by commas or spaces, from the command line or from a file."""
    if not _IDS.fullmatch(given) and given != STANDARD_INPUT and not os.path.lexists(given):
        raise UsageError(f"--prompt-ids {given} is neither token ids nor a file.", "Write ids as 1,2,3.")
    text = given if _IDS.fullmatch(given) else _read_prompt(given)
    if not _IDS.fullmatch(text):
        raise UsageError("--prompt-ids contains something other than token ids.", "Write them as 1,2,3.")
    ids = tuple(map(int, re.findall(r"\d+", text)))
    if max(ids) >= 2**31:
        raise UsageError(f"--prompt-ids cannot contain {max(ids)}.", "A token id is below 2,147,483,648.")
    return ids


def _read_prompt(name: str) -> str:
    """The prompt in a file, without the final line break that editors add, as in llama.cpp."""
    shown = "standard input" if name == STANDARD_INPUT else Path(name).name
    try:
        raw = sys.stdin.buffer.read() if name == STANDARD_INPUT else read_file(Path(name))
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PromptError(f"{shown} is not UTF-8 text.", "Save it as UTF-8.") from None
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        raise PromptError(
            f"{shown} cannot be read: {reason(error)}.", "Choose a different prompt file."
        ) from error
    return text.removesuffix("\n").removesuffix("\r")
