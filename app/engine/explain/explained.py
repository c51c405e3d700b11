"""Explains a pasted text: a command of llama.cpp or vLLM, a script, a log.

Keys are those of vLLM's documentation ("Speculative Decoding"), including older ones. `llama_command.py` is
the other direction. A script is parsed, never run."""

from __future__ import annotations

import ast
import json
import re
import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from app.base import numbers
from app.engine.drafters.base import VllmMethod
from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError, UserError
from app.engine.explain.llama_flags import PROGRAMS
from app.engine.explain.server_command import (
    API_SERVER,
    ServerCommand,
    explain_command,
    is_flag,
    program_of,
    split_command,
)
from app.engine.explain.server_log import ServerLog, StrategyCounts, read_log
from app.engine.strategy import NONE, StrategySpec

VLLM = "vllm"
_CLASS = "LLM"
_CALLS = 50  # places where a call that stands among other text may end
_NGRAM = ("ngram", "[ngram]")
_METHODS: dict[str, tuple[str, VllmMethod]] = {}
for _kind in KINDS.values():
    if _kind.vllm is not None:
        _METHODS.setdefault(_kind.vllm.name, (_kind.name, _kind.vllm))
_OLDER = {
    "speculative_model": "model",
    "num_speculative_tokens": "num_speculative_tokens",
    "ngram_prompt_lookup_max": "prompt_lookup_max",
    "ngram_prompt_lookup_min": "prompt_lookup_min",
}
"""Former options of vLLM -> the keys of speculative_config that replaced them."""
_SHORT = {"sc": "speculative_config", "tp": "tensor_parallel_size"}
_SAMPLING = {"repetition_penalty": "repeat_penalty", "max_new_tokens": "max_tokens"} | {
    name: name
    for name in (
        "temperature", "top_k", "top_p", "min_p", "frequency_penalty", "presence_penalty", "seed",
        "max_tokens",
    )
}  # fmt: skip


def explain_vllm(words: Sequence[str]) -> ServerCommand:
    """Read the words after the program's name in a `vllm serve` command, or a call of its API server."""
    values: dict[str, Any] = {}
    key = ""
    for word in words:
        if is_flag(word):
            name, equals, value = word.lstrip("-").partition("=")
            key = _SHORT.get(name, name.replace("-", "_"))
            values[key] = value if equals else None
        elif key and values[key] is None:
            values[key] = word
        elif not key and "model" not in values and word != "serve":
            values["model"] = word
    for name in ("speculative_config", "override_generation_config"):
        if isinstance(values.get(name), str):
            try:
                values[name] = json.loads(values[name])
            except (ValueError, RecursionError):
                values[name] = None
    for name in [name for name in values if "." in name]:  # a part, as --speculative-config.model
        outer, _, part = name.partition(".")
        whole = values.setdefault(outer, {})
        if isinstance(whole, dict):
            whole[part] = values.pop(name)
    sampling = values.pop("override_generation_config", None)
    return _explained("vllm serve", values, sampling if isinstance(sampling, dict) else {})


def explain_script(text: str) -> ServerCommand | None:
    """Read the call of LLM(...) in Python; None if there is none."""
    tree = _parsed(text)
    if tree is None:
        return None
    known: dict[str, Any] = {}
    found: dict[str, dict[str, Any]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known.setdefault(node.targets[0].id, _value(node.value, known))
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in (_CLASS, "SamplingParams") and name not in found:
                values = {word.arg: _value(word.value, known) for word in node.keywords if word.arg}
                if name == _CLASS and node.args:
                    values.setdefault("model", _value(node.args[0], known))
                found[name] = values
    if _CLASS not in found:
        return None
    return _explained(f"{_CLASS}(…)", found[_CLASS], found.get("SamplingParams", {}))


def _parsed(text: str) -> ast.AST | None:
    """Parse a script, or a call inside other text."""
    texts = [textwrap.dedent(text)]
    if (start := text.find(f"{_CLASS}(")) >= 0:
        ends = [at + 1 for at in range(start, len(text)) if text[at] == ")"][:_CALLS]
        texts += [text[start:end] for end in ends]
    for each in texts:
        try:
            return ast.parse(each)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _value(node: ast.expr, known: Mapping[str, Any]) -> Any:
    """A literal value, or the value assigned to a name; None for anything else."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Dict):
        keys = [_value(key, known) if key is not None else None for key in node.keys]
        pairs = zip(keys, node.values, strict=True)
        return {key: _value(value, known) for key, value in pairs if isinstance(key, str)}
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "dict":
        return {word.arg: _value(word.value, known) for word in node.keywords if word.arg}
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _explained(program: str, values: dict[str, Any], sampling: Mapping[str, Any]) -> ServerCommand:
    command = ServerCommand(program, target=_text(values.get("model")))
    older = {new: values[old] for old, new in _OLDER.items() if values.get(old) is not None}
    config = values.get("speculative_config")
    if older:
        names = ", ".join(old for old in _OLDER if values.get(old) is not None)
        command.problems.append(
            f"Newer versions of vLLM do not start with {names}: they take speculative_config."
        )
    if "speculative_config" in values and not isinstance(config, dict):
        command.problems.append("speculative_config cannot be read: it is not literal JSON here.")
    command.strategy = _strategy(command, older | (config if isinstance(config, dict) else {}))
    length = _text(values.get("max_model_len"))
    if length.isdecimal() and int(length) > 0:
        command.options += ["--ctx-size", length]
    told = {"seed": values.get("seed")} | dict(sampling)
    for name, ours in _SAMPLING.items():
        if isinstance(told.get(name), int | float | str) and _text(told[name]):
            command.options += [f"--{ours.replace('_', '-')}", str(told[name])]
    command.notes += _notes(command, values)
    return command


def _strategy(command: ServerCommand, config: Mapping[str, Any]) -> str:
    """Our spec for vLLM's speculative_config."""
    if not config:
        if not command.problems:
            command.problems.append("Nothing drafts: there is no speculative_config.")
        return NONE
    model = _text(config.get("model"))
    method = _text(config.get("method")) or ("ngram" if model in _NGRAM else "draft_model" if model else "")
    method = "ngram" if method in _NGRAM else method
    if method not in _METHODS:
        command.notes.append(f"Draftscope has no {method or 'method for this'}: it is left out.")
        return NONE
    if method == "draft_model":
        command.draft = model
        if not model:
            command.problems.append("It does not start: speculative_config names no model.")
    config = dict(config)
    if method == "ngram":  # each of them defaults to the other, both to 5
        config.setdefault("prompt_lookup_max", config.get("prompt_lookup_min", 5))
    name, ours = _METHODS[method]
    keys = {
        setting: config[key]
        for key, setting in ours.keys.items()
        if isinstance(setting, str) and config.get(key) is not None
    }
    if config.get("draft_sample_method") == "probabilistic":
        keys["sample"] = 1
    written = ":".join([name, *(f"{key}={value}" for key, value in keys.items())])
    try:
        return str(StrategySpec.parse(written))
    except SettingError as error:
        command.problems.append(str(error))
        return name


def _notes(command: ServerCommand, values: Mapping[str, Any]) -> Iterator[str]:
    models = [name for name in (command.target, command.draft) if name and not name.endswith(".gguf")]
    if models:
        yield f"Draftscope reads GGUF files: draftscope search finds one for {' and one for '.join(models)}."
    if (devices := values.get("tensor_parallel_size")) not in (None, 1, "1"):
        yield f"{devices} devices share the model there; here use --device and --tensor-split."
    if "--temperature" not in command.options:
        yield (
            "vLLM samples as the model's repository says. Draftscope uses temperature 0 unless you give "
            "--temperature."
        )
    if not command.target:
        yield "No model is named."


def _text(value: object) -> str:
    if isinstance(value, bool) or (isinstance(value, int) and abs(value) >= 2**63):
        return ""
    return str(value) if isinstance(value, str | int | float) else ""


LONGEST = 200_000  # characters of a command or a script
_HEAD = 4000  # characters in which a command names its program
_LINES = 200  # of a command
_CALL = re.compile(r"\bLLM\s*\(")
_KINDS = "a command of llama-server, llama-cli, llama-speculative or vllm serve, Python with LLM(…), or a log"


@dataclass(frozen=True, slots=True)
class ExplainedText:
    """What a text says about speculation."""

    lines: tuple[str, ...]
    strategy: str  # in our grammar; "" where it does not say what drafts
    measured: tuple[str, ...] = ()
    """The command and the lane that measure the same with Draftscope."""
    command: ServerCommand | None = None  # None: it is a log


def explain_text(text: str) -> ExplainedText:
    """Explain a command, a script or a log; raises UserError if it is none of them."""
    log = read_log(text.splitlines())
    if log.known:  # first, because a log may hold the command that it is of
        return ExplainedText(tuple(_log_lines(log)), log.strategy if log.strategy != NONE else "")
    command = _command(text) if len(text) <= LONGEST else None
    if command is None:
        raise UserError(
            f"This is not {_KINDS}.",
            "llama-server logs more with --verbosity 4; give a command as you typed it.",
        )
    lines = tuple(_command_lines(command))
    return ExplainedText(lines, command.strategy, tuple(_measured_lines(command)), command)


def _command(text: str) -> ServerCommand | None:
    if _CALL.search(text) and (script := explain_script(text)) is not None:
        return script
    head = text.lstrip()[:_HEAD]
    if len(text.splitlines()) > _LINES:
        return None
    programs = {*PROGRAMS, API_SERVER, VLLM}
    if programs.isdisjoint(program_of(word.strip("'\"")) for word in head.split()):
        return None
    program, _, words = split_command(text, programs)
    if program == API_SERVER or (program == VLLM and words[:1] == ["serve"]):
        return explain_vllm(words)
    return explain_command(text) if program in PROGRAMS and " -" in head else None


def _command_lines(command: ServerCommand) -> Iterator[str]:
    models = command.target or "no model"
    drafts = f", drafts from {command.draft}" if command.draft else ""
    yield f"Answers from {models}{drafts}; strategy {command.strategy}."
    yield from (f"! {problem}" for problem in command.problems)
    yield from (f"- {note}" for note in command.notes)


def _measured_lines(command: ServerCommand) -> Iterator[str]:
    if command.target:
        lane = {"strategy": command.strategy, "target": command.target}
        if command.draft:
            lane["draft"] = command.draft
        yield from ("", "Measured here:", f"  {shlex.join(command.bench)}", "As a lane for bench --lanes:")
        yield f"  {msgspec.json.encode([lane]).decode()}"


def _log_lines(log: ServerLog) -> Iterator[str]:
    yield from (f"! {problem}" for problem in log.problems)
    if log.strategies:
        drafting = [f"{name} ({settings})" if settings else name for name, settings in log.strategies.items()]
        yield f"Drafts with {numbers.listed(drafting)}."
    elif log.counts:
        yield f"Drafts with {numbers.listed(list(log.counts))}."
    elif not log.drafted and log.requests:
        yield f"Strategy {NONE}: nothing in the log drafts."
    if log.requests:
        speed = numbers.digits(log.tokens / log.seconds if log.seconds else None)
        answers = numbers.count(log.requests, "answer")
        yield f"{answers}, {log.tokens:,} tokens, {speed} tokens/s while generating."
    if log.drafted:
        share = numbers.percent(log.accepted / log.drafted)
        drafted = f"Acceptance {share}: {log.accepted:,} of {log.drafted:,} drafted tokens were accepted"
        if log.tokens:
            drafted += f"; {numbers.percent(log.accepted / log.tokens)} of all tokens came from a draft"
        yield f"{drafted}."
    elif log.requests and (log.strategies or log.counts):
        yield "No token was drafted in these answers."
    for name, counts in log.counts.items():
        yield from _counted(name, counts)
    if log.checkpoints:
        again = f"; {numbers.count(log.restored, 'round')} were computed twice" if log.restored else ""
        yield f"The target rewinds with checkpoints, which makes rejections cost more{again}."
    if not log.strategies and not log.counts and not log.problems:
        yield "llama-server names its strategies with --verbosity 4."


def _counted(name: str, counts: StrategyCounts) -> Iterator[str]:
    """Explains each figure of a strategy's line, by llama.cpp's name."""
    yield f"{name}:"
    asked = numbers.count(counts.calls, "time")
    if counts.begun is None:
        yield f"  #calls: it was asked for a draft {asked}."
    else:
        prompts, learned = numbers.count(counts.begun, "prompt"), numbers.count(counts.learned or 0, "time")
        yield (
            f"  #calls(b,g,a): it began with {prompts}, was asked for a draft {asked}, and learned "
            f"{learned} what was accepted."
        )
    share = f" ({numbers.percent(counts.drafts / counts.calls)})" if counts.calls else ""
    yield f"  #gen drafts: it drafted in {counts.drafts:,} of these calls{share}."
    if counts.drafts:
        passed = numbers.percent(counts.accepted_drafts / counts.drafts)
        some = numbers.count(counts.accepted_drafts, "draft")
        yield f"  #acc drafts: {some} ({passed}) had at least one token accepted."
    if counts.drafted and counts.drafts:
        rate = numbers.percent(counts.accepted / counts.drafted)
        length = numbers.digits(1 + counts.accepted / counts.drafts)
        yield (
            f"  #gen tokens, #acc tokens: {counts.accepted:,} of {counts.drafted:,} drafted tokens were "
            f"accepted ({rate}). With the target's own, a round with a draft gave {length} tokens."
        )
    if counts.draft_ms is not None:
        each = f", {numbers.digits(counts.draft_ms / counts.calls)} ms a call" if counts.calls else ""
        yield (
            f"  dur(b,g,a): {counts.begin_ms:g} ms to begin, {counts.draft_ms:g} ms drafting{each}, "
            f"{counts.learn_ms:g} ms to process what was accepted. The target's passes are not included."
        )
