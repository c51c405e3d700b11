"""Letters from other threads: none is lost or out of order, and the event loop is not flooded."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QObject, QThread, Signal, Slot
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.ui.state.mailbox import Mailbox, call_each
from tests.quiet import stays


def all_of(batches: list[list[int]]) -> list[int]:
    return [letter for batch in batches for letter in batch]


def post_beside(mailbox: Mailbox, letters: range) -> None:
    for letter in letters:
        mailbox.post(letter)


def test_many_letters_come_in_order_in_few_batches(qtbot: QtBot) -> None:
    batches: list[list[int]] = []
    threads: set[int] = set()

    def deliver(letters: deque[int]) -> None:
        threads.add(threading.get_ident())
        batches.append(list(letters))
        letters.clear()

    mailbox = Mailbox(deliver)
    for start in (0, 2500):  # the second part comes after a pause
        worker = threading.Thread(target=post_beside, args=(mailbox, range(start, start + 2500)))
        worker.start()
        qtbot.waitUntil(lambda end=start + 2500: len(all_of(batches)) == end)  # type: ignore[misc]
        worker.join()
    assert all_of(batches) == list(range(5000)) and len(batches) < 500
    assert threads == {threading.get_ident()}
    mailbox.close()


def test_a_view_that_breaks_keeps_nobody_from_being_told(qtbot: QtBot) -> None:
    mailbox = Mailbox(call_each)
    told: list[int] = []
    calls: tuple[Callable[[], object], ...] = (lambda: told.append(1), lambda: 1 / 0, lambda: told.append(2))
    with qtbot.captureExceptions() as raised:
        for call in calls:
            mailbox.post(call)
        qtbot.waitUntil(lambda: told == [1, 2])
    assert [kind for kind, _, _ in raised] == [ZeroDivisionError]
    mailbox.close()


def test_closing_in_the_middle_of_a_batch_drops_the_rest(qtbot: QtBot) -> None:
    mailbox = Mailbox(call_each)
    told: list[int] = []
    for call in (lambda: told.append(1), mailbox.close, lambda: told.append(2)):
        mailbox.post(call)
    mailbox.deliver()
    mailbox.post(lambda: told.append(3))
    assert stays(lambda: list(told)) and told == [1]


def test_what_is_posted_can_be_delivered_at_once() -> None:
    told: list[int] = []
    mailbox = Mailbox(call_each)
    mailbox.post(lambda: told.append(1))
    mailbox.deliver()
    assert told == [1]
    mailbox.close()


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
    qtbot.waitUntil(lambda: len(listener.heard) == 5000)
    teller.wait()
    assert listener.heard == [(number % 2 == 0, number) for number in range(5000)]
