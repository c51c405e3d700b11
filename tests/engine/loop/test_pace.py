"""The pace of an answer: one round at a time, and never a part of its times."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path

import pytest

from app.engine.engine import Engine
from app.engine.loop.handover import Pace
from app.engine.process.client import EngineClient
from app.engine.process.host import make_home
from app.engine.process.messages import Event, Finished, RoundFinished, Started, trace_of
from app.engine.types import FinishReason, GenerationRequest, ModelOptions
from tests.answers import answer
from tests.quiet import stays

PATIENCE = 30.0
REQUEST = GenerationRequest(prompt="abcabcabd abc", strategy="draft-simple:n_max=2", max_tokens=24, cold=True)


class Watched:
    """An answer that is written on a thread, and its events so far."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.events: list[Event] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for event in self.engine.generate(REQUEST):
            self.events.append(event)

    @property
    def rounds(self) -> list[RoundFinished]:
        return [event for event in self.events if isinstance(event, RoundFinished)]

    def until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, self.events[-1:]
            time.sleep(0.002)

    def end(self) -> Finished:
        self._thread.join(PATIENCE)
        assert isinstance(self.events[-1], Finished)
        return self.events[-1]


@pytest.fixture
def paused(engine: Engine) -> Iterator[Engine]:
    engine.pace.set(True)
    yield engine
    engine.stop()
    engine.pace.set(False)


def test_a_pause_before_an_answer_holds_its_first_round(paused: Engine) -> None:
    watched = Watched(paused)
    watched.until(lambda: any(isinstance(event, Started) for event in watched.events))
    assert stays(lambda: len(watched.rounds)) and not watched.rounds
    paused.pace.set(False)
    assert watched.end().totals.finish_reason is FinishReason.LENGTH


def test_every_step_shows_one_round(paused: Engine) -> None:
    watched = Watched(paused)
    for shown in (1, 2, 3):
        paused.pace.set(True, steps=1)
        watched.until(partial(lambda wanted: len(watched.rounds) >= wanted, shown))
        assert stays(lambda: len(watched.rounds)) and len(watched.rounds) == shown
    paused.pace.set(True, steps=2)
    watched.until(lambda: len(watched.rounds) == 5)
    paused.stop()
    assert watched.end().totals.finish_reason is FinishReason.CANCELLED


def test_steps_that_were_asked_for_quickly_are_all_made() -> None:
    pace = Pace()

    def goes_on() -> bool:
        """Whether a round may begin in the pause."""
        asked: list[None] = []
        pace.wait(lambda: len(asked) > 1 or asked.append(None) is not None)
        return len(asked) == 1

    pace.set(True, steps=1)
    pace.set(True, steps=1)
    assert [goes_on() for _ in range(3)] == [True, True, False]
    pace.set(True, steps=1)
    pace.set(False)
    pace.set(True)
    assert not goes_on(), "what was asked for in an earlier pause is over"


@pytest.mark.same_text
def test_waiting_is_no_part_of_any_time(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = answer(engine, REQUEST.prompt or "", strategy=REQUEST.strategy, max_tokens=24, cold=True)
    wait, waits = Pace.wait, []

    def timed(self: Pace, over: Callable[[], bool]) -> None:
        entered = time.perf_counter()
        wait(self, over)
        waits.append(time.perf_counter() - entered)

    monkeypatch.setattr(Pace, "wait", timed)
    engine.pace.set(True)
    began = time.perf_counter()
    watched = Watched(engine)
    engine.pace.set(True, steps=2)
    watched.until(lambda: len(watched.rounds) == 2)
    assert stays(lambda: len(watched.rounds))
    engine.pace.set(False)
    totals = watched.end().totals
    seconds = time.perf_counter() - began
    trace = trace_of(watched.events)
    assert trace.token_ids == plain.token_ids
    assert [len(round.drafted) for round in trace.rounds] == [len(round.drafted) for round in plain.rounds]
    last = trace.rounds[-1]
    assert last.offset + last.seconds <= totals.seconds <= seconds - sum(waits)
    assert all(
        before.offset + before.seconds <= round.offset
        for before, round in zip(trace.rounds, trace.rounds[1:], strict=False)
    )


def test_an_answer_nobody_takes_ends_in_a_pause(paused: Engine) -> None:
    events = paused.generate(REQUEST)
    assert isinstance(next(events), Started)
    paused.pace.set(True, steps=1)
    while not isinstance(next(events), RoundFinished):
        pass
    assert isinstance(events, Generator)
    events.close()  # waits until the loop has ended
    paused.pace.set(False)
    assert answer(paused, max_tokens=4).rounds


@pytest.mark.parametrize("kind", ["thread", "process"])
def test_a_home_steps_stops_and_begins_the_next_answer_anew(kind: str, pair_files: tuple[Path, Path]) -> None:
    stopping = False
    client = EngineClient(make_home(kind), lambda: stopping)
    try:
        for _ in client.load(*(ModelOptions(str(file)) for file in pair_files)):
            pass
        rounds = 0
        for event in client.generate(REQUEST, held=True):
            if isinstance(event, Started):
                client.set_pace(True, steps=3)
            elif isinstance(event, RoundFinished):
                rounds += 1
                stopping = rounds == 3
        assert isinstance(event, Finished) and event.totals.finish_reason is FinishReason.CANCELLED
        assert rounds == 3
        stopping = False
        last = list(client.generate(REQUEST))[-1]
        assert isinstance(last, Finished) and last.totals.finish_reason is FinishReason.LENGTH
    finally:
        client.close()
