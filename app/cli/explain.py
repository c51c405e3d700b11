"""`draftscope explain`: what a llama-server command or log does about speculation, and the lane for it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import msgspec

from app.base import numbers
from app.base.files import open_file, reason
from app.cli.models.common import open_shelf
from app.cli.terminal.arguments import Parser
from app.cli.terminal.console import put
from app.engine.errors import UserError
from app.engine.explain.server_command import ServerCommand, explain_command
from app.engine.explain.server_log import ServerLog, read_log
from app.engine.strategy import NONE

PROG = "draftscope explain"
_DESCRIPTION = """\
Say what a llama-server command does about speculation, why it does not draft, and which of our commands and
lanes is the same; or what a llama-server log says about it. No model is loaded."""
LARGEST = 64 * 2**20  # bytes of a file that is read


def explain(argv: list[str]) -> int:
    """Read and print; returns the exit code. Raises UserError."""
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} COMMAND-OR-FILE")
    parser.add_argument(
        "subject",
        metavar="COMMAND-OR-FILE",
        help="A llama-server command line in quotes, or a file with one, or a file that llama-server logged",
    )
    subject: str = parser.parse_args(argv).subject
    if not subject.strip():
        raise UserError("There is nothing to explain.", "Give a llama-server command, or its log.")
    if _is_command(subject):
        put(_about_command(subject))
        return 0
    text, cut = _read(Path(subject))
    log = read_log(text.splitlines())
    if log.known:  # first, because a log may hold the command that it is of
        put(_log_lines(log))
        if cut:
            put([f"Only the first {numbers.file_size(LARGEST)} of the file were read."])
    elif _is_command(text):
        put(_about_command(text))
    else:
        raise UserError(
            f"{Path(subject).name} holds neither a llama-server command nor its log.",
            "Give the command in quotes, or a log; llama-server says more with --verbosity 4.",
        )
    return 0


def _about_command(text: str) -> list[str]:
    command = explain_command(text)
    return [*_command_lines(command), *_judged(command)]


def _is_command(text: str) -> bool:
    """Whether a text is a command: it begins with one, or with environment variables before one."""
    head = text.lstrip()[:2000]
    words = head.split()
    return (
        "llama-server" in head and any(word.startswith("-") for word in words) and len(head.splitlines()) < 60
    )


def _read(path: Path) -> tuple[str, bool]:
    """(the beginning of a file, whether there is more of it)"""
    try:
        with open_file(path) as file:
            return file.read(LARGEST).decode("utf-8", errors="replace"), bool(file.read(1))
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {reason(error)}.",
            "Give a llama-server command with its options, in quotes, or the name of a file.",
        ) from error


def _command_lines(command: ServerCommand) -> list[str]:
    models = command.target or "no model"
    drafts = f", drafts from {command.draft}" if command.draft else ""
    lines = [f"Answers from {models}{drafts}; strategy {command.strategy}."]
    lines += [f"! {problem}" for problem in command.problems]
    lines += [f"- {note}" for note in command.notes]
    if command.target:
        lane = {"strategy": command.strategy, "target": command.target}
        if command.draft:
            lane["draft"] = command.draft
        lines += ["", "Measured here:", f"  {shlex.join(command.bench)}", "As a lane for bench --lanes:"]
        lines.append(f"  {msgspec.json.encode([lane]).decode()}")
    return lines


def _judged(command: ServerCommand) -> list[str]:
    """What the two files say about each other, where both are on this machine."""
    # Unlike Path's, these functions answer for every name: of no such user, too long for a file.
    names = [os.path.expanduser(name) for name in (command.target, command.draft)]
    if not all(map(os.path.isfile, names)):
        return []
    paths = [Path(name) for name in names]
    with open_shelf() as shelf:
        target, draft = (shelf.at(path, ()) for path in paths)
        try:
            (candidate,) = shelf.candidates(target, [draft])
        except UserError as error:
            return [f"! {error}"]
    return ["", f"{draft.path.name} as a draft for {target.path.name}: {candidate}."]


def _log_lines(log: ServerLog) -> list[str]:
    lines = [f"! {problem}" for problem in log.problems]
    if log.strategies:
        drafting = [f"{name} ({settings})" if settings else name for name, settings in log.strategies.items()]
        lines.append(f"Drafts with {numbers.listed(drafting)}.")
    elif not log.drafted and log.requests:
        lines.append(f"Strategy {NONE}: nothing in the log drafts.")
    if log.requests:
        speed = numbers.digits(log.tokens / log.seconds if log.seconds else None)
        answers = numbers.count(log.requests, "answer")
        lines.append(f"{answers}, {log.tokens:,} tokens, {speed} tokens/s while generating.")
    if log.drafted:
        share = numbers.percent(log.accepted / log.drafted)
        saved = numbers.percent(log.accepted / log.tokens) if log.tokens else numbers.NONE
        lines.append(
            f"Acceptance {share}: {log.accepted:,} of {log.drafted:,} drafted tokens were accepted; "
            f"{saved} of all tokens came from a draft."
        )
    elif log.requests and log.strategies:
        lines.append("No token was drafted in these answers.")
    if log.checkpoints:
        again = f"; {numbers.count(log.restored, 'round')} were computed twice" if log.restored else ""
        lines.append(f"The target goes back by checkpoints, which makes a rejection dearer{again}.")
    if not log.strategies and not log.problems:
        lines.append("llama-server names its strategies with --verbosity 4.")
    return lines
