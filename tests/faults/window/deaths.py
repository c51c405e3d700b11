"""Engines that die or hang under one real window, at any moment: loading, reading the prompt, answering.

A "file" of this kind is a plan: by what the engine ends, in the middle of what, and how soon. The window must
say it in a sentence, keep the question and every token that it showed, and answer again.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from random import Random

import msgspec

from app.base.paths import find_paths
from app.care.check import check_data
from tests.faults.campaign import Fate, checked
from tests.faults.window.driven import SLOW_CONTEXT, DrivenWindow, last_kept, own_display, slow_home
from tests.faults.window.look import Look
from tests.processes import started

_HANG = "SIGSTOP"
_SIGNALS = ("SIGKILL", "SIGKILL", "SIGABRT", "SIGSEGV", "SIGBUS", "SIGTERM", _HANG)
_DOING = ("loading", "reading", "answering")
_PATIENCE = 120.0  # seconds for anything that the window does, on a busy machine


class Plan(msgspec.Struct):
    """How an engine ends."""

    by: str
    doing: str
    after: float  # seconds


class WindowDeaths:
    """One window for all plans; every engine of it dies."""

    name = "deaths in the window"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="faults-"))
        self._target, self._home = slow_home(self._folder, max_tokens=6000)
        self._display = ExitStack()
        environment = {}
        if shutil.which("Xvfb"):
            environment = {"QT_QPA_PLATFORM": "xcb", "DISPLAY": own_display(self._display)[1]}
        self._window = DrivenWindow(self._home, **environment)
        self._window.idle()
        self._plans = 0

    def make(self, random: Random) -> bytes:
        after = random.choice((0.0, random.uniform(0, 0.1), random.uniform(0, 1.0)))
        return msgspec.json.encode(Plan(random.choice(_SIGNALS), random.choice(_DOING), after))

    def open(self, data: bytes) -> Fate:
        plan = msgspec.json.decode(data, type=Plan)
        self._plans += 1
        self._load()
        if plan.doing == "loading":
            self._dies_loading(plan)
        else:
            self._dies_answering(plan)
        self._load()
        paths = find_paths({"DRAFTSCOPE_HOME": str(self._home)})
        assert check_data(paths) == (), check_data(paths)
        return Fate.ENDED

    def _load(self) -> None:
        """Have the target loaded, as a user has to where a load failed."""
        look = self._window.idle()
        if look.activity != "ready":
            self._window.do("load", target=str(self._target), seconds=_PATIENCE, context=SLOW_CONTEXT)
            look = self._window.idle()
        assert (look.activity, look.target) == ("ready", self._target.name), look

    def _dies_loading(self, plan: Plan) -> None:
        context = SLOW_CONTEXT - 64 * (self._plans % 2 + 1)  # another one than before
        self._window.do("load", target=str(self._target), seconds=0, context=context)
        time.sleep(plan.after)
        self._kill(plan)
        if plan.by == _HANG:  # the user takes another pair
            self._window.do("load", target=str(self._target), seconds=_PATIENCE, context=SLOW_CONTEXT)
        look = self._until(lambda look: look.activity != "loading")
        if look.error:
            checked(look.error)

    def _dies_answering(self, plan: Plan) -> None:
        self._window.do("new")
        reading = plan.doing == "reading"
        question = f"abcabcab {self._plans}? " + "cab abc " * (500 if reading else 1)
        self._window.do("ask", text=question)
        if not reading:
            self._until(lambda look: look.tokens > 0)
        time.sleep(plan.after)
        self._kill(plan)
        if plan.by == _HANG and self._window.do("look").activity in ("reading", "generating"):
            self._window.do("stop")
            self._until(lambda look: "has not stopped" in look.error or look.activity == "ready")
            self._window.do("way out")
        shown = self._window.do("look").tokens
        look = self._window.idle()
        assert question.strip() in (*(text.strip() for text in look.texts), look.prompt.strip()), look
        assert look.tokens >= shown, f"{shown} tokens were shown, {look.tokens} are"
        words = look.error or (look.notes[-1] if look.notes else "")
        checked(words)
        if look.prompt.strip() != question.strip():  # where it is given back, nothing was answered
            self._check_kept(question, look.tokens)

    def _check_kept(self, question: str, shown: int) -> None:
        """The question is on disk, and every token that is on the screen."""
        on_disk, kept = last_kept(self._home)
        assert on_disk.strip() == question.strip(), "the question is not on disk"
        assert kept == shown, f"{shown} tokens are shown, {kept} are kept"

    def _kill(self, plan: Plan) -> None:
        for process in started(self._window.pid):
            if "multiprocessing" in " ".join(process.cmdline()):
                os.kill(process.pid, getattr(signal, plan.by))

    def _until(self, reached: Callable[[Look], bool]) -> Look:
        deadline = time.monotonic() + _PATIENCE
        while not reached(look := self._window.do("look")):
            assert time.monotonic() < deadline, look
            time.sleep(0.02)
        return look

    def close(self) -> None:
        try:
            assert self._window.close() == 0
        finally:
            self._display.close()
            shutil.rmtree(self._folder)
