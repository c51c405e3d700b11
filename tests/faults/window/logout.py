"""Windows that end while something goes on, as the end of a session ends them: by signals, by the session
manager's quit, by a display that is gone, and by force.

A "file" of this kind is a plan: by what, how soon, and in the middle of what.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from random import Random

import msgspec

from app.base.paths import find_paths
from app.care.check import check_data
from app.saved.chats.store import ChatStore
from app.saved.settings import SettingsStore
from tests.faults.campaign import Fate
from tests.faults.window.driven import DrivenWindow, last_kept, own_display, slow_home

_QUIT, _DISPLAY = "quit", "display"
_SIGNALS = ("SIGTERM", "SIGHUP", "SIGINT", "SIGKILL")
_KEPT_WITHIN = 10.0  # seconds, on a busy machine, for words that are kept within one
_DOING = ("answering", "answering", "answering", "loading", "idle")


class Plan(msgspec.Struct):
    """How a window ends."""

    by: str
    doing: str
    after: float  # seconds


class Logouts:
    """One home for all plans. Each opens a window on what the one before left, and ends it."""

    name = "logouts"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="faults-"))
        self._target, self._home = slow_home(self._folder, max_tokens=8000)
        self._plans = 0
        self._asked = ""  # the question that stands in the last chat
        self._typed = ""  # what is typed there and not sent

    def make(self, random: Random) -> bytes:
        displays = (_DISPLAY,) if shutil.which("Xvfb") else ()
        by = random.choice((*_SIGNALS, _QUIT, *displays))
        after = random.choice((0.0, random.uniform(0, 0.1), random.uniform(0, 1.0)))
        return msgspec.json.encode(Plan(by, random.choice(_DOING), after))

    def open(self, data: bytes) -> Fate:
        plan = msgspec.json.decode(data, type=Plan)
        self._plans += 1
        scale = 1.0 + self._plans % 5 / 8
        with ExitStack() as stack:
            shown = self._end(plan, scale, stack)
        paths = find_paths({"DRAFTSCOPE_HOME": str(self._home)})
        if plan.by != "SIGKILL":  # which leaves no time for what was set a moment before
            assert SettingsStore(paths.settings).load().settings.text_scale == scale, "a setting is lost"
        if plan.doing == "answering":
            question, kept = last_kept(self._home)
            assert question == self._asked
            assert kept >= shown, f"{shown} tokens were shown, {kept} are kept"
            assert self._unsent() == self._typed, "what was typed is lost"
        if plan.by == "SIGKILL":
            self._asked = ""  # which chat the next window opens was set a moment before, too
        else:
            assert check_data(paths) == (), check_data(paths)
        return Fate.ENDED

    def _end(self, plan: Plan, scale: float, stack: ExitStack) -> int:
        """Open a window and end it as planned; returns how many tokens of its answer it showed."""
        display: subprocess.Popen[bytes] | None = None
        environment = {}
        if plan.by == _DISPLAY:
            display, name = own_display(stack)
            environment = {"QT_QPA_PLATFORM": "xcb", "DISPLAY": name}
        window = DrivenWindow(self._home, **environment)
        look = window.idle()
        assert look.error == "" and look.target == self._target.name, look
        paths = find_paths({"DRAFTSCOPE_HOME": str(self._home)})
        # SIGKILL may have left a half written file: the next start removes it.
        assert check_data(paths) == (), check_data(paths)
        assert not self._asked or (look.texts[0], look.prompt) == (self._asked, self._typed), look
        window.do("set", text_scale=scale)
        shown = 0
        if plan.doing == "answering":
            self._asked = f"abcabcab {self._plans}?"
            window.do("new")
            window.do("ask", text=self._asked)
            self._typed = f"not sent {self._plans}"
            window.do("type", text=self._typed)
            deadline = time.monotonic() + _KEPT_WITHIN
            while plan.by == "SIGKILL" and self._unsent() != self._typed and time.monotonic() < deadline:
                time.sleep(0.05)  # the others save it when they come
        elif plan.doing == "loading":
            window.do("load", target=str(self._target), seconds=0)
        time.sleep(plan.after)
        if plan.doing == "answering":
            shown = window.do("look").tokens
        if plan.by == _QUIT:
            window.do(_QUIT)
            assert window.ended() == 0
        elif display is not None:
            display.kill()
            code = window.ended()
            assert code == 1, f"it ended with {code}: {window.errors()}"
        else:
            number = getattr(signal, plan.by)
            assert window.signalled(number) == (-number if plan.by == "SIGKILL" else 128 + number)
        return shown

    def _unsent(self) -> str:
        """What is kept of the words that were typed in the last chat."""
        store = ChatStore(find_paths({"DRAFTSCOPE_HOME": str(self._home)}).chats)
        return store.unsent.read(store.heads()[0].id).text

    def close(self) -> None:
        shutil.rmtree(self._folder)
