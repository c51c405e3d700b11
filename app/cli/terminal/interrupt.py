"""Ctrl+C, SIGTERM and SIGHUP stop the work at once, and leave time to write its results."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

INTERRUPTED = 130
_LOOK = 0.2  # seconds; on Windows a waiting main thread sees signals only between waits


class Interrupt:
    """Whether Ctrl+C was pressed, and what it stops."""

    def __init__(self) -> None:
        self.pressed = False
        self._stop: Callable[[], None] | None = None

    def stops(self, stop: Callable[[], None]) -> None:
        """Call `stop`, which must be safe from any thread, when Ctrl+C is pressed."""
        self._stop = stop
        if self.pressed:
            stop()

    def press(self) -> None:
        self.pressed = True
        if self._stop is not None:
            self._stop()


def run_interruptible(work: Callable[[Interrupt], int]) -> int:
    """Run `work` on a thread and return its result, or raise its error.

    Python handles signals only on its main thread, and only between native calls: inside a decode, Ctrl+C
    would wait for its end. A second Ctrl+C ends the program at once.
    """
    interrupt = Interrupt()
    results: list[int] = []
    errors: list[BaseException] = []

    def on_thread() -> None:
        try:
            results.append(work(interrupt))
        except BaseException as error:
            errors.append(error)

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        if interrupt.pressed:
            for child in multiprocessing.active_children():
                child.kill()  # a child that hangs would not notice that its parent is gone
            os._exit(INTERRUPTED)
        interrupt.press()

    thread = threading.Thread(target=on_thread, name="work", daemon=True)
    # The end of a session or a container cleans up as Ctrl+C does.
    ends = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as by nohup
        ends.append(signal.SIGHUP)
    before = {number: signal.signal(number, on_signal) for number in ends}
    try:
        thread.start()
        while thread.is_alive():
            thread.join(_LOOK)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if errors:
        raise errors[0]
    return results[0]
