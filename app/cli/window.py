"""`draftscope` without a command: the window."""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from app import __version__
from app.cli.terminal.arguments import Parser, UsageError, add_engine_option
from app.cli.terminal.console import PROGRAM
from app.engine.devices.memory import IS_PACKAGE
from app.engine.errors import TraceError, UserError

_DESCRIPTION = "A playground for speculative decoding. Without a command the window opens."


def open_window(argv: list[str], commands: dict[str, str]) -> int:
    """Open the window; returns its exit code. `commands` maps every command's name to what it does."""
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
    raise TraceError(f"{name} is not there.", "Give the name of a trace file.")


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
