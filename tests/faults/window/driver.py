"""The process of a driven window: `python -m tests.faults.window.driver`, on the home of its environment.

It is the program's own window and event loop. Commands come on standard input, one JSON object a line; each
is answered with a `Look`, once it is done.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import msgspec
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QSocketNotifier, QTimer, Slot
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QListView, QPushButton
from pytestqt.qtbot import QtBot

from app import wiring
from app.base.paths import Paths
from app.engine.types import ModelOptions
from app.ui.chat.chat_rows import ID
from app.ui.chat.prompt_edit import PromptEdit
from app.ui.state.engine_session import Activity
from app.ui.window.main_window import MainWindow
from tests.faults.window.look import Look
from tests.ui.named import words_in
from tests.ui.windows import Desk

_STEP = 10  # milliseconds between two looks


class _Hands:
    """What a desk needs of pytest-qt's bot."""

    keyClick = staticmethod(QTest.keyClick)  # noqa: N815 # pytest-qt's name
    keyClicks = staticmethod(QTest.keyClicks)  # noqa: N815


class Driver(QObject):
    """Carries out the commands of standard input in a window."""

    def __init__(self, window: MainWindow, paths: Paths) -> None:
        super().__init__(window)
        self._window = window
        self._desk = Desk(cast(QtBot, _Hands()), window, paths)
        self._unread = b""
        self._notifier = QSocketNotifier(sys.stdin.fileno(), QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._take)

    @Slot()
    def _take(self) -> None:
        came = os.read(sys.stdin.fileno(), 65536)
        if not came:
            self._notifier.setEnabled(False)
            self._window.close()
            return
        *lines, self._unread = (self._unread + came).split(b"\n")
        for line in lines:
            words = json.loads(line)
            self._do(words.pop("do"), words)
            print(msgspec.json.encode(self._look()).decode(), flush=True)

    def _do(self, name: str, words: dict[str, Any]) -> None:
        actions: dict[str, Callable[..., object]] = {
            "look": lambda: None,
            "load": self._load,
            "ask": self._desk.type,
            "type": lambda text: QTest.keyClicks(self._desk.page.prompt.findChild(PromptEdit), text),
            "idle": self._wait_idle,
            "stop": self._desk.controller.stop,
            "new": self._desk.controller.new_chat,
            "open": lambda row: self._on_chat(row, self._desk.page.chats.chat_chosen.emit),
            "rename": lambda row, title: self._on_chat(
                row, lambda chat: self._desk.page.chats.renamed.emit(chat, title)
            ),
            "delete": lambda row: self._on_chat(row, self._desk.page.chats.delete_requested.emit),
            "undo": self._desk.page.chats.undo,
            "regenerate": self._desk.controller.regenerate,
            "set": self._window.settings.change,
            "preset": self._save_preset,
            "way out": self._way_out,
            "quit": self._quit,
        }
        actions[name](**words)

    def _load(self, target: str, seconds: float, context: int = 64) -> None:
        """Apply a target; returns when it is loaded or refused, or after so many seconds."""
        self._desk.header.target_panel.applied.emit(ModelOptions(target, ctx_size=context))
        self._wait(lambda: self._desk.session.activity is not Activity.LOADING, seconds)

    def _save_preset(self, name: str) -> None:
        self._desk.header.presets_panel.save_requested.emit(name)

    def _way_out(self) -> None:
        """Press the last button beside the error, as far as there is one."""
        for notice in self._desk.page.prompt.notices.strips:
            for button in notice.findChildren(QPushButton):
                if button.text() in notice.ways_out[-1:]:
                    button.click()
                    return

    def _quit(self) -> None:
        """What Qt does where the session manager says that the session is over."""
        QCoreApplication.sendEvent(QCoreApplication.instance(), QEvent(QEvent.Type.Quit))

    def _wait_idle(self, seconds: float) -> None:
        """Wait until nothing is loaded, read or answered, and no question waits."""
        busy = (Activity.LOADING, Activity.READING, Activity.GENERATING, Activity.STOPPING)
        self._wait(lambda: self._desk.session.activity not in busy, seconds)

    def _wait(self, condition: Callable[[], bool], seconds: float) -> None:
        for _ in range(round(seconds * 1000 / _STEP)):
            if condition():
                return
            QTest.qWait(_STEP)

    def _on_chat(self, row: int, act: Callable[[str], object]) -> None:
        """Act on the chat in a row of the list, as far as there is one."""
        rows = self._desk.page.chats.findChild(QListView).model()
        if rows.rowCount():
            act(rows.index(row % rows.rowCount(), 0).data(ID))

    def _look(self) -> Look:
        desk, session = self._desk, self._desk.session
        pair = session.pair
        return Look(
            session.activity,
            desk.error(),
            desk.texts(),
            desk.notes(),
            desk.tokens(),
            desk.chats(),
            os.path.basename(pair.target.path) if pair is not None else "",
            desk.page.prompt.text(),
            words_in(desk.window.status),
        )


def main() -> int:
    """Open the window, drive it, and return its exit code."""
    for name in ("SIGHUP", "SIGINT"):  # a run in the background may ignore them
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    made = wiring.make_window

    def driven(*arguments: Any) -> MainWindow:
        window = made(*arguments)
        window.shown_first.connect(
            lambda: QTimer.singleShot(0, window, partial(Driver, window, arguments[1]))
        )
        return window

    wiring.make_window = driven  # type: ignore[assignment] # with the same arguments
    return wiring.run_window("process")


if __name__ == "__main__":
    sys.exit(main())
