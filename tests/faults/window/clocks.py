"""A window, and a bench, while the computer's clock jumps: by hours, by years, back to 1970, in mid-answer.

A "file" of this kind is a plan: what is done, and how far the clock is ahead then.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from app.base.paths import find_paths
from app.care.check import check_data
from app.engine.record.stats import Statistics
from app.lab.runs.journal import Journal
from app.saved.chats.conversation import Answer
from app.saved.chats.store import ChatStore
from tests.faults.campaign import Fate, UnableError
from tests.faults.window.driven import DrivenWindow, chats_on_disk, furnish
from tests.files.tiny import Tiny, write_tiny

_SOURCE = Path(__file__).with_name("clock.c")
_DAY = 24 * 3600
_JUMPS = (0, 1, -1, 3600, -3600, 8 * _DAY, -8 * _DAY, 20 * 365 * _DAY, -20 * 365 * _DAY, 150 * 365 * _DAY)
_ACTIONS = ("ask", "ask", "ask", "new", "delete", "undo", "again", "bench")
_NEGATIVE = re.compile(r"(?<![\w–])[-−]\d")


class Step(msgspec.Struct):
    """An action, and by how many seconds the clock is ahead before it and in the middle of it."""

    do: str
    before: int
    within: int


class Clocks:
    """One window for all plans, whose clock is ours; it is opened anew where a plan says so."""

    name = "clocks"

    def __init__(self) -> None:
        """Raises UnableError where the clock of a program cannot be replaced."""
        compiler = shutil.which("cc")
        if sys.platform != "linux" or compiler is None:
            raise UnableError("that needs Linux and a C compiler")
        self._folder = Path(tempfile.mkdtemp(prefix="faults-"))
        library = self._folder / "clock.so"
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, _SOURCE, "-ldl"], check=True)
        self._ahead = self._folder / "ahead"
        self._set(0)
        self._own = {"LD_PRELOAD": str(library), "CLOCK_AHEAD": str(self._ahead)}
        self._target = write_tiny(self._folder / "target.gguf", Tiny(name="target", n_ctx=1024))
        self._window: DrivenWindow | None = None
        self._home = self._folder
        self._plans = 0

    def make(self, random: Random) -> bytes:
        def jump() -> int:
            year_1970 = -int(56 * 365.25 * _DAY)
            return random.choice((*_JUMPS, year_1970, random.randrange(-_DAY, _DAY)))

        actions = [random.choice(_ACTIONS) for _ in range(random.randrange(3, 7))]
        # More than one new start may let days pass, after which deleted chats go for good.
        once = (do for at, do in enumerate(actions) if do == "ask" or do not in actions[:at])
        return msgspec.json.encode([Step(do, jump(), jump()) for do in once])

    def open(self, data: bytes) -> Fate:
        steps = msgspec.json.decode(data, type=list[Step])
        self._plans += 1
        try:
            if self._window is None:
                self._home = self._folder / f"home-{self._plans}"
                furnish(self._home, self._target)
                self._window = self._opened()
            for at, step in enumerate(steps):
                self._do(step, f"abcab {self._plans}-{at}-")
            asked = [f"abcab {self._plans}-{at}-" for at, step in enumerate(steps) if step.do == "ask"]
            on_disk = chats_on_disk(self._home)
            assert not [text for text in asked if text not in on_disk], "a question is lost"
            self._check()
        except BaseException:
            if self._window is not None:
                self._window.signalled(signal.SIGKILL)
            self._window = None
            raise
        return Fate.OPENED

    def _opened(self) -> DrivenWindow:
        window = DrivenWindow(self._home, **self._own)
        look = window.idle()
        assert look.error == "", look
        return window

    def _do(self, step: Step, text: str) -> None:
        assert self._window is not None
        self._set(step.before)
        if step.do == "bench":
            self._bench()
            return
        if step.do == "again":
            assert self._window.close() == 0
            self._window = self._opened()
        else:
            words: dict[str, dict[str, Any]] = {"ask": {"text": text}, "delete": {"row": 0}}
            self._window.do(step.do, **words.get(step.do, {}))
        self._set(step.within)
        look = self._window.idle()
        assert look.error == "", look
        assert not _NEGATIVE.search(look.status), look.status
        if step.do == "ask":
            assert text in look.texts and look.tokens, look

    def _bench(self) -> None:
        """A measurement, while the clock jumps all the time."""
        journal = self._folder / f"{self._plans}.jsonl"
        files = ["--target", str(self._target), "--journal", str(journal)]
        words = "--strategy prompt-lookup --prompt abcabc --max-tokens 50 --ignore-eos"
        command = [sys.executable, "-m", "app", "bench", *files, *words.split()]
        environment = os.environ | self._own | {"DRAFTSCOPE_HOME": str(self._home)}
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            random = Random(self._plans)
            while process.poll() is None:
                self._set(random.choice(_JUMPS))
                time.sleep(0.05)
            out, err = process.communicate()
        assert process.returncode == 0, err
        assert not _NEGATIVE.search(out), out
        kept = Journal.read(journal)
        assert set(kept.records) == set(kept.experiment.jobs())
        journal.unlink()

    def _set(self, seconds: int) -> None:
        """Let the clock be ahead by so much; never before 1970."""
        told = struct.pack("q", max(seconds, 3600 - int(time.time())))
        if not self._ahead.exists():
            self._ahead.write_bytes(told)
        with self._ahead.open("r+b") as file:
            file.write(told)

    def _check(self) -> None:
        """What the window has written so far."""
        paths = find_paths({"DRAFTSCOPE_HOME": str(self._home)})
        store = ChatStore(paths.chats)
        for head in store.heads():
            chat = store.load(head.id)
            for turn in chat.turns:
                if isinstance(turn, Answer):
                    trace = store.load_trace(chat.id, turn).trace
                    assert trace is not None and trace.totals is not None
                    assert all(round.seconds >= 0 and round.offset >= 0 for round in trace.rounds)
                    assert Statistics.of(trace.rounds).emitted == len(trace.token_ids)
        assert not [finding for finding in check_data(paths) if finding.mend is None], check_data(paths)

    def close(self) -> None:
        try:
            assert self._window is None or self._window.close() == 0
        finally:
            shutil.rmtree(self._folder)
