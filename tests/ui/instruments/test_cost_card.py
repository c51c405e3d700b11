"""The cost card: a curve where enough was measured, words where not, advice below."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtWidgets import QPushButton

from app.engine.explain.advice import Remedy
from app.engine.explain.cost import LONGEST, CostModel
from app.engine.record.stats import Statistics
from app.engine.types import Round
from app.ui.instruments.plot_card import Canvas
from app.ui.widgets import words as numbers
from tests.engine.explain.test_cost import one_round
from tests.ui.instruments.answers import answer, begin, header, measurement, totals
from tests.ui.instruments.drawn import dots, lines, words

ROUNDS = answer(60)  # some drafts are empty, so passes over a single token were measured


def test_it_waits_in_words(panel) -> None:
    assert panel.cost.message.text() == panel.cost.empty
    assert panel.cost.advice.isHidden()
    begin(panel, header("none"))
    assert panel.cost.message.text() == panel.cost.none
    begin(panel, header())
    assert panel.cost.message.text() == "Nothing has been drafted yet."
    panel.answer.add(ROUNDS)
    assert not panel.cost.message.text()
    panel.reset()
    assert panel.cost.message.text() == "Nothing has been drafted since the reset."


@pytest.mark.parametrize("live", [True, False])
def test_what_it_waits_for_is_true_at_the_cursor(panel, live: bool) -> None:
    empty = replace(ROUNDS[0], drafted=(), strategy=None)
    begin(panel, header())
    panel.answer.add([empty, empty, *ROUNDS])
    if not live:
        panel.answer.end(totals(ROUNDS))
    for cursor in (2, 0):  # as live at that round
        panel.answer.move(cursor)
        panel.show_all()
        assert panel.cost.message.text() == "Nothing has been drafted yet."


def test_without_a_single_token_pass_it_asks_for_the_baseline(panel) -> None:
    drafted = [round for round in ROUNDS if len(round.drafted) == 4]
    begin(panel, header())
    panel.answer.add(drafted)
    panel.answer.end(totals(drafted))
    assert panel.cost.message.text().startswith("Measure the baseline first")
    assert panel.cost.advice.isHidden()  # it would not change


def test_blocks_have_no_alpha_to_predict_from(panel) -> None:
    def judged_as_a_block(round: Round) -> Round:
        return replace(round, drafted=tuple(replace(token, h=0.5) for token in round.drafted))

    rounds = [judged_as_a_block(round) for round in ROUNDS]
    begin(panel, header("draft-simple:verify=block"))
    panel.answer.add(rounds)
    panel.answer.end(totals(rounds))
    assert "judged as blocks" in panel.cost.message.text()
    assert "α" not in panel.cost.facts.text()
    assert panel.cost.advice.text()  # the cost of drafting and its gain are known all the same


def test_curve_dot_and_numbers_are_the_cost_models(panel) -> None:
    begin(panel, header())
    panel.answer.add(ROUNDS)
    panel.answer.end(totals(ROUNDS))
    cost, alpha = CostModel.of(ROUNDS), Statistics.of(ROUNDS).alpha
    assert alpha is not None
    (curve,), (_best, here) = lines(panel.cost.canvas), dots(panel.cost.canvas)
    x, y = curve.getData()
    assert list(x) == list(range(LONGEST + 1))
    assert list(y) == pytest.approx([cost.of_answer(alpha, k) for k in range(LONGEST + 1)])
    (here_x,), (here_y,) = here.getData()
    expected = panel.answer.predicted
    assert expected is not None and (here_x, here_y) == pytest.approx((cost.mean_length, expected.value))
    assert panel.cost.value.text() == numbers.factor(expected.value)
    spread = f"{numbers.factor(expected.low)} to {numbers.factor(expected.high)}"
    assert panel.cost.facts.text().startswith(spread), "never without its range"
    assert panel.cost.message.isHidden()
    assert panel.cost.advice.text()


@pytest.mark.parametrize("k", (1, 2, 4))
@pytest.mark.parametrize("alpha", (0.1, 0.5))
def test_the_words_hide_neither_ring_nor_leave_the_picture(panel, qtbot, alpha: float, k: int) -> None:
    rounds = answer(80, k=k, alpha=alpha)  # some drafts are empty
    begin(panel, header())
    panel.answer.add(rounds)
    panel.answer.end(totals(rounds))
    canvas = panel.cost.canvas
    item, (best, here) = words(canvas), dots(canvas)
    assert item.isVisible()

    def beside() -> bool:
        room = item.sceneBoundingRect().adjusted(-8, -8, 8, 8)
        return canvas.view.width() == canvas.width() and room.contains(drawn_at(canvas, here))

    for width in (360, 640, 264):
        panel.resize(width, 900)
        qtbot.waitUntil(beside)  # words move when they are painted
        point, ring = drawn_at(canvas, here), drawn_at(canvas, best)
        letters = item.sceneBoundingRect().adjusted(4, 4, -4, -4)
        assert not letters.contains(point)
        assert not letters.intersects(QRectF(ring.x() - 5, ring.y() - 5, 10, 10))
        assert QRectF(canvas.rect()).contains(letters)


def drawn_at(canvas: Canvas, dot: Any) -> QPointF:
    """The pixel of a plot's only dot of a group."""
    (x,), (y,) = dot.getData()
    return canvas.pixel(x, y)


def test_an_answer_with_long_drafts_lies_inside_the_picture(panel) -> None:
    long = answer(40, k=30)
    begin(panel, header("suffix"))
    panel.answer.add(long)
    panel.answer.end(totals(long))
    mean = CostModel.of(long).mean_length
    assert mean is not None and mean > LONGEST + 1
    (curve,), (_best, here) = lines(panel.cost.canvas), dots(panel.cost.canvas)
    (x,), _ = here.getData()
    left, right = panel.cost.canvas.view.box.viewRange()[0]
    assert left < x < right
    last = int(curve.getData()[0][-1])
    assert last >= x
    panel.cost.canvas.hovered.emit(last)
    assert panel.cost.canvas.reading.startswith(f"k = {last}: ")
    begin(panel, header())
    panel.answer.add(ROUNDS)
    panel.answer.end(totals(ROUNDS))
    assert panel.cost.canvas.view.box.viewRange()[0][1] == pytest.approx(LONGEST + 0.5)


def test_a_predicted_factor_yields_to_a_measured_one_and_to_one_that_says_nothing(panel) -> None:
    begin(panel, header())
    panel.answer.add(ROUNDS)
    panel.answer.end(totals(ROUNDS))
    own = panel.cost.value.text()
    assert own
    panel.answer.measure(measurement())
    assert panel.cost.value.text() == ""
    panel.answer.measure(None)
    assert panel.cost.value.text() == own
    few = [*ROUNDS[:3], next(round for round in ROUNDS if not round.drafted)]  # a single pass, once
    begin(panel, header())
    panel.answer.add(few)
    panel.answer.end(totals(few))
    assert "pays" not in panel.cost.facts.text()
    slow = [one_round(0, 0, 0.0, 1.0)] * 6 + [one_round(4, 3, 0.1, 64.5)] * 6  # no target's own time
    begin(panel, header())
    panel.answer.add(slow)
    panel.answer.end(totals(slow))
    assert panel.cost.facts.text() == "draft token: 10\N{NO-BREAK SPACE}% of a pass"


def test_advice_goes_by_the_measurement_alone(panel) -> None:
    """The answer itself came while the machine was busy: its times must not count beside the measured
    ones."""
    measured = measurement(2.0)
    slow = [
        replace(round, seconds=9 * round.seconds, verify_seconds=9 * round.verify_seconds)
        for round in measured.strategy.rounds
    ]
    begin(panel, header())
    panel.answer.add(slow)
    panel.answer.end(totals(slow))
    panel.answer.measure(measured)
    assert (
        panel.cost.advice.text()
        == f"Keep this: {measured.factor:.2f}×, nothing tried or predicted is better."
    )
    best, here = dots(panel.cost.canvas)
    assert not len(best.getData()[0]) and len(here.getData()[0]), "so no other length is marked"
    panel.cost.show_advice(None)
    assert len(best.getData()[0]) == 1


def test_a_draft_length_is_read_out(panel) -> None:
    begin(panel, header())
    panel.answer.add(ROUNDS)
    panel.answer.end(totals(ROUNDS))
    panel.cost.canvas.hovered.emit(4)
    alpha = panel.answer.statistics.alpha
    expected = numbers.factor(CostModel.of(ROUNDS).of_answer(alpha, 4))
    assert panel.cost.canvas.reading == f"k = 4: {expected} predicted"
    panel.cost.canvas.hovered.emit(99)
    assert panel.cost.canvas.reading == ""


def test_the_table_has_a_line_for_every_length(panel) -> None:
    begin(panel, header())
    panel.answer.add(ROUNDS)
    names, rows = panel.cost.table()
    lines = list(rows)
    assert len(lines) == LONGEST + 1
    assert len(lines[0]) == len(names)


def test_a_long_remedy_takes_more_lines_in_a_narrow_panel(panel, qtbot) -> None:
    panel.resize(264, 900)
    remedies = panel.cost.remedies
    remedies.applies = lambda remedy: True
    long = "num_pred_tokens=16 for prompt-lookup (predicted 1.42×, 1.21 to 1.62)"
    remedies.show_remedies((Remedy("none"), Remedy(long)))
    short, button = remedies.findChildren(QPushButton)
    qtbot.waitUntil(lambda: button.height() > 1.5 * short.height())
    assert panel.widget().width() == panel.viewport().width(), "nothing lies beyond the panel's edge"
    assert remedies.rect().contains(button.geometry())


def test_arrow_keys_read_draft_lengths(panel, qtbot) -> None:
    rounds = answer(80, k=2)
    begin(panel, header())
    panel.answer.add(rounds)
    panel.answer.end(totals(rounds))
    canvas = panel.cost.canvas
    read = []
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Right, Qt.Key.Key_Left):
        qtbot.keyClick(canvas, key)
        read.append(canvas.reading)
        assert canvas.accessibleDescription() == canvas.reading
    assert read[0] and read[0] == read[2] != read[1]
