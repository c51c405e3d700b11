"""A real window in a process of its own, from outside."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import msgspec
import psutil

from app.base.paths import find_paths
from app.engine.types import ModelOptions
from app.saved.chats.chat_file import NAME
from app.saved.chats.conversation import Answer
from app.saved.chats.store import ChatStore
from app.saved.settings import Settings, SettingsStore
from tests.faults.window.look import Look
from tests.files.tiny import Tiny, write_tiny

_ROOT = Path(__file__).resolve().parents[3]
SLOW_CONTEXT = 8192
PATIENCE = 300.0  # seconds for anything that a window does, on a busy machine
_look = msgspec.json.Decoder(Look).decode


def furnish(home: Path, target: Path, **changes: Any) -> None:
    """Write the settings of a new home: this target alone, short answers, no network."""
    target_alone = {"target": ModelOptions(str(target)), "draft": None, "strategy": "none"}
    defaults: dict[str, Any] = {**target_alone, "max_tokens": 24, "offline": True}
    settings = Settings(**defaults | changes)
    SettingsStore(find_paths({"DRAFTSCOPE_HOME": str(home)}).settings).save(settings)


def slow_home(folder: Path, max_tokens: int) -> tuple[Path, Path]:
    """A target that takes its time, and a home whose windows load it; both in `folder`."""
    slow = Tiny(name="slow", n_layers=6, n_embd=128, n_ff=512, n_ctx=SLOW_CONTEXT)
    target = write_tiny(folder / "target.gguf", slow)
    furnish(folder / "home", target, max_tokens=max_tokens)
    return target, folder / "home"


def last_kept(home: Path) -> tuple[str, int]:
    """The question of the last chat on disk, and how many tokens of its answer are kept."""
    store = ChatStore(find_paths({"DRAFTSCOPE_HOME": str(home)}).chats)
    chat = store.load(store.heads()[0].id)
    answers = [turn for turn in chat.turns if isinstance(turn, Answer)]
    kept = store.load_trace(chat.id, answers[-1]).trace if answers else None
    return chat.turns[0].text or "", len(kept.token_ids) if kept is not None else 0


def own_display(stack: ExitStack) -> tuple[subprocess.Popen[bytes], str]:
    """A display of our own, and its name."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1280x800x24", "-nolisten", "tcp"]
    display = subprocess.Popen(command, pass_fds=(writing,), stderr=subprocess.DEVNULL)
    stack.callback(display.wait)
    stack.callback(display.kill)
    os.close(writing)
    with os.fdopen(reading) as told:
        return display, f":{told.readline().strip()}"


class DrivenWindow:
    """One window; every command returns what is to be seen afterwards."""

    def __init__(self, home: Path, prefix: Sequence[str] = (), **environment: str) -> None:
        """Open it, and wait until its models are loaded. `prefix` are words before its command."""
        own = {"DRAFTSCOPE_HOME": str(home), "QT_QPA_PLATFORM": "offscreen"}
        self._said = TemporaryFile()  # noqa: SIM115 # it is open as long as the window
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "tests.faults.window.driver"],
            cwd=_ROOT,
            env=os.environ | own | environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
        )
        self._children: set[psutil.Process] = set()
        self._unread = b""
        self._errors = ""  # what it had printed when it ended

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, do: str, **words: Any) -> None:
        """Give a command, and do not wait; `hear` must follow."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": do, **words}).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self) -> Look:
        """What is to be seen after the last command."""
        stdout = self._process.stdout
        assert stdout is not None
        deadline = time.monotonic() + PATIENCE
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while b"\n" not in self._unread:
                if selector.select(0.2):
                    self._unread += os.read(stdout.fileno(), 1 << 20)
                elif self._process.poll() is not None:
                    raise AssertionError(f"the window died ({self._process.returncode}): {self.errors()}")
                assert time.monotonic() < deadline, f"the window does not answer: {self.errors()}"
        line, self._unread = self._unread.split(b"\n", 1)
        self._children.update(psutil.Process(self.pid).children(recursive=True))
        return _look(line)

    def do(self, do: str, **words: Any) -> Look:
        """Give a command; returns what is to be seen when it is done."""
        self.tell(do, **words)
        return self.hear()

    def idle(self) -> Look:
        """Wait until it has nothing to do."""
        look = self.do("idle", seconds=PATIENCE / 2)
        assert look.activity in ("ready", "empty"), look
        return look

    def close(self) -> int:
        """Close it as a user does; returns its exit code."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self.ended()

    def signalled(self, number: int) -> int:
        """Send it a signal; returns its exit code."""
        with suppress(ProcessLookupError):
            self._process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Wait until it and all its processes are gone; returns the exit code."""
        try:
            code = self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                with suppress(BrokenPipeError):
                    pipe.close()
            self._errors = self.errors()
            self._said.close()
        _, left = psutil.wait_procs(self._children, PATIENCE / 4)
        assert not left, f"processes are left: {left}"
        assert "Traceback" not in self._errors, self._errors
        return code

    def errors(self) -> str:
        """What it printed on standard error."""
        if self._said.closed:
            return self._errors
        self._said.seek(0)
        return self._said.read().decode(errors="replace")[-4000:]


def chats_on_disk(home: Path) -> str:
    """Every chat file of a home, also of deleted chats."""
    found = find_paths({"DRAFTSCOPE_HOME": str(home)}).chats.rglob(NAME)
    return "\n".join(path.read_text(encoding="utf-8") for path in found)
