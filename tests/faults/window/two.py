"""Two windows on one home folder, at the same time in the same chats, one of them sometimes killed.

A "file" of this kind is a plan: what is done in each of them, step by step. The windows of a step act at the
same time; between steps both are waited for.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from pathlib import Path
from random import Random
from typing import Any

import msgspec

from app.base.paths import find_paths
from app.care.check import check_data
from app.saved.presets import PresetStore
from tests.faults.campaign import Fate, checked
from tests.faults.window.driven import DrivenWindow, chats_on_disk, furnish
from tests.faults.window.look import Look
from tests.files.tiny import Tiny, write_tiny

_ACTIONS = (
    "ask", "ask", "ask", "new", "open", "open", "rename", "delete", "undo", "stop", "regenerate", "set",
    "preset",
)  # fmt: skip


class Action(msgspec.Struct):
    """What is done in a window; `words` are those of the driver's command."""

    window: int
    do: str
    words: dict[str, Any]


class Plan(msgspec.Struct):
    """The steps, and the window that is killed at the end of a step."""

    steps: list[list[Action]]
    killed: dict[int, int]  # by step


class TwoWindows:
    """Two windows for all plans, on a home that grows; both are opened anew after a plan that failed."""

    name = "two windows"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="faults-"))
        tiny = Tiny(name="target", n_layers=4, n_embd=128, n_ff=512, n_ctx=1024)
        self._target = write_tiny(self._folder / "target.gguf", tiny)
        self._windows: list[DrivenWindow] = []
        self._home = self._folder
        self._plans = 0
        self._kept: set[str] = set()  # what was said and saved, of all plans

    def make(self, random: Random) -> bytes:
        steps = []
        for step in range(random.randrange(3, 7)):
            actions = []
            for number in range(random.randrange(2, 6)):
                window, do = random.randrange(2), random.choice(_ACTIONS)
                if do == "ask" and any((act.window, act.do) == (window, do) for act in actions):
                    continue  # it would replace what is typed and not sent
                actions.append(Action(window, do, _words(do, f"{step}-{number}", random)))
            steps.append(actions)
        killed = {random.randrange(len(steps)): random.randrange(2)} if random.random() < 0.3 else {}
        return msgspec.json.encode(Plan(steps, killed))

    def open(self, data: bytes) -> Fate:
        plan = msgspec.json.decode(data, type=Plan)
        self._plans += 1
        try:
            if not self._windows:
                self._begin()
            looks = [look for at in range(len(plan.steps)) for look in self._step(plan, at)]
            self._check(plan)
        except BaseException:
            for window in self._windows:
                window.signalled(signal.SIGKILL)
            self._windows = []
            raise
        return Fate.SAID if any(look.error for look in looks) else Fate.OPENED

    def _begin(self) -> None:
        self._home = self._folder / f"home-{self._plans}"
        furnish(self._home, self._target)
        self._windows = [DrivenWindow(self._home), DrivenWindow(self._home)]
        self._kept = set()
        for window in self._windows:
            window.idle()

    def _step(self, plan: Plan, at: int) -> list[Look]:
        """Carry out a step; returns what was seen in it."""
        mark = f" {self._plans}-"
        asked = {action.words["text"] + mark for action in plan.steps[at] if action.do == "ask"}
        looks = self._act(plan.steps[at], mark)
        if at in plan.killed:
            self._kept |= {text for text in asked if text in chats_on_disk(self._home)}
            killed = plan.killed[at]
            assert self._windows[killed].signalled(signal.SIGKILL) == -signal.SIGKILL
            self._windows[killed] = DrivenWindow(self._home)
        looks += [window.idle() for window in self._windows]
        on_disk = chats_on_disk(self._home)
        for text in asked:
            seen = at in plan.killed or any(text in look.texts or text in look.prompt for look in looks)
            assert seen or text in on_disk, f"the question “{text}” is lost"
        self._kept |= {text for text in asked if text in on_disk}
        gone = {text for text in self._kept if text not in on_disk}
        # A question that the engine refuses is on disk for a moment, then in the prompt box again.
        lost = [text for text in gone if not any(text in look.prompt for look in looks)]
        assert not lost, f"saved questions are gone: {lost}"
        self._kept -= gone
        for look in filter(lambda look: look.error, looks):
            checked(look.error)
        return looks

    def _act(self, actions: list[Action], mark: str) -> list[Look]:
        """Do the actions, those of the two windows at the same time; returns every look."""
        lines = [[action for action in actions if action.window == number] for number in range(2)]
        looks = []
        while any(lines):
            told = [(window, line.pop(0)) for window, line in zip(self._windows, lines, strict=True) if line]
            for window, action in told:
                marked = {
                    name: value + mark for name, value in action.words.items() if isinstance(value, str)
                }
                window.tell(action.do, **action.words | marked)
            looks += [window.hear() for window, _ in told]
        return looks

    def _check(self, plan: Plan) -> None:
        """What both windows left."""
        paths = find_paths({"DRAFTSCOPE_HOME": str(self._home)})
        assert check_data(paths) == (), check_data(paths)
        if not plan.killed:
            saved = {preset.name for preset in PresetStore(paths.presets).load().presets}
            wanted = {act.words["name"] for step in plan.steps for act in step if act.do == "preset"}
            assert {f"{name} {self._plans}-" for name in wanted} <= saved, (saved, wanted)

    def close(self) -> None:
        try:
            assert [window.close() for window in self._windows] == [0] * len(self._windows)
        finally:
            shutil.rmtree(self._folder)


def _words(do: str, mark: str, random: Random) -> dict[str, Any]:
    row = random.randrange(4)
    match do:
        case "ask":
            return {"text": f"abcab {mark}"}
        case "rename":
            return {"row": row, "title": f"title {mark}"}
        case "open" | "delete":
            return {"row": row}
        case "set":
            return {"max_tokens": random.randrange(8, 200)}
        case "preset":
            return {"name": f"preset {mark}"}
    return {}
