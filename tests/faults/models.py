"""Damaged model files through the probe, which reads what a file says of itself, and through the engine."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from random import Random

from app.engine.errors import ModelFileError
from app.engine.process.host import ProcessHome
from app.engine.process.messages import Event, Failed, Finished, Generate, Load, Loaded, Stop
from app.engine.types import GenerationRequest, ModelOptions
from app.hub.library.probe import Reader
from tests.faults.campaign import Fate, checked
from tests.faults.damage import damaged
from tests.faults.gguf_damage import damaged_numbers
from tests.files.tiny import Tiny, write_tiny

_SOUND = (
    Tiny(name="llama", n_ctx=256),
    Tiny(name="windows", n_ctx=256, architecture="gemma3"),
    Tiny(name="states", n_ctx=256, architecture="mamba"),
    Tiny(name="pieces", n_ctx=256, sentencepiece=True),
)
_PATIENCE = 10.0  # seconds for a load or an answer, which take a tenth of one, and for a Stop


class Damaged:
    """Makes damaged copies of tiny models."""

    def __init__(self, folder: Path) -> None:
        """The sound models are in `folder`, each by its name."""
        self._sound = [write_tiny(folder / f"{tiny.name}.gguf", tiny).read_bytes() for tiny in _SOUND]

    def make(self, random: Random) -> bytes:
        sound = random.choice(self._sound)
        return damaged_numbers(sound, random) if random.random() < 0.6 else damaged(sound, random)


class Models:
    """One probe and one engine for all files, replaced where a file ends it."""

    name = "models"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="faults-"))
        self._reader = Reader()
        self._home: ProcessHome | None = None
        self._run = 0
        self._damaged = Damaged(self._folder)

    def make(self, random: Random) -> bytes:
        return self._damaged.make(random)

    def open(self, data: bytes) -> Fate:
        path = self._folder / "damaged.gguf"
        path.unlink(missing_ok=True)  # another file, not the same one changed: a process may map that
        path.write_bytes(data)
        try:
            self._reader.facts(path)
        except ModelFileError as error:
            checked(error)
        return self._load(path)

    def _load(self, path: Path) -> Fate:
        loaded = self._ask(Load(self._next(), ModelOptions(str(path), ctx_size=64), None))
        if isinstance(loaded, Failed):
            return self._failed(loaded)
        request = GenerationRequest("abcab", max_tokens=4, ignore_eos=True)
        answered = self._ask(Generate(self._next(), request))
        return self._failed(answered) if isinstance(answered, Failed) else Fate.OPENED

    def _failed(self, failed: Failed) -> Fate:
        checked(f"{failed.message} {failed.hint}")
        if not failed.gone:
            assert failed.expected, f"{failed.message}\n{failed.details}"
            return Fate.REFUSED
        assert self._home is not None
        self._home.close()
        self._home = None
        return Fate.ENDED

    def _ask(self, command: Load | Generate) -> Event:
        """The event that ends a command. One that takes too long is stopped, and an engine that does not stop
        is ended, as commands do it."""
        if self._home is None:
            self._home = ProcessHome()
        self._home.send(command)
        deadline = time.monotonic() + _PATIENCE
        stopped = False
        while True:
            event = self._home.receive(0.1)
            if isinstance(event, Loaded | Finished | Failed):
                return event
            if time.monotonic() > deadline and not stopped:
                self._home.send(Stop(command.run))
                stopped, deadline = True, time.monotonic() + _PATIENCE
            elif time.monotonic() > deadline:
                self._home.end()
                deadline += _PATIENCE

    def _next(self) -> int:
        self._run += 1
        return self._run

    def close(self) -> None:
        self._reader.close()
        if self._home is not None:
            self._home.close()
        shutil.rmtree(self._folder)
