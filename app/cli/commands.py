"""The commands by name, and the handling of their errors; without a command, the window."""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name

from app import __version__
from app.cli.terminal.arguments import Parser, UsageError, add_engine_option
from app.cli.terminal.console import PROGRAM, complain, drop, end_output, use_utf8
from app.cli.terminal.interrupt import INTERRUPTED
from app.engine.devices.memory import IS_PACKAGE
from app.engine.errors import SettingError, TraceError, UserError

FAILED = 1
WRONG_USAGE = 2

_COMMANDS = """
run answer.run:run generate one answer, without the window
audit answer.audit:audit_command find out whether drafting changes an answer, and whether that is a fault
bench measure.bench:bench measure strategies side by side on the same prompts
sweep measure.bench:sweep measure one strategy over a grid of two of its settings
tune measure.tune:tune find the fastest strategy on your prompts, within a time budget
advise advise:advise propose a strategy for your kind of work, with the commands of llama.cpp and vLLM
drafts measure.drafts:drafts find the best draft among the files at hand, by teacher forcing
quants measure.quants:quants make more quantisations of a model, and find the fastest with drafts
compare measure.compare:compare compare two results of bench lane by lane, such as those of two builds
history measure.compare:history show how the results in a folder changed from version to version
explain advise:explain explain a command or log of llama.cpp or vLLM: what it drafts, or why it does not
replay answer.replay:replay print a recorded trace, or verify it
lessons lessons:lessons list the lessons, or print one
search models.hub:search find models on the Hugging Face Hub, with their sizes
pull models.hub:pull download a model, or a whole pair
models models.here:models list the models on this machine, and which of them can draft for a target
devices devices:devices list the devices that can run layers, and the memory that a pair would need
lookup-cache lookup_cache:lookup_cache count a text's n-grams for ngram-cache, in llama.cpp's format
worker devices:worker run layers of models for a different machine
report care:report print versions, devices, settings and the end of the log, without chat text
check care:check look for damage in chats, lists and measurements, and repair it
"""
COMMANDS = {
    name: (function, does)
    for name, function, does in (line.split(maxsplit=2) for line in _COMMANDS.strip().splitlines())
}
"""By name: its module in app.cli and its name there, imported when it is called, since llama.cpp takes a
moment; and what it does."""


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
        act: Callable[[list[str]], int] = resolve_name(f"app.cli.{command[0]}")
        return act(words[1:])
    return open_window(words, {name: does for name, (_function, does) in COMMANDS.items()})


def _place(error: BaseException) -> str:
    """The place where an error was raised, for a bug report."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "no place"


_DESCRIPTION = "A playground for speculative decoding. Without a command the window opens."


def open_window(argv: list[str], commands: dict[str, str]) -> int:
    """Open the window; returns its exit code. `commands` maps every command's name to its description."""
    parser = Parser(PROGRAM, _DESCRIPTION, _usage(commands), _epilog(commands))
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("trace", nargs="?", metavar="TRACE.jsonl", help="Open a recorded trace in the window")
    shown.add_argument("--demo", action="store_true", help="Start the first demo prompt")
    add_engine_option(parser)
    if argv and not argv[0].startswith("-"):
        _check_trace(argv[0], commands)  # before its options, which may be those of an unknown command
    arguments = parser.parse_args(argv)
    if arguments.trace is not None:
        _check_trace(arguments.trace, commands)
    check_display()
    gc.disable()  # modules stay: looking for garbage among them takes a twentieth of the start
    try:
        from app.wiring import run_window
    except ImportError as error:
        missing = (
            "Install a desktop's libraries: X11 or Wayland, OpenGL, fontconfig, D-Bus"
            if IS_PACKAGE
            else "make run installs missing libraries"
        )
        raise UserError(
            f"The window cannot be opened: {error}.", f"{missing}; draftscope run needs no window."
        ) from error
    finally:
        gc.enable()
    return run_window(engine=arguments.engine, trace=arguments.trace, demo=arguments.demo)


def _check_trace(name: str, commands: dict[str, str]) -> None:
    """Raise UsageError for an unknown or misplaced command, TraceError for a missing trace."""
    if Path(name).is_file():
        return
    if name in commands:
        raise UsageError(f"{name} must come first.", f"Write {PROGRAM} {name} ….")
    if Path(name).suffix != ".jsonl":
        raise UsageError(
            f"There is no command and no file “{name}”.",
            f"Allowed: {', '.join(commands)}, or the name of a trace file.",
        )
    raise TraceError(f"{name} does not exist.", "Give the name of a trace file.")


def _usage(commands: dict[str, str]) -> str:
    forms = ["[TRACE.jsonl | --demo] [--engine process|thread]", *(f"{name} …" for name in commands)]
    return "\n       ".join(f"{PROGRAM} {form}" for form in forms)


def _epilog(commands: dict[str, str]) -> str:
    width = max(map(len, commands))
    lines = [f"  {name:<{width}}  {what}" for name, what in commands.items()]
    return "\n".join(["commands:", *lines, f"  {PROGRAM} COMMAND --help says more"])


def check_display(environment: Mapping[str, str] = os.environ) -> None:
    """Raise UserError if there is no display for a window."""
    if sys.platform in ("darwin", "win32"):
        return
    asked = environment.get("QT_QPA_PLATFORM", "")  # plug-ins with options, such as "wayland;xcb:…"
    if any(not plugin.startswith(("wayland", "xcb")) for plugin in asked.split(";") if plugin):
        return
    display = environment.get("DISPLAY", "")
    if _has_wayland(environment) or (display and _has_x11(display)):
        return
    raise UserError(
        f"The display {display} cannot be reached." if display else "There is no display for a window.",
        "These need no display: draftscope run, bench, sweep, tune and replay. draftscope --help lists all.",
    )


def _has_wayland(environment: Mapping[str, str]) -> bool:
    name = environment.get("WAYLAND_DISPLAY", "")
    if not name:
        return False
    path = os.path.join(environment.get("XDG_RUNTIME_DIR", ""), name)  # the name may be a whole path
    with socket.socket(socket.AF_UNIX) as compositor:
        try:
            compositor.connect(path)
        except OSError:
            return False
    return True


def _has_x11(display: str) -> bool:
    """Connect with the library that Qt uses: it knows every form of a display's name."""
    try:
        xcb = ctypes.CDLL("libxcb.so.1")
    except OSError:
        return True  # it is missing for Qt too, which reports it
    xcb.xcb_connect.restype = ctypes.c_void_p
    connection = ctypes.c_void_p(xcb.xcb_connect(os.fsencode(display), None))
    failed = xcb.xcb_connection_has_error(connection)
    xcb.xcb_disconnect(connection)
    return not failed
