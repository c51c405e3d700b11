"""The window's cost for the engine, and how long its thread is busy while tokens stream.

    python tests/benchmarks/ui/window.py [--repeats 9] [--tokens 500] [--rate 1000] [--seconds 20]
                                      [--only cost|frames]

"cost": tokens/s of the bundled pair with the real window / those with a consumer that only receives. The
engine is a separate process with one thread and draft-simple:n_max=4. Both take turns, and each ratio is of
two consecutive runs. Goal: at least 0.97.

"frames": the rounds of a real answer, repeated, arrive at a steady rate through the real session, store and
views. A frame is the work of the window's thread in one turn of its event loop, painting included. Goal: no
frame above 50 ms. On a busy machine its processor time is the better number.

Without a display, an Xvfb is started.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from typing_extensions import override

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT))

from app.engine.process.host import EngineHome, ProcessHome, Take  # noqa: E402
from app.engine.process.messages import (  # noqa: E402
    AnyCommand,
    AnyEvent,
    Event,
    Failed,
    Finished,
    Generate,
    Load,
    Loaded,
    RoundFinished,
    Started,
)
from app.engine.types import FinishReason, GenerationRequest, Round, Totals, TraceHeader  # noqa: E402
from tests.benchmarks.measure import DEMO_PAIR, as_user, demo_prompts, one_thread, spread  # noqa: E402
from tests.benchmarks.ui.screen import screen  # noqa: E402

if TYPE_CHECKING:
    from app.ui.state.engine_session import RunSink
    from app.ui.window.main_window import MainWindow

STRATEGY = "draft-simple:n_max=4"
TICK_MS = 3
PATIENCE = 300.0  # seconds


class Headless:
    """A consumer that asks an engine process and discards its events."""

    def __init__(self) -> None:
        self._home = ProcessHome()
        self._run = 0
        target, draft = (one_thread(DEMO_PAIR / f"{name}.gguf") for name in ("target", "draft"))
        self._send(lambda run: Load(run, target, draft))

    def _send(self, make: Callable[[int], AnyCommand]) -> list[Event]:
        self._run += 1
        self._home.send(make(self._run))
        events: list[Event] = []
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            event = self._home.receive(0.1)
            if isinstance(event, Failed):
                raise RuntimeError(event.message)
            if event is not None:
                events.append(event)
            if isinstance(event, Loaded | Finished):
                return events
        raise RuntimeError("The engine does not answer.")

    def ask(self, request: GenerationRequest) -> list[Event]:
        return self._send(lambda run: Generate(run, request))

    def close(self) -> None:
        self._home.close()


def request_of(prompt: str, tokens: int) -> GenerationRequest:
    """A cold request that ignores the end of generation, so that both sides do the same work."""
    return GenerationRequest(
        messages=as_user(prompt), strategy=STRATEGY, max_tokens=tokens, ignore_eos=True, cold=True
    )


def speed(events: list[Event]) -> float:
    """The tokens per second from the start of round 0."""
    tokens = sum(len(event.round.emitted) for event in events if isinstance(event, RoundFinished))
    last = events[-1]
    assert isinstance(last, Finished)
    return tokens / last.totals.seconds


class Replay(EngineHome):
    """An engine home that sends the rounds of one answer again and again, at a steady rate."""

    def __init__(
        self, take: Take, header: TraceHeader, rounds: list[Round], tokens: int, rate: float
    ) -> None:
        super().__init__(take)
        self._header = header
        self._encoded = list(_repeated(rounds, tokens))
        self._rate = rate
        self._decode = msgspec.msgpack.Decoder(AnyEvent).decode

    @override
    def send(self, command: AnyCommand) -> None:
        if isinstance(command, Load):
            self._take(Loaded(command.run, self._header.pair, 0.1))
        elif isinstance(command, Generate):
            threading.Thread(target=self._answer, args=(command.run,), daemon=True).start()

    def _answer(self, run: int) -> None:
        began = time.monotonic()
        encode = msgspec.msgpack.Encoder().encode
        self._take(Started(run, self._header))
        for tokens, round in self._encoded:
            event = encode(RoundFinished(run, round, ""))
            time.sleep(max(0.0, began + tokens / self._rate - time.monotonic()))
            self._take(self._decode(event))  # decoded on the home's thread, as from a pipe
        totals = Totals(FinishReason.LENGTH, self._text(), time.monotonic() - began, 0.1, 0.1, 0.1)
        self._take(Finished(run, totals))

    def _text(self) -> str:
        pieces = b"".join(token.piece for _tokens, round in self._encoded for token in round.emitted)
        return pieces.decode("utf-8", errors="ignore")

    @override
    def close(self) -> None:
        """Nothing is left to end."""


def _repeated(rounds: list[Round], tokens: int) -> Iterator[tuple[int, Round]]:
    """Rounds repeated up to so many tokens, each with the number of tokens up to its end."""
    count, index, offset = 0, 0, 0.0
    while count < tokens:
        for round in rounds:
            yield (
                count + len(round.emitted),
                msgspec.structs.replace(round, index=index, position=count, offset=offset),
            )
            count += len(round.emitted)
            index += 1
            offset += round.seconds
            if count >= tokens:
                return


def make_bench_window(folder: Path, home: Callable[[Take], EngineHome] | None) -> MainWindow:
    """The real window with settings of its own; `home` replaces the engine process."""
    from PySide6.QtWidgets import QApplication

    from app import wiring
    from app.base.paths import find_paths
    from app.saved.settings import Settings, SettingsStore

    application = QApplication.instance() or QApplication([])
    assert isinstance(application, QApplication)
    paths = find_paths({"DRAFTSCOPE_HOME": str(folder)})
    settings = Settings(strategy=STRATEGY)
    model = replace(settings.target, ctx_size=2048, threads=1)
    SettingsStore(paths.settings).save(
        replace(settings, target=model, draft=replace(model, path=settings.draft.path))
    )
    if home is not None:
        wiring.make_home = lambda _kind, take: home(take)  # type: ignore[attr-defined, assignment, misc]
    window = wiring.make_window(application, paths, "process")
    window.resize(1600, 1000)
    window.show()
    turn(lambda: window.session.activity == "ready")
    return window


def turn(done: Callable[[], bool]) -> None:
    """Let the event loop run until something is done."""
    from PySide6.QtCore import QEventLoop, QTimer

    loop, timer = QEventLoop(), QTimer()
    timer.timeout.connect(lambda: loop.quit() if done() else None)
    timer.start(20)
    QTimer.singleShot(int(PATIENCE * 1000), loop.quit)
    if not done():
        loop.exec()
    timer.stop()
    if not done():
        raise RuntimeError("The window does not come to an end.")


def ask_window(window: MainWindow, request: GenerationRequest) -> float:
    """Send the prompt as the prompt box does, and compute tokens/s from the rounds."""
    session, controller = window.session, window.controller
    generate = session.generate

    def generate_own(_asked: GenerationRequest, sink: RunSink, held: bool = False) -> None:
        generate(request, sink, held)

    session.generate = generate_own  # type: ignore[method-assign, assignment]
    try:
        controller.ask_in_new_chat(request.messages[0].content)
        turn(lambda: session.activity == "ready")
    finally:
        session.generate = generate  # type: ignore[method-assign]
    trace = controller.shown.answer.trace
    return len(trace.token_ids) / trace.totals.seconds


def report_cost(repeats: int, tokens: int) -> None:
    """Print the window's cost for the engine."""
    with tempfile.TemporaryDirectory() as folder:
        headless = Headless()
        window = make_bench_window(Path(folder), None)
        requests = [request_of(prompt, tokens) for prompt in demo_prompts(3)]
        pairs: list[tuple[float, float]] = []
        for number in range(-1, repeats):  # the first is a warm-up
            request = requests[number % len(requests)]
            first = number % 2 == 0  # the sides take turns to begin
            shown = ask_window(window, request) if first else 0.0
            bare = speed(headless.ask(request))
            shown = shown or ask_window(window, request)
            if number >= 0:
                pairs.append((shown, bare))
        window.close()
        headless.close()
    ratios = [shown / bare for shown, bare in pairs]
    print(f"\ncost of the window: bundled pair, {STRATEGY}, one thread, {tokens} tokens, {repeats} pairs\n")
    print(f"{'tokens/s with the window':32}{spread([shown for shown, _bare in pairs], '{:.0f}'):>22}")
    print(f"{'tokens/s headless':32}{spread([bare for _shown, bare in pairs], '{:.0f}'):>22}")
    print(f"{'ratio, pair by pair':32}{spread(ratios, '{:.3f}'):>22}   goal 0.97", flush=True)


class FrameClock:
    """A timer that measures how long the event loop was busy between two of its ticks."""

    def __init__(self) -> None:
        from PySide6.QtCore import Qt, QTimer

        self.frames: list[tuple[float, float]] = []  # milliseconds of wall time, and of processor time
        self._timer = QTimer()
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self._last: tuple[float, float] | None = None
        self._timer.start(TICK_MS)

    def _tick(self) -> None:
        now = time.perf_counter(), time.thread_time()
        if self._last is not None:
            wall = (now[0] - self._last[0]) * 1000 - TICK_MS
            self.frames.append((max(0.0, wall), (now[1] - self._last[1]) * 1000))
        self._last = now

    def stop(self) -> None:
        self._timer.stop()


def report_frames(rate: float, seconds: float) -> None:
    """Print how long the window's thread is busy while rounds stream in."""
    headless = Headless()
    events = headless.ask(request_of(demo_prompts(1)[0], 400))
    headless.close()
    header = next(event.header for event in events if isinstance(event, Started))
    rounds = [event.round for event in events if isinstance(event, RoundFinished)]
    tokens = round(rate * seconds)
    with tempfile.TemporaryDirectory() as folder:
        window = make_bench_window(Path(folder), lambda take: Replay(take, header, rounds, tokens, rate))
        turn(lambda: window.session.activity == "ready")
        began, used = time.perf_counter(), time.process_time()
        clock = FrameClock()
        ask_window(window, request_of("Write a lot.", tokens))
        clock.stop()
        share = (time.process_time() - used) / (time.perf_counter() - began)
        window.close()
    print(f"\nframes while {rate:,.0f} tokens/s come in for {seconds:.0f} s ({tokens:,} tokens)\n")
    print(f"{'':32}{'median':>10}{'p99':>10}{'slowest':>10}")
    for name, times in zip(
        ("by the clock, ms", "processor time, ms"), zip(*clock.frames, strict=True), strict=True
    ):
        p99 = statistics.quantiles(times, n=100)[98]
        goal = "   goal 50"
        print(f"{name:32}{statistics.median(times):10.1f}{p99:10.1f}{max(times):10.1f}{goal}")
    print(f"{'processor of the window, %':32}{100 * share:10.0f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9, help="pairs of runs")
    parser.add_argument("--tokens", type=int, default=500, help="tokens of an answer")
    parser.add_argument("--rate", type=float, default=1000, help="tokens a second that come in")
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--only", choices=("cost", "frames"))
    options = parser.parse_args()
    with screen() as where:
        print(f"window on {where}")
        if options.only != "frames":
            report_cost(options.repeats, options.tokens)
        if options.only != "cost":
            gc.unfreeze()
            report_frames(options.rate, options.seconds)


# The engine's own process imports this file again.
if __name__ == "__main__":
    main()
