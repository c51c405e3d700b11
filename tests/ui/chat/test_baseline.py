"""Measuring the baseline: two cold runs of a request, and what may interrupt them."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import Qt

from app.engine.process.messages import Failed
from app.engine.types import FinishReason, GenerationRequest, Message, ModelOptions, Sampling
from app.lab.facts import OtherLoad
from app.saved.measured import Measurement
from app.ui.chat.baseline import BaselineMeasurement
from app.ui.state.engine_session import Activity, RunSink
from tests.files.tiny import Tiny
from tests.ui.traces import make_header, make_round, make_totals
from tests.ui.windows import Desk, Windows

REQUEST = GenerationRequest(
    messages=(Message("user", "x"),), strategy="prompt-lookup", sampling=Sampling(0.7), max_tokens=9
)


class Session:
    """Collects requests, which the test runs."""

    def __init__(self) -> None:
        self.requests: list[GenerationRequest] = []

    def generate(self, request: GenerationRequest, sink: RunSink) -> None:
        self.requests.append(request)
        self.sink = sink


class Measured:
    def __init__(self) -> None:
        self.session = Session()
        self.progress: list[float] = []
        self.ends: list[tuple[Measurement | None, str]] = []
        self.run = BaselineMeasurement(
            self.session,  # type: ignore[arg-type]
            REQUEST,
            msgspec.structs.replace(make_header(), seed=77),
            4,
            self.progress.append,
            lambda measurement, why: self.ends.append((measurement, why)),
        )
        self.run.start()

    def answer(self, seconds: float, reason: FinishReason = FinishReason.LENGTH) -> None:
        drafted = None if self.session.requests[-1].strategy == "none" else "b"
        self.session.sink.run_started(make_header())
        for index in range(4):
            round = make_round(index, (), "a", drafted, seconds=seconds, offset=index * seconds)
            self.session.sink.run_rounds([round])
        self.session.sink.run_finished(
            msgspec.structs.replace(make_totals("aaaa", reason), seconds=4 * seconds)
        )


def test_runs_take_turns_cold_and_alike_but_for_the_strategy() -> None:
    measured = Measured()
    for seconds in (0.5, 0.25, 0.5, 0.25):
        assert measured.ends == []
        measured.answer(seconds)
    assert [request.strategy for request in measured.session.requests] == ["none", "prompt-lookup"] * 2
    for request in measured.session.requests:
        assert request.cold and request.sampling == Sampling(0.7, seed=77)
        assert (request.messages, request.max_tokens) == (REQUEST.messages, 9)
    assert measured.progress[0] == 0 and measured.progress[-1] == 0.5, "four pairs would have been possible"
    assert measured.progress == sorted(measured.progress)
    measurement = measured.ends[0][0]
    assert measurement is not None and measurement.baseline_speed == pytest.approx(2)
    assert measurement.factor == measurement.low == measurement.high == pytest.approx(2)
    assert measurement.verdict == "faster"
    for run in measurement.runs:
        assert len(run.rounds) == 4 and run.totals is not None
        assert (run.totals.text, run.totals.finish_reason) == ("aaaa", FinishReason.LENGTH)


def test_pairs_that_disagree_are_followed_by_more_and_said_as_a_range() -> None:
    measured = Measured()
    for strategy in (0.25, 1.0, 0.4, 0.5):
        assert measured.ends == []
        measured.answer(0.5)
        measured.answer(strategy)
    ((measurement, why),) = measured.ends
    assert measurement is not None and why == ""
    assert (measurement.low, measurement.high) == (pytest.approx(0.5), pytest.approx(2))
    assert measurement.factor == pytest.approx(2 / 2.15), "all tokens over all time"
    assert measurement.verdict == "no clear difference" and measurement.pairs == 4


def test_a_baseline_that_changes_its_speed_makes_it_doubtful() -> None:
    measured = Measured()
    for plain in (0.5, 1.0):
        measured.answer(plain)
        measured.answer(plain / 2)
    ((measurement, _),) = measured.ends
    assert measurement is not None and measurement.factor == pytest.approx(2)
    assert measurement.doubts[-1].startswith("The baseline drifted: “none” was 50")


def test_other_programs_make_it_doubtful(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OtherLoad, "cores", lambda _self: 99.0)
    measured = Measured()
    for seconds in (0.5, 0.25, 0.5, 0.25):
        measured.answer(seconds)
    ((measurement, _),) = measured.ends
    assert measurement is not None and measurement.doubts[0].startswith("The machine was busy: for 100")


def test_a_stop_keeps_the_whole_pairs() -> None:
    measured = Measured()
    for seconds in (0.5, 0.25):
        measured.answer(seconds)
    measured.answer(0.5, FinishReason.CANCELLED)
    ((measurement, _),) = measured.ends
    assert measurement is not None and measurement.pairs == 1 and measurement.factor == pytest.approx(2)


def test_a_stopped_run_gives_no_number() -> None:
    measured = Measured()
    measured.answer(0.5)
    measured.answer(0.25, FinishReason.CANCELLED)
    assert measured.ends == [(None, "The measurement was stopped.")]
    failed = Measured()
    failed.session.sink.run_failed(Failed(1, "The engine stopped unexpectedly."))
    assert failed.ends == [(None, "The engine stopped unexpectedly.")]
    instant = Measured()
    instant.answer(0.0)
    instant.answer(0.0)
    assert instant.ends == [(None, "The measured run has no tokens, or took no time.")]


def test_the_same_prompt_or_none(windows: Windows) -> None:
    desk = windows.open(max_tokens=30)
    desk.ask("hello")
    status = desk.window.status
    desk.until(status.measure.isEnabled)
    desk.page.prompt.system_changed.emit("Be short.")
    status.measure.click()
    desk.until(desk.error)
    assert "system prompt" in desk.error() and not status.speed_up.isVisible()
    desk.until_ready()


def test_the_same_pair_or_none(windows: Windows, tiny_file: Callable[[Tiny], Path]) -> None:
    desk = windows.open(max_tokens=30)
    desk.ask("hello")
    desk.load(target=tiny_file(Tiny(name="other", n_ctx=1024)))
    desk.until_ready()
    desk.window.status.measure_baseline_requested.emit()
    assert desk.error().startswith("This answer was made with different models")
    assert desk.session.activity is Activity.READY


@pytest.fixture
def slow(windows: Windows, tiny_file: Callable[[Tiny], Path]) -> Callable[[str], Desk]:
    path = tiny_file(Tiny(name="slow", n_layers=6, n_embd=128, n_ff=512, n_ctx=8192))

    def make(engine: str) -> Desk:
        target = ModelOptions(str(path))
        return windows.open(engine, target=target, draft=None, strategy="prompt-lookup", max_tokens=8000)

    return make


def short_answer(desk: Desk) -> None:
    """Stop an answer early, so that measuring it takes only seconds."""
    desk.type("go")
    desk.until_streaming(20)
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()


def measuring(desk: Desk) -> None:
    """Start measuring an answer of `slow`: with a tiny model it would be over at once."""
    desk.window.status.measure.click()
    desk.until(lambda: desk.session.activity is Activity.GENERATING)


def test_the_button_measures_and_shows_the_factor(windows: Windows) -> None:
    desk = windows.open(max_tokens=100)
    status = desk.window.status
    assert not status.measure.isEnabled()
    desk.ask("hello")
    texts = desk.texts()
    desk.until(status.measure.isEnabled)
    # A tiny model is over at once, so the texts of the bar are collected as they change.
    said: list[str] = []
    desk.session.changed.connect(lambda _now, _before: said.append(status.state.text()))
    status.measure.click()
    assert status.measure.text().startswith("Measuring baseline")
    desk.until(status.speed_up.isVisible)
    desk.until_ready()
    assert "Measuring" in said
    assert re.match(r"(Faster|Slower|No clear difference): \S+× \(\S+× to \S+×\), ", status.speed_up.text())
    assert " against baseline " in status.speed_up.text()
    assert desk.texts() == texts and desk.error() == ""
    desk.header.regenerate.click()
    assert not status.speed_up.isVisible(), "another answer was not measured"
    desk.answered()
    assert not status.speed_up.isVisible()


def test_measuring_is_stopped(slow: Callable[[str], Desk]) -> None:
    desk = slow("thread")
    short_answer(desk)
    measuring(desk)
    desk.press(Qt.Key.Key_Escape)
    desk.until_ready()
    assert desk.error() == "The baseline was not measured: The measurement was stopped."
    status = desk.window.status
    assert status.measure.isVisible() and status.measure.isEnabled()
    assert status.measure.text() == "Measure baseline"


def test_the_numbers_do_not_go_to_another_answer(windows: Windows) -> None:
    desk = windows.open(max_tokens=300)
    desk.ask("hello")
    chat_id = desk.controller.shown.id
    desk.until(desk.window.status.measure.isEnabled)
    desk.window.status.measure.click()
    desk.controller.new_chat()
    desk.until(lambda: desk.window.status.measure.text() == "Measure baseline")
    desk.until_ready()
    assert not desk.window.status.speed_up.isVisible()
    assert "measured" not in desk.page.instruments.speed.note.text()
    desk.controller.open_chat(chat_id)
    assert desk.window.status.speed_up.isVisible(), "it was measured meanwhile"


def test_a_measured_baseline_is_shown_with_its_answer_ever_after(windows: Windows) -> None:
    desk = windows.open(max_tokens=100)
    desk.ask("hello")
    desk.until(desk.window.status.measure.isEnabled)
    desk.window.status.measure.click()
    desk.until(desk.window.status.speed_up.isVisible)
    desk.until_ready()

    def shown(desk: Desk) -> tuple[str, ...]:
        instruments = desk.page.instruments
        return (
            desk.window.status.speed_up.text(),
            instruments.speed.note.text(),
            instruments.speed.value.text(),
        )

    numbers = shown(desk)
    chat_id = desk.controller.shown.id
    desk.controller.new_chat()
    desk.ask("hello again")
    assert not desk.window.status.speed_up.isVisible()
    desk.controller.open_chat(chat_id)
    assert desk.window.status.speed_up.isVisible() and shown(desk) == numbers
    windows.close(desk)
    again = windows.open()
    again.controller.open_chat(chat_id)
    assert again.window.status.speed_up.isVisible() and shown(again) == numbers
    again.header.regenerate.click()
    again.answered()
    assert not again.window.status.speed_up.isVisible(), "another answer was not measured"
    assert again.error() == ""


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
def test_the_engine_is_killed_while_it_measures(slow: Callable[[str], Desk]) -> None:
    desk = slow("process")
    short_answer(desk)
    kept = desk.fates()
    measuring(desk)
    os.kill(desk.engine_pid, signal.SIGKILL)
    desk.until(desk.error)
    assert desk.error().startswith("The baseline was not measured: The engine was ended")
    desk.until_ready()
    assert desk.fates() == kept and desk.window.status.state.text() == "Ready"
    desk.until(desk.window.status.measure.isEnabled)
    short_answer(desk)
