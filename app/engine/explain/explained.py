"""A text that people have, explained: a command of llama.cpp or vLLM, a script, a log."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from app.base import numbers
from app.engine.errors import UserError
from app.engine.explain.llama_flags import PROGRAMS
from app.engine.explain.server_command import (
    API_SERVER,
    ServerCommand,
    explain_command,
    program_of,
    split_command,
)
from app.engine.explain.server_log import ServerLog, StrategyCounts, read_log
from app.engine.explain.vllm_reading import VLLM, explain_script, explain_vllm
from app.engine.strategy import NONE

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
    """The command and the lane that measure the same here."""
    command: ServerCommand | None = None  # None: it is a log


def explain_text(text: str) -> ExplainedText:
    """Explain a command, a script or a log; raises UserError where it is none of them."""
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
        yield f"The target goes back by checkpoints, which makes a rejection dearer{again}."
    if not log.strategies and not log.counts and not log.problems:
        yield "llama-server names its strategies with --verbosity 4."


def _counted(name: str, counts: StrategyCounts) -> Iterator[str]:
    """Each figure of a strategy's line, under llama.cpp's name for it."""
    yield f"{name}:"
    asked = numbers.count(counts.calls, "time")
    if counts.begun is None:
        yield f"  #calls: it was asked for a draft {asked}."
    else:
        prompts, learned = numbers.count(counts.begun, "prompt"), numbers.count(counts.learned or 0, "time")
        yield (
            f"  #calls(b,g,a): it began with {prompts}, was asked for a draft {asked}, and was told "
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
            f"{counts.learn_ms:g} ms to take in what was accepted. The target's passes are not included."
        )
