"""`draftscope explain`: what a command, a script or a log does about speculation, and the lane for it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from app.base import numbers
from app.base.files import open_file, reason
from app.cli.models.here import open_shelf
from app.cli.terminal.arguments import Parser
from app.cli.terminal.console import put
from app.engine.errors import UserError
from app.engine.explain.explained import explain_text
from app.engine.explain.server_command import ServerCommand

PROG = "draftscope explain"
_DESCRIPTION = """\
Explain what a command does about speculation, why it does not draft, and which Draftscope command and lane
is the same. It reads commands of llama-server, llama-cli, llama-speculative and vllm serve, and Python with
vLLM's LLM(...). For a log or lines of statistics, it says what each figure means. No model is loaded and
nothing is run."""
LARGEST = 64 * 2**20  # bytes of a file that is read
STANDARD_INPUT = "-"


def explain(argv: list[str]) -> int:
    """Read and print; returns the exit code. Raises UserError."""
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} TEXT-OR-FILE")
    parser.add_argument(
        "subject",
        metavar="TEXT-OR-FILE",
        help="A command or lines of a log, in quotes, or a file with a command, a script or a log; - is "
        "standard input",
    )
    subject: str = parser.parse_args(argv).subject
    if not subject.strip():
        raise UserError("There is nothing to explain.", "Give a command, or a log.")
    text, cut = subject, False
    # Unlike Path's, these functions answer for every name: of no such user, too long for a file.
    if subject == STANDARD_INPUT or os.path.lexists(subject):
        text, cut = _read(subject)
    elif len(subject.split()) == 1:
        raise UserError(
            f"{subject} is no file.", "Give a command with its options, in quotes, or a file's name."
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
    try:
        with sys.stdin.buffer if name == STANDARD_INPUT else open_file(Path(name)) as file:
            return file.read(LARGEST).decode("utf-8", errors="replace"), bool(file.read(1))
    except OSError as error:
        raise UserError(f"{name} cannot be read: {reason(error)}.", "Give another file.") from error


def _judged(command: ServerCommand) -> list[str]:
    """What the two files say about each other, if both are on this machine."""
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
