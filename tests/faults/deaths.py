"""Engines that die at any moment: killed, faulting, aborting, hanging; while loading, reading and answering.

A "file" of this kind is a plan: who kills the engine when, how, and in the middle of what.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from pathlib import Path
from random import Random

import msgspec
import psutil

from app.engine.process.host import ProcessHome
from app.engine.process.messages import (
    Event,
    Failed,
    Finished,
    Generate,
    Load,
    Loaded,
    RoundFinished,
    Started,
)
from app.engine.types import GenerationRequest, ModelOptions, Round
from app.saved.chats.conversation import Answer
from app.saved.chats.recorder import AnswerRecorder
from app.saved.chats.store import ChatStore
from tests.faults.campaign import Fate, checked
from tests.files.tiny import Tiny, write_tiny

_PATIENCE = 60.0  # seconds for anything that an engine does, on a busy machine
_HANG = "SIGSTOP"  # it no longer responds, and is ended as a window ends it
_SIGNALS = ("SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS", "SIGILL", "SIGTERM", _HANG)
_LONG = "abcabcab " * 100


class Plan(msgspec.Struct):
    """When an engine dies, and by what."""

    by: str
    after: float  # seconds from the command on
    loading: bool  # during a load, or during an answer


class Deaths:
    """One home and one chat store; each engine of it dies."""

    name = "deaths"

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="faults-"))
        target = Tiny(name="target", n_layers=4, n_embd=128, n_ff=512, n_ctx=4096)
        path = write_tiny(self._folder / "target.gguf", target)
        self._load = Load(1, ModelOptions(str(path)), ModelOptions(str(path)))
        self._store = ChatStore(self._folder)

    def make(self, random: Random) -> bytes:
        after = random.choice((0.0, random.uniform(0, 0.1), random.uniform(0, 1.0)))
        return msgspec.json.encode(Plan(random.choice(_SIGNALS), after, random.random() < 0.4))

    def open(self, data: bytes) -> Fate:
        plan = msgspec.json.decode(data, type=Plan)
        home = ProcessHome()
        while (pid := home.pid) is None:
            time.sleep(0.01)
        try:
            self._live(home, plan, pid)
        finally:
            home.close()
        assert not psutil.pid_exists(pid), "the process is left"
        return Fate.ENDED

    def _live(self, home: ProcessHome, plan: Plan, pid: int) -> None:
        home.send(self._load)
        if plan.loading:
            _, failed = _until_gone(home, plan, pid, None)
            checked(f"{failed.message} {failed.hint}")
            return
        while not isinstance(event := home.receive(0.1), Loaded):
            assert not isinstance(event, Failed), event
        home.send(
            Generate(
                2,
                GenerationRequest(
                    _LONG, strategy="draft-simple:n_max=3", max_tokens=3000, ignore_eos=True, cold=True
                ),
            )
        )
        rounds, failed = _until_gone(home, plan, pid, self._store)
        checked(f"{failed.message} {failed.hint}")
        self._check_kept(rounds, failed)

    def _check_kept(self, rounds: list[Round], failed: Failed) -> None:
        """What was shown is on disk: every round, and the text."""
        for head in self._store.heads():
            chat = self._store.load(head.id)
            answer = chat.turns[-1]
            assert isinstance(answer, Answer) and answer.error == failed.message
            found = self._store.load_trace(chat.id, answer)
            assert found.damage is None and found.trace is not None
            assert found.trace.rounds == rounds
            assert answer.text == found.trace.text
            self._store.delete(chat.id)
        self._store.empty_trash()

    def close(self) -> None:
        shutil.rmtree(self._folder)


def _until_gone(
    home: ProcessHome, plan: Plan, pid: int, store: ChatStore | None
) -> tuple[list[Round], Failed]:
    """Take events, kill the engine at its moment, and go on until it is gone; what it says of an answer is
    kept in `store`. Returns the rounds that came, and the last event."""
    began, killed = time.monotonic(), False
    rounds: list[Round] = []
    recorder: AnswerRecorder | None = None
    while True:
        passed = time.monotonic() - began
        assert passed < plan.after + _PATIENCE, "the death of the engine was not noticed"
        if not killed and passed >= plan.after:
            killed = True
            os.kill(pid, getattr(signal, plan.by))
            if plan.by == _HANG:
                home.end()
        event: Event | None = home.receive(0.005)
        if isinstance(event, Started) and store is not None:
            _, recorder = store.begin_answer(store.ask(store.new("completion"), "abc"), event.header)
        elif isinstance(event, RoundFinished) and recorder is not None:
            rounds.append(event.round)
            recorder.add(event.round)
        elif isinstance(event, Finished) and recorder is not None:
            raise AssertionError("the answer is too short for this campaign")
        elif isinstance(event, Failed):
            assert event.gone, event
            if recorder is not None:
                recorder.fail(event.message, event.hint)
            return rounds, event
