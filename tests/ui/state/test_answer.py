"""The observable answer: folded once, shown up to its cursor, the same in every view."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import SignalInstance
from pytestqt.qtbot import QtBot

from app.engine.explain.cost import CostModel
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.types import Round
from app.lab.runs.record import RunRecord
from app.ui.instruments import InstrumentsPanel
from app.ui.state.answer import AnswerModel, Note, reconnect
from app.ui.state.folds import copy_of
from app.ui.theme import Theme
from app.ui.transcript import AnswerTurn, TranscriptView
from tests.ui.traces import simulate
from tests.ui.windows import Windows

WHOLE = simulate("Some words.\n\n```python\nx = 1\n```\n<think>why</think> And *more* of them.\n" * 4, seed=2)


def live(to: int, batch: int = 3) -> AnswerModel:
    """An answer whose first rounds have arrived."""
    model = AnswerModel(live=True)
    model.begin(WHOLE.header)
    for first in range(0, to, batch):
        model.add(WHOLE.rounds[first : min(first + batch, to)])
    return model


@pytest.fixture
def views(qtbot: QtBot, theme: Theme) -> tuple[TranscriptView, InstrumentsPanel]:
    shown = TranscriptView(theme), InstrumentsPanel(theme)
    for view, size in zip(shown, ((700, 500), (360, 900)), strict=True):
        qtbot.addWidget(view)
        view.resize(*size)
        view.show()
    return shown


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.integers(0, len(WHOLE.rounds)), min_size=1, max_size=4))
def test_scrubbed_to_a_round_looks_as_live_at_it(views, cursors: list[int]) -> None:
    transcript, panel = views

    def pictures(model: AnswerModel) -> list[object]:
        transcript.scroller.to_end()
        transcript.refresh()
        panel.answer.ended.emit()  # no throttled update is late
        return [view.grab().toImage() for view in (transcript, panel)]

    def put(model: AnswerModel) -> None:
        transcript.set_turns([AnswerTurn(model, "demo")])
        panel.set_answer(model)

    scrubbed = AnswerModel(Trace(WHOLE.header, WHOLE.rounds), live=True)
    put(scrubbed)
    for cursor in cursors:
        scrubbed.move(cursor)
    for item in transcript.stack.items:
        item.count()
    seen = pictures(scrubbed)
    put(live(cursors[-1]))
    assert pictures(panel.answer) == seen


def test_an_answer_that_was_scrubbed_ends_as_it_is(views) -> None:
    transcript, _panel = views
    model = AnswerModel(WHOLE, Note("Said below."))
    transcript.set_turns([AnswerTurn(model, "demo")])
    picture = transcript.grab().toImage()
    model.move(3)
    assert transcript.text_of(transcript.turns[0]) != WHOLE.text
    model.move(len(WHOLE.rounds))
    assert transcript.text_of(transcript.turns[0]) == WHOLE.text
    transcript.scroller.to_end()
    transcript.refresh()
    assert transcript.grab().toImage() == picture


def test_numbers_are_those_of_the_rounds_shown() -> None:
    model = live(20)
    assert model.statistics == Statistics.of(WHOLE.rounds[:20])
    model.move(5)
    assert not model.following and model.statistics == Statistics.of(WHOLE.rounds[:5])
    model.add(WHOLE.rounds[20:22])
    assert model.cursor == 5, "the cursor stays where the user moved it"
    model.move(9)
    assert model.statistics == Statistics.of(WHOLE.rounds[:9])
    assert model.cost.lengths == CostModel.of(WHOLE.rounds[:9]).lengths
    model.count_from(4)
    assert model.statistics == Statistics.of(WHOLE.rounds[4:9])
    model.move(22)
    model.add(WHOLE.rounds[22:24])
    assert model.cursor == 24 and model.statistics == Statistics.of(WHOLE.rounds[4:24])


def test_a_whole_answer_is_as_fast_as_its_measurement_says() -> None:
    model, measured = live(len(WHOLE.rounds)), RunRecord.of(WHOLE)
    assert model.statistics == Statistics.of(WHOLE.rounds)
    model.end(WHOLE.totals)
    assert model.statistics.tokens_per_second == measured.tokens_per_second
    assert model.statistics.seconds == measured.seconds > Statistics.of(WHOLE.rounds).seconds
    model.move(5)
    assert model.statistics == Statistics.of(WHOLE.rounds[:5])
    model.move(len(WHOLE.rounds))
    assert model.statistics.tokens_per_second == measured.tokens_per_second
    model.count_from(4)
    assert model.statistics == Statistics.of(WHOLE.rounds[4:])


def test_going_back_in_a_long_answer_folds_few_rounds_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = [replace(round, index=at) for at, round in enumerate(WHOLE.rounds * 60)]
    model = AnswerModel(Trace(WHOLE.header, rounds))
    assert len(rounds) > 1300 and model.statistics.rounds == len(rounds)
    added: list[int] = []
    add = Statistics.add

    def counted(statistics: Statistics, round: Round) -> None:
        added.append(round.index)
        add(statistics, round)

    monkeypatch.setattr(Statistics, "add", counted)
    for cursor in (len(rounds) - 1, len(rounds) - 2, 1100, 1024, 600, 1000, 511, 3, len(rounds)):
        added.clear()
        model.move(cursor)
        assert model.statistics.rounds == cursor
        assert len(added) <= 512 or cursor == len(rounds)
        assert model.statistics == Statistics.of(rounds[:cursor])
        cost = CostModel.of(rounds[:cursor])
        assert (model.cost.c, model.cost.lengths) == (cost.c, cost.lengths)


def test_the_context_in_use_ends_at_the_cursor() -> None:
    model = live(10)
    tokens = sum(len(round.emitted) for round in WHOLE.rounds[:10])
    assert model.context_used == WHOLE.header.prompt_tokens + tokens
    model.move(0)
    assert model.context_used == WHOLE.header.prompt_tokens


@pytest.mark.parametrize(("cached", "speed"), [(0, 200.0), (2, 100.0), (3, 50.0), (4, None)])
def test_the_speed_of_the_prompt_is_that_of_what_was_read(cached: int, speed: float | None) -> None:
    """Its last token is read in the first round."""
    model = AnswerModel(live=True)
    header = replace(WHOLE.header, prompt_tokens=5, cached_tokens=cached)
    assert WHOLE.totals is not None
    model.begin(header, WHOLE.rounds)
    model.end(replace(WHOLE.totals, prompt_seconds=0.02))
    assert model.prompt_speed == speed


def test_only_rounds_that_are_shown_can_be_pointed_at() -> None:
    model = live(10)
    told: list[int | None] = []
    model.pointed.connect(lambda: told.append(model.pointed_at))
    for index in (3, 3, 10, -1, 9, None):
        model.point(index)
    assert told == [3, None, 9, None]


def test_rounds_exist_once(windows: Windows) -> None:
    desk = windows.open()
    item = desk.ask("hello")
    assert desk.trace is not None
    rounds = desk.trace.rounds
    assert item.answer.rounds is rounds
    assert desk.page.instruments.answer.rounds is rounds
    assert desk.window.status.answer.rounds is rounds


def test_a_view_observes_one_answer_at_a_time(qapp: object) -> None:
    first, second = AnswerModel(live=True), AnswerModel(live=True)
    heard: list[str] = []

    def hear() -> None:
        heard.append(f"{first.progress}{second.progress}")

    def slots(answer: AnswerModel) -> tuple[tuple[SignalInstance, Callable[[], None]], ...]:
        return ((answer.told, hear),)

    reconnect(slots, None, first)
    first.tell("a")
    reconnect(slots, first, second)
    first.tell("b")
    second.tell("c")
    reconnect(slots, second, None)
    second.tell("d")
    assert heard == ["a", "bc"]


def test_a_jump_on_counts_few_rounds_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = AnswerModel(simulate("The fox ran over the hill. " * 1500, seed=3))
    whole = copy_of(answer.statistics)
    counted: list[int] = []
    add = Statistics.add
    monkeypatch.setattr(
        Statistics, "add", lambda self, round: counted.append(round.index) or add(self, round)
    )
    for cursor in (100, 1900, 5, 1000, len(answer.rounds)):
        counted.clear()
        answer.move(cursor)
        assert answer.statistics.rounds == cursor
        assert len(counted) <= 512
    assert answer.statistics == whole
