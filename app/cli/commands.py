"""The commands by name, and the handling of their errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from pkgutil import resolve_name
from typing import NamedTuple

from app.cli.terminal.arguments import UsageError
from app.cli.terminal.console import PROGRAM, complain, drop, end_output, use_utf8
from app.cli.terminal.interrupt import INTERRUPTED
from app.engine.errors import SettingError, UserError

FAILED = 1
WRONG_USAGE = 2


class Subcommand(NamedTuple):
    function: str
    """Its module in app.cli, and its name there; imported when it is called: llama.cpp takes a moment."""
    does: str


COMMANDS = {
    "run": Subcommand("answer.run:run", "generate one answer, without the window"),
    "audit": Subcommand(
        "answer.audit:audit_command",
        "find out whether drafting changes an answer, and whether that is a fault",
    ),
    "bench": Subcommand("measure.bench:bench", "measure strategies side by side on the same prompts"),
    "sweep": Subcommand("measure.bench:sweep", "measure one strategy over a grid of two of its settings"),
    "tune": Subcommand(
        "measure.tune:tune", "find the fastest strategy on your prompts, within a time budget"
    ),
    "advise": Subcommand(
        "advise:advise", "propose a strategy for your kind of work, with the commands of llama.cpp and vLLM"
    ),
    "drafts": Subcommand(
        "measure.drafts:drafts", "find the best draft among the files at hand, by teacher forcing"
    ),
    "quants": Subcommand(
        "measure.quants:quants", "make more quantisations of a model, and find the fastest with drafts"
    ),
    "compare": Subcommand(
        "measure.compare:compare", "compare two results of bench lane by lane, such as those of two builds"
    ),
    "history": Subcommand(
        "measure.compare:history", "show how the results in a folder changed from version to version"
    ),
    "explain": Subcommand(
        "advise:explain",
        "explain a command or log of llama.cpp or vLLM: what it drafts, or why it does not",
    ),
    "replay": Subcommand("answer.replay:replay", "print a recorded trace, or verify it"),
    "lessons": Subcommand("lessons:lessons", "list the lessons, or print one"),
    "search": Subcommand("models.hub:search", "find models on the Hugging Face Hub, with their sizes"),
    "pull": Subcommand("models.hub:pull", "download a model, or a whole pair"),
    "models": Subcommand(
        "models.here:models", "list the models on this machine, and which of them can draft for a target"
    ),
    "devices": Subcommand(
        "devices:devices", "list the devices that can run layers, and the memory that a pair would need"
    ),
    "lookup-cache": Subcommand(
        "lookup_cache:lookup_cache", "count a text's n-grams for ngram-cache, in llama.cpp's format"
    ),
    "worker": Subcommand("devices:worker", "run layers of models for a different machine"),
    "report": Subcommand(
        "care:report", "print versions, devices, settings and the end of the log, without chat text"
    ),
    "check": Subcommand("care:check", "look for damage in chats, lists and measurements, and repair it"),
}


def run_command(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` (by default the program's own) names; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    use_utf8()
    name = f"{PROGRAM} {words[0]}" if words and words[0] in COMMANDS else PROGRAM
    try:
        return _run(words)
    except SystemExit as end:  # argparse, after --help and --version
        return end.code if isinstance(end.code, int) else 0
    except (UsageError, SettingError) as error:
        complain(name, str(error))
        return WRONG_USAGE
    except UserError as error:
        complain(name, str(error))
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader of a list or a table has read enough
        drop(sys.stdout)
        return 0
    except Exception as error:
        complain(name, f"Unexpected error: {type(error).__name__}: {error} ({_place(error)})")
        return FAILED
    finally:
        end_output()


def _run(words: list[str]) -> int:
    command = COMMANDS.get(words[0]) if words else None
    if command is not None:
        act: Callable[[list[str]], int] = resolve_name(f"app.cli.{command.function}")
        return act(words[1:])
    from app.cli.window import open_window  # no command needs it

    return open_window(words, {name: command.does for name, command in COMMANDS.items()})


def _place(error: BaseException) -> str:
    """The place where an error was raised, for a bug report."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "no place"
