"""The status bar, fed as the window feeds it."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor
from PySide6.QtTest import QTest

from app.engine.process.messages import LoadProgress, LoadStage, PromptProgress
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.types import Role
from app.saved.measured import Measurement
from app.ui.instruments import definitions
from app.ui.state.answer import AnswerModel
from app.ui.state.engine_session import Activity, EngineState
from app.ui.theme import Theme
from app.ui.widgets import words as numbers
from app.ui.window.status_bar import StatusBar, measured_words, state_words
from tests.ui.instruments.answers import answer, header, measurement, trace
from tests.ui.windows import PATIENCE

FONTS = Path(__file__).parents[3] / "resources" / "fonts"


@pytest.fixture
def theme(qapp) -> Theme:
    return Theme(FONTS, "light")


def reading(done: int) -> EngineState:
    return EngineState(Activity.READING, None, PromptProgress(2, Role.TARGET, done, 1024))


@pytest.fixture
def bar(qtbot, theme) -> StatusBar:
    widget = StatusBar(theme)
    qtbot.addWidget(widget)
    widget.resize(1100, widget.height())
    with qtbot.waitExposed(widget):
        widget.show()
    return widget


def fed(bar: StatusBar, rounds: int = 60) -> AnswerModel:
    answer = AnswerModel(trace(rounds))
    bar.set_answer(answer)
    return answer


def test_before_the_first_answer(bar) -> None:
    bar.show_engine(EngineState(Activity.READY))
    assert bar.state.text() == "Ready"
    for readout in (bar.alpha, bar.tau, bar.speed, bar.context):
        assert readout.value.text() == "–"
    assert bar.measure.isVisible()
    assert not bar.measure.isEnabled()
    assert bar.measure.toolTip() == "Ask something first."


def test_the_numbers_of_an_answer(bar, qtbot) -> None:
    statistics = fed(bar).statistics
    assert bar.alpha.value.text() == numbers.ratio(statistics.alpha)
    assert bar.speed.value.text() == numbers.significant(statistics.tokens_per_second)
    bar.set_answer(None)
    assert bar.alpha.value.text() == "–"


def test_numbers_change_at_most_ten_times_a_second(bar, qtbot) -> None:
    model = AnswerModel(live=True)
    bar.set_answer(model)
    model.begin(header())
    rounds = answer(20)
    shown: list[str] = []
    for round in rounds:
        model.add([round])
        if bar.speed.value.text() not in shown:
            shown.append(bar.speed.value.text())
    assert len(shown) <= 2
    expected = numbers.significant(Statistics.of(rounds).tokens_per_second)
    qtbot.waitUntil(lambda: bar.speed.value.text() == expected, timeout=PATIENCE)


def test_every_number_has_its_definition(bar) -> None:
    assert bar.alpha.toolTip() == definitions.ALPHA
    assert bar.tau.toolTip() == definitions.TAU
    assert bar.speed.toolTip() == definitions.TOKENS_PER_SECOND
    assert bar.context.toolTip() == definitions.CONTEXT
    model = fed(bar)
    assert f"Prompt: {numbers.per_second(model.prompt_speed)}" in bar.speed.toolTip()
    first = numbers.duration(model.totals.first_token_seconds)
    assert f"First token after {first}" in bar.speed.toolTip()


def test_nothing_moves_while_numbers_change(bar, qtbot) -> None:
    bar.show_engine(EngineState(Activity.READY))
    bar.set_context(7, 4096)
    fed(bar)

    def places() -> list[int]:
        parts = (bar.state, bar.alpha, bar.tau, bar.speed, bar.measure, bar.context, bar.device)
        return [part.mapTo(bar, part.rect().topLeft()).x() for part in parts]

    bar.layout().activate()
    before = places()
    bar.show_engine(reading(512))
    bar.set_context(4096, 4096)
    fed(bar, 3)
    bar.layout().activate()
    assert places() == before


def test_the_longest_state_has_room(bar) -> None:
    bar.show_engine(reading(1024))
    assert bar.state.fontMetrics().horizontalAdvance(bar.state.text()) <= bar.state.width()


def test_measuring_is_possible_when_an_answer_is_there_and_nothing_runs(bar, qtbot) -> None:
    bar.show_engine(EngineState(Activity.GENERATING))
    fed(bar)
    assert not bar.measure.isEnabled()
    assert bar.measure.toolTip() == "Available when the engine is ready."
    bar.show_engine(EngineState(Activity.READY))
    assert bar.measure.isEnabled()
    bar.measure.setFocus(Qt.FocusReason.TabFocusReason)
    with qtbot.waitSignal(bar.measure_baseline_requested):
        QTest.keyClick(bar.measure, Qt.Key.Key_Space)


def test_measuring_shows_how_far_it_is(bar, qtbot) -> None:
    model = fed(bar)
    bar.show_engine(EngineState(Activity.READY))
    bar.set_measuring(0.431)
    assert bar.measure.text() == f"Measuring baseline 43{numbers.SPACE}%"
    assert not bar.measure.isEnabled()
    bar.set_measuring(None)
    model.measure(measurement(2.13))
    assert bar.measure.isHidden()
    assert bar.speed_up.text() == "Faster: 2.13×, 213 against baseline 100; 2.10× end to end"
    about = f"{definitions.SPEED_UP}\n{definitions.END_TO_END}"
    assert bar.speed_up.toolTip() == f"{bar.speed_up.text()}\n{about}"


def test_a_measurement_of_several_pairs_says_its_range_and_its_doubts(bar) -> None:
    model = fed(bar)
    bar.show_engine(EngineState(Activity.READY))
    slow, slower = measurement(0.5), measurement(0.4)
    busy = "The machine was busy: for 90 % of the time other programs took 1.8 of 2 cores."
    model.measure(Measurement(*slow.runs, *slower.runs, doubts=[busy]))
    assert bar.speed_up.text().startswith("Slower: 0.444× (0.400× to 0.500×), 44.4 against baseline 100;")
    assert bar.speed_up.text().endswith("end to end. The machine was busy")
    assert busy in bar.speed_up.toolTip()
    assert not bar.measure.isHidden() and bar.measure.text() == "Measure again"
    model.measure(Measurement(*slow.runs, *measurement(1.2).runs))
    assert bar.speed_up.text().startswith("No clear difference: ") and bar.measure.isHidden()
    assert model.speed_up is None, "no advice goes by it"


def test_a_measured_factor_is_whole_in_a_narrow_strip_of_large_text(bar, theme, qtbot) -> None:
    theme.set_scale(1.6)
    model = fed(bar)
    bar.resize(1024, bar.height())
    model.measure(Measurement(*measurement(0.5).runs, *measurement(1.2).runs))
    qtbot.waitUntil(bar.alpha.after.isHidden, timeout=PATIENCE)
    whole, *shorter = measured_words(model.measurement)
    room = bar.speed_up.fontMetrics().horizontalAdvance
    assert room(whole) > bar.speed_up.width() > room(f"{shorter[-1].partition(':')[0]}…")


def test_where_nothing_was_drafted_no_run_is_called_slower(bar) -> None:
    model = fed(bar)
    bar.show_engine(EngineState(Activity.READY))
    plain = measurement().baseline
    late = [replace(round, seconds=2 * round.seconds, offset=2 * round.offset) for round in plain.rounds]
    totals = replace(plain.totals, seconds=2 * plain.totals.seconds)
    measured = Measurement(plain, Trace(plain.header, late, totals))
    model.measure(measured)
    assert bar.speed_up.text().startswith("Nothing was drafted: 0.500×, 50.0 against baseline 100;")
    assert model.speed_up is None and not measured.is_clear
    assert (measured.range.low, measured.range.value, measured.range.high) == (0.5, 1.0, 1.0)


def test_a_broken_off_measurement_can_be_repeated(bar, qtbot) -> None:
    fed(bar)
    bar.show_engine(EngineState(Activity.READY))
    bar.set_measuring(0.2)
    bar.set_measuring(None)
    assert bar.measure.text() == "Measure baseline"
    assert bar.measure.isEnabled()


def test_another_prompt_needs_another_baseline(bar, qtbot) -> None:
    model = fed(bar)
    bar.show_engine(EngineState(Activity.READY))
    model.measure(measurement())
    model.measure(None)
    assert bar.speed_up.isHidden()
    assert bar.measure.isVisible()
    assert bar.measure.isEnabled()


def test_context_and_device(bar) -> None:
    bar.set_context(312, 4096)
    bar.set_device("1 thread · CPU")
    assert bar.context.value.text() == "312 / 4,096"
    bar.set_context(4_097, 4_096)  # the last token of an answer is in no cache
    assert bar.context.value.text() == "4,096 / 4,096"
    assert bar.device.text() == "1 thread · CPU"
    bar.set_context(None, None)
    assert bar.context.value.text() == "–"


def test_a_narrow_strip_drops_the_words_after_a_number_and_takes_them_back(bar, qtbot) -> None:
    model = fed(bar)
    bar.resize(700, bar.height())
    assert bar.alpha.after.isVisible()
    model.measure(measurement())
    qtbot.waitUntil(bar.alpha.after.isHidden, timeout=PATIENCE)  # the factor has their room
    bar.resize(3000, bar.height())
    qtbot.waitUntil(bar.alpha.after.isVisible, timeout=PATIENCE)
    assert bar.tau.isVisible()


def test_a_change_of_theme_recolours_it(styled, bar) -> None:
    theme = styled
    theme.set_mode("dark")
    image = bar.grab().toImage()
    assert image.pixelColor(2, 10) == QColor(theme.palette.panel)
    assert image.pixelColor(2, 0) == QColor(theme.palette.line)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (EngineState(), "No model loaded"),
        (EngineState(Activity.LOADING), "Loading"),
        (
            EngineState(Activity.LOADING, None, LoadProgress(1, Role.DRAFT, "a.gguf", 0.5)),
            "Loading draft 50 %",
        ),
        (
            EngineState(
                Activity.LOADING, None, LoadProgress(1, Role.TARGET, "a.gguf", 1.0, LoadStage.TESTING)
            ),
            "Testing target",
        ),
        (
            EngineState(Activity.READING, None, PromptProgress(2, Role.TARGET, 512, 1024)),
            "Reading prompt 50 %",
        ),
        (EngineState(Activity.READING, None, PromptProgress(2, Role.DRAFT, 0, 0)), "Reading prompt 0 %"),
        (EngineState(Activity.READING, None, PromptProgress(2, Role.TARGET, 132, 133)), "Prompt read"),
        (
            EngineState(Activity.READING, None, PromptProgress(2, Role.TARGET, 132, 133), held=True),
            "Waiting for a step",
        ),
        (
            EngineState(Activity.READING, None, PromptProgress(2, Role.TARGET, 64, 128), held=True),
            "Reading prompt 50 %",
        ),
        (EngineState(Activity.GENERATING, held=True), "Waiting for a step"),
        (EngineState(Activity.GENERATING, held=True, slow=True), "Slow motion"),
        (EngineState(Activity.READY, held=True), "Ready"),
        (EngineState(Activity.STOPPING, held=True), "Stopping"),
        (EngineState(Activity.STOPPING), "Stopping"),
    ],
)
def test_the_status_says_what_the_engine_does_and_how_far(state: EngineState, words: str) -> None:
    assert state_words(state) == words


def test_after_large_text_a_readout_asks_for_less_again(bar) -> None:
    font, large = bar.alpha.value.font(), bar.alpha.value.font()
    large.setPointSizeF(2 * font.pointSizeF())
    bar.alpha.fit(font)
    usual = bar.alpha.value.sizeHint()
    bar.alpha.fit(large)
    assert bar.alpha.value.sizeHint().width() > usual.width()
    bar.alpha.fit(font)
    assert bar.alpha.value.sizeHint() == usual
