"""The time to paint the transcript: while scrolling through 20,000 tokens, while they arrive, and while a
cursor moves back through them; and the time to open them from a trace file.

    python tests/benchmarks/ui/transcript_scroll.py [--tokens 20000] [--rate 1000]

Prints median, p99 and slowest time of a frame in milliseconds, as wall time and as processor time. A frame is
everything that the window does for it: it takes in rounds, lays out what is now in view, and paints.

It also prints the longest pause of Python's garbage collector: it falls into some frame, and its length
depends on all that the process has loaded; `--freeze` exempts everything that exists before the first frame.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication  # noqa: E402

from app.engine.record.trace import Trace, salvage_trace, write_trace  # noqa: E402
from app.engine.types import Round  # noqa: E402
from app.ui.state.answer import AnswerModel  # noqa: E402
from app.ui.theme import Theme  # noqa: E402
from app.ui.transcript import AnswerTurn, TranscriptView, UserTurn  # noqa: E402
from tests.ui.traces import make_header, simulate  # noqa: E402

BATCH_SECONDS = 0.033
SAMPLE = """The windows overlap, so that every value is seen by more than one of them, and the loop costs
what it does and no more than that: one pass over the list.

```python
def windowed(values, size):
    \"\"\"Yield overlapping windows.\"\"\"
    for start in range(len(values) - size + 1):
        yield values[start : start + size]
```

- first, the list is not copied
- second, the windows are

"""


def rounds_of(tokens: int, text: str) -> list[Round]:
    """Rounds that emit at least so many tokens over copies of a text."""
    trace = simulate(text * (tokens // 60 + 1), seed=3)
    taken: list[Round] = []
    count = 0
    for round in trace.rounds:
        taken.append(round)
        count += len(round.emitted)
        if count >= tokens:
            break
    return taken


def batches(rounds: list[Round], rate: float) -> Iterator[list[Round]]:
    """The rounds as they arrive at `rate` tokens a second, one list every 33 ms."""
    due, arrived = 0.0, 0
    batch: list[Round] = []
    for round in rounds:
        batch.append(round)
        arrived += len(round.emitted)
        if arrived >= due + rate * BATCH_SECONDS:
            due += rate * BATCH_SECONDS
            yield batch
            batch = []
    if batch:
        yield batch


class Bench:
    """A view, and the times of its frames."""

    def __init__(self, width: int, height: int) -> None:
        self.application = QApplication.instance() or QApplication([])
        self.view = TranscriptView(Theme(ROOT / "resources" / "fonts", "light"))
        self.view.resize(width, height)
        self.view.show()
        self.application.processEvents()  # until it is exposed, nothing is painted
        self._longest_pause = self._pause_began = 0.0
        gc.callbacks.append(self._collecting)

    def _collecting(self, phase: str, _info: object) -> None:
        if phase == "start":
            self._pause_began = time.thread_time()
        else:
            pause = (time.thread_time() - self._pause_began) * 1000
            self._longest_pause = max(self._longest_pause, pause)

    def frames(self, changes: Iterable[Callable[[], object]]) -> list[tuple[float, float]]:
        """For each change, with the painting that follows: milliseconds of wall time, and of this
        thread's processor time (the same on an idle machine)."""
        times = []
        for change in changes:
            wall, busy = time.perf_counter(), time.thread_time()
            change()
            self.application.processEvents()
            times.append(((time.perf_counter() - wall) * 1000, (time.thread_time() - busy) * 1000))
        return times

    def report(self, name: str, changes: Iterable[Callable[[], object]]) -> None:
        self._longest_pause = 0.0
        frames = self.frames(changes)
        print(f"{name:32} {len(frames):5,} frames", end="")
        for kind, times in zip(("clock", "processor"), zip(*frames, strict=True), strict=True):
            p99 = statistics.quantiles(times, n=100)[98]
            middle = statistics.median(times)
            print(f"   {kind}: {middle:5.2f} · {p99:5.2f} · {max(times):6.2f} ms", end="")
        print(f"   collector: {self._longest_pause:5.1f} ms", flush=True)

    def begin(self) -> None:
        self.answer = AnswerModel(live=True)
        self.view.set_turns([UserTurn("Write a lot."), AnswerTurn(self.answer, "demo 32M")])
        self.answer.begin(make_header())

    def arriving(self, rounds: list[Round], rate: float) -> Iterator[Callable[[], object]]:
        for batch in batches(rounds, rate):
            yield lambda batch=batch: self.answer.add(batch)  # type: ignore[misc]

    def scrolling(self, step: int) -> Iterator[Callable[[], object]]:
        """Scroll from the end to the beginning, which lays everything out."""
        bar = self.view.verticalScrollBar()
        bar.setValue(bar.maximum())
        while bar.value() > 0:
            yield lambda: bar.setValue(bar.value() - step)

    def jumping(self) -> Iterator[Callable[[], object]]:
        """Jump to places all over the chat, as when the handle is dragged far."""
        bar = self.view.verticalScrollBar()
        for place in range(200):
            yield lambda place=place: bar.setValue(bar.maximum() * (place * 37 % 101) // 100)  # type: ignore[misc]

    def going_back(self, step: int) -> Iterator[Callable[[], object]]:
        """Scrub back by so many rounds at a time."""
        for _ in range(200):
            yield lambda: self.answer.move(self.answer.cursor - step)

    def opening(self, rounds: list[Round]) -> None:
        """Open these rounds from a trace file: reading, statistics and layout, without painting."""
        with TemporaryDirectory() as folder:
            file = Path(folder) / "answer.jsonl"
            write_trace(file, Trace(make_header(), rounds))
            busy = time.thread_time()
            found = salvage_trace(file).trace
            read = time.thread_time() - busy
            assert found is not None
            answer = AnswerModel(found)
            assert answer.statistics.rounds == len(rounds) == len(answer.series)
            folded = time.thread_time() - busy - read
            self.view.set_turns([AnswerTurn(answer, "demo 32M")])
            laid_out = time.thread_time() - busy - read - folded
        print(
            f"opening {file.name}: processor {read * 1000:.0f} ms to read, {folded * 1000:.0f} ms to fold, "
            f"{laid_out * 1000:.0f} ms to lay out"
        )

    def repainting(self) -> Iterator[Callable[[], object]]:
        """Paint the whole viewport without moving it: the highest cost of a hover or a selection."""
        for _ in range(200):
            yield self.view.viewport().update


def main() -> None:
    parser = argparse.ArgumentParser(description="Frame times of the transcript.")
    parser.add_argument("--tokens", type=int, default=20_000)
    parser.add_argument("--rate", type=float, default=1_000, help="tokens a second")
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--height", type=int, default=1000)
    parser.add_argument("--freeze", action="store_true", help="gc.freeze() before the first frame")
    options = parser.parse_args()
    bench = Bench(options.width, options.height)
    if options.freeze:
        gc.collect()
        gc.freeze()
    print(f"{options.tokens:,} tokens, {options.width} × {options.height} pixels")
    print("median · p99 · slowest frame, in all: taking in, laying out, painting")
    for name, text in (("", SAMPLE), (", one line", SAMPLE.replace("\n", " "))):
        rounds = rounds_of(options.tokens, text)
        bench.opening(rounds)
        bench.begin()
        bench.report(f"arriving{name}", bench.arriving(rounds, options.rate))
        bench.answer.end(None)
        bench.report(f"scrolling up{name}", bench.scrolling(60))
        bench.report(f"jumping{name}", bench.jumping())
        bench.report(f"repainting all{name}", bench.repainting())
        bench.report(f"going back{name}", bench.going_back(7))
    bench.view.set_turns([AnswerTurn(AnswerModel(simulate(SAMPLE * 300, seed=3)), "demo 32M")])
    bench.report("switching to rendered, and back", [
        lambda: bench.view.set_rendered(True),
        lambda: bench.view.set_rendered(False),
        lambda: bench.view.set_rendered(True),
    ])  # fmt: skip
    bench.report("scrolling up, rendered", bench.scrolling(60))
    bench.report("repainting all, rendered", bench.repainting())
    bench.view.close()
    bench.application.processEvents()


if __name__ == "__main__":
    main()
