"""The session: it routes events, follows the engine, and recovers when the engine dies."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import QTimer
from pytestqt.qtbot import QtBot

from app.engine.process.messages import (
    DevicesListed,
    Failed,
    Finished,
    Generate,
    ListDevices,
    Load,
    LoadProgress,
    PromptProgress,
    RoundFinished,
    Started,
    Stop,
)
from app.engine.types import GenerationRequest, ModelOptions, Role, Round, Totals, TraceHeader
from app.ui.state.engine_session import (
    LOAD_STOP_MILLISECONDS,
    STOP_MILLISECONDS,
    Activity,
    EngineSession,
    EngineState,
)
from tests.quiet import stays
from tests.ui.homes import Homes, loaded
from tests.ui.traces import make_header, make_round, make_totals

FIRST, SECOND = ModelOptions("first.gguf"), ModelOptions("second.gguf")


class Sink:
    """A RunSink that records its events."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.batches: list[list[int]] = []
        self.breaks_at = -1

    def run_progress(self, progress: PromptProgress) -> None:
        self.heard.append(progress)

    def run_started(self, header: TraceHeader) -> None:
        self.heard.append(header)

    def run_rounds(self, rounds: list[Round]) -> None:
        self.batches.append([round.index for round in rounds])
        if self.breaks_at in self.batches[-1]:
            raise RuntimeError("a view broke")
        self.heard.append(rounds[-1].index)

    def run_finished(self, totals: Totals) -> None:
        self.heard.append(totals)

    def run_failed(self, failed: Failed) -> None:
        self.heard.append(failed)


class Talk:
    """A session over scripted homes, with its recorded signals."""

    def __init__(self, qtbot: QtBot) -> None:
        self.qtbot = qtbot
        self.homes = Homes()
        self.session = EngineSession(self.homes)
        self.activities: list[Activity] = []
        self.failures: list[Failed] = []
        self.session.changed.connect(self._heard)

    def _heard(self, now: EngineState, before: EngineState) -> None:
        if now.activity is not before.activity:
            self.activities.append(now.activity)
        if now.failed is not None and now.failed is not before.failed:
            self.failures.append(now.failed)

    def until(self, condition: Callable[[], object]) -> None:
        self.qtbot.waitUntil(lambda: bool(condition()))

    def until_is(self, activity: Activity) -> None:
        self.until(lambda: self.session.activity is activity)

    def say(self, *events: object) -> None:
        self.homes.last.say(*events)  # type: ignore[arg-type]

    @property
    def watch(self) -> QTimer:
        """Ends an engine that does not come to a load."""
        (watch,) = (
            timer for timer in self.session.findChildren(QTimer) if timer.interval() == LOAD_STOP_MILLISECONDS
        )
        return watch

    def replaced(self) -> Load:
        """Let the engine not come to its load; returns the load that the next engine gets."""
        watch = self.watch
        assert watch.isActive()
        watch.setInterval(50)
        self.until(lambda: len(self.homes.made) == 2 and self.homes.last.sent)
        watch.setInterval(LOAD_STOP_MILLISECONDS)
        again = self.homes.last.sent[0]
        assert isinstance(again, Load)
        return again

    @property
    def run(self) -> int:
        """The run of the command that was sent last."""
        return self.homes.last.sent[-1].run

    def load(self, options: ModelOptions = FIRST) -> None:
        self.session.load(options, None)
        self.say(loaded(self.run, options.path))
        self.until_is(Activity.READY)

    def ask(self) -> Sink:
        sink = Sink()
        self.session.generate(GenerationRequest(prompt="x"), sink)
        return sink


@pytest.fixture
def talk(qtbot: QtBot) -> Iterator[Talk]:
    made = Talk(qtbot)
    yield made
    made.session.close()


def finished(run: int) -> Finished:
    return Finished(run, make_totals("x"))


def round_of(run: int, index: int) -> RoundFinished:
    return RoundFinished(run, make_round(index, emitted="a"), "a")


def test_a_run_from_its_start_to_its_end(talk: Talk) -> None:
    talk.load()
    sink = talk.ask()
    assert talk.session.activity is Activity.READING
    run, header = talk.run, make_header()
    progress = PromptProgress(run, Role.TARGET, 3, 7)
    talk.say(Started(run, header), progress)
    talk.say(*(round_of(run, index) for index in range(3000)), finished(run))
    talk.until_is(Activity.READY)
    assert sink.heard[:2] == [header, progress]
    assert sink.heard[-1] == make_totals("x") and sink.heard[-2] == 2999
    assert [index for batch in sink.batches for index in batch] == list(range(3000))
    assert len(sink.batches) < 100, "rounds come in batches"
    kinds = [Activity.LOADING, Activity.READY, Activity.READING, Activity.GENERATING, Activity.READY]
    assert talk.activities == kinds


def test_a_state_is_whole_when_it_is_told(talk: Talk) -> None:
    told: list[EngineState] = []
    talk.session.changed.connect(lambda now, _before: told.append(now))
    talk.load()
    assert told[-1].pair is not None and told[-1].pair.target.name == FIRST.path
    talk.session.load(SECOND, None)
    progress = LoadProgress(talk.run, Role.TARGET, SECOND.path, 0.5)
    failed = Failed(talk.run, "second.gguf is empty.", role=Role.TARGET)
    talk.say(progress, failed)
    talk.until_is(Activity.READY)
    kept = told[-1].pair
    assert told[-3:] == [
        EngineState(Activity.LOADING, kept),
        EngineState(Activity.LOADING, kept, reading=progress),
        EngineState(Activity.READY, kept, failed=failed),
    ]
    talk.say(Failed(-1, "The engine stopped unexpectedly.", gone=True))
    talk.until_is(Activity.LOADING)
    assert told[-2:] == [
        EngineState(Activity.EMPTY, failed=failed),
        EngineState(Activity.LOADING, failed=failed),
    ]


def test_a_prompt_that_is_still_read_does_not_hide_the_stop(talk: Talk) -> None:
    talk.load()
    sink = talk.ask()
    first, last = (PromptProgress(talk.run, Role.TARGET, done, 7) for done in (3, 5))
    talk.say(first)
    talk.until(lambda: sink.heard == [first])
    assert talk.session.state == EngineState(Activity.READING, talk.session.pair, first)
    talk.session.stop()
    talk.say(last)
    talk.until(lambda: sink.heard == [first, last])
    assert talk.session.state == EngineState(Activity.STOPPING, talk.session.pair)


def test_states_come_in_order_to_all_where_one_listener_sets_off_the_next(talk: Talk) -> None:
    sink, told = Sink(), []

    def ask(now: EngineState, _before: EngineState) -> None:
        if now.activity is Activity.READY:
            talk.session.generate(GenerationRequest(prompt="x"), sink)

    talk.session.changed.connect(ask)
    talk.session.changed.connect(lambda now, before: told.append((before.activity, now.activity)))
    talk.session.load(FIRST, None)
    talk.say(loaded(talk.run))
    talk.until_is(Activity.READING)
    kinds = [Activity.EMPTY, Activity.LOADING, Activity.READY, Activity.READING]
    assert told == list(itertools.pairwise(kinds))


def test_events_of_other_runs_are_dropped(talk: Talk) -> None:
    talk.load()
    first = talk.ask()
    talk.say(finished(talk.run))
    talk.until_is(Activity.READY)
    stale = talk.run
    second = talk.ask()
    talk.say(round_of(stale, 0), Failed(stale, "stale"), finished(stale), round_of(talk.run, 7))
    talk.until_is(Activity.GENERATING)
    assert first.batches == [] and len(first.heard) == 1
    assert second.batches == [[7]] and second.heard == [7]


def test_stopping_lasts_until_the_end_is_told(talk: Talk) -> None:
    talk.load()
    sink = talk.ask()
    run = talk.run
    talk.session.stop()
    assert talk.homes.last.sent[-1] == Stop(run)
    talk.say(round_of(run, 0))
    talk.until(lambda: sink.batches)
    assert talk.session.activity is Activity.STOPPING, "rounds that still come do not change that"
    talk.say(finished(run))
    talk.until_is(Activity.READY)
    talk.session.stop()
    assert talk.session.activity is Activity.READY and talk.homes.last.sent[-1] == Stop(run)


def test_a_refused_run_leaves_the_engine_ready(talk: Talk) -> None:
    talk.load()
    sink = talk.ask()
    failed = Failed(talk.run, "Too long.", "Shorten it.")
    talk.say(failed)
    talk.until_is(Activity.READY)
    assert sink.heard == [failed]


def test_what_only_a_developer_can_read_goes_to_the_log(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    talk.load()
    talk.ask()
    talk.say(Failed(talk.run, "It broke.", "Report it.", expected=False, details="Traceback: line 3"))
    talk.until_is(Activity.READY)
    assert "unexpected error.\nTraceback: line 3" in caplog.text
    assert "It broke" not in caplog.text, "a bug's own words may quote a chat"


def test_a_failed_load_keeps_the_pair_from_before(talk: Talk) -> None:
    talk.session.load(SECOND, None)
    talk.say(
        LoadProgress(talk.run, Role.TARGET, "second.gguf", 0.5), Failed(talk.run, "second.gguf is empty.")
    )
    talk.until_is(Activity.EMPTY)
    assert talk.session.pair is None
    talk.load()
    talk.session.load(SECOND, None)
    talk.say(Failed(talk.run, "second.gguf is empty."))
    talk.until_is(Activity.READY)
    assert talk.session.pair is not None and talk.session.pair.target.name == "first.gguf"
    assert len(talk.failures) == 2


def test_a_pair_chosen_while_another_one_loads_replaces_it(talk: Talk) -> None:
    talk.session.load(FIRST, None)
    first = talk.run
    talk.session.load(SECOND, None)
    assert Stop(first) in talk.homes.last.sent
    talk.say(Failed(first, "Loading was stopped."), loaded(talk.run, "second.gguf"))
    talk.until_is(Activity.READY)
    assert talk.failures == []
    assert talk.session.pair is not None and talk.session.pair.target.name == "second.gguf"


def test_what_was_loaded_before_it_could_be_stopped_is_kept(talk: Talk) -> None:
    talk.session.load(FIRST, None)
    first = talk.run
    talk.session.load(SECOND, None)
    talk.say(loaded(first, "first.gguf"), Failed(talk.run, "second.gguf is empty."))
    talk.until_is(Activity.READY)
    assert talk.session.pair is not None and talk.session.pair.target.name == "first.gguf"


def test_a_dead_engine_is_told_to_the_run_and_loads_its_pair_again(talk: Talk) -> None:
    talk.load()
    died: list[Failed] = []
    talk.session.run_died.connect(died.append)
    sink = talk.ask()
    gone = Failed(talk.run, "The engine stopped unexpectedly.", gone=True)
    talk.say(round_of(talk.run, 0), gone)
    talk.until(lambda: len(talk.homes.made) == 2 and talk.homes.last.sent)
    assert sink.heard == [0, gone] and died == [gone]
    assert talk.session.pair is None and talk.session.activity is Activity.LOADING
    command = talk.homes.last.sent[0]
    assert isinstance(command, Load) and command.target == FIRST
    talk.say(loaded(command.run))
    talk.until_is(Activity.READY)
    talk.ask()
    assert isinstance(talk.homes.last.sent[-1], Generate)


def test_a_file_that_kills_the_engine_gives_way_to_the_pair_from_before(talk: Talk) -> None:
    talk.load()
    talk.session.load(SECOND, None)
    talk.say(Failed(talk.run, "The engine stopped unexpectedly.", gone=True))
    talk.until(lambda: len(talk.homes.made) == 2 and talk.homes.last.sent)
    assert len(talk.failures) == 1
    assert [command.target for command in talk.homes.last.sent if isinstance(command, Load)] == [FIRST]


def test_a_pair_that_kills_the_engine_twice_is_not_loaded_for_ever(talk: Talk) -> None:
    talk.load()
    talk.say(Failed(-1, "The engine stopped unexpectedly.", gone=True))
    talk.until(lambda: len(talk.homes.made) == 2 and talk.homes.last.sent)
    talk.say(Failed(talk.run, "The engine stopped unexpectedly.", gone=True))
    talk.until_is(Activity.EMPTY)
    assert stays(lambda: len(talk.homes.made))
    assert len(talk.homes.made) == 2 and len(talk.failures) == 1
    talk.load(SECOND)


def test_a_view_that_breaks_does_not_lose_the_end_of_the_run(talk: Talk) -> None:
    talk.load()
    sink = talk.ask()
    sink.breaks_at = 0
    run = talk.run
    with talk.qtbot.captureExceptions() as broken:
        talk.say(
            Started(run, make_header()),
            round_of(run, 0),
            Failed(-1, "stale"),
            round_of(run, 1),
            finished(run),
        )
        talk.until_is(Activity.READY)
    assert [str(error) for _kind, error, _trace in broken] == ["a view broke"]
    assert sink.heard[-1] == make_totals("x")


def test_nothing_is_told_after_closing(qtbot: QtBot) -> None:
    talk = Talk(qtbot)
    talk.load()
    sink = talk.ask()
    talk.say(finished(talk.run))
    # Posted, but not delivered: no event of Qt is processed.
    talk.session.close()
    assert stays(lambda: len(sink.heard))
    assert sink.heard == [] and talk.homes.last.closed


def test_a_lent_engine_is_gone_before_it_is_said_and_its_pair_comes_back(talk: Talk) -> None:
    talk.load()
    gone: list[bool] = []
    home = talk.homes.last
    talk.session.lend(lambda: gone.append(home.closed))
    assert talk.session.activity is Activity.LENT
    assert talk.session.pair is None
    talk.until(lambda: gone)
    assert gone == [True], "its memory is free when the borrower is called"
    assert len(talk.homes.made) == 1, "no other engine meanwhile"
    talk.session.take_back()
    talk.until(lambda: len(talk.homes.made) == 2 and bool(talk.homes.last.sent))
    again = talk.homes.last.sent[-1]
    assert isinstance(again, Load) and again.target == FIRST
    talk.say(loaded(again.run, FIRST.path))
    talk.until_is(Activity.READY)
    sink = talk.ask()
    talk.say(finished(talk.run))
    talk.until(lambda: sink.heard)


def test_what_is_asked_to_be_loaded_meanwhile_is_loaded_afterwards(talk: Talk) -> None:
    talk.load()
    gone: list[bool] = []
    talk.session.lend(lambda: gone.append(True))
    talk.session.load(SECOND, FIRST)
    assert talk.session.activity is Activity.LENT
    talk.until(lambda: gone)
    assert len(talk.homes.made) == 1
    talk.session.take_back()
    talk.until(lambda: len(talk.homes.made) == 2 and bool(talk.homes.last.sent))
    again = talk.homes.last.sent[-1]
    assert isinstance(again, Load) and (again.target, again.draft) == (SECOND, FIRST)


def test_a_pair_still_loading_when_lent_is_loaded_afterwards(talk: Talk) -> None:
    talk.session.load(FIRST, None)
    run, home = talk.run, talk.homes.last
    talk.session.lend(lambda: None)
    talk.until(lambda: home.closed)
    assert Stop(run) in home.sent
    home.say(loaded(run, FIRST.path))  # it was done before the command arrived
    talk.session.take_back()
    talk.until(lambda: len(talk.homes.made) == 2 and bool(talk.homes.last.sent))
    again = talk.homes.last.sent[-1]
    assert isinstance(again, Load) and again.target == FIRST
    assert talk.session.activity is Activity.LOADING


def test_who_asked_something_when_the_engine_was_lent_is_told(talk: Talk) -> None:
    talk.load()
    told: list[object] = []
    talk.session.ask(ListDevices(0), told.append)
    talk.session.lend(lambda: None)
    assert len(told) == 1 and isinstance(told[0], Failed)
    assert told[0].message == "A measurement is using the engine."
    talk.session.take_back()


def test_a_question_while_the_engine_is_lent_starts_no_other_engine(talk: Talk) -> None:
    talk.load()
    told: list[object] = []

    def ask_again(answer: object) -> None:
        told.append(answer)
        if len(told) < 3:
            talk.session.ask(ListDevices(0), ask_again)

    talk.session.ask(ListDevices(0), ask_again)
    talk.session.lend(lambda: None)
    assert [type(answer) for answer in told] == [Failed] * 3
    assert {answer.message for answer in told} == {"A measurement is using the engine."}  # type: ignore[attr-defined]
    assert len(talk.homes.made) == 1
    talk.session.take_back()


def test_a_question_to_the_next_engine_does_not_fail_with_the_last_ones_words(talk: Talk) -> None:
    talk.load()
    first, second = list[object](), list[object]()

    def ask(now: EngineState, _before: EngineState) -> None:
        if now.activity is Activity.EMPTY:
            talk.session.ask(ListDevices(0), second.append)

    talk.session.changed.connect(ask)
    talk.session.ask(ListDevices(0), first.append)
    gone = Failed(-1, "The engine stopped unexpectedly.", gone=True)
    talk.say(gone)
    talk.until(lambda: len(talk.homes.made) == 2 and talk.homes.last.sent)
    assert [answer.message for answer in first] == [gone.message] and second == []  # type: ignore[attr-defined]
    asked = talk.homes.last.sent[0]
    assert isinstance(asked, ListDevices)
    talk.say(answer := DevicesListed(asked.run, (), ()))
    talk.until(lambda: second)
    assert second == [answer]


def test_only_what_is_lent_is_taken_back(talk: Talk) -> None:
    talk.load()
    talk.session.take_back()
    assert talk.session.activity is Activity.READY
    assert len(talk.homes.made) == 1
    gone: list[bool] = []
    talk.session.lend(lambda: gone.append(True))
    talk.until(lambda: gone)
    talk.session.close()
    talk.session.take_back()
    assert len(talk.homes.made) == 1, "the window is gone: no engine is started for it"


# --------------------------------------------------------------------------------- a Stop without effect


def test_a_stop_without_effect_is_told_after_two_seconds(talk: Talk) -> None:
    talk.load()
    talk.ask()
    told: list[float] = []
    talk.session.stop_overdue.connect(lambda: told.append(time.monotonic()))
    stopped = time.monotonic()
    talk.session.stop()
    talk.until(lambda: told)
    assert told[0] - stopped > 1.8


def test_a_stop_in_time_is_not_told(talk: Talk) -> None:
    def watched() -> bool:
        timers = talk.session.findChildren(QTimer)
        return any(timer.isActive() and timer.interval() == STOP_MILLISECONDS for timer in timers)

    talk.load()
    talk.ask()
    assert not watched()
    talk.session.stop()
    assert watched()
    talk.say(finished(talk.run))
    talk.until_is(Activity.READY)
    assert not watched()


def test_an_engine_that_is_ended_fails_its_answer_and_loads_its_pair_again(talk: Talk) -> None:
    talk.load()
    sink = talk.ask()
    talk.session.end_engine()
    assert len(talk.homes.made) == 1, "only one that does not stop is ended"
    talk.session.stop()
    talk.session.end_engine()
    talk.until(lambda: len(talk.homes.made) == 2)
    talk.until(lambda: sink.heard)
    (failed,) = sink.heard
    assert isinstance(failed, Failed) and failed.gone
    talk.until(lambda: talk.homes.last.sent)
    again = talk.homes.last.sent[0]
    assert isinstance(again, Load) and again.target == FIRST


def test_an_engine_that_does_not_stop_loading_makes_room_for_the_next_pair(talk: Talk) -> None:
    """A damaged file can keep llama.cpp in one operation for ever."""
    talk.session.load(FIRST, None)
    talk.session.load(SECOND, None)
    again = talk.replaced()
    assert again.target == SECOND, "the first pair is not tried again"
    talk.say(loaded(again.run, SECOND.path))
    talk.until_is(Activity.READY)
    assert talk.failures == [] and not talk.watch.isActive()


def test_a_load_that_stops_ends_no_engine(talk: Talk) -> None:
    talk.session.load(FIRST, None)
    first = talk.run
    talk.session.load(SECOND, None)
    talk.say(Failed(first, "Loading was stopped."))
    talk.until(lambda: not talk.watch.isActive())
    talk.say(loaded(talk.run, SECOND.path))
    talk.until_is(Activity.READY)
    assert len(talk.homes.made) == 1


def test_an_idle_engine_that_hangs_makes_room_for_the_next_pair(talk: Talk) -> None:
    talk.load()
    talk.session.load(SECOND, None)
    again = talk.replaced()
    assert again.target == SECOND
    assert not talk.watch.isActive(), "a new engine has the time that it needs to start"
    talk.say(loaded(again.run, SECOND.path))
    talk.until_is(Activity.READY)
    assert talk.failures == [] and talk.session.pair is not None


def test_a_load_that_has_begun_is_waited_for(talk: Talk) -> None:
    talk.load()
    talk.session.load(SECOND, None)
    assert talk.watch.isActive()
    talk.say(LoadProgress(talk.run, Role.TARGET, SECOND.path, 0.0))
    talk.until(lambda: not talk.watch.isActive())
    assert len(talk.homes.made) == 1
