"""Questions: answers come on the window's thread, outdated ones never, failures as sentences."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QCoreApplication, QObject, QTimer
from pytestqt.qtbot import QtBot

from app.engine.errors import UserError
from app.ui.state.mailbox import Mailbox, call_each
from app.ui.widgets.background import THREADS, Askers, Collector, Query
from tests.hub.server import SECRET


@pytest.fixture
def askers(qtbot: QtBot) -> Iterator[Askers]:
    made = Askers()
    yield made
    made.close()


def until_all_are_idle(qtbot: QtBot, askers: Askers) -> None:
    """Wait until the threads have finished their work, and its results are delivered."""
    together, last = threading.Barrier(THREADS), [Heard(askers) for _ in range(THREADS)]
    for heard in last:
        heard.question.ask(lambda: together.wait(5))
    qtbot.waitUntil(lambda: all("end" in heard.said for heard in last))


class Heard:
    """Everything that a question said, and where."""

    def __init__(self, askers: Askers) -> None:
        self.said: list[object] = []
        self.threads: set[int] = set()
        self.question: Query[object] = Query(askers, self._hear, self._hear, lambda: self._hear("end"))

    def _hear(self, answer: object) -> None:
        self.threads.add(threading.get_ident())
        self.said.append(answer)


def test_answers_come_in_order_on_the_threads_of_the_window(qtbot: QtBot, askers: Askers) -> None:
    heard = Heard(askers)
    heard.question.ask_each(lambda: iter(range(50)))
    assert heard.question.pending and heard.said == []
    qtbot.waitUntil(lambda: "end" in heard.said)
    assert heard.said == [*range(50), "end"] and heard.threads == {threading.get_ident()}
    assert not heard.question.pending


def test_only_the_latest_asking_is_answered(qtbot: QtBot, askers: Askers) -> None:
    heard = Heard(askers)
    gate = threading.Event()
    heard.question.ask(lambda: gate.wait(5) and "late")
    heard.question.ask(lambda: "new")
    qtbot.waitUntil(lambda: "end" in heard.said)
    gate.set()
    until_all_are_idle(qtbot, askers)
    assert heard.said == ["new", "end"]


def test_what_is_dropped_ends_early_and_says_nothing(qtbot: QtBot, askers: Askers) -> None:
    heard = Heard(askers)
    first, gate, made = threading.Event(), threading.Event(), []

    def work() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            yield number
            first.set()
            gate.wait(5)

    heard.question.ask_each(work)
    assert first.wait(5)
    heard.question.drop()
    gate.set()
    until_all_are_idle(qtbot, askers)
    assert heard.said == [] and len(made) <= 3 and not heard.question.pending


def test_a_failure_is_told_once(qtbot: QtBot, askers: Askers) -> None:
    heard = Heard(askers)

    def work() -> object:
        raise UserError("No.", "Yes.")

    heard.question.ask(work)
    qtbot.waitUntil(lambda: "end" in heard.said)
    (error, _) = heard.said
    assert isinstance(error, UserError) and error.message == "No."


def test_a_bug_is_logged_without_its_text(
    qtbot: QtBot, askers: Askers, caplog: pytest.LogCaptureFixture
) -> None:
    heard = Heard(askers)

    def work() -> object:
        raise ZeroDivisionError(f"https://cdn/?Signature={SECRET}")

    heard.question.ask(work)
    qtbot.waitUntil(lambda: "end" in heard.said)
    assert isinstance(heard.said[0], UserError)
    assert "ZeroDivisionError" in caplog.text and SECRET not in caplog.text


def test_after_closing_nothing_is_delivered_and_the_threads_end(qtbot: QtBot) -> None:
    before = set(threading.enumerate())
    askers = Askers()
    assert set(threading.enumerate()) <= before  # those of tests before may still be ending
    heard = Heard(askers)
    heard.question.ask(lambda: 1)
    ours = set(threading.enumerate()) - before
    assert len(ours) == THREADS
    askers.close()
    qtbot.waitUntil(lambda: not any(thread.is_alive() for thread in ours))
    open_mailbox, told = Mailbox(call_each), []
    open_mailbox.post(lambda: told.append(True))
    qtbot.waitUntil(lambda: told == [True])
    open_mailbox.close()
    assert heard.said == []


@pytest.fixture
def at_work(qapp: QCoreApplication) -> Iterator[Collector]:
    gc.enable()
    made = Collector(qapp)
    yield made
    made.deleteLater()


class Cycle(QObject):
    """A Qt object that only the garbage collector can find; it records the thread that found it."""

    def __init__(self, collected_on: list[threading.Thread]) -> None:
        super().__init__()
        self.itself = self
        self._collected_on = collected_on
        QTimer(self).start(1)

    def __del__(self) -> None:
        self._collected_on.append(threading.current_thread())


def made_objects() -> list[list[int]]:
    """As many objects as make a collection of the youngest generation due."""
    return [[] for _ in range(gc.get_threshold()[0] + 1)]


def forget_an_old(cycle: Cycle) -> None:
    """Make the cycle garbage of the oldest generation."""
    gc.collect(1)


def make_a_full_collection_due(collector: Collector) -> list[list[list[int]]]:
    """Run the collector until it has considered a full collection; returns the objects that made it due."""
    _youngest, middle, oldest = gc.get_threshold()
    kept = []
    for _ in range((middle + 2) * (oldest + 2)):
        kept.append(made_objects())
        collector.collect_due()
    return kept


def test_qt_objects_are_collected_on_the_windows_thread(qtbot: QtBot, at_work: Collector) -> None:
    collected_on: list[threading.Thread] = []
    kept: list[list[list[int]]] = []
    gc.collect()
    Cycle(collected_on)
    busy = threading.Thread(target=lambda: kept.append(made_objects()))
    busy.start()
    busy.join()
    assert collected_on == []

    def collected() -> bool:  # Widgets of earlier tests may end meanwhile, which counts against new objects.
        kept.append(made_objects())
        return bool(collected_on)

    qtbot.waitUntil(collected)
    assert collected_on == [threading.main_thread()]


def test_old_garbage_is_collected_in_its_turn(qtbot: QtBot, at_work: Collector) -> None:
    collected_on: list[threading.Thread] = []
    forget_an_old(Cycle(collected_on))
    kept = make_a_full_collection_due(at_work)
    assert kept and len(collected_on) == 1


def test_a_full_collection_waits_until_a_quarter_more_is_old(qtbot: QtBot, at_work: Collector) -> None:
    """A full collection looks at every object: with a long answer on the screen it would freeze the
    window."""
    collected_on: list[threading.Thread] = []
    kept = [made_objects() for _ in range(2000)]
    kept += make_a_full_collection_due(at_work)
    forget_an_old(Cycle(collected_on))
    kept += make_a_full_collection_due(at_work)
    assert collected_on == []
    kept += [made_objects() for _ in range(1000)]
    gc.collect(1)
    kept += make_a_full_collection_due(at_work)
    assert len(collected_on) == 1


def test_the_application_has_a_collector() -> None:
    code = (
        "import gc; from app.ui.window.application import make_application\n"
        "made = make_application(); print(gc.isenabled())"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.stdout.strip(), ended.returncode) == ("False", 0), ended.stderr
