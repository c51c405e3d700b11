"""Questions: answers come on the window's thread, outdated ones never, failures as sentences."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from pytestqt.qtbot import QtBot

from app.engine.errors import UserError
from app.ui.state.mailbox import Mailbox, call_each
from app.ui.widgets.background import THREADS, Askers, Query
from tests.hub.server import SECRET


@pytest.fixture
def askers(qtbot: QtBot) -> Iterator[Askers]:
    mailbox = Mailbox(call_each)
    made = Askers(mailbox)
    yield made
    mailbox.close()
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
    mailbox = Mailbox(call_each)
    askers = Askers(mailbox)
    ours = set(threading.enumerate()) - before
    assert len(ours) == THREADS
    heard = Heard(askers)
    heard.question.ask(lambda: 1)
    mailbox.close()
    askers.close()
    qtbot.waitUntil(lambda: not any(thread.is_alive() for thread in ours))
    open_mailbox, told = Mailbox(call_each), []
    open_mailbox.post(lambda: told.append(True))
    qtbot.waitUntil(lambda: told == [True])
    open_mailbox.close()
    assert heard.said == []
