"""The whole answer in figures: their numbers are those of stats.py, and they follow the answer."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint
from PySide6.QtGui import QColor, QPaintEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.engine.engine import Engine
from app.engine.fates import Origin
from app.engine.record.alternative_stats import AlternativeStatistics
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.types import Round
from app.saved.measured import Measurement
from app.ui.inspector import figure as contents
from app.ui.inspector import shape_view
from app.ui.inspector.figure import Bar, Bars
from app.ui.inspector.shape_view import ShapeView
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from tests.answers import answer as answered
from tests.ui.traces import make_header, make_trace


@pytest.fixture(scope="module")
def mix(shared_engine: Engine) -> Trace:
    """An answer of two strategies, by draws."""
    strategy = "ngram-mod:n_match=2:n_min=0+draft-simple:n_max=4"
    return answered(shared_engine, "abcabcabd abc" * 4, strategy=strategy, max_tokens=60, ignore_eos=True)


@pytest.fixture
def view(qtbot: QtBot, theme: Theme) -> ShapeView:
    made = ShapeView(theme)
    qtbot.addWidget(made)
    made.resize(1000, 600)
    made.show()
    return made


def test_every_figure_has_the_numbers_of_the_statistics(mix: Trace) -> None:
    answer, statistics = AnswerModel(mix), Statistics.of(mix.rounds)
    folded = AlternativeStatistics.of(mix.rounds)
    places = contents.acceptance_by_place(answer).bars
    assert [bar.parts for bar in places] == list(
        zip(
            statistics.acc_per_pos,
            statistics.acceptance_by_place,
            statistics.judged_acceptance_by_place,
            strict=True,
        )
    )[:16]
    accepted = contents.accepted_per_round(answer).bars
    assert [bar.parts[0] for bar in accepted] == statistics.accepted_per_round
    shares = contents.strategy_shares(answer).bars
    assert {bar.label: bar.parts[0] for bar in shares} == {
        name: part.accepted / statistics.emitted for name, part in statistics.strategies.items()
    }
    choices = contents.draft_choices(answer, folded).bars
    assert sum(bar.parts[0] or 0 for bar in choices) == folded.ranked
    assert [bar.parts[0] for bar in choices][: len(folded.ranks)] == folded.ranks
    rows = contents.target_entropy(folded).bars
    assert [sum(bar.parts[part] or 0 for bar in rows) for part in range(3)] == [
        folded.rows, sum(folded.judged_by_entropy), sum(folded.accepted_by_entropy)
    ]  # fmt: skip


def test_a_wider_draft_is_told_with_its_doubt() -> None:
    folded = AlternativeStatistics(ranks=[6, 1, 1, 1], unranked=1)
    greedy = AnswerModel(make_trace([]))
    assert "top 2 in 70" in contents.draft_choices(greedy, folded).words
    assert "estimate" not in contents.draft_choices(greedy, folded).words
    drawn = AnswerModel(Trace(make_header(verification="block", temperature=0.8)))
    assert "estimate" in contents.draft_choices(drawn, folded).words


def test_the_view_folds_all_alternatives_in_the_end(view: ShapeView, mix: Trace, qtbot: QtBot) -> None:
    view.set_answer(AnswerModel(mix))
    folded = AlternativeStatistics.of(mix.rounds)
    qtbot.waitUntil(lambda: view.ranks.note.text() == f"% of {folded.ranked} places")
    assert view.entropy.note.text().startswith("mean at least")
    assert view.strategies.isVisible() and "ngram-mod" in view.strategies.caption.text()
    assert view.places.bars.accessibleDescription().startswith("place 1: ")


def test_it_follows_a_live_answer_a_scrub_and_a_reset(view: ShapeView, mix: Trace, qtbot: QtBot) -> None:
    answer = AnswerModel(live=True)
    view.set_answer(answer)
    answer.begin(mix.header)
    assert view.accepted.caption.text() == "Nothing has been drafted yet."
    answer.add(mix.rounds)
    answer.end(mix.totals)

    def shows(first: int, end: int) -> None:
        folded = AlternativeStatistics.of(mix.rounds[first:end])
        qtbot.waitUntil(lambda: view.ranks.note.text() == f"% of {folded.ranked} places")
        counted = Statistics.of(mix.rounds[first:end])
        assert sum(bar.parts[0] or 0 for bar in view.accepted.bars.bars) == counted.drafted_rounds

    whole = len(mix.rounds)
    shows(0, whole)
    before = view.scope.text()
    answer.move(whole - 9)
    answer.move(whole - 5)
    assert view.scope.text() == before, "the cursor may go on"
    qtbot.waitUntil(lambda: view.scope.text() != before)
    shows(0, whole - 5)
    assert f"up to round {whole - 5}" in view.scope.text()
    answer.move(whole)
    answer.count_from(4)
    qtbot.waitUntil(lambda: view.scope.text().startswith("since round 5"))
    shows(4, whole)
    answer.count_from(whole)
    qtbot.waitUntil(lambda: view.accepted.caption.text() == "Nothing was drafted since the reset.")


def test_a_step_back_folds_few_rounds_again_and_gives_the_same(
    view: ShapeView, mix: Trace, qtbot: QtBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = [replace(mix.rounds[at % len(mix.rounds)], index=at) for at in range(1400)]
    answer = AnswerModel(Trace(mix.header, rounds))
    folded: list[Round] = []
    add = AlternativeStatistics.add

    def counted(statistics: AlternativeStatistics, round: Round) -> None:
        folded.append(round)
        add(statistics, round)

    view.set_answer(answer)
    for cursor, most in ((1400, 1400), (1399, 400), (1398, 32), (1020, 1020), (1019, 32), (1400, 400)):
        answer.move(cursor)
        statistics = AlternativeStatistics.of(rounds[:cursor])
        with monkeypatch.context() as patched:
            patched.setattr(AlternativeStatistics, "add", counted)
            folded.clear()
            shown = contents.target_entropy(statistics), contents.draft_choices(answer, statistics)
            qtbot.waitUntil(
                lambda shown=shown: (
                    (view.entropy.note.text(), view.ranks.note.text())  # type: ignore[misc]
                    == tuple(content.note for content in shown)
                )
            )
        assert len(folded) <= most
        assert [bar.parts for bar in view.entropy.bars.bars] == [bar.parts for bar in shown[0].bars]


def test_steps_back_after_the_first_are_shown_at_once(
    qtbot: QtBot, theme: Theme, mix: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shape_view, "_CALM_MS", 3_600_000)
    view = ShapeView(theme)
    qtbot.addWidget(view)
    view.resize(1000, 600)
    view.show()
    answer = AnswerModel(
        Trace(mix.header, [replace(mix.rounds[at % len(mix.rounds)], index=at) for at in range(700)])
    )
    view.set_answer(answer)
    qtbot.waitUntil(lambda: not view.ranks.note.text().endswith("so far"))
    answer.move(699)
    view.draw()  # as when the cursor rests
    qtbot.waitUntil(lambda: not view.ranks.note.text().endswith("so far"))
    for cursor in (698, 697):
        answer.move(cursor)
        statistics = AlternativeStatistics.of(answer.rounds[:cursor])
        shown = contents.target_entropy(statistics)
        qtbot.waitUntil(lambda cursor=cursor: view.scope.text().endswith(f"up to round {cursor}"))  # type: ignore[misc]
        qtbot.waitUntil(lambda shown=shown: view.entropy.note.text() == shown.note)  # type: ignore[misc]
        assert [bar.parts for bar in view.entropy.bars.bars] == [bar.parts for bar in shown.bars]


def test_the_alternatives_of_a_few_rounds_are_shown_at_once(view: ShapeView, mix: Trace) -> None:
    answer = AnswerModel(mix)
    answer.move(3)
    view.set_answer(answer)
    folded = AlternativeStatistics.of(mix.rounds[:3])
    assert view.entropy.note.text() == contents.target_entropy(folded).note


def test_no_reason_is_given_before_all_rounds_were_read(
    view: ShapeView, mix: Trace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shape_view, "_SLICE", 0.0)  # nothing is folded in time
    view.set_answer(AnswerModel(mix))
    for figure in (view.ranks, view.entropy):
        assert figure.note.text() == "0 rounds so far" and not figure.caption.text()


def test_answers_without_drafts_say_so(view: ShapeView, shared_engine: Engine) -> None:
    view.set_answer(AnswerModel(answered(shared_engine, max_tokens=5, ignore_eos=True)))
    for figure in (view.places, view.accepted, view.ranks):
        assert figure.caption.text() == "Strategy none drafts nothing." and not figure.bars.isVisible()
    assert not view.strategies.isVisible()
    view.set_answer(None)
    assert view.scope.text() == "0 rounds · 0 tokens"


def test_where_the_answer_is_on_the_cost_curve(view: ShapeView, mix: Trace, shared_engine: Engine) -> None:
    answer = AnswerModel(Trace(mix.header, [round for round in mix.rounds if round.drafted]))
    view.set_answer(answer)
    assert "baseline" in view.cost.message.text()
    plain = answered(shared_engine, "abcabcabd abc" * 4, max_tokens=60, ignore_eos=True)
    answer.measure(Measurement(plain, mix))
    assert not view.cost.message.text() and "pays" in view.cost.facts.text()


def test_cards_stand_in_as_many_columns_as_have_room(view: ShapeView, mix: Trace, qtbot: QtBot) -> None:
    view.set_answer(AnswerModel(mix))
    qtbot.waitUntil(lambda: view.accepted.y() == view.places.y() > 0)
    view.resize(400, 1200)
    qtbot.waitUntil(lambda: view.accepted.y() > view.places.geometry().bottom())


def test_bars_are_as_high_as_their_values(qtbot: QtBot, theme: Theme) -> None:
    bars = Bars(theme, ("a", "b"), lambda palette: (palette.area(Origin.ACCEPTED),))
    qtbot.addWidget(bars)
    bars.resize(200, bars.sizeHint().height())
    bars.set_bars([Bar("1", (10,), "10", "ten"), Bar("2", (5,), "5", "five")])
    bars.show()
    image = bars.grab().toImage()
    colour = QColor(theme.palette.area(Origin.ACCEPTED))

    def height(index: int) -> int:
        rect = bars.bar_rects[index]
        column = [QPoint(round(rect.left()) + 2, y) for y in range(bars.height())]
        return sum(image.pixelColor(place) == colour for place in column)

    assert height(0) == round(bars.bar_rects[0].height()) and height(1) == round(height(0) / 2)
    assert bars.accessibleDescription() == "ten; five"
    assert list(bars.table()[1]) == [("1", 10), ("2", 5)]


def test_bars_are_painted_again_where_it_would_be_seen(qtbot: QtBot, theme: Theme) -> None:
    class Painted(Bars):
        times = 0

        @override
        def paintEvent(self, event: QPaintEvent) -> None:
            self.times += 1
            super().paintEvent(event)

    bars = Painted(theme, ("a", "b"), lambda palette: (palette.area(Origin.ACCEPTED),))
    qtbot.addWidget(bars)
    bars.resize(200, bars.sizeHint().height())
    bars.set_bars([Bar("1", (0.5,), "50", "half")], top=1.0)
    bars.show()
    qtbot.waitUntil(lambda: bars.times > 0)
    for part, text, top, seen in (
        (0.50001, "50", 1.0, False), (0.50001, "51", 1.0, True), (0.6, "51", 1.0, True),
        (0.6, "51", 2.0, True), (0.60001, "51", 2.0, False),
    ):  # fmt: skip
        bars.times = 0
        bars.set_bars([Bar("1", (part,), text, f"{part}")], top=top)
        QApplication.processEvents()
        assert (bars.times > 0) is seen and bars.accessibleDescription() == f"{part}"
