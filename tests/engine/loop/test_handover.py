"""The thread of passes: items and errors arrive in order, and leaving waits for the work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future

import pytest

from app.engine.loop.handover import Handover, PassThread
from tests.quiet import stays


@pytest.fixture
def thread() -> Iterator[PassThread]:
    threads = threading.active_count()
    thread = PassThread()
    yield thread
    thread.close()
    assert threading.active_count() <= threads


def numbers(count: int) -> Callable[[Handover[int]], None]:
    def work(handover: Handover[int]) -> None:
        for number in range(count):
            handover.wait_taken()
            handover.put(number)

    return work


@pytest.mark.parametrize("count", [0, 1, 50])
def test_things_come_in_the_order_they_were_given(thread: PassThread, count: int) -> None:
    with Handover(thread, numbers(count)) as handover:
        assert list(handover) == list(range(count))


def test_the_work_goes_on_while_a_thing_is_looked_at(thread: PassThread) -> None:
    went_on = threading.Event()

    def work(handover: Handover[str]) -> None:
        handover.put("first")
        went_on.set()

    with Handover(thread, work) as handover:
        for _ in handover:
            assert went_on.wait(10)


def test_settling_waits_until_a_thing_was_looked_at(thread: PassThread) -> None:
    looked_at: list[int] = []

    def work(handover: Handover[int]) -> None:
        for number in range(20):
            handover.put(number)
            handover.wait_taken()
            assert looked_at[-1] == number

    with Handover(thread, work) as handover:
        for number in handover:
            time.sleep(0.001)
            looked_at.append(number)
    assert looked_at == list(range(20))


def test_an_error_comes_behind_what_was_given_before(thread: PassThread) -> None:
    failing = threading.Event()

    def work(handover: Handover[int]) -> None:
        handover.put(1)
        failing.set()
        raise ZeroDivisionError

    taken = []
    with pytest.raises(ZeroDivisionError), Handover(thread, work) as handover:
        for number in handover:
            assert failing.wait(10)
            taken.append(number)
    assert taken == [1]


@pytest.mark.parametrize("fails", [False, True])
def test_leaving_early_waits_for_the_work(thread: PassThread, fails: bool) -> None:
    done = []

    def work(handover: Handover[int]) -> None:
        handover.put(0)
        time.sleep(0.05)
        done.append("pass")
        if fails:
            raise ValueError("nobody asks for this")
        handover.wait_taken()
        done.append("more")

    with Handover(thread, work) as handover:
        for _ in handover:
            break
    assert done == ["pass"]


def test_leaving_before_anything_was_given(thread: PassThread) -> None:
    def work(handover: Handover[int]) -> None:
        time.sleep(0.02)
        handover.put(0)  # the consumer has left
        handover.wait_taken()

    with Handover(thread, work):
        pass


def test_an_error_of_the_taker_ends_the_work(thread: PassThread) -> None:
    with pytest.raises(KeyError), Handover(thread, numbers(5)) as handover:
        for _ in handover:
            raise KeyError


def test_the_work_begins_when_somebody_takes(thread: PassThread) -> None:
    begun = threading.Event()
    beside: Handover[int] = Handover(thread, lambda _handover: begun.set())
    with beside as handover:
        assert stays(begun.is_set) and not begun.is_set()
        assert list(handover) == []
    assert begun.is_set()


def test_an_interrupt_while_leaving_comes_when_the_work_has_ended(
    thread: PassThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def work(handover: Handover[int]) -> None:
        handover.put(0)
        time.sleep(0.05)
        done.append("pass")

    waited, interrupts = Future.exception, [KeyboardInterrupt, KeyboardInterrupt]

    def interrupted(self: Future[None], timeout: float | None = None) -> BaseException | None:
        if interrupts:
            raise interrupts.pop()
        return waited(self, timeout)

    monkeypatch.setattr(Future, "exception", interrupted)
    with pytest.raises(KeyboardInterrupt), Handover(thread, work) as handover:
        for _ in handover:
            break
    assert done == ["pass"]
    assert not interrupts


def test_an_interrupted_call_stops_its_work_and_waits_for_it(
    thread: PassThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop, ended = threading.Event(), []

    def work() -> None:
        assert stop.wait(10)
        time.sleep(0.05)
        ended.append("work")

    def interrupted(_future: Future[None]) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt):
        thread.call(work, stop.set)
    assert ended == ["work"]


def test_a_thread_that_nobody_closes_ends_with_its_owner() -> None:
    threads = threading.active_count()
    thread = PassThread()
    assert thread.begin(threading.active_count).result() == threads + 1
    del thread
    assert not stays(threading.active_count) or threading.active_count() == threads
