"""Opening a long trace in the real window, and steps of the cursor over it.

    python tests/benchmarks/ui/opening.py [--tokens 100000] [--repeats 5] [--steps 20]

All times are processor time, about the same on a busy machine. "opening" is the time of all threads, from the
file to the painted answer. "longest turn" is the longest time in which the window's thread does not react. It
is measured in separate runs, because the clock costs something. A step moves the cursor, or the inspected
round, by one, at the start, in the middle and at the end of the answer. It includes painting and all other
work of the window. 60 steps a second leave 16.7 ms for each; at that pace the window does less for each.

Without a display, an Xvfb is started.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.measure import spread  # noqa: E402
from tests.benchmarks.ui.screen import screen  # noqa: E402

if TYPE_CHECKING:
    from app.ui.state.answer import AnswerModel
    from app.ui.window.main_window import MainWindow

SETTLED = 0.15  # seconds after which nothing more follows
AT_REST = 0.01  # seconds of the processor in that time: timers


def wait(seconds: float) -> None:
    """Let the event loop run for a while."""
    from PySide6.QtCore import QEventLoop, QTimer

    loop = QEventLoop()
    QTimer.singleShot(round(seconds * 1000), loop.quit)
    loop.exec()


def calm() -> float:
    """Wait until the window does nothing more for the answer on the screen, such as counting alternatives;
    returns the processor seconds that its thread then takes while it rests."""
    while True:
        busy = time.thread_time()
        wait(SETTLED)
        busy = time.thread_time() - busy
        if busy < AT_REST:
            return busy


def opening(window: MainWindow, file: Path) -> float:
    """Seconds of processor time to open a file, with the painting."""
    from tests.benchmarks.ui.window import turn

    window.controller.new_chat()
    calm()
    began = time.process_time()
    window.open_trace(file)
    turn(lambda: not window.opener.opening)
    wait(SETTLED)
    return time.process_time() - began


def longest_turn(window: MainWindow, file: Path) -> float:
    """Seconds of the longest turn of the event loop while a file is opened."""
    from tests.benchmarks.ui.window import FrameClock, turn

    window.controller.new_chat()
    calm()
    clock = FrameClock()
    window.open_trace(file)
    turn(lambda: not window.opener.opening)
    wait(SETTLED)
    clock.stop()
    return max(busy for _, busy in clock.frames) / 1000


def steps(answer: AnswerModel, go: Callable[[int], None], count: int) -> Iterator[float]:
    """Milliseconds of each step forward, and of each back again."""
    rounds = len(answer.rounds)
    for at in (rounds // 100, rounds // 2, rounds - count - 2):
        go(at)
        rest = calm()
        for to in (*range(at + 1, at + count // 2 + 1), *range(at + count // 2 - 1, at - 1, -1)):
            busy = time.thread_time()
            go(to)
            wait(SETTLED)
            yield (time.thread_time() - busy - rest) * 1000


def scrubbing(answer: AnswerModel, go: Callable[[int], None]) -> Iterator[float]:
    """Milliseconds of each of 60 steps in a second, all that they bring about shared among them."""
    rounds = len(answer.rounds)
    for at in (rounds // 100, rounds // 2, rounds - 62):
        go(at)
        rest = calm() / SETTLED
        began, busy = time.perf_counter(), time.thread_time()
        for to in range(at + 1, at + 61):
            go(to)
            wait(max(0.0, began + (to - at) / 60 - time.perf_counter()))
        yield (time.thread_time() - busy - rest * (time.perf_counter() - began)) * 1000 / 60


def main() -> None:
    parser = argparse.ArgumentParser(description="Opening a long trace, and stepping through it.")
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--steps", type=int, default=20, help="at each of the three places")
    options = parser.parse_args()
    with screen() as where, TemporaryDirectory() as home, TemporaryDirectory() as folder:
        from app.engine.record.trace import Trace, write_trace
        from tests.benchmarks.ui.transcript_scroll import SAMPLE, rounds_of
        from tests.benchmarks.ui.window import make_bench_window
        from tests.ui.traces import emitted_text, make_header, make_totals

        rounds = rounds_of(options.tokens, SAMPLE)
        file = Path(folder) / "long.jsonl"
        write_trace(file, Trace(make_header(), rounds, make_totals(emitted_text(rounds))))
        size = file.stat().st_size / 1e6
        del rounds
        print(f"window on {where}; {options.tokens:,} tokens, {size:.0f} MB")
        window = make_bench_window(Path(home), None)
        for place in ("inspector", "chat"):
            window.go(place)
            wait(1)
            for name, measure in (("opening", opening), ("longest turn", longest_turn)):
                taken = spread((measure(window, file) for _ in range(options.repeats)), "{:.2f}")
                print(f"{place}: {name}, s {taken}", flush=True)
            answer = window.controller.shown.answer
            assert answer is not None
            for name, go in (("the cursor", answer.move), ("the inspected round", answer.pin)):
                taken = spread(steps(answer, go, options.steps), "{:.1f}")
                print(f"{place}: a step of {name}, ms {taken}", flush=True)
                taken = spread(scrubbing(answer, go), "{:.1f}")
                print(f"{place}: 60 a second, each ms {taken}", flush=True)
                answer.move(len(answer.rounds))
        window.close()


# The engine's own process imports this file again.
if __name__ == "__main__":
    main()
