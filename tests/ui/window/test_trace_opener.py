"""Trace files that are opened while the window goes on; one of them takes as long to read as a test wants."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from app.engine.record.alternative_stats import AlternativeStatistics
from app.engine.record.stats import Statistics
from app.engine.record.trace import Salvaged, salvage_in_parts, write_trace
from app.engine.types import Round
from app.ui.inspector import shape_view
from app.ui.window import trace_opener
from tests.quiet import stays
from tests.ui.traces import simulate
from tests.ui.windows import Windows

SHORT = simulate("The fox ran over the hill. " * 4)
LONG = simulate("The windows overlap, so every value is seen. " * 200)


class Slow:
    """A trace file that is read in small parts until `go_on`, and then to its end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._may_end = threading.Event()
        self.parts = 0

    def go_on(self) -> None:
        self._may_end.set()

    def read(self, file: Path) -> Iterator[Salvaged]:
        if file == self.path:
            while not self._may_end.wait(0.005):
                self.parts += 1
                yield Salvaged()
        yield from salvage_in_parts(file)


@pytest.fixture
def slow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slow:
    made = Slow(tmp_path / "long.jsonl")
    write_trace(made.path, LONG)
    monkeypatch.setattr(trace_opener, "salvage_in_parts", made.read)
    return made


@pytest.fixture
def short(tmp_path: Path) -> Path:
    path = tmp_path / "short.jsonl"
    write_trace(path, SHORT)
    return path


def asking() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("asking")]


def test_the_window_goes_on_while_a_trace_is_read(windows: Windows, slow: Slow) -> None:
    desk = windows.open(ready=False)
    desk.window.open_trace(slow.path)
    desk.until(desk.window.opener.strip.isVisible)
    assert desk.window.opener.strip.words.text() == "Opening long.jsonl…"
    desk.press(Qt.Key.Key_A)
    assert desk.prompt.toPlainText() == "a" and desk.trace is None
    desk.window.go("inspector")
    assert desk.window.opener.strip.isVisible(), "it is said in every place"
    slow.go_on()
    desk.until_opened()
    assert desk.trace == LONG and not desk.window.opener.strip.isVisible()


def test_the_thread_that_reads_a_trace_folds_it(
    windows: Windows, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = windows.open(ready=False)
    threads: list[str] = []
    add = Statistics.add

    def noted(statistics: Statistics, round: Round) -> None:
        threads.append(threading.current_thread().name)
        add(statistics, round)

    monkeypatch.setattr(Statistics, "add", noted)
    desk.open_trace(short)
    shown = desk.page.instruments.answer.statistics
    assert len(threads) >= len(SHORT.rounds) and all(name.startswith("asking") for name in threads)
    assert shown == Statistics.of_answer(SHORT)


def test_a_second_trace_replaces_the_one_that_is_being_read(
    windows: Windows, slow: Slow, short: Path
) -> None:
    desk = windows.open(ready=False)
    desk.window.open_trace(slow.path)
    desk.until(lambda: slow.parts > 0)
    desk.open_trace(short)
    assert desk.trace == SHORT
    slow.go_on()
    assert stays(lambda: (desk.trace, desk.error())) and desk.trace == SHORT and not desk.error()


def test_opening_a_trace_can_be_cancelled(windows: Windows, slow: Slow) -> None:
    desk = windows.open(ready=False)
    desk.window.open_trace(slow.path)
    desk.until(desk.window.opener.strip.isVisible)
    desk.window.opener.strip.cancel.click()
    assert not desk.window.opener.opening and not desk.window.opener.strip.isVisible()
    slow.go_on()
    assert stays(lambda: (desk.trace, desk.error())) and desk.trace is None and not desk.error()


def test_the_figures_of_a_trace_rest_while_another_is_read(
    windows: Windows, slow: Slow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = windows.open(ready=False)
    desk.window.resize(1280, 1000)
    desk.window.go("inspector")
    figures = desk.place("inspector").shape
    write_trace(tmp_path / "whole.jsonl", LONG)
    monkeypatch.setattr(shape_view, "_SLICE", 1e-6)  # a round a turn
    desk.open_trace(tmp_path / "whole.jsonl")
    desk.window.open_trace(slow.path)
    folded: list[Round] = []
    add = AlternativeStatistics.add

    def noted(statistics: AlternativeStatistics, round: Round) -> None:
        folded.append(round)
        add(statistics, round)

    monkeypatch.setattr(AlternativeStatistics, "add", noted)
    assert figures.in_sight and figures.ranks.note.text().endswith("so far")
    assert stays(lambda: len(folded))
    desk.window.opener.cancel()
    desk.until(lambda: len(folded) > 1)
    desk.until(lambda: figures.ranks.note.text().endswith("places"))


def test_a_window_that_is_closed_while_a_trace_is_read_ends_its_threads(windows: Windows, slow: Slow) -> None:
    before = len(asking())
    desk = windows.open(ready=False)
    desk.window.open_trace(slow.path)
    desk.until(lambda: slow.parts > 0)
    windows.close(desk)
    for thread in asking():
        thread.join(10)
    assert len(asking()) <= before, "nobody reads on, though the file has not ended"
