"""Shows a chat on a screen of its own, and prints what a screen reader gets of it over the bus."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import time
from threading import Thread
from typing import TYPE_CHECKING

from tests.benchmarks.ui.screen import screen

if TYPE_CHECKING:
    from app.ui.theme import Theme
    from app.ui.transcript import TranscriptView

READ = "You:\nTell me\ntiny, 2 rounds, 3 accepted, 1 rejected:\nA fox sat on a\n"
"""The chat of `shown` as a screen reader reads it."""
_ROOT = "/org/a11y/atspi/accessible/root"
_OBJECT, _TEXT = "org.a11y.atspi.Accessible", "org.a11y.atspi.Text"
_GET = "org.freedesktop.DBus.Properties.Get"
_PATIENCE = 20.0  # seconds


def shown(theme: Theme) -> TranscriptView:
    """A question and its answer."""
    from app.ui.state.answer import AnswerModel
    from app.ui.transcript import AnswerTurn, TranscriptView, UserTurn
    from tests.ui.traces import make_round, make_trace

    rounds = [
        make_round(0, (b"A", b" fox"), b" sat", position=0),
        make_round(1, (b" on",), b" a", rejected=b" the", position=3),
    ]
    view = TranscriptView(theme)
    view.set_turns([UserTurn("Tell me", 0), AnswerTurn(AnswerModel(make_trace(rounds)), "tiny", 1)])
    view.resize(400, 300)
    view.show()
    return view


def call(address: str, name: str, path: str, method: str, *arguments: str) -> str:
    """The answer to a call over a bus; "" is the bus of the session."""
    bus = ["--address", address] if address else ["--session"]
    command = ["gdbus", "call", *bus, "-d", name, "-o", path, "-m", method, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def read() -> str:
    """The first text on the bus, found from the root of all applications."""
    address = call("", "org.a11y.Bus", "/org/a11y/bus", "org.a11y.Bus.GetAddress").split("'")[1]
    waiting = [("org.a11y.atspi.Registry", _ROOT)]
    while waiting:
        name, path = waiting.pop(0)
        if _TEXT in call(address, name, path, f"{_OBJECT}.GetInterfaces"):
            count = call(address, name, path, _GET, _TEXT, "CharacterCount")
            (length,) = re.findall(r"\d+", count)
            (found,) = ast.literal_eval(call(address, name, path, f"{_TEXT}.GetText", "0", length))
            return str(found)
        children = call(address, name, path, f"{_OBJECT}.GetChildren")
        waiting += re.findall(r"\('([^']+)', (?:objectpath )?'([^']+)'\)", children)
    return ""


def main() -> None:
    with screen(800, 600):
        from PySide6.QtWidgets import QApplication

        from app.base.paths import find_paths
        from app.ui.theme import Theme

        application = QApplication([])
        view = shown(Theme(find_paths().fonts, "light"))
        found = [""]

        def ask() -> None:
            ends = time.monotonic() + _PATIENCE
            while not found[0] and time.monotonic() < ends:
                try:
                    found[0] = read()
                except subprocess.CalledProcessError:
                    time.sleep(0.1)  # the bus is not there yet

        asking = Thread(target=ask)
        asking.start()
        while asking.is_alive():
            application.processEvents()
            time.sleep(0.005)
        view.close()
        print(repr(found[0]), flush=True)
    os._exit(0)  # the bus is of this session, and Qt waits for it


if __name__ == "__main__":
    main()
