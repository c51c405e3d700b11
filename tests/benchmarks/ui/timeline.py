"""The time to paint the Inspector's timeline over 20,000 rounds: while panning, zooming, pointing, and live.

    python tests/benchmarks/ui/timeline.py [--rounds 20000]

Prints median, p99 and slowest time of a frame in milliseconds of this thread's processor time. 60 frames a
second leave 16.7 ms for each.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import Qt  # noqa: E402
from PySide6.QtTest import QTest  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from app.ui.inspector.timeline import Timeline  # noqa: E402
from app.ui.state.answer import AnswerModel  # noqa: E402
from app.ui.theme import Theme  # noqa: E402
from tests.ui.traces import make_header, simulate  # noqa: E402


def report(application: QApplication, name: str, changes: Iterable[Callable[[], object]]) -> None:
    """Time each change with the painting that follows."""
    times = []
    for change in changes:
        busy = time.thread_time()
        change()
        application.processEvents()
        times.append((time.thread_time() - busy) * 1000)
    middle, p99 = statistics.median(times), statistics.quantiles(times, n=100)[98]
    print(f"{name:28} {len(times):5,} frames   {middle:5.2f} · {p99:5.2f} · {max(times):6.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description="Frame times of the timeline.")
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--width", type=int, default=1500)
    options = parser.parse_args()
    application = QApplication([])
    rounds = simulate("The windows overlap, so every value is seen. " * (options.rounds // 3), seed=3).rounds
    rounds = rounds[: options.rounds]
    timeline = Timeline(Theme(ROOT / "resources" / "fonts", "light"))
    timeline.resize(options.width, timeline.height())
    timeline.show()
    answer = AnswerModel(live=True)
    timeline.set_answer(answer)
    answer.begin(make_header())
    print(f"{len(rounds):,} rounds, {options.width} pixels; median · p99 · slowest frame")
    report(application, "arriving, 10 at a time", (
        partial(answer.add, rounds[at : at + 10]) for at in range(0, len(rounds), 10)
    ))  # fmt: skip
    answer.end(None)
    key = partial(QTest.keyClick, timeline)
    report(
        application,
        "from round to round",
        (partial(answer.pin, at) for at in range(len(rounds) - 500, len(rounds))),
    )
    report(application, "by what is in sight", (partial(key, Qt.Key.Key_PageUp) for _ in range(150)))
    report(application, "zooming out to all", (partial(key, Qt.Key.Key_Minus) for _ in range(40)))
    report(application, "all rounds, repainted", (timeline.update for _ in range(200)))
    report(application, "zooming in", (partial(key, Qt.Key.Key_Plus) for _ in range(40)))


if __name__ == "__main__":
    main()
