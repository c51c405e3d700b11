"""The round in detail: what its cards state is what was recorded, and the keyboard goes through them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QRectF, QSizeF, Qt
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.engine.engine import Engine
from app.engine.explain.copied import ContextText
from app.engine.explain.cost import CostModel
from app.engine.explain.decision import draft_heading
from app.engine.fates import Origin, Verdict
from app.engine.record.trace import Trace
from app.engine.rules.formula import add_up, apart, drawn, written
from app.engine.rules.registry import MATCH, RULES
from app.engine.types import (
    Alternatives,
    DraftedToken,
    Draw,
    EmittedToken,
    HeadInput,
    Race,
    Sampling,
    ServerInfo,
)
from app.servers.answer import RoundFold, Told
from app.ui.inspector.card import Card
from app.ui.inspector.content import CardContent, RaceBars, TokenBar
from app.ui.inspector.contents import cards_of
from app.ui.inspector.draft_block import block_of, chain_of
from app.ui.inspector.painting import Ink, broken, paint_bars, paint_legend
from app.ui.inspector.round_time import RoundTime, RoundTimeView
from app.ui.inspector.round_view import RoundView, copied_words, round_facts, source_words
from app.ui.instruments.round_rows import round_rows, times_details
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from tests.answers import answer
from tests.files.tiny import Tiny
from tests.ui.pixels import painted
from tests.ui.traces import make_header, make_round, raw_round

WARM = Sampling(temperature=0.9, seed=11)
FILTERED = Sampling(temperature=1.2, top_k=60, top_p=0.95, repeat_penalty=1.1, seed=12)
SHARE = st.floats(0, 1, allow_subnormal=False)


@given(SHARE, SHARE.filter(lambda q: q > 1e-6))
def test_sums_come_out_as_written(p: float, q: float) -> None:
    (left, right), result = add_up((p, q), lambda p, q: p / q)
    assert written(float(left) / float(right)) == result


@given(SHARE, SHARE)
def test_comparisons_show_which_number_is_smaller(first: float, second: float) -> None:
    left, right = apart(first, second)
    if abs(first - second) > 1e-6:
        assert (float(left) < float(right)) == (first < second) and left != right


def test_a_draw_is_written_inside_its_interval() -> None:
    assert drawn(Draw(0.654, 0.0, 0.805)) == "0.654 in [0, 0.805)"
    assert drawn(Draw(0.50001, 0.5, 0.50002)) == "0.50001 in [0.50000, 0.50002)"


def test_long_sums_are_broken_before_their_signs() -> None:
    assert broken("0.5 / 0.25 = 2", 40) == ["0.5 / 0.25 = 2"]
    assert broken("0.5 / 0.25 = 2", 10) == ["0.5 / 0.25", "= 2"]
    assert broken("min(1, 1 × 0.5 / 2) = 0.25", 14) == ["min(1, 1 × 0.5", "/ 2) = 0.25"]
    assert broken("0.654 in [0, 0.805)", 12) == ["0.654", "in [0, 0.805)"]
    assert broken("0.123456789", 5) == ["0.123456789"]


def stated(card: CardContent) -> bool | None:
    """Whether the card's last sum says that the token passes; None where it states nothing."""
    decisive = [line for line in card.sums if line.verdict]
    if not decisive:
        return None
    signs = re.findall(r" ([<≥=≠]) ", decisive[-1].text)
    assert len(signs) == 1, decisive[-1].text
    passed = signs[0] in "<="
    assert decisive[-1].verdict in (
        ("accepted", "accepted up to here") if passed else ("rejected", "not accepted")
    )
    return passed


@pytest.mark.parametrize("sampling", [Sampling(), WARM, FILTERED], ids=["greedy", "warm", "filtered"])
@pytest.mark.parametrize(
    "strategy",
    [
        "draft-simple:n_max=4",
        "draft-simple:n_max=4:sample=1",
        "draft-simple:n_max=4:verify=match",
        "draft-simple:n_max=4:sample=1:verify=block",
        "prompt-lookup",
    ],
)
def test_what_cards_state_is_what_was_recorded(engine: Engine, strategy: str, sampling: Sampling) -> None:
    trace = answer(engine, strategy=strategy, sampling=sampling, max_tokens=50, ignore_eos=True)
    block = trace.header.verification == "block"
    for round in trace.rounds:
        cards = cards_of(round, trace.header)
        assert sum(card.own for card in cards) == 1
        assert cards[-1].own == (cards[-1].place == "The target's own token") or cards[-1].instead
        chain = chain_of(round, trace.header)
        assert bool(chain) == (block and bool(round.drafted))
        assert sum(link.decides for link in chain) == (1 if block and round.accepted else 0)
        judged = [card for card in cards if card.place != "The target's own token"]
        for card, token in zip(judged, round.drafted, strict=False):
            assert card.word == token.verdict
            if token.verdict is Verdict.IGNORED:
                assert stated(card) in (None, False)
            elif not block:
                assert stated(card) is (token.verdict is Verdict.ACCEPTED)
            else:
                assert stated(card) in (None, token.verdict is Verdict.ACCEPTED)
        assert round_facts(round, trace.header)
        for card in cards:
            assert card.spoken() and all(bars.token for bars in card.bars)


def test_what_came_instead_is_on_the_card_of_the_rejected_token(engine: Engine) -> None:
    trace = answer(engine, strategy="draft-simple:n_max=4", sampling=WARM, max_tokens=80)
    cards = [
        next(card for card in cards_of(round, trace.header) if card.own)
        for round in trace.rounds
        if round.rejected
    ]
    assert cards
    for card in cards:
        instead = card.instead
        assert (
            instead is not None
            and isinstance(instead.line, RaceBars)
            and card.word == "rejected"
            and card.law is not None
            and card.law.exact
        )
        winner, second, *_others = instead.line.contenders
        names = [
            "p − q",
            "share = (p − q) / (1 − Σ min(p, q))",
            "log share + luck",
            f"ahead of “{second.token}” by",
        ]
        assert [line.name for line in instead.sums] == names
        assert winner.won and winner.token == instead.title and winner.score > second.score
        first, refused, share, p = map(float, re.findall(r"\d[\d.e-]*", instead.proof[2]))
        assert first + refused * share == pytest.approx(p, rel=0.01)


def test_what_a_trace_does_not_hold_is_said(engine: Engine) -> None:
    sampled = "draft-simple:n_max=4:sample=1"
    known = answer(engine, strategy=sampled, sampling=WARM, max_tokens=40)
    hidden = answer(engine, strategy=sampled, sampling=FILTERED, max_tokens=40)
    drafted = next(round for round in known.rounds if round.drafted)
    assert "is computed from the draft's recorded probabilities" in source_words(drafted, known.header)
    assert cards_of(drafted, known.header)[0].headings == ("q", "p")
    cards = [
        (token, card, top.ids)
        for round in known.rounds
        for token, card, top in zip(
            round.drafted, cards_of(round, known.header), round.draft_top, strict=False
        )
    ]
    alone = [card for token, card, best in cards if token.id not in best]
    assert alone and len(alone) < len(cards)
    for token, card, best in cards:
        told = any("q of the others is unknown" in note for note in card.notes)
        assert told == (token.id not in best)
    drafted = next(round for round in hidden.rounds if round.drafted)
    assert "q was not recorded" in source_words(drafted, hidden.header)
    assert draft_heading(drafted, hidden.header) == "draft_p"


@pytest.fixture
def trace(engine: Engine) -> Trace:
    """An answer with a round whose four drafted tokens all pass."""
    for seed in range(100):
        warm = Sampling(temperature=0.9, seed=seed)
        made = answer(engine, strategy="draft-simple:n_max=4", sampling=warm, max_tokens=60)
        if any(round.accepted == 4 for round in made.rounds):
            return made
    raise AssertionError("no draft passes whole")


@pytest.fixture
def view(qtbot: QtBot, theme: Theme, trace: Trace) -> RoundView:
    made = RoundView(theme)
    qtbot.addWidget(made)
    made.resize(1000, 600)
    made.show()
    model = AnswerModel(trace)
    made.set_answer(model)
    model.pin(next(round.index for round in trace.rounds if round.accepted == 4))
    return made


def test_a_card_stands_for_each_place_and_is_named(view: RoundView) -> None:
    cards = view.grid.cards
    assert [card.accessibleName().partition(":")[0] for card in cards] == [
        "Place 1 of 4", "Place 2 of 4", "Place 3 of 4", "Place 4 of 4", "The target's own token",
    ]  # fmt: skip
    assert all(card.accessibleDescription() for card in cards[:1])
    assert all(card.width() > 200 and card.height() > 40 for card in cards)


def test_up_and_down_go_from_place_to_place(view: RoundView) -> None:
    view.setFocus()
    for key, place in ((Qt.Key.Key_Down, 0), (Qt.Key.Key_Down, 1), (Qt.Key.Key_Up, 0), (Qt.Key.Key_Up, 0)):
        focused = view.focusWidget() or view
        QTest.keyClick(focused, key)
        assert view.grid.cards[place].hasFocus()


def test_the_focus_stays_at_its_place_from_round_to_round(view: RoundView, trace: Trace) -> None:
    view.grid.cards[2].setFocus()
    for round in trace.rounds:
        view.answer.pin(round.index)
        focused = [card.hasFocus() for card in view.grid.cards]
        assert sum(focused) == 1
    assert [card.content for card in view.grid.cards] == list(cards_of(trace.rounds[-1], trace.header))


def test_cards_fit_the_width(view: RoundView) -> None:
    wide = {card.x() for card in view.grid.cards}
    view.resize(500, 600)
    narrow = {card.x() for card in view.grid.cards}
    assert len(wide) > len(narrow)
    assert all(card.geometry().right() <= view.grid.width() for card in view.grid.cards)


def test_a_place_is_drawn_a_thousand_times_by_keyboard(view: RoundView, theme: Theme, qtbot: QtBot) -> None:
    card = view.grid.cards[0]
    button = card.draws
    assert button.isVisible() and button.accessibleName() == "Draw 1,000 times"
    card.setFocus()
    QTest.keyClick(card, Qt.Key.Key_Tab)
    assert button.hasFocus()
    QTest.keyClick(button, Qt.Key.Key_Space)
    qtbot.waitUntil(lambda: button.accessibleDescription().startswith("1,000 drawn: "))
    assert card.content is not None and button.tally is not None
    drawn = card.content.drawn(button.tally)
    assert drawn.headings == ("q", "p", "drawn")
    assert sum(bar.values[2] or 0.0 for bar in drawn.bars) == pytest.approx(1)
    assert drawn.said(drawn.bars[0]) in card.accessibleDescription()
    for width in range(150, 900, 7):
        room, ink = QRectF(0, 0, width, 900), Ink(theme)
        kept = max(paint_legend(None, room, legend, ink) for legend in card.content.legends)
        assert paint_legend(None, room, drawn.legend, ink) <= kept, width
    accepted, replaced = (words.split()[1] for _fate, words in drawn.legend[:2])
    assert int(accepted) + int(replaced) == 1000
    for bar in drawn.bars:
        _q, p, came = (value or 0.0 for value in bar.values)
        assert abs(came - p) < 0.08
        assert bar.spread == pytest.approx(2 * (p * (1 - p) / 1000) ** 0.5, abs=0.0006)
    ends = re.search(r"drawn in (\S+) to (\S+) of them", row_tip(card, 0))
    p, spread = drawn.bars[0].mark or 0.0, drawn.bars[0].spread
    assert ends is not None
    assert [float(end) for end in ends.groups()] == pytest.approx([p - spread, p + spread], abs=0.001)
    first = button.tally
    theme.set_motion("less")
    button.click()
    assert button.tally is not first and button.tally.total == 1000
    view.answer.pin(0)
    assert button.tally is None


def row_tip(card: Card, row: int) -> str:
    """The tooltip of a row of bars."""
    content, drawn = card.content, card.draws.tally
    assert content is not None and drawn is not None
    for y in range(card.height()):
        QTest.mouseMove(card, QPoint(card.width() // 4, y))
        if card.toolTip().startswith(content.bars[row].token):
            return card.toolTip()
    raise AssertionError("no tooltip names the row")


def test_what_is_drawn_too_often_reaches_past_its_mark(theme: Theme) -> None:
    ink, image = Ink(theme), QImage(600, 80, QImage.Format.Format_RGB32)
    expected, drawn = (
        CardContent(
            "", "", "", "", ("p",), (TokenBar("a", (p,), True, ((p, "accepted"),), 0.6),), None, (), ()
        )
        for p in (0.6, 0.75)
    )
    image.fill(theme.palette.ground)
    painter = QPainter(image)
    end = paint_bars(painter, QRectF(0, 0, 600, 80), expected, drawn, ink, QSizeF(0, 0))
    painter.end()
    middle = round(end - 2 * ink.unit - ink.row / 2)
    row = [image.pixelColor(x, middle) for x in range(600)]
    length = row.count(ink.colour("accepted"))
    mark = row.index(QColor(theme.palette.text), 20) - row.index(ink.colour("accepted"))
    assert mark / length == pytest.approx(0.6 / 0.75, abs=0.03)


def test_no_heading_is_under_the_button(theme: Theme) -> None:
    ink, image = Ink(theme), QImage(600, 80, QImage.Format.Format_RGB32)
    bar = TokenBar("a", (0.5, 0.6), True, ((0.6, "accepted"),), None)
    content = CardContent("", "", "", "", ("q", "p"), (bar,), None, (), ())

    def first_ink(button: float) -> int:
        image.fill(theme.palette.ground)
        painter = QPainter(image)
        paint_bars(painter, QRectF(0, 0, 600, 80), content, None, ink, QSizeF(button, 30))
        painter.end()
        ground = QColor(theme.palette.ground)
        return next(x for x in range(600) if any(image.pixelColor(x, y) != ground for y in range(28)))

    free = first_ink(0)
    assert first_ink(free - 10) == free
    assert first_ink(free + 4) > free + 4


def test_the_copied_text_is_marked_where_it_stands(qtbot: QtBot, theme: Theme, engine: Engine) -> None:
    trace = answer(engine, "<b>one</b> two <b>one</b>", strategy="prompt-lookup", max_tokens=80)
    view = RoundView(theme)
    qtbot.addWidget(view)
    view.show()
    view.set_answer(AnswerModel(trace))
    seen = set()
    for round in trace.rounds:
        view.answer.pin(round.index)
        shown = view.copied.isVisible()
        seen.add(shown)
        assert round.drafted or not shown
        if shown:
            assert "Copied from" in view.origin.text() and "<b>" not in view.copied.text()
    assert True in seen


def test_a_mix_says_who_was_asked_and_who_answered(engine: Engine) -> None:
    trace = answer(engine, strategy="prompt-lookup+draft-simple:n_max=2", max_tokens=60)
    words = [source_words(round, trace.header) for round in trace.rounds]
    assert any(text.startswith("prompt-lookup drafted") for text in words)
    silent = "prompt-lookup was asked first and had no draft. draft-simple drafted"
    assert any(text.startswith(silent) for text in words)


def test_a_draft_that_ended_the_answer_is_said_in_a_sentence() -> None:
    last = replace(make_round(0, (b"a",), b"", position=0), strategy="draft-simple")
    said = source_words(replace(last, draft_end="the draft ended the answer"), make_header())
    assert said.startswith("draft-simple drafted; the draft ended the answer. ")
    said = source_words(replace(last, draft_end="n_max"), make_header())
    assert said.startswith("draft-simple drafted; reason for the length: at n_max. ")


def test_what_a_head_read_is_said() -> None:
    round, header = make_round(0, (b"a",), b"", position=0), make_header()
    read = HeadInput((0, 1, header.pair.target.n_layers), (1.25, 1043.0, 40.0), (0.1, 0.2, 0.7))
    said = " ".join(source_words(replace(round, head=read), header).split())
    assert (
        "It read the target's rows before layers 0 and 1 and after the last layer, of length 1.2, 1,043.0 "
        "and 40.0. They make up 10 %, 20 % and 70 % of its input."
    ) in said
    read = HeadInput((header.pair.target.n_layers,), (3.0,))
    said = source_words(replace(round, head=read), header)
    assert "It read the target's rows after the last layer, of length 3.0. " in said


def test_copied_tokens_behind_the_judged_ones_share_a_card(engine: Engine) -> None:
    trace = answer(engine, strategy="prompt-lookup:num_pred_tokens=8", max_tokens=60)
    for round in trace.rounds:
        cards = cards_of(round, trace.header)
        judged = round.accepted + round.rejected
        assert len(cards) == judged + bool(round.ignored) + 1
        if round.ignored > 1:
            shared = cards[-2]
            assert shared.place == f"Places {judged + 1} to {len(round.drafted)} of {len(round.drafted)}"
            assert shared.word == "ignored" and re.match(
                "Not judged, because (an earlier token, “.+”, was rejected|the answer ended)", shared.notes[0]
            )


NUMBER = st.one_of(SHARE, st.sampled_from([0.0, 1.0, 1e-300, 5.0, 1e300, -1.0]))
MAYBE = st.one_of(st.none(), NUMBER)
DRAW = st.builds(Draw, NUMBER, NUMBER, NUMBER)
RACE = st.builds(Race, NUMBER, st.integers(0, 5), NUMBER, st.binary(max_size=3)) | st.builds(Race, NUMBER)
TOP = st.builds(
    Alternatives,
    st.lists(st.integers(0, 5), max_size=4).map(tuple),
    st.lists(st.binary(max_size=3), max_size=4).map(tuple),
    st.lists(NUMBER, max_size=4).map(tuple),
)
DRAFTED = st.builds(
    DraftedToken,
    id=st.integers(0, 5), piece=st.binary(max_size=3), verdict=st.sampled_from(Verdict), q=NUMBER,
    draft_p=MAYBE, p=MAYBE, u=MAYBE, target_id=st.one_of(st.none(), st.integers(0, 5)),
    draw=st.one_of(st.none(), DRAW), draft_draw=st.one_of(st.none(), DRAW), label=st.just(""), h=MAYBE,
    race=st.one_of(st.none(), RACE), draft_race=st.one_of(st.none(), RACE),
)  # fmt: skip
EMITTED = st.builds(
    EmittedToken,
    id=st.integers(0, 5), piece=st.binary(max_size=3), origin=st.sampled_from(Origin), p=NUMBER,
    draw=st.one_of(st.none(), DRAW), label=st.just(""), race=st.one_of(st.none(), RACE),
)  # fmt: skip


@given(
    st.lists(DRAFTED, max_size=4),
    st.lists(EMITTED, max_size=5),
    st.lists(TOP, max_size=5),
    st.lists(TOP, max_size=5),
    st.sampled_from([*RULES, "unknown"]),
    st.sampled_from([0.0, 1e-3, 0.8, 10.0]),
)
def test_rounds_of_any_trace_have_cards(
    drafted: list[DraftedToken],
    emitted: list[EmittedToken],
    target: list[Alternatives],
    draft: list[Alternatives],
    rule: str,
    temperature: float,
) -> None:
    round = raw_round(0, drafted, emitted, target_top=tuple(target), draft_top=tuple(draft), match=2)
    header = make_header(verification=rule, temperature=temperature)
    for card in cards_of(round, header):
        assert card.name and card.spoken() is not None
    chain_of(round, header)
    assert round_facts(round, header) and source_words(round, header) is not None
    text = ContextText(header)
    text.read([round])
    copied = text.copied(round)
    assert copied is None or copied_words(copied, round)


@pytest.mark.parametrize("selector", [False, True])
def test_a_block_is_drawn_as_places_by_candidates(
    qtbot: QtBot, theme: Theme, tiny_file: Callable[[Tiny], Path], selector: bool
) -> None:
    block = Tiny(name="block", architecture="dflash", n_layers=1, n_ctx=256, seed=3, selector=selector)
    with Engine(tiny_file(Tiny(name="below", n_ctx=256)), tiny_file(block)) as engine:
        trace, plain = (
            answer(engine, "abcabc", strategy=strategy, max_tokens=8)
            for strategy in ("draft-dflash:n_max=4", "prompt-lookup:max_ngram_size=1")
        )
    view = RoundView(theme)
    qtbot.addWidget(view)
    view.show()
    view.set_answer(AnswerModel(trace))
    for round in trace.rounds[:-1]:
        places = block_of(round, trace.header)
        assert len(places) == len(round.drafted) > 0
        for place, token in zip(places, round.drafted, strict=True):
            assert len(place.candidates) == (4 if selector else 8)
            (drafted,) = (candidate.p for candidate in place.candidates if candidate.drafted)
            assert (place.fate, drafted) == (token.verdict, token.draft_p)
        view.answer.pin(round.index)
        assert view.block.isVisible() and view.block.height() > 80
        assert f"Place {len(places)}, " in view.block.accessibleDescription()
        assert not view.block.grab().isNull()
    assert not any(block_of(round, plain.header) for round in plain.rounds)
    view.set_answer(AnswerModel(plain))
    view.answer.pin(0)
    assert not view.block.isVisible()


def test_of_a_server_only_what_it_tells_is_shown() -> None:
    fold = RoundFold(MATCH)
    told = [Told(1, "a"), Told(2, "b"), Told(3, "c")]
    (_, round) = [
        done for token in told for done in fold.add([token], *((0, 0) if token.id == 1 else (3, 1)), 1)
    ]
    header = make_header("server", "match", 0.9)
    pair = replace(header.pair, server=ServerInfo("http://h:1", "llama-server", "m"))
    header = replace(header, pair=pair)

    assert [card.fate for card in cards_of(round, header)] == ["accepted", "rejected", "ignored", "resampled"]
    assert source_words(round, header) == (
        "llama-server drafted. It does not report p, q or the rejected tokens."
    )
    assert "verify" not in round_facts(round, header) and "verify" not in times_details(round)
    assert ContextText(header).copied(round) is None
    assert [row.q for row in round_rows(round)] == [None] * 4


def test_a_round_in_time_is_held_against_as_many_single_passes() -> None:
    round = make_round(0, (b"It", b" is"), b" a", rejected=b" no")  # 3 drafted, 3 emitted, in 11.2 ms
    plain = make_round(0, (), b"It", seconds=0.0054, draft_seconds=0.0, verify_seconds=0.005)
    unknown = RoundTime.of(round, CostModel.of([round]))
    assert unknown is not None and not unknown.alone and "not measured" in unknown.words
    time = RoundTime.of(round, CostModel.of([], plain=[plain]))
    assert time is not None and time.seconds == pytest.approx((0.0112, 3 * 0.0054))
    assert [block.seconds for block in time.drafted] == pytest.approx([0.0011 / 3] * 3 + [0.0096, 0.0005])
    words = time.words.replace("\u2009", " ").replace("\xa0", " ")
    assert words == "3 tokens in 11.2 ms, one by one in 16.2 ms: 1.45×"
    assert RoundTime.of(plain, CostModel.of([], plain=[plain])) is None
    block = RoundTime.of(replace(round, strategy="draft-dflash"), CostModel.of([], plain=[plain]))
    assert block is not None and len(block.drafted) == 3, "one pass drafted the whole block"
    assert block.seconds == pytest.approx(time.seconds)


def test_facts_are_broken_between_numbers_and_after_dots() -> None:
    said = round_facts(make_round(0, (b"It",), b" a", rejected=b" no"), make_header())
    assert said.replace("\xa0", "_").split() == [
        "2_drafted_·", "1_accepted_·", "1_rejected_·", "1_resampled_·", "draft_1.10_ms,", "verify_9.60_ms,",
        "sampling_400_µs_·", "greedy_verification",
    ]  # fmt: skip


def test_the_legend_of_a_time_has_a_line_of_its_own_in_little_room(qtbot: QtBot, theme: Theme) -> None:
    view = RoundTimeView(theme)
    qtbot.addWidget(view)
    round = make_round(0, (b"It", b" is"), b" a", rejected=b" no")
    view.show_time(RoundTime.of(round, CostModel.of([])))
    for width, below in ((900, False), (300, True)):
        view.resize(width, view.height_for(width))
        assert view.sizeHint().height() == view.height_for(width)
        places = {text: y for text, _x, y in painted(view)}
        assert places["sampling and other"] < places["with drafts"]
        words = next(y for text, y in places.items() if text.startswith("3"))
        assert (places["sampling and other"] > words + 5) is below
    assert view.height_for(900) < view.height_for(300)
