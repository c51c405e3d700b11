"""A call beside the caller: its value, its exception, and that nothing is left behind."""

from __future__ import annotations

import threading
import time

import pytest

from app.engine.background import Background


def test_values_come_in_the_order_of_the_calls() -> None:
    with Background[int]("beside") as beside:
        for number in range(50):
            beside.start(lambda number=number: number * 2)
            assert beside.result() == number * 2


def test_the_caller_goes_on_meanwhile() -> None:
    go = threading.Event()
    with Background[bool]("beside") as beside:
        beside.start(lambda: go.wait(10))
        go.set()
        assert beside.result()


def test_an_exception_comes_with_the_result_and_only_once() -> None:
    with Background[float]("beside") as beside:
        beside.start(lambda: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            beside.result()
        beside.start(lambda: 1.0)
        assert beside.result() == 1


@pytest.mark.parametrize("fails", [False, True])
def test_leaving_waits_for_the_call_and_ends_the_thread(fails: bool) -> None:
    threads, done = threading.active_count(), []

    def work() -> None:
        time.sleep(0.05)
        done.append(True)
        if fails:
            raise ValueError("nobody asks for this")

    with Background[None]("beside") as beside:
        beside.start(work)
    assert done == [True]
    assert threading.active_count() <= threads


def test_an_exception_of_the_caller_ends_the_thread() -> None:
    threads = threading.active_count()
    with pytest.raises(KeyError), Background[None]("beside") as beside:
        beside.start(lambda: time.sleep(0.02))
        raise KeyError
    assert threading.active_count() <= threads
