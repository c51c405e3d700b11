"""The timeline: which rounds it shows, what its bars stand for, and how a round is chosen on it."""

from __future__ import annotations

from random import Random

import pytest
from PySide6.QtCore import QPoint, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.engine.fates import Origin
from app.engine.record.trace import Trace
from app.ui.inspector.timeline import Timeline
from app.ui.inspector.tracks import BarPainter, RoundAxis
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from tests.ui.pixels import colours_of
from tests.ui.traces import make_header, make_round, make_trace, simulate


@pytest.fixture
def timeline(qtbot: QtBot, theme: Theme) -> Timeline:
    made = Timeline(theme)
    qtbot.addWidget(made)
    made.resize(848, made.height())
    made.show()
    return made


def shown(timeline: Timeline, rounds: int) -> AnswerModel:
    trace = make_trace([make_round(at, (b"a", b"b"), b"c", position=3 * at) for at in range(rounds)])
    answer = AnswerModel(trace)
    timeline.set_answer(answer)
    return answer


def click(timeline: Timeline, x: float) -> None:
    QTest.mouseClick(timeline, Qt.MouseButton.LeftButton, pos=QPoint(round(x), 60))


def turn(timeline: Timeline, x: float, notches: int, *, zoom: bool) -> None:
    held = Qt.KeyboardModifier.ControlModifier if zoom else Qt.KeyboardModifier.NoModifier
    place = QPointF(x, 60)
    event = QWheelEvent(
        place, timeline.mapToGlobal(place), QPoint(), QPoint(0, 120 * notches), Qt.MouseButton.NoButton,
        held, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(timeline, event)


# ---------------------------------------------------------------------- the axis


def test_all_rounds_are_in_sight_where_they_fit() -> None:
    axis = RoundAxis()
    axis.width, axis.rounds = 800, 20
    assert axis.whole and axis.pitch == 32 and axis.x_of(3) == 96
    axis.rounds = 200
    assert axis.whole and axis.pitch == 4


def test_of_many_rounds_those_around_the_inspected_are_shown() -> None:
    axis = RoundAxis()
    axis.width, axis.rounds = 800, 20_000
    axis.show(10_000)
    assert not axis.whole and axis.first < 10_000 < axis.first + axis.shown
    before = axis.first
    axis.show(int(before + axis.shown))  # the next one to the right: as little as it takes
    assert 0 < axis.first - before < 2
    axis.show(19_999)
    assert axis.first + axis.shown == 20_000


def test_zooming_keeps_the_round_under_the_mouse() -> None:
    axis = RoundAxis()
    axis.width, axis.rounds = 800, 20_000
    axis.show(10_000)
    at = axis.round_at(300)
    axis.zoom(2, 300)
    assert axis.round_at(300) == pytest.approx(at) and axis.pitch == 16
    for _ in range(30):
        axis.zoom(0.5, 300)
    assert axis.whole and axis.first == 0


def test_panning_ends_at_the_first_and_the_last_round() -> None:
    axis = RoundAxis()
    axis.width, axis.rounds = 800, 1000
    axis.pan(-500)
    assert axis.first == 0
    axis.pan(80)
    assert axis.first == 10
    axis.pan(1e6)
    assert axis.first + axis.shown == 1000


# ---------------------------------------------------------------------- the widget


def test_a_click_inspects_the_round_under_it(timeline: Timeline) -> None:
    answer = shown(timeline, 20)
    for index in (0, 7, 19):
        click(timeline, timeline.round_rect(index).center().x())
        assert answer.pinned_at == index
    click(timeline, 5)  # beside the bars
    assert answer.pinned_at == 19


def test_a_bar_shows_its_tokens_by_fate(timeline: Timeline, theme: Theme) -> None:
    shown(timeline, 20)
    image = timeline.grab().toImage()
    rect = timeline.round_rect(4)
    seen = {colour(image, rect.center().x(), rect.top() + y) for y in range(1, 48)}
    accepted, bonus = (QColor(theme.palette.area(origin)) for origin in (Origin.ACCEPTED, Origin.BONUS))
    assert {accepted.name(), bonus.name()} <= seen
    assert QColor(theme.palette.area(Origin.RESAMPLED)).name() not in seen


def colour(image: QImage, x: float, y: float) -> str:
    scale = image.devicePixelRatio()
    return image.pixelColor(round(x * scale), round(y * scale)).name()


def test_many_rounds_are_grouped_and_still_found_one_by_one(timeline: Timeline) -> None:
    answer = shown(timeline, 9000)
    assert timeline.grouped == 1 and timeline.span[1] == 9000
    QTest.keyClick(timeline, Qt.Key.Key_0)
    assert timeline.span == (0, 9000) and timeline.grouped == 64
    click(timeline, 424)  # the middle of the bars
    assert answer.pinned_at is not None and abs(answer.pinned_at - 4500) <= 12


def test_the_wheel_pans_and_with_ctrl_zooms(timeline: Timeline) -> None:
    answer = shown(timeline, 9000)
    answer.pin(4000)
    first = timeline.span[0]
    turn(timeline, 300, -1, zoom=False)
    assert timeline.span[0] == first + 120 // 8
    rounds = timeline.span[1] - timeline.span[0]
    turn(timeline, 300, 1, zoom=True)
    assert timeline.span[1] - timeline.span[0] < rounds


def test_dragging_pans_and_chooses_nothing(timeline: Timeline) -> None:
    answer = shown(timeline, 9000)
    answer.pin(4000)
    first = timeline.span[0]
    QTest.mousePress(timeline, Qt.MouseButton.LeftButton, pos=QPoint(400, 60))
    QTest.mouseMove(timeline, QPoint(300, 60))
    QTest.mouseRelease(timeline, Qt.MouseButton.LeftButton, pos=QPoint(300, 60))
    assert answer.pinned_at == 4000 and timeline.span[0] == first + 100 // 8


def test_keys_go_on_by_what_is_in_sight(timeline: Timeline) -> None:
    answer = shown(timeline, 9000)
    answer.pin(4000)
    QTest.keyClick(timeline, Qt.Key.Key_PageDown)
    assert answer.pinned_at == 4100 and timeline.span[0] <= 4100 < timeline.span[1]
    QTest.keyClick(timeline, Qt.Key.Key_PageUp)
    QTest.keyClick(timeline, Qt.Key.Key_Plus)
    assert answer.pinned_at == 4000 and timeline.span[0] <= 4000 < timeline.span[1]


def test_keys_read_the_round_that_they_choose_not_one_under_a_resting_mouse(timeline: Timeline) -> None:
    answer = shown(timeline, 9000)
    answer.pin(4000)
    QTest.mouseMove(timeline, QPoint(300, 60))
    QTest.mouseMove(timeline, QPoint(301, 60))
    assert not timeline.reading().startswith("round 4,001")
    answer.step(1)
    assert timeline.reading().startswith("round 4,002")
    QTest.mouseMove(timeline, QPoint(302, 60))
    assert not timeline.reading().startswith("round 4,002")
    QTest.keyClick(timeline, Qt.Key.Key_Minus)
    assert timeline.reading().startswith("round 4,002")


def test_a_live_answer_is_followed_until_somebody_looks_elsewhere(timeline: Timeline) -> None:
    rounds = simulate("one two three four " * 400, seed=2).rounds
    answer = AnswerModel(live=True)
    timeline.set_answer(answer)
    answer.begin(make_header())
    answer.add(rounds[:300])
    timeline.draw()
    assert timeline.span[1] == 300
    turn(timeline, 300, 5, zoom=False)
    before = timeline.span[0]
    answer.add(rounds[300:310])
    timeline.draw()
    assert timeline.span[0] == before
    answer.pin(305)
    assert timeline.span[0] <= 305 < timeline.span[1]


def test_it_reads_the_inspected_round_out(timeline: Timeline) -> None:
    answer = shown(timeline, 20)
    answer.pin(7)
    read = timeline.accessibleDescription()
    assert read.startswith("round 8 · 2 of 2 accepted · 3 tokens")
    assert "draft 1.10" in read and "verify 9.60" in read and "sampling 400" in read
    timeline.set_answer(None)
    assert timeline.accessibleDescription() == "No round"


def test_with_a_length_rule_k_and_what_it_goes_by_are_shown(timeline: Timeline, theme: Theme) -> None:
    answer = shown(timeline, 20)
    plain = timeline.grab().toImage()
    assert answer.trace is not None
    header = make_header("draft-simple:n_max=6:length=ewma")
    ruled = AnswerModel(Trace(header, answer.trace.rounds))
    timeline.set_answer(ruled)
    ruled.pin(7)
    assert f"k {ruled.lengths[7].k}" in timeline.accessibleDescription()
    ruled.pin(None)
    rect, image = timeline.round_rect(3), timeline.grab().toImage()
    places = [(rect.center().x(), rect.top() + y) for y in range(48)]
    line = QColor(theme.palette.text).name()
    assert line in {colour(image, *place) for place in places}
    assert line not in {colour(plain, *place) for place in places}


def test_rounds_before_a_reset_of_the_numbers_stay(timeline: Timeline, theme: Theme) -> None:
    answer = shown(timeline, 20)
    answer.count_from(10)
    image, rect = timeline.grab().toImage(), timeline.round_rect(2)
    assert (
        colour(image, rect.center().x(), rect.top() + 40)
        == QColor(theme.palette.area(Origin.ACCEPTED)).name()
    )


def test_bars_keep_their_place_while_the_cursor_moves(timeline: Timeline, theme: Theme) -> None:
    answer = shown(timeline, 20)
    place, accepted = timeline.round_rect(4), QColor(theme.palette.area(Origin.ACCEPTED)).name()
    answer.move(5)
    later, image = timeline.round_rect(5), timeline.grab().toImage()
    assert timeline.round_rect(4) == place
    assert colour(image, place.center().x(), place.top() + 40) == accepted
    assert colour(image, later.center().x(), later.top() + 40) != accepted
    click(timeline, later.center().x())
    assert answer.pinned_at is None
    answer.move(0)
    timeline.grab()


def test_low_windows_show_the_bars_alone(timeline: Timeline) -> None:
    shown(timeline, 20)
    tall = timeline.height()
    timeline.set_compact(True)
    assert timeline.height() < tall - 60


@pytest.mark.parametrize("strategy", ["draft-simple:n_max=4", "draft-simple:n_max=6:length=ewma"])
def test_steps_show_what_painting_everything_anew_shows(
    styled: Theme, timeline: Timeline, theme: Theme, strategy: str
) -> None:
    rounds = simulate("one two three four " * 700, seed=2).rounds
    answer = AnswerModel(Trace(make_header(strategy), rounds))
    timeline.set_answer(answer)

    def anew() -> QImage:
        timeline.set_compact(True)
        timeline.grab()
        timeline.set_compact(False)
        return timeline.grab().toImage()

    head = timeline.grab(QRect(0, 0, timeline.width(), round(timeline.round_rect(0).top()) - 4)).toImage()
    assert theme.palette.text in colours_of(head) and theme.palette.secondary in colours_of(head)
    chance = Random(1)
    middle = len(rounds) // 2
    for _ in range(120):
        match chance.randrange(6):
            case 0 | 1:
                answer.move(answer.cursor + chance.choice((-9, -1, 1, 1, 2, 30)))
            case 2 | 3:
                answer.pin((answer.inspected or 0) + chance.choice((-40, -1, 1)))
            case 4:
                turn(timeline, chance.randrange(24, 800), chance.choice((-1, 1)), zoom=chance.random() < 0.3)
            case _:
                answer.pin(None)
                answer.move(middle + chance.randrange(100))
        stepped = timeline.grab().toImage()
        assert stepped == anew()


def test_a_step_paints_few_bars(timeline: Timeline, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = shown(timeline, 9000)
    answer.move(4000)
    timeline.grab()
    painted: list[int] = []
    tokens = BarPainter.tokens

    def counted(bars: BarPainter, track: QRectF, top: float) -> None:
        painted.append(bars.bars)
        tokens(bars, track, top)

    monkeypatch.setattr(BarPainter, "tokens", counted)
    for act, most in ((lambda: answer.move(4001), 8), (lambda: answer.pin(3990), 0)):
        act()
        timeline.grab()
        assert sum(painted) <= most
        painted.clear()
