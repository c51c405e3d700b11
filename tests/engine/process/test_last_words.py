"""What an engine that native code ended says of where it was."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from app.engine.process.client import EngineError
from app.engine.process.host import ProcessHome
from app.engine.process.messages import Event, Failed, Forget, ListDevices

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


@pytest.fixture
def home() -> Iterator[ProcessHome]:
    made = ProcessHome()
    yield made
    made.close()


def next_event(home: ProcessHome) -> Event:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (event := home.receive(0.1)) is not None:
            return event
    raise AssertionError("the engine says nothing")


def died_by(home: ProcessHome, number: int) -> Failed:
    home.send(ListDevices(1))
    next_event(home)  # it is up
    os.kill(home.pid or 0, number)
    failed = next_event(home)
    assert isinstance(failed, Failed) and failed.gone
    return failed


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGBUS"])
def test_a_native_death_says_where_each_thread_was(home: ProcessHome, name: str) -> None:
    failed = died_by(home, getattr(signal, name))
    assert failed.details.startswith("Fatal Python error: ")
    assert "in run" in failed.details and "host.py" in failed.details
    assert EngineError.of(failed).hint == failed.hint, "one line for the command line, without places"


def test_a_death_from_outside_has_nothing_to_say(home: ProcessHome) -> None:
    assert died_by(home, signal.SIGKILL).details == ""


def test_an_engine_that_cannot_read_a_command_says_where(
    home: ProcessHome, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("app.engine.process.host._encode", lambda _command: b"my secret question")
    home.send(Forget(1))
    failed = next_event(home)
    assert isinstance(failed, Failed) and failed.gone
    assert "in read" in failed.details and "my secret" not in failed.details
    assert capfd.readouterr().err == ""
