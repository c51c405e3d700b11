"""The buttons below the advice: a click applies the remedy."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton

from app.engine.explain.advice import Remedy
from app.engine.explain.predict import is_clear
from app.engine.process.messages import PassSeconds
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.saved.measured import Calibrations
from app.ui.chat import baseline
from app.ui.state.answer import AnswerModel
from tests.ui.instruments.answers import header, totals, trace
from tests.ui.traces import make_round
from tests.ui.windows import Desk, Windows


def offered(desk: Desk) -> dict[str, QPushButton]:
    buttons = desk.page.instruments.cost.remedies.findChildren(QPushButton)
    return {button.text(): button for button in buttons if button.isVisibleTo(desk.page)}


def show(desk: Desk, shown: Trace) -> None:
    """Show a finished answer in the instruments, and wait for the advice."""
    desk.page.instruments.set_answer(AnswerModel(shown))
    until_advised(desk)


def until_advised(desk: Desk) -> None:
    query = desk.page.instruments.cost.query
    assert query is not None
    desk.until(lambda: not query.pending)


def nothing_accepted(strategy: str) -> Trace:
    rounds = [make_round(index, [], "a", "b", ["c"]) for index in range(20)]
    return Trace(header(strategy), rounds, totals(rounds))


def test_a_click_takes_the_advice(windows: Windows) -> None:
    desk = windows.open(strategy="prompt-lookup")
    show(desk, nothing_accepted("prompt-lookup"))
    offered(desk)["Use strategy none"].click()
    assert desk.window.settings.now.strategy == "none"
    assert not offered(desk), "a remedy in use is no longer offered"
    assert desk.prompt.hasFocus()


def test_a_click_tries_the_advice_measures_it_and_says_what_came_out(windows: Windows) -> None:
    desk = windows.open(strategy="prompt-lookup")
    desk.ask("hello")
    shown, card = desk.window.controller.shown, desk.page.instruments.cost
    card.remedies.show_remedies((Remedy("suffix", StrategySpec.parse("suffix")),))
    offered(desk)["Try suffix and measure"].click()
    desk.until(lambda: shown.answer is not None and shown.answer.measurement is not None)
    answer = shown.answer
    assert answer is not None and answer.header is not None and answer.header.strategy == "suffix"
    assert shown.stored is not None and len(shown.stored.versions) == 2
    until_advised(desk)
    factor = answer.measurement.range
    said = f"{factor.value:.2f}×" if is_clear(factor) else f"to {factor.high:.2f}× was measured"
    assert said in card.advice.text()
    desk.window.controller.shown.answer_shown.emit()
    assert not answer.tried, "the first version was not measured"
    desk.page.transcript.version_requested.emit(desk.page.transcript.turns[-1], 0)
    assert shown.answer is not answer and list(shown.answer.tried) == ["suffix"]


def test_a_good_answer_has_no_buttons(windows: Windows) -> None:
    desk = windows.open()
    show(desk, trace(5))
    assert offered(desk) == {}


def test_a_recording_offers_no_change(windows: Windows, tmp_path: Path) -> None:
    desk = windows.open(strategy="prompt-lookup")
    desk.window.show_trace(nothing_accepted("prompt-lookup"), tmp_path / "a.jsonl")
    until_advised(desk)
    assert "None of the 40 drafted tokens" in desk.page.instruments.cost.advice.text()
    assert offered(desk) == {}


def test_the_steps_of_loading_advise_nothing_anew(windows: Windows, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = windows.open()
    desk.ask("hello")
    advised: list[int] = []
    monkeypatch.setattr(type(desk.page.instruments.cost), "show_numbers", lambda _card: advised.append(1))
    desk.session.changed.emit(desk.session.state, desk.session.state)
    assert not advised


def test_passes_are_timed_once_after_an_answer_and_kept(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "DOUBTFUL", math.inf)  # whatever else runs beside the tests
    desk = windows.open(strategy="none")
    desk.ask("hello")
    answer, kept = desk.window.controller.shown.answer, windows.paths.calibrations
    assert answer is not None and answer.header is not None
    desk.until(lambda: answer.calibration is not None)
    known = Calibrations(kept).of(answer.header.pair)
    assert known == answer.calibration and known.target[1] > 0 and known.draft > 0
    assert desk.session.passes_of(answer.header.pair) == known, "the next answers' length=auto knows them"
    until_advised(desk)
    assert desk.page.instruments.cost.advice.text(), "strategy none has advice too"
    written = kept.read_bytes()
    desk.ask("again")
    assert kept.read_bytes() == written
    kept.write_bytes(b"{")
    assert Calibrations(kept).of(answer.header.pair) is None, "a damaged file is as none"


def test_passes_that_were_timed_on_a_busy_machine_are_timed_again(
    windows: Windows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(baseline, "DOUBTFUL", math.inf)  # whatever else runs beside the tests
    desk = windows.open(strategy="none")
    assert desk.session.pair is not None
    slow = PassSeconds(dict.fromkeys((1, 2, 3), 100.0))
    Calibrations(windows.paths.calibrations).keep(desk.session.pair, slow)
    desk.ask("hello")
    desk.until(lambda: Calibrations(windows.paths.calibrations).of(desk.session.pair) != slow)


def test_advice_on_an_answer_that_is_gone_is_dropped(windows: Windows) -> None:
    desk = windows.open(strategy="prompt-lookup")
    card, plots = desk.page.instruments.cost, desk.page.instruments
    plots.set_answer(AnswerModel(nothing_accepted("suffix")))
    assert card.query is not None and card.query.pending and not card.advice.text()
    plots.set_answer(None)
    assert not card.query.pending
    show(desk, nothing_accepted("prompt-lookup"))
    assert "None of the 40 drafted tokens" in card.advice.text()


def test_the_space_for_advice_is_kept_until_it_appears(windows: Windows) -> None:
    desk = windows.open(strategy="prompt-lookup")
    card = desk.page.instruments.cost
    room = card.advice.parentWidget()
    show(desk, nothing_accepted("prompt-lookup"))
    height = room.minimumHeight()
    assert height >= card.advice.sizeHint().height() > 0
    desk.page.instruments.set_answer(AnswerModel(nothing_accepted("prompt-lookup")))
    assert card.advice.isHidden() and room.minimumHeight() == height
    until_advised(desk)
    assert not card.advice.isHidden() and room.minimumHeight() == height
