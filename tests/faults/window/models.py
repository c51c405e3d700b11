"""Damaged models through the window: chosen as a target, asked, and replaced by a sound one."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from random import Random

from tests.faults.campaign import Fate, checked
from tests.faults.models import Damaged
from tests.faults.window.driven import DrivenWindow, furnish

_LOADING = 15.0  # seconds for a load, which takes a tenth of one


class WindowModels:
    """One window for all files; after each it must load the sound model again, and answer."""

    name = "models in the window"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="faults-"))
        self._damaged = Damaged(self._folder)
        self._sound = self._folder / "llama.gguf"
        home = self._folder / "home"
        furnish(home, self._sound, max_tokens=4)
        self._window = DrivenWindow(home)
        self._window.idle()

    def make(self, random: Random) -> bytes:
        return self._damaged.make(random)

    def open(self, data: bytes) -> Fate:
        path = self._folder / "damaged.gguf"
        path.unlink(missing_ok=True)  # another file, not the same one changed: a process may map that
        path.write_bytes(data)
        look = self._window.do("load", target=str(path), seconds=_LOADING)
        if look.activity == "loading":
            fate = Fate.ENDED  # it never ends by itself; the next load ends its engine
        elif look.target != path.name or look.error:
            checked(look.error)
            fate = Fate.ENDED if "engine" in look.error else Fate.REFUSED
        else:
            fate = self._answered()
        look = self._window.do("load", target=str(self._sound), seconds=_LOADING * 4)
        look = self._window.idle()
        assert (look.target, look.error) == (self._sound.name, ""), look
        assert self._answered() is Fate.OPENED
        return fate

    def _answered(self) -> Fate:
        """What became of a question to the model that is loaded."""
        before = self._window.do("new")
        assert before.texts == []
        self._window.do("ask", text="abcab")
        look = self._window.idle()
        assert "abcab" in (*look.texts, look.prompt), "the question is lost"
        words = look.error or (look.notes[-1] if look.notes else "")
        died = "engine" in words
        if look.tokens and not look.error and not died:
            return Fate.OPENED
        checked(words)
        return Fate.ENDED if died else Fate.REFUSED

    def close(self) -> None:
        try:
            assert self._window.close() == 0
        finally:
            shutil.rmtree(self._folder)
