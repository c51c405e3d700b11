"""Replay: the cursor moved by hand and by the clock, the engine that waits, what if, and trace files."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from msgspec import structs
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.engine.record.trace import read_trace, write_trace
from app.engine.types import Round
from app.ui.chat.answers import HELD
from app.ui.inspector.place import TraceFiles, file_name
from app.ui.inspector.player import SLOW, TRUE_SPEED, Player, Speed
from app.ui.inspector.slow_motion import Moment, RoundPhase, SlowMotion
from app.ui.inspector.transport import SPEEDS, TransportBar
from app.ui.state.answer import AnswerModel
from app.ui.state.chat_side import Inspection
from app.ui.state.engine_session import EngineSession
from app.ui.theme import Theme
from tests.ui.homes import Homes
from tests.ui.named import words_in
from tests.ui.traces import make_header, make_round, simulate
from tests.ui.windows import Windows

TEXT = "The fox ran over the hill and the dog ran after it. " * 4
FAST_BEAT = Speed(beat=0.005)
ROUND = make_round(0, (b"It", b" is"), b" a", rejected=b" no", ignored=(b" more",))


@pytest.fixture(autouse=True)
def fast_slow_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SPEEDS, "5 ms a token", FAST_BEAT)


@pytest.fixture
def answer() -> AnswerModel:
    return AnswerModel(simulate(TEXT, seed=3))


@pytest.fixture
def bar(qtbot: QtBot, theme: Theme, answer: AnswerModel) -> TransportBar:
    made = TransportBar(theme, EngineSession(Homes()))
    qtbot.addWidget(made)
    made.set_answer(answer, False)
    made.resize(900, 60)
    made.show()
    return made


def test_steps_and_the_slider_move_the_cursor(bar: TransportBar, answer: AnswerModel) -> None:
    last = len(answer.rounds)
    assert bar.slider.value() == last and not bar.step.isEnabled()
    bar.back.click()
    assert answer.cursor == last - 1 and bar.position.text() == f"{last - 1} of {last} rounds"
    bar.step.click()
    bar.first.click()
    assert answer.cursor == 0 and not bar.first.isEnabled()
    bar.slider.setValue(4)
    assert answer.cursor == 4


def test_a_narrow_bar_shortens_its_words(bar: TransportBar) -> None:
    line = bar.fontMetrics().height()
    for width, words, rounds in ((70 * line, "Pause next answer", " rounds"), (40 * line, "Pause", "")):
        bar.resize(width, bar.sizeHint().height())
        bar.show()
        assert bar.hold.text() == words
        assert bar.position.text().endswith(f"of {len(bar.answer.rounds)}{rounds}")
        assert bar.hold.accessibleName() == "Pause next answer"
        for button in (bar.hold, bar.ask):
            assert button.width() >= button.sizeHint().width()


def test_play_shows_every_round_when_it_had_ended(
    bar: TransportBar, answer: AnswerModel, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    answer.moved.connect(lambda: seen.append(answer.cursor))
    bar.speed.setCurrentText("4×")
    bar.speed.activated.emit(0)
    bar.play.click()
    assert bar.player.playing and seen[0] == 0, "a whole answer is played from its start"
    qtbot.waitUntil(lambda: not bar.player.playing, timeout=30_000)
    assert seen == sorted(seen) and seen[-1] == len(answer.rounds) and answer.whole


def test_a_pause_keeps_the_place_and_play_goes_on(
    bar: TransportBar, answer: AnswerModel, qtbot: QtBot
) -> None:
    bar.player.set_speed(FAST_BEAT)
    answer.move(2)
    bar.play.click()
    qtbot.waitUntil(lambda: answer.cursor > 2, timeout=30_000)
    bar.play.click()
    at = answer.cursor
    assert not bar.player.playing and 2 < at < len(answer.rounds)
    bar.play.click()
    assert bar.player.playing and answer.cursor == at
    bar.player.pause()


def test_drafts_appear_one_by_one_and_then_the_verdicts_fall() -> None:
    phases = RoundPhase.all_of(ROUND)
    drafted, told = [phase.drafted for phase in phases], [phase.told for phase in phases]
    assert drafted == [1, 2, 3, 4, *[4] * 8] and told == [0] * 6 + [1, 2, 3, 4, 5, 5]
    assert list(dict.fromkeys(phase.moment for phase in phases)) == list(Moment)
    assert phases[-1].tokens == [
        ("It", "accepted"), ("·is", "accepted"), ("·no", "rejected"), ("·more", "ignored"),
        ("·a", "resampled"),
    ]  # fmt: skip
    assert phases[4].tokens == [("It", ""), ("·is", ""), ("·no", ""), ("·more", "")]
    assert phases[-1].words == "2 of 4 accepted, the target's own “·a” (resampled)"


def test_a_draft_that_is_longer_than_a_row_goes_on_in_the_next(qtbot: QtBot, theme: Theme) -> None:
    row = SlowMotion(theme)
    qtbot.addWidget(row)
    row.show_phase(RoundPhase.whole(make_round(0, [b" token%d" % at for at in range(16)], b" own")))
    height = row.heightForWidth(600)
    assert row.heightForWidth(9000) == row.sizeHint().height() < height
    row.resize(600, height)
    picture = row.grab().toImage()
    ground = picture.pixel(1, 1)
    last = {picture.pixel(x, y) for x in range(30, 200) for y in range(height - 30, height - 9)}
    beyond = {picture.pixel(x, y) for x in range(580, 600) for y in range(height)}
    assert len(last) > 2 and beyond == {ground}


def test_with_less_motion_whole_states_follow_each_other(qtbot: QtBot, theme: Theme) -> None:
    row = SlowMotion(theme)
    qtbot.addWidget(row)

    def states() -> list[tuple[int, int]]:
        seen = []
        for phase in RoundPhase.all_of(ROUND):
            row.show_phase(phase)
            assert row.phase is not None
            seen.append((row.phase.drafted, row.phase.told))
        return list(dict.fromkeys(seen))

    step_by_step = [(1, 0), (2, 0), (3, 0), *((4, told) for told in range(6))]
    assert states() == step_by_step
    theme.set_motion("less")
    assert states() == [(4, 0), (4, 5)]
    theme.set_motion("full")
    assert states() == step_by_step


def test_a_round_that_ended_within_its_draft_has_only_its_drafts() -> None:
    round = make_round(0, (b"It", b" is"), b" a")
    cut = RoundPhase.whole(structs.replace(round, emitted=round.emitted[:2]))
    assert [text for text, _fate in cut.tokens] == ["It", "·is"] and cut.words == "2 of 2 accepted"


def test_a_hidden_chat_follows_the_cursor_when_it_is_shown(windows: Windows) -> None:
    desk = windows.open()
    item = desk.ask("hello")
    whole = desk.answers()[0].text
    desk.window.go("inspector")
    item.answer.move(1)
    assert desk.answers()[0].text == whole
    desk.window.go("chat")
    assert whole.startswith(desk.answers()[0].text) and desk.answers()[0].text != whole
    assert desk.page.instruments.answer.statistics.rounds == 1


def test_nothing_can_be_done_without_rounds(bar: TransportBar) -> None:
    bar.set_answer(None, False)
    controls = (bar.first, bar.back, bar.play, bar.step, bar.slider, bar.ask)
    assert not any(control.isEnabled() for control in controls)


def test_the_engine_waits_for_steps_and_goes_on(windows: Windows) -> None:
    desk = windows.open(max_tokens=40)
    desk.window.go("inspector")
    bar = desk.place("inspector").replay
    bar.hold.click()
    desk.type("hello")
    desk.until(lambda: bar.answer.live and bar.answer.header is not None)
    assert not bar.answer.rounds and not bar.player.playing and bar.step.isEnabled()
    assert not bar.hold.isChecked(), "only the next answer is held"
    assert desk.place("inspector").title.text() == "Paused before the first round"
    desk.until(lambda: bar.answer.progress == HELD)  # the chat does not seem to read its prompt for ever
    desk.until(lambda: desk.window.status.state.text() == "Waiting for a step")
    assert bar.speed.currentText() == "0.4 s per token"
    for rounds in (1, 2):
        bar.step.click()
        desk.until(partial(lambda wanted: len(bar.answer.rounds) == wanted, rounds))
        assert bar.slow_motion.phase is not None and bar.slow_motion.phase.moment is not Moment.VERDICT
        while bar.answer.cursor < rounds:
            bar.step.click()
    bar.back.click()
    assert not bar.slow_motion.isVisible()
    while bar.answer.cursor < 2:
        bar.step.click()
    assert len(bar.answer.rounds) == 2, "a known round needs no engine"
    bar.player.set_speed(TRUE_SPEED)
    head = desk.place("inspector").head
    assert desk.window.status.state.text() == "Waiting for a step"
    assert head.facts.toolTip().startswith("paused")
    bar.play.click()
    assert head.facts.toolTip().startswith("running")
    assert desk.window.status.state.text() == "Generating"
    desk.until_ready()
    answer = bar.answer
    assert not answer.live and len(answer.rounds) > 2 and not bar.player.playing
    assert answer.totals is not None and answer.rounds[-1].offset < answer.totals.seconds
    desk.ask("and now, not held")


@pytest.fixture
def player(qtbot: QtBot) -> Player:
    """Plays, in slow motion, an answer that the chat's engine writes; the test adds the rounds."""
    answer, made = AnswerModel(live=True), Player(EngineSession(Homes()))
    answer.begin(make_header())
    made.set_answer(answer, True)
    made.set_speed(FAST_BEAT)
    return made


def slow_round(index: int) -> Round:
    return make_round(index, (b"It", b" is"), b" a", rejected=b" no", offset=index * 0.1, seconds=0.1)


def test_what_a_slowed_engine_makes_is_seen_in_slow_motion(player: Player, qtbot: QtBot) -> None:
    answer, seen = player.answer, list[RoundPhase]()
    player.phased.connect(lambda phase: seen.append(phase) if phase is not None else None)
    for index in (0, 1):
        answer.add([slow_round(index)])
        assert answer.cursor == index, "the engine has made the round, and it is not shown yet"
        qtbot.waitUntil(partial(lambda end: answer.cursor == end, index + 1), timeout=30_000)
    assert seen == [phase for index in (0, 1) for phase in RoundPhase.all_of(slow_round(index))]
    answer.add([slow_round(2)])
    player.set_speed(TRUE_SPEED)
    assert answer.cursor == 3
    answer.add([slow_round(3)])
    assert answer.cursor == 4, "at true speed at once"


def test_a_step_in_slow_motion_stops_at_guess_check_and_verdict(player: Player) -> None:
    answer = player.answer
    player.pause()
    player.step()
    answer.add([slow_round(0)])
    for moment, cursor in ((Moment.GUESS, 0), (Moment.CHECK, 0), (Moment.VERDICT, 1)):
        phase = player.phase
        assert phase is not None and phase == phase.reached
        assert (phase.moment, answer.cursor, player.playing) == (moment, cursor, False)
        player.step()
    answer.add([slow_round(1)])
    player.back()
    assert player.phase is None and answer.cursor == 1, "the coming round is taken back"
    answer.end(None)
    player.step()
    player.set_answer(answer, True)
    assert answer.whole, "what was coming is shown whole"


def test_leaving_the_inspector_lets_a_slow_answer_go_on_at_true_speed(player: Player) -> None:
    player.answer.add([slow_round(0)])
    player.leave()
    assert player.speed is TRUE_SPEED and player.answer.cursor == 1 and player.phase is None
    player.set_speed(FAST_BEAT)
    player.set_answer(AnswerModel(live=True), True)
    assert player.speed is TRUE_SPEED, "the next answer is not slow unless it is held"


def test_who_went_back_in_a_slow_answer_stays_there(player: Player) -> None:
    answer = player.answer
    player.set_speed(TRUE_SPEED)
    answer.add([slow_round(index) for index in range(3)])
    player.set_speed(FAST_BEAT)
    player.pause()
    player.back()
    answer.add([slow_round(3)])
    assert answer.cursor == 2
    answer.end(None)
    assert answer.cursor == 2


def test_an_answer_that_is_stopped_in_slow_motion_is_shown_whole(windows: Windows) -> None:
    desk = windows.open(max_tokens=200)
    desk.window.go("inspector")
    bar = desk.place("inspector").replay
    bar.hold.click()
    desk.type("hello")
    desk.until(lambda: bar.answer.live and bar.answer.header is not None)
    bar.player.set_speed(FAST_BEAT)
    bar.play.click()
    desk.until(lambda: bar.answer.cursor > 1)
    desk.session.stop()
    desk.until_ready()
    desk.until(lambda: not bar.player.playing)
    assert bar.answer.whole and len(bar.answer.rounds) < 200


def test_a_held_answer_can_be_stopped(windows: Windows) -> None:
    desk = windows.open(max_tokens=40)
    desk.window.go("inspector")
    bar = desk.place("inspector").replay
    bar.hold.click()
    desk.type("hello")
    desk.until(lambda: bar.answer.live and bar.answer.header is not None)
    desk.session.stop()
    desk.until_ready()
    assert not bar.answer.live


def test_what_if_says_how_sure_it_is(windows: Windows) -> None:
    desk = windows.open()
    answer = desk.ask("hello").answer
    desk.window.go("inspector")
    bar = desk.place("inspector").replay
    bar.ask.click()
    panel = bar.what_if
    rounds = f"{len(answer.rounds)} rounds"
    assert panel.isVisible() and panel.outcome.text().startswith(f"Recorded: {rounds}")
    assert panel.why.text() == "These are the answer's own settings."
    panel.p_min.setValue(1)
    desk.until(lambda: rounds in panel.recorded.text())
    assert rounds in panel.outcome.text() and panel.why.text().startswith(("Exact", "Estimate"))
    panel.longest.setValue(16)
    desk.until(lambda: panel.outcome.text().startswith("About"))
    assert panel.why.text().startswith("Estimate.")


def test_in_a_narrow_bar_the_slider_has_a_row_of_its_own(bar: TransportBar) -> None:
    window = QWidget()  # like the Inspector, it may be narrower than the bar asks for
    bar.setParent(window)
    window.show()
    bar.show()
    for width, alone in ((1400, False), (400, True), (1400, False)):
        bar.resize(width, 120)
        QApplication.processEvents()
        slider, play = bar.slider.geometry(), bar.play.geometry()
        assert (slider.bottom() < play.top()) == alone and slider.width() > (100 if alone else 300)
    bar.setParent(None)


def test_the_narrowest_bar_cuts_no_control(bar: TransportBar) -> None:
    window = QWidget()  # like the Inspector, it may be narrower than the bar asks for
    bar.setParent(window)
    window.show()
    bar.show()
    bar.resize(200, 120)
    QApplication.processEvents()
    buttons = bar.first, bar.back, bar.play, bar.step, bar.hold, bar.ask
    bar.resize(sum(button.sizeHint().width() + 8 for button in buttons) + 2 * 24, 120)
    QApplication.processEvents()
    for control in (*buttons, bar.speed):
        assert control.width() >= control.sizeHint().width()
    bar.setParent(None)


def test_what_if_says_where_it_has_no_answer(bar: TransportBar) -> None:
    panel = bar.what_if
    mixed = AnswerModel(simulate(TEXT, seed=3))
    assert mixed.trace is not None
    mixed.trace.header = make_header("prompt-lookup+draft-simple")
    panel.set_answer(mixed)
    assert "mix of strategies" in panel.outcome.text() and not panel.longest.isVisibleTo(panel)


def test_a_trace_is_saved_and_opened_again(
    qtbot: QtBot, theme: Theme, answer: AnswerModel, tmp_path: Path, windows: Windows
) -> None:
    path = tmp_path / "saved.jsonl"
    desk = windows.open()
    inspection = Inspection()
    inspection.follow_chat(answer, "Foxes")
    window = desk.window
    files = TraceFiles(
        theme, inspection, window.open_trace, window, lambda *_: str(path), lambda *_: str(path)
    )
    files.show_answer()
    files.save.click()
    assert read_trace(path) == answer.trace
    files.open.click()
    desk.until_opened()
    assert desk.trace == answer.trace and window.inspection.answer is not None
    path.write_text("no trace")
    files.open.click()
    desk.until_opened()
    assert "is not a Draftscope trace" in files.message.message and desk.trace == answer.trace
    missing = TraceFiles(
        theme, inspection, window.open_trace, window, lambda *_: "", lambda *_: str(tmp_path / "no" / "x")
    )
    missing.save.click()
    assert "was not saved" in missing.message.message
    for made in (files, missing):
        made.message.deleteLater()


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("Say it: black and/or white…", "Say it black and or white.jsonl"),
        ("saved.jsonl", "saved.jsonl"),
        ("???", "answer.jsonl"),
        ("", "answer.jsonl"),
    ],
)
def test_a_trace_gets_a_name_that_every_system_takes(answer: str, name: str) -> None:
    assert file_name(answer) == name


def drop(widget: QWidget, file: Path) -> bool:
    """Drop a file on a widget; returns whether it took it."""
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(file))])
    event = QDropEvent(
        QPointF(9, 9),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    event.setAccepted(False)
    widget.dropEvent(event)
    return event.isAccepted()


def test_a_trace_that_is_dropped_opens(windows: Windows, answer: AnswerModel, tmp_path: Path) -> None:
    assert answer.trace is not None
    path = tmp_path / "dropped.jsonl"
    write_trace(path, answer.trace)
    desk = windows.open()

    assert drop(desk.window, path)
    desk.until(lambda: desk.trace == answer.trace)
    assert not drop(desk.window, tmp_path / "picture.png")
    assert drop(desk.window, tmp_path / "gone.jsonl")
    desk.until(lambda: "cannot be read" in desk.error())
    assert not desk.prompt.canInsertFromMimeData(_urls(path)) and desk.prompt.canInsertFromMimeData(_text())


def damaged_at_line_5(answer: AnswerModel, path: Path) -> Path:
    """A trace file with a line that is no round."""
    assert answer.trace is not None
    write_trace(path, answer.trace)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:4], b"{}\n", *lines[5:]]))
    return path


def test_a_damaged_trace_is_shown_up_to_the_damage(
    windows: Windows, answer: AnswerModel, tmp_path: Path
) -> None:
    path = damaged_at_line_5(answer, tmp_path / "cut.jsonl")
    desk = windows.open()
    desk.open_trace(path)
    assert "line 5, is damaged" in desk.error() and "Everything before that is shown." in desk.error()
    assert desk.trace is not None and len(desk.trace.rounds) == 3
    path.write_bytes(b"")
    shown = desk.trace
    desk.open_trace(path)
    assert "is not a Draftscope trace" in desk.error() and desk.trace is shown


def test_the_inspector_says_what_is_wrong_with_a_dropped_trace(
    windows: Windows, answer: AnswerModel, tmp_path: Path
) -> None:
    path = damaged_at_line_5(answer, tmp_path / "cut.jsonl")
    desk = windows.open()
    desk.window.go("inspector")
    place = desk.place("inspector")
    assert place.acceptDrops() and drop(place, path)
    desk.until_opened()
    assert desk.trace is not None and len(desk.trace.rounds) == 3
    assert place.files.message.isVisible() and "line 5, is damaged" in words_in(place.files.message)
    assert drop(place, tmp_path / "gone.jsonl")
    desk.until_opened()
    assert place.isVisible() and "cannot be read" in words_in(place.files.message)
    assert not drop(place, tmp_path / "picture.png")


def test_space_plays_in_the_inspector(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("hello")
    desk.window.go("inspector")
    place = desk.place("inspector")
    place.replay.player.set_speed(SLOW)
    QTest.keyClick(place.round, Qt.Key.Key_Space)
    assert place.replay.player.playing
    QTest.keyClick(place.round, Qt.Key.Key_Space)
    assert not place.replay.player.playing


def _urls(path: Path) -> QMimeData:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path))])
    return data


def _text() -> QMimeData:
    data = QMimeData()
    data.setText("plain")
    return data
