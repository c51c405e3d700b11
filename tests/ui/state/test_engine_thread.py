"""The worker thread: no command is lost, and a home that is gone is replaced."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QObject, QThread, Signal, Slot
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.engine.process.messages import Event, Failed, Stop
from app.ui.state.engine_thread import EngineThread
from tests.ui.homes import Homes


@pytest.fixture
def said() -> list[Event]:
    """What the threads have posted."""
    return []


@pytest.fixture
def start(said: list[Event]) -> Iterator[Callable[[Homes], EngineThread]]:
    threads: list[EngineThread] = []

    def make(homes: Homes) -> EngineThread:
        threads.append(EngineThread(homes, said.append))
        threads[-1].start()
        return threads[-1]

    yield make
    for thread in threads:
        thread.end()


def test_commands_before_the_home_is_there_reach_it_in_order(
    qtbot: QtBot, start: Callable[[Homes], EngineThread]
) -> None:
    opening, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        opening.set()
        assert go_on.wait(10)

    homes = Homes(wait)
    thread = start(homes)
    assert opening.wait(10)
    for run in range(50):
        thread.send(Stop(run))
    go_on.set()
    for run in range(50, 400):
        thread.send(Stop(run))
    qtbot.waitUntil(lambda: bool(homes.made) and len(homes.last.sent) == 400)
    assert [command.run for command in homes.last.sent] == list(range(400))


def test_a_home_that_is_gone_is_replaced_before_it_is_told(
    qtbot: QtBot, start: Callable[[Homes], EngineThread], said: list[Event]
) -> None:
    homes = Homes()
    thread = start(homes)
    qtbot.waitUntil(lambda: len(homes.made) == 1)
    homes.made[0].say(Failed(1, "The engine stopped.", gone=True))
    qtbot.waitUntil(lambda: bool(said))
    assert len(homes.made) == 2
    assert homes.made[0].closed and not homes.made[1].closed
    assert said == [Failed(1, "The engine stopped.", gone=True)]
    thread.send(Stop(2))
    assert homes.made[1].sent == [Stop(2)]


def test_ending_closes_the_home_and_the_thread(qtbot: QtBot) -> None:
    homes = Homes()
    thread = EngineThread(homes, lambda _event: None)
    thread.start()
    qtbot.waitUntil(lambda: len(homes.made) == 1)
    began = time.perf_counter()
    thread.end()
    assert time.perf_counter() - began < 5
    assert homes.last.closed and thread.isFinished()


def test_ending_what_never_started() -> None:
    thread = EngineThread(Homes(), lambda _event: None)
    thread.end()
    assert not thread.isRunning()


class _Teller(QThread):
    told = Signal(bool, object)

    @override
    def run(self) -> None:
        for number in range(5000):
            self.told.emit(number % 2 == 0, number)


class _Listener(QObject):
    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[bool, int]] = []

    @Slot(bool, object)
    def hear(self, even: bool, number: int) -> None:
        self.heard.append((even, number))


def test_five_thousand_signals(qtbot: QtBot) -> None:
    """A canary: PySide6 6.12.0 aborts on Python 3.11 after a few hundred."""
    teller, listener = _Teller(), _Listener()
    teller.told.connect(listener.hear)
    teller.start()
    qtbot.waitUntil(lambda: len(listener.heard) == 5000, timeout=20_000)
    teller.wait()
    assert listener.heard == [(number % 2 == 0, number) for number in range(5000)]
