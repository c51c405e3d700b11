"""The panel fed as the window feeds it."""

from __future__ import annotations

import csv
import re
import time

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtGui import QColor, QContextMenuEvent, QImage, QKeyEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.engine.fates import Origin
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.types import FinishReason
from app.ui.instruments import InstrumentsPanel, definitions
from app.ui.instruments.panel import room_for
from app.ui.instruments.plot_card import Canvas
from app.ui.state.answer import AnswerModel
from app.ui.widgets import words as numbers
from tests.quiet import stays
from tests.ui.instruments.answers import (
    answer,
    begin,
    header,
    measurement,
    replace_offset,
    show,
    totals,
    trace,
)
from tests.ui.instruments.drawn import dots, lines, top
from tests.ui.traces import simulate
from tests.ui.windows import PATIENCE


def point(canvas: Canvas, index: float) -> QPoint:
    """Pixel of a round, in the middle of the plot."""
    return QPoint(round(canvas.pixel(index, 0).x()), round(canvas.plot_rect().center().y()))


def hover(canvas: Canvas, index: int) -> None:
    QTest.mouseMove(canvas.view.viewport(), point(canvas, index))
    QApplication.processEvents()


def leave(canvas: Canvas) -> None:
    QApplication.sendEvent(canvas, QEvent(QEvent.Type.Leave))


def values(panel: InstrumentsPanel) -> list[str]:
    return [card.value.text() for card in panel.cards]


# ---------------------------------------------------------------------------------- what it shows


def test_before_the_first_answer_it_says_what_will_appear(panel) -> None:
    assert values(panel) == ["–", "–", "–"]
    for card in panel.cards:
        assert card.message.isVisible()
        assert card.message.text() == card.empty
    assert not panel.head.reset.isEnabled()
    assert panel.table.shown is None


def test_what_draws_values_is_made_when_an_answer_begins(panel) -> None:
    assert not any(card.canvas.has_view for card in (*panel.cards, panel.cost))
    begin(panel, header())
    assert all(card.canvas.has_view for card in panel.cards)


def test_a_right_click_on_the_values_opens_the_menu(panel) -> None:
    show(panel, trace(60))
    view = panel.speed.canvas.view
    at = QPoint(80, 30)
    QApplication.sendEvent(
        view.viewport(), QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, view.mapToGlobal(at))
    )
    menu = QApplication.activePopupWidget()
    assert isinstance(menu, QMenu)
    assert menu.actions()[0].text() == "Save picture as PNG…"
    menu.close()


def test_an_answer_in_batches(panel, qtbot) -> None:
    rounds = answer(60)
    begin(panel, header())
    assert panel.acceptance.message.text() == "Waiting for the first round."
    for at in range(0, 60, 7):
        panel.answer.add(rounds[at : at + 7])
    qtbot.waitUntil(panel.acceptance.message.isHidden, timeout=PATIENCE)
    panel.answer.end(totals(rounds))
    expected = Statistics.of(rounds)
    assert panel.answer.statistics == expected
    assert values(panel) == [
        numbers.ratio(expected.acceptance_rate),
        numbers.significant(expected.tokens_per_second),
        numbers.significant(expected.tau),
    ]
    assert panel.head.scope.text() == f"60 rounds · {expected.emitted} tokens"
    assert panel.table.shown == rounds[-1]


def test_batches_and_a_whole_trace_look_the_same(panel) -> None:
    rounds = answer(60)
    begin(panel, header())
    for round in rounds:
        panel.answer.add([round])
    panel.answer.end(totals(rounds))
    grown = [card.grab().toImage() for card in panel.cards]
    show(panel, trace(60))
    assert [card.grab().toImage() for card in panel.cards] == grown


def test_no_rounds_change_nothing(panel) -> None:
    begin(panel, header())
    panel.answer.add([])
    assert panel.acceptance.message.text() == "Waiting for the first round."


def test_numbers_change_at_most_ten_times_a_second(panel, qtbot) -> None:
    rounds = answer(90)
    seen: list[str] = []
    begin(panel, header())
    for at in range(0, 90, 9):
        panel.answer.add(rounds[at : at + 9])
        seen.append(panel.head.scope.text())
    assert len(set(seen)) <= 2, "ten batches at once"
    assert not seen[-1].startswith("90 rounds")
    qtbot.waitUntil(lambda: panel.head.scope.text().startswith("90 rounds"), timeout=PATIENCE)
    assert panel.table.shown == rounds[-1]


def test_strategy_none_has_no_acceptance(panel) -> None:
    show(panel, trace(30, "none", k=0))
    assert panel.acceptance.message.text() == panel.acceptance.none
    assert panel.acceptance.value.text() == "–"
    assert panel.length.value.text() == "–"
    assert "nothing is drafted" in panel.length.note.text()
    assert not panel.speed.message.isVisible()
    assert panel.speed.value.text() != "–"


def test_a_short_first_round_does_not_flatten_the_rest(panel) -> None:
    made = answer(30)
    show(panel, Trace(header(), made, totals(made)))
    usual = top(panel.speed.canvas)
    short = made[0].seconds / 50
    made[0] = replace(made[0], offset=made[1].offset - short, seconds=short)
    show(panel, Trace(header(), made, totals(made)))
    assert top(panel.speed.canvas) == usual


def test_the_baseline_gives_a_line_and_a_speed_up(panel) -> None:
    made = trace(64)
    show(panel, made)
    before = panel.speed.canvas.grab().toImage()
    measured = measurement(2.0, 64)
    panel.answer.measure(measured)
    whole = numbers.factor(measured.end_to_end_factor)
    assert panel.speed.note.text() == f"{numbers.factor(2)}, {whole} end to end"
    assert definitions.END_TO_END in panel.speed.note.toolTip()
    canvas = panel.speed.canvas
    after = canvas.grab().toImage()
    y = round(canvas.pixel(0, 100).y())
    row = [after.pixelColor(x, y) for x in range(60, canvas.width() - 4)]
    dashed = sum(colour != before.pixelColor(x, y) for x, colour in enumerate(row, 60))
    assert dashed > len(row) / 3
    panel.answer.measure(None)
    assert panel.speed.note.text() == panel.speed.definition
    assert canvas.grab().toImage() == before


def test_factor_number_and_lines_are_those_of_one_measurement(panel) -> None:
    """The answer itself ran at another speed, which must not enter the factor."""
    show(panel, trace(64))
    own = panel.speed.value.text()
    panel.answer.measure(measurement(2.13, 64))
    assert panel.speed.note.text().startswith("2.13×, ")
    assert panel.speed.value.text() == "213" != own
    assert f"ran at {own}" in panel.speed.value.toolTip()
    panel.speed.canvas.hovered.emit(40)
    assert panel.speed.canvas.reading == f"round 41: 213{numbers.SPACE}tok/s, baseline 100"
    show(panel, trace(20))
    assert panel.speed.note.text() == panel.speed.definition, "another answer was not measured"


def test_a_measured_run_that_ended_earlier_ends_its_line(panel) -> None:
    show(panel, trace(64))
    panel.answer.measure(measurement(2.0, 30))
    panel.speed.canvas.hovered.emit(60)
    assert panel.speed.canvas.reading == "round 61: –, baseline –"


def test_why_an_answer_ended_early_is_said(panel) -> None:
    rounds = answer(10)
    begin(panel, header())
    panel.answer.add(rounds)
    panel.answer.end(totals(rounds, FinishReason.CANCELLED))
    assert panel.head.scope.text().endswith("· stopped")


def test_the_next_answer_starts_empty(panel) -> None:
    show(panel, trace(20))
    panel.answer.pin(4)
    begin(panel, header())
    assert values(panel) == ["–", "–", "–"]
    assert panel.table.shown is None
    panel.set_answer(None)
    assert panel.acceptance.message.text() == panel.acceptance.empty


# -------------------------------------------------------------------------------------- resetting


def test_reset_counts_from_the_next_round(panel, qtbot) -> None:
    rounds = answer(60)
    begin(panel, header())
    panel.answer.add(rounds[:40])
    qtbot.waitUntil(panel.head.reset.isEnabled, timeout=PATIENCE)
    QTest.mouseClick(panel.head.reset, Qt.MouseButton.LeftButton)
    assert values(panel) == ["–", "–", "–"]
    assert panel.acceptance.message.text() == "Starts with the next round."
    panel.answer.add(rounds[40:])
    panel.answer.end(totals(rounds))
    assert panel.answer.statistics == Statistics.of(rounds[40:])
    assert panel.head.scope.text().startswith("since round 41 · 20 rounds")
    assert panel.head.reset.text() == "All rounds"
    QTest.mouseClick(panel.head.reset, Qt.MouseButton.LeftButton)
    assert panel.answer.statistics == Statistics.of(rounds)
    assert panel.head.reset.text() == "Reset"


def test_a_reset_ends_with_the_answer(panel) -> None:
    show(panel, trace(20))
    panel.reset()
    show(panel, trace(20))
    assert panel.answer.statistics.rounds == 20
    assert panel.head.reset.text() == "Reset"


# ------------------------------------------------------------------------------- mouse and keys


def test_hover_reads_a_round_in_every_plot(panel, qtbot) -> None:
    made = trace(64)
    show(panel, made)
    seen: list[object] = []
    panel.answer.pointed.connect(lambda: seen.append(panel.answer.pointed_at))
    for card in panel.cards:
        hover(card.canvas, 23)
        round = made.rounds[23]
        assert card.canvas.reading.startswith("round 24: ")
        assert panel.table.shown == round
        unread = [plot for plot in panel.cards if plot is not card]
        assert not any(plot.canvas.reading for plot in unread)
        leave(card.canvas)
        assert not card.canvas.reading
        assert panel.table.shown == made.rounds[-1]
    assert seen == [23, None] * 3


def test_what_is_read_out(panel) -> None:
    made = trace(64)
    show(panel, made)
    index = next(i for i, round in enumerate(made.rounds) if round.rejected and round.accepted)
    round = made.rounds[index]
    so_far = Statistics.of(made.rounds[: index + 1])
    assert panel.acceptance.read(index) == (
        f"round {index + 1}: {round.accepted} of {len(round.drafted)} accepted, "
        f"so far {numbers.ratio(so_far.acceptance_rate)}"
    )
    assert panel.length.read(index) == (
        f"round {index + 1}: {len(round.drafted)} drafted, {round.accepted} accepted, "
        f"{len(round.emitted)} emitted"
    )
    assert panel.speed.read(index).endswith(f"in {numbers.duration(round.seconds)}")


def test_hover_on_an_empty_plot_reads_nothing(panel) -> None:
    begin(panel, header())
    hover(panel.acceptance.canvas, 12)
    assert not panel.acceptance.canvas.reading


def test_a_click_pins_a_round_until_the_next(panel) -> None:
    rounds = answer(64)
    begin(panel, header())
    panel.answer.add(rounds[:50])
    pinned: list[object] = []
    panel.answer.pinned.connect(lambda: pinned.append(panel.answer.pinned_at))
    canvas = panel.length.canvas
    QTest.mouseClick(canvas.view.viewport(), Qt.MouseButton.LeftButton, pos=point(canvas, 12))
    leave(canvas)
    panel.answer.add(rounds[50:])
    panel.answer.end(totals(rounds))
    assert panel.table.shown == rounds[12]
    assert panel.table.unpin.isVisible()
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert panel.table.shown == rounds[-1]
    assert pinned == [12, None]


def test_a_click_on_the_pinned_round_inspects_it(panel, qtbot) -> None:
    show(panel, trace(64))
    canvas = panel.length.canvas
    QTest.mouseClick(canvas.view.viewport(), Qt.MouseButton.LeftButton, pos=point(canvas, 12))
    with qtbot.waitSignal(panel.inspect_requested) as told:
        QTest.mouseClick(canvas.view.viewport(), Qt.MouseButton.LeftButton, pos=point(canvas, 12))
    assert told.args == [12] and panel.answer.pinned_at == 12
    with qtbot.waitSignal(panel.inspect_requested) as told:
        panel.table.inspect.click()
    assert told.args == [12]


def test_the_text_can_point_at_a_round(panel) -> None:
    made = trace(64)
    show(panel, made)
    panel.answer.point(7)
    assert panel.table.shown == made.rounds[7]
    panel.answer.point(None)
    assert panel.table.shown == made.rounds[-1]
    panel.answer.point(640)
    assert panel.table.shown == made.rounds[-1]


def test_keys_walk_through_the_rounds(panel) -> None:
    made = trace(64)
    show(panel, made)
    canvas = panel.speed.canvas
    canvas.setFocus()
    QTest.keyClick(canvas, Qt.Key.Key_Left)
    assert panel.table.shown == made.rounds[63]
    QTest.keyClick(canvas, Qt.Key.Key_Left)
    assert panel.table.shown == made.rounds[62]
    assert canvas.reading.startswith("round 63: ")
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    QTest.keyClick(canvas, Qt.Key.Key_Right)
    assert panel.table.shown == made.rounds[63]
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert not panel.table.unpin.isVisible()
    assert not canvas.reading
    left = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(canvas, left)
    assert not left.isAccepted(), "left to the window: it stops the answer"


def wheel(canvas: Canvas, index: int, modifiers: Qt.KeyboardModifier) -> bool:
    at = QPointF(point(canvas, index))
    event = QWheelEvent(
        at, QPointF(canvas.mapToGlobal(at.toPoint())), QPoint(), QPoint(0, 120),
        Qt.MouseButton.NoButton, modifiers, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(canvas.view.viewport(), event)
    return event.isAccepted()


def test_ctrl_and_wheel_zoom_all_plots_a_double_click_ends_it(panel) -> None:
    show(panel, trace(400))
    canvas = panel.acceptance.canvas
    whole = [canvas.round_at(x) for x in (canvas.plot_rect().left(), canvas.plot_rect().right())]
    under = canvas.round_at(point(canvas, 300).x())
    wheel(canvas, 300, Qt.KeyboardModifier.ControlModifier)
    assert canvas.round_at(point(canvas, 300).x()) == pytest.approx(300, abs=1)
    assert under == pytest.approx(300, abs=1)
    spans = set()
    for card in panel.cards:
        rect = card.canvas.plot_rect()
        spans.add(tuple(round(card.canvas.round_at(x), 6) for x in (rect.left(), rect.right())))
    assert len(spans) == 1
    (first, last) = spans.pop()
    assert (whole[1] - whole[0]) / 2 < last - first < (whole[1] - whole[0]) / 1.2
    for act in (QTest.mouseDClick, QTest.mouseRelease):
        act(canvas.view.viewport(), Qt.MouseButton.LeftButton, pos=point(canvas, 300))
    rect = canvas.plot_rect()
    assert [canvas.round_at(rect.left()), canvas.round_at(rect.right())] == pytest.approx(whole)


def test_the_wheel_alone_is_left_to_the_panel(panel) -> None:
    show(panel, trace(400))
    canvas = panel.acceptance.canvas
    before = canvas.round_at(0)
    wheel(canvas, 300, Qt.KeyboardModifier.NoModifier)
    assert canvas.round_at(0) == before


def test_dragging_moves_a_zoomed_plot(panel) -> None:
    show(panel, trace(400))
    canvas = panel.acceptance.canvas
    for _ in range(8):
        wheel(canvas, 200, Qt.KeyboardModifier.ControlModifier)
    start, target = point(canvas, 200), point(canvas, 200) + QPoint(40, 0)
    before = canvas.round_at(target.x())
    viewport = canvas.view.viewport()
    QTest.mousePress(viewport, Qt.MouseButton.LeftButton, pos=start)
    QTest.mouseMove(viewport, start + QPoint(20, 0))
    QTest.mouseMove(viewport, target)
    QTest.mouseRelease(viewport, Qt.MouseButton.LeftButton, pos=target)
    assert canvas.round_at(target.x()) < before - 5
    assert panel.table.unpin.isHidden(), "a drag is no click"


def test_everything_is_reached_by_the_keyboard(panel) -> None:
    for part in (panel.head.reset, panel.head.fold, *(card.canvas for card in panel.cards)):
        assert part.focusPolicy() & Qt.FocusPolicy.TabFocus
        assert part.accessibleName()


def test_the_plot_that_the_keyboard_reached_has_a_ring(panel, theme) -> None:
    show(panel, trace(20))
    canvas = panel.speed.canvas
    corner = canvas.plot_rect().toRect().bottomLeft() - QPoint(0, 20)

    def colour() -> QColor:
        return canvas.grab().toImage().pixelColor(corner)

    plain = colour()
    canvas.setFocus(Qt.FocusReason.TabFocusReason)
    assert colour() == QColor(theme.palette.secondary)
    canvas.setProperty("ring", False)  # as after a click
    assert colour() == plain


def test_folding_is_asked_for(panel, qtbot) -> None:
    with qtbot.waitSignal(panel.fold_requested):
        QTest.mouseClick(panel.head.fold, Qt.MouseButton.LeftButton)


# -------------------------------------------------------------------------------------- drawing


def bar_pixel(panel: InstrumentsPanel, image: QImage, index: int, value: float) -> QColor:
    canvas = panel.length.canvas
    return image.pixelColor(canvas.pixel(index, value).toPoint())


def test_bars_have_the_colours_of_the_fates(panel, theme) -> None:
    made = trace(32)
    show(panel, made)
    palette = theme.palette
    image = panel.length.canvas.grab().toImage()
    own = {
        Origin.RESAMPLED: palette.fate("resampled"),
        Origin.BONUS: palette.fate("bonus"),
        Origin.PLAIN: palette.secondary,
    }
    seen = set()
    for round in made.rounds:
        origin = round.emitted[-1].origin
        top = bar_pixel(panel, image, round.index, round.accepted + 0.5)
        assert top == QColor(own[origin]), round.index
        seen.add(origin)
        if round.accepted:
            middle = bar_pixel(panel, image, round.index, round.accepted - 0.5)
            assert middle == QColor(palette.fate("accepted"))
        if len(round.drafted) > round.accepted + 1:
            behind = bar_pixel(panel, image, round.index, round.accepted + 1.5)
            assert behind == QColor(palette.line)
    assert seen == set(own)


def test_dots_stand_at_each_rounds_acceptance(panel, theme) -> None:
    made = trace(32)
    show(panel, made)
    whole, partial = (group.getData() for group in dots(panel.acceptance.canvas))
    drafted = [round for round in made.rounds if round.drafted]
    assert whole[0].tolist() == [r.index for r in drafted if r.accepted == len(r.drafted)]
    expected = {r.index: r.accepted / len(r.drafted) for r in drafted if r.accepted < len(r.drafted)}
    assert dict(zip(partial[0].tolist(), partial[1].tolist(), strict=True)) == expected


def test_a_long_answer_is_drawn_in_as_many_pieces_as_fit(panel) -> None:
    show(panel, trace(20_000))
    width = panel.acceptance.canvas.plot_width
    acceptance, speed = panel.acceptance.canvas, panel.speed.canvas
    for item in (*dots(acceptance), *lines(acceptance), *lines(speed)):
        assert len(item.getData()[0]) <= width / 2 + 1
    # A power of two that leaves at least two pixels for a dot, three for a bar.
    for card, pixels, mark in ((panel.acceptance, 2, "dot"), (panel.length, 3, "bar")):
        step = next(2**n for n in range(20) if 20_000 / 2**n <= width // pixels)
        assert card.canvas.note.split(", ")[0] == f"{step} rounds per {mark}"
    show(panel, trace(32))
    assert panel.acceptance.canvas.note == "" and "rounds per" not in panel.length.canvas.note
    show(panel, trace(20_000))
    hover(panel.acceptance.canvas, 10_000)
    assert panel.table.shown is not None
    assert abs(panel.table.shown.index - 10_000) < 20_000 / width


def test_the_speed_axis_only_grows_while_an_answer_grows(panel, qtbot) -> None:
    fast = answer(10, k=8, alpha=0.99)
    slow = answer(80, k=0)
    begin(panel, header())
    panel.answer.add(fast)
    qtbot.waitUntil(panel.speed.message.isHidden, timeout=PATIENCE)
    highest = top(panel.speed.canvas)
    last = fast[-1].offset + fast[-1].seconds
    panel.answer.add([replace_offset(round, last + round.offset) for round in slow])
    panel.speed.canvas.zoomed.emit(60, 90)
    assert top(panel.speed.canvas) == highest, "only slow rounds are in sight"
    panel.answer.end(totals(slow))
    assert top(panel.speed.canvas) < highest


def test_a_change_of_theme_recolours_the_plots(styled, panel, theme) -> None:
    show(panel, trace(32))
    theme.set_mode("dark")
    palette = theme.palette
    assert palette.dark
    assert panel.grab().toImage().pixelColor(1, 1) == QColor(palette.ground)
    image = panel.length.canvas.grab().toImage()
    round = next(round for round in panel.answer.rounds if round.accepted)
    assert bar_pixel(panel, image, round.index, 0.5) == QColor(palette.fate("accepted"))
    smoothed, pooled = lines(panel.acceptance.canvas)
    assert smoothed.opts["pen"].color() == QColor(palette.secondary)
    assert pooled.opts["pen"].color() == QColor(palette.fate("accepted"))


def test_a_larger_scale_enlarges_the_numbers(styled, panel, theme) -> None:
    before = panel.speed.value.fontMetrics().height()
    theme.set_scale(1.5)
    assert panel.speed.value.fontMetrics().height() > before * 1.3


# ------------------------------------------------------------------------------------- exporting


def test_csv_of_every_plot_has_a_line_a_round(panel, dialog) -> None:
    made = trace(50)
    show(panel, made)
    panel.answer.measure(measurement(2.0, 50))
    panel.answer.count_from(10)
    for card in panel.cards:
        card.save_table()
    assert dialog.asked == ["acceptance.csv", "tokens-per-second.csv", "tokens-per-round.csv"]

    def read(name: str) -> list[dict[str, str]]:
        with (dialog.folder / name).open(newline="") as file:
            return list(csv.DictReader(file))

    acceptance, speed, length = map(read, dialog.asked)
    for table in (acceptance, speed, length):
        assert [int(row["round"]) for row in table] == list(range(10, 50))
    for row, round in zip(acceptance, made.rounds[10:], strict=True):
        assert int(row["accepted"]) == round.accepted
        assert int(row["drafted"]) == len(round.drafted)
    rate = Statistics.of(made.rounds[10:]).acceptance_rate
    assert float(acceptance[-1]["pooled_acceptance_rate"]) == rate
    rates = [[float(row[name]) for row in speed] for name in list(speed[0])[-2:]]
    assert rates == [pytest.approx([200] * 40), pytest.approx([100] * 40)]
    assert length[0]["origin_of_last"] == str(made.rounds[10].emitted[-1].origin)
    assert panel.acceptance.notice.text() == "Saved acceptance.csv."
    assert panel.acceptance.notice.isVisible()


def test_png_is_twice_the_size_and_as_shown(panel, dialog, theme) -> None:
    show(panel, trace(50))
    panel.length.save_picture()
    image = QImage(str(dialog.folder / "tokens-per-round.png"))
    assert image.width() == (panel.length.width() + 24) * 2
    assert image.pixelColor(0, 0) == QColor(theme.palette.ground)
    colours = {image.pixelColor(x, y).name() for x in range(image.width()) for y in (200, 240)}
    assert QColor(theme.palette.fate("accepted")).name() in colours


def test_no_file_where_the_dialog_is_dismissed(panel, dialog, tmp_path) -> None:
    show(panel, trace(50))
    dialog.folder = None
    panel.speed.save_table()
    panel.speed.save_picture()
    assert list(tmp_path.iterdir()) == []
    assert not panel.speed.notice.isVisible()


def test_a_failed_export_is_reported_where_it_was_asked(panel, dialog, tmp_path) -> None:
    show(panel, trace(50))
    dialog.folder = tmp_path / "missing"
    panel.speed.save_table()
    assert panel.speed.notice.isVisible()
    assert panel.speed.notice.text() == (
        "tokens-per-second.csv was not saved: no such file or directory. Choose a different folder."
    )


def test_the_menu_offers_data_only_where_there_is_some(panel) -> None:
    menu = panel.speed.menu()
    assert [action.isEnabled() for action in menu.actions()] == [True, False]
    show(panel, trace(50))
    menu = panel.speed.menu()
    assert [action.text() for action in menu.actions()] == ["Save picture as PNG…", "Save data as CSV…"]
    assert all(action.isEnabled() for action in menu.actions())


def test_what_a_length_rule_goes_by_is_shown_up_to_the_cursor(panel, qtbot: QtBot) -> None:
    """The smoothed acceptance and k of the last round on show: live, at the end and scrubbed back alike."""
    rounds = answer(30, alpha=0.6)
    strategy = header("draft-simple:n_max=8:length=ewma")
    live = AnswerModel(live=True)
    panel.set_answer(live)
    live.begin(strategy)
    notes = []
    for round in rounds:
        live.add([round])
        panel.acceptance.show_numbers()
        notes.append(panel.acceptance.note.text())
    assert re.fullmatch(r"smoothed 0\.\d+ · k \d+", notes[-1]) and len(set(notes)) > 3
    live.end(totals(rounds))
    assert panel.acceptance.note.text() == notes[-1]
    live.move(10)
    qtbot.waitUntil(lambda: panel.acceptance.note.text() == notes[9])
    assert panel.acceptance.read(4).endswith(notes[4])


def test_scrubbing_draws_no_oftener_than_arriving_rounds(panel, monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = answer(300)
    panel.set_answer(AnswerModel(Trace(header(), rounds, totals(rounds))))
    drawn: list[int] = []
    draw = type(panel.cost).draw
    monkeypatch.setattr(type(panel.cost), "draw", lambda *given: drawn.append(1) or draw(*given))
    began = time.monotonic()
    for cursor in range(299, 0, -1):
        panel.answer.move(cursor)
    assert len(drawn) <= 2 + (time.monotonic() - began) / 0.5


class Painted(QObject):
    """Counts how often each of some widgets is painted."""

    def __init__(self, *widgets: QWidget) -> None:
        super().__init__()
        self.times = dict.fromkeys(widgets, 0)
        for widget in widgets:
            widget.installEventFilter(self)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Paint and isinstance(watched, QWidget):
            self.times[watched] += 1
        return False


def test_a_step_of_the_cursor_paints_each_plot_once(panel) -> None:
    model = show(panel, simulate("The fox ran over the hill. " * 20))
    model.move(20)
    assert stays(lambda: None)
    painted = Painted(*(card.canvas.view.viewport() for card in panel.cards))
    model.move(21)
    assert stays(lambda: None)
    assert list(painted.times.values()) == [1, 1, 1]


def test_zoomed_out_again_a_plot_follows_new_rounds(panel) -> None:
    show(panel, trace(400))
    canvas = panel.acceptance.canvas
    for act in (*[Qt.Key.Key_Plus] * 30, *[Qt.Key.Key_Minus] * 3):
        QTest.keyClick(canvas, act)
    left, right = canvas.view.box.viewRange()[0]
    assert 8 < right - left < 32 and left > -0.5
    for _ in range(30):
        QTest.keyClick(canvas, Qt.Key.Key_Minus)
    assert canvas.view.box.viewRange()[0] == [-0.5, 399.5]
    show(panel, trace(500))
    assert canvas.view.box.viewRange()[0] == [-0.5, 499.5]


def test_a_growing_answer_gets_room_in_steps() -> None:
    widths = [room_for(n) for n in range(1, 200)]
    assert sorted(set(widths)) == [32, 48, 64, 96, 128, 192, 256]
    assert all(width >= n for n, width in enumerate(widths, start=1))
