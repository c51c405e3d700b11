"""The commands by name, and the handling of their errors."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence

from app.cli.arguments import UsageError
from app.cli.console import PROGRAM, complain, drop, end_output, use_utf8
from app.cli.interrupt import INTERRUPTED
from app.engine.errors import SettingError, UserError

FAILED = 1
WRONG_USAGE = 2

COMMANDS = {
    "run": "generate one answer, without the window",
    "bench": "measure strategies side by side on the same prompts",
    "sweep": "measure one strategy over a grid of two of its settings",
    "tune": "find the fastest strategy on your prompts, within a time budget",
    "drafts": "find the best draft among the files at hand, by teacher forcing, in seconds",
    "compare": "compare two results of bench lane by lane, such as those of two builds",
    "explain": "say what a llama-server command or log does about speculation, and why it does not draft",
    "replay": "print a recorded trace, or verify it",
    "lessons": "list the lessons, or print one",
    "search": "find models on the Hugging Face Hub, with their sizes",
    "pull": "download a model, or a whole pair",
    "models": "list the models on this machine, and which of them can draft for a target",
    "devices": "list the devices that can hold layers, and what a pair would need there",
    "lookup-cache": "count a text's n-grams for ngram-cache, in llama.cpp's format",
    "worker": "hold layers of another machine's models",
    "report": "print versions, devices, settings and the log's end, without anything that was said",
    "check": "look for damage in chats, lists and measurements, and repair it",
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
    # Each command is imported where it is needed: llama.cpp takes a moment, Qt longer.
    match words[:1]:
        case ["run"]:
            from app.cli.answer.run import run

            return run(words[1:])
        case ["bench"]:
            from app.cli.measure.bench import bench

            return bench(words[1:])
        case ["sweep"]:
            from app.cli.measure.sweep import sweep

            return sweep(words[1:])
        case ["tune"]:
            from app.cli.measure.tune import tune

            return tune(words[1:])
        case ["drafts"]:
            from app.cli.measure.drafts import drafts

            return drafts(words[1:])
        case ["compare"]:
            from app.cli.measure.compare import compare

            return compare(words[1:])
        case ["explain"]:
            from app.cli.explain import explain

            return explain(words[1:])
        case ["replay"]:
            from app.cli.answer.replay import replay

            return replay(words[1:])
        case ["lessons"]:
            from app.cli.lessons import lessons

            return lessons(words[1:])
        case ["search"]:
            from app.cli.models.search import search

            return search(words[1:])
        case ["pull"]:
            from app.cli.models.pull import pull

            return pull(words[1:])
        case ["models"]:
            from app.cli.models.here import models

            return models(words[1:])
        case ["devices"]:
            from app.cli.devices import devices

            return devices(words[1:])
        case ["lookup-cache"]:
            from app.cli.lookup_cache import lookup_cache

            return lookup_cache(words[1:])
        case ["worker"]:
            from app.cli.worker import worker

            return worker(words[1:])
        case ["report"]:
            from app.cli.care import report

            return report(words[1:])
        case ["check"]:
            from app.cli.care import check

            return check(words[1:])
        case _:
            from app.cli.window import open_window

            return open_window(words, COMMANDS)


def _place(error: BaseException) -> str:
    """The place where an error was raised, for a bug report."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "no place"
