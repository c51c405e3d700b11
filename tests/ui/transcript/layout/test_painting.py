"""Pixels of the tints and lines, at one and two device pixels per point."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, QPointF, QRect, QRectF, Qt
from PySide6.QtGui import QColor, QImage, QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot
from typing_extensions import override

from app.ui.state.answer import AnswerModel
from app.ui.theme import DARK, LIGHT, Palette, Theme
from app.ui.transcript import AnswerTurn, TranscriptView, UserTurn
from app.ui.transcript.layout.paragraph_layout import ParagraphLayout, runs_of
from app.ui.transcript.layout.styles import FateShapes, TextStyle
from app.ui.transcript.text.paragraphs import Kind, Paragraph, ParagraphBuilder
from app.ui.transcript.text.spans import Span, spans_of
from tests.ui.traces import drawing, make_round, make_trace, simulate
from tests.ui.transcript.places import add, token, turn

WIDTH, HEIGHT, BASELINE, LEFT, RIGHT = 60, 40, 26, 10, 50


@pytest.fixture
def style(theme: Theme) -> TextStyle:
    return TextStyle(theme.sans(2), theme.sans(1), 1.78)


def painted(fate: str, style: TextStyle, palette: Palette, ratio: float = 1) -> QImage:
    """The picture of a token without letters."""
    image = QImage(round(WIDTH * ratio), round(HEIGHT * ratio), QImage.Format.Format_RGB32)
    image.setDevicePixelRatio(ratio)
    image.fill(QColor(palette.ground))
    shapes = FateShapes(ratio)
    shapes.add(fate, LEFT, RIGHT, BASELINE, style)
    painter = QPainter(image)
    shapes.paint_tints(painter, palette)
    shapes.paint_cues(painter, palette)
    painter.end()
    return image


def names(image: QImage, area: QRect | None = None) -> set[str]:
    area = area or image.rect()
    return {
        QColor(image.pixel(x, y)).name().upper()
        for x in range(area.left(), area.right() + 1)
        for y in range(area.top(), area.bottom() + 1)
    }


def rows(image: QImage, x: int, colour: str) -> list[int]:
    """The rows in which a column of pixels has a colour."""
    return [y for y in range(image.height()) if QColor(image.pixel(x, y)).name().upper() == colour]


@pytest.mark.parametrize("ratio", [1, 2, 3])
@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("fate", ["accepted", "resampled", "bonus", "rejected"])
def test_edges_are_crisp(fate: str, palette: Palette, ratio: int, style: TextStyle) -> None:
    """Only the colours of ground, tint and line occur: no half-covered pixel."""
    found = names(painted(fate, style, palette, ratio))
    assert found == {palette.ground, palette.tint(fate), palette.fate(fate)}


def test_plain_has_nothing(style: TextStyle) -> None:
    assert names(painted("plain", style, LIGHT)) == {LIGHT.ground}


def test_every_fate_has_a_line_of_its_own(style: TextStyle) -> None:
    """The cue beside colour: fates differ in shape alone."""

    def column(fate: str, x: int = 30) -> list[int]:
        return rows(painted(fate, style, LIGHT), x, LIGHT.fate(fate))

    bottom = BASELINE + style.box_below
    assert column("accepted") == [bottom - 2, bottom - 1]  # solid, two pixels
    assert column("bonus") == [bottom - 2, bottom]  # double
    dotted = painted("resampled", style, LIGHT)
    dots = [bool(rows(dotted, x, LIGHT.fate("resampled"))) for x in range(LEFT, RIGHT - 1)]
    assert any(dots) and not all(dots)
    strike = BASELINE - style.strike
    assert column("rejected") == [strike - 1]  # thin: the token is to be read
    ignored = painted("ignored", style, LIGHT)
    assert LIGHT.ground in names(ignored, QRect(LEFT, strike - 1, RIGHT - LEFT, 2))  # dashed
    dashes = [bool(rows(ignored, x, LIGHT.fate("ignored"))) for x in range(LEFT, RIGHT - 1)]
    assert any(dashes) and not all(dashes)


@pytest.mark.parametrize("ratio", [1, 2])
def test_any_edge_between_neighbours_is_one_pixel_wide(ratio: int, style: TextStyle) -> None:
    for tenth in range(10):
        edge = 30 + tenth / 10
        image = QImage(WIDTH * ratio, HEIGHT * ratio, QImage.Format.Format_RGB32)
        image.setDevicePixelRatio(ratio)
        image.fill(QColor(LIGHT.ground))
        shapes = FateShapes(ratio)
        shapes.add("accepted", 10, edge, BASELINE, style)
        shapes.add("accepted", edge, 50, BASELINE, style)
        painter = QPainter(image)
        shapes.paint_tints(painter, LIGHT)
        shapes.paint_cues(painter, LIGHT)
        painter.end()
        inside = range(12 * ratio, 48 * ratio)
        middle = {QColor(image.pixel(x, BASELINE * ratio)).name().upper() for x in inside}
        assert middle == {LIGHT.tint("accepted")}
        line = (BASELINE + style.box_below) * ratio - 1
        gap = [x for x in inside if QColor(image.pixel(x, line)).name().upper() != LIGHT.fate("accepted")]
        assert len(gap) == 1


def test_neighbours_join_and_their_edge_can_be_seen(style: TextStyle) -> None:
    image = QImage(WIDTH, HEIGHT, QImage.Format.Format_RGB32)
    image.fill(QColor(LIGHT.ground))
    shapes = FateShapes(1)
    shapes.add("accepted", 10.2, 29.8, BASELINE, style)
    shapes.add("accepted", 29.8, 50.3, BASELINE, style)
    painter = QPainter(image)
    shapes.paint_tints(painter, LIGHT)
    shapes.paint_cues(painter, LIGHT)
    painter.end()
    middle = [QColor(image.pixel(x, BASELINE)).name().upper() for x in range(11, 49)]
    assert set(middle) == {LIGHT.tint("accepted")}  # no gap
    top = BASELINE - style.box_above
    notch = [x for x in range(11, 49) if QColor(image.pixel(x, top)).name().upper() == LIGHT.ground]
    assert notch == [29, 30]
    line = BASELINE + style.box_below - 1
    gap = [x for x in range(11, 49) if QColor(image.pixel(x, line)).name().upper() != LIGHT.fate("accepted")]
    assert gap == [29]


def shot(view: TranscriptView) -> QImage:
    return view.grab().toImage()


def test_the_drawing_shows_every_fate(view: TranscriptView) -> None:
    view.set_turns([AnswerTurn(AnswerModel(drawing()), "demo 32M")])
    found = names(shot(view))
    for fate in ("accepted", "resampled", "bonus", "rejected", "ignored"):
        assert LIGHT.fate(fate) in found, fate
    for fate in ("accepted", "resampled", "bonus", "rejected"):
        assert LIGHT.tint(fate) in found, fate


def test_without_drafts_nothing_is_struck(view: TranscriptView) -> None:
    view.set_turns([AnswerTurn(AnswerModel(drawing()), "demo 32M")])
    view.set_drafts_shown(False)
    found = names(shot(view))
    assert LIGHT.fate("rejected") not in found and LIGHT.tint("rejected") not in found
    assert LIGHT.fate("resampled") in found


def test_indentation_has_no_tint(view: TranscriptView) -> None:
    rounds = [make_round(0, ["```\n", "    pass"], "\n")]
    view.set_turns([AnswerTurn(AnswerModel(make_trace(rounds)), "m")])
    rect = view.to_viewport(view.stack.token_rects(token(view, "    pass", "accepted"))[0]).toRect()
    indent = QRect(rect.left(), rect.top(), round(rect.width() * 0.4), rect.height())
    assert names(shot(view), indent) == {LIGHT.ground}
    assert LIGHT.tint("accepted") in names(shot(view), rect)


def test_spaces_of_struck_tokens_stay_visible(view: TranscriptView) -> None:
    view.set_turns([AnswerTurn(AnswerModel(make_trace([make_round(0, [], "x", "    ")])), "m")])
    rect = view.to_viewport(view.stack.token_rects(token(view, "    ", "rejected"))[0]).toRect()
    assert rect.width() > 10
    assert LIGHT.fate("rejected") in names(shot(view), rect)


def test_a_newline_has_a_mark_behind_its_line(view: TranscriptView) -> None:
    view.set_turns(
        [
            AnswerTurn(
                AnswerModel(make_trace([make_round(0, ["one"], "\n", "x"), make_round(1, [], "two")])), "m"
            )
        ]
    )
    assert LIGHT.fate("resampled") in names(shot(view))


def test_theme_changes_repaint(view: TranscriptView, theme: Theme) -> None:
    view.set_turns([AnswerTurn(AnswerModel(drawing()), "demo 32M")])
    theme.set_mode("dark")
    found = names(shot(view))
    assert DARK.ground in found and DARK.tint("accepted") in found
    assert LIGHT.ground not in found and LIGHT.tint("accepted") not in found


@pytest.mark.parametrize(
    "text",
    [
        "עברית עם English באמצע \u202e abc\n" * 3,
        "اللغة العربية مع tokens\n" * 3,
        "你好，世界。这是一个很长的句子没有空格" * 20,
        "😀👨‍👩‍👧🏳️‍🌈é\u0301\u200d" * 30,
        "a\x00b\x07c\r\nd\re\x7f\u2028f\u2029g\x85h\ufeff\ufffe",
        "\t\tx = 1\t# y\n" * 5,
        "x" * 5000,
        "   \n \n\n   ",
        "```\n" + "long_name(" * 100 + "\n```",
    ],
)
def test_any_text_is_shown_without_complaint(view: TranscriptView, text: str) -> None:
    trace = simulate(text, seed=2, rate=0.6)
    for rendered in (False, True):
        view.set_rendered(rendered)
        view.set_turns([UserTurn(text), AnswerTurn(AnswerModel(trace), "m")])
        for width in (220, 700):
            view.resize(width, 400)
            shot(view)
            view.verticalScrollBar().setValue(0)
            shot(view)
    assert view.text_of(turn(view, "a")) == trace.text
    view.set_rendered(False)
    view.select_all()
    assert view.selection.text() == f"{text}\n\n{trace.text}"


def test_control_characters_get_a_picture_and_keep_their_place() -> None:
    builder = ParagraphBuilder()
    builder.add([Span("a\x00\rb\tc", "plain", 0, 0)])
    runs, text = runs_of(builder.paragraphs[0], drafts_shown=True)
    assert text == "a\u2400\u200bb\tc"
    assert runs[0].end == len(text)


def test_scrolling_paints_only_what_is_uncovered(view: TranscriptView, qtbot: QtBot) -> None:
    class Watch(QObject):
        painted = 0

        @override
        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if isinstance(event, QPaintEvent):
                self.painted += sum(r.width() * r.height() for r in event.region())  # type: ignore[attr-defined]
            return False

    view.set_turns([AnswerTurn(AnswerModel(simulate("some words\n" * 200)), "m")])
    view.clearFocus()  # the ring around a focused text does not move with it
    bar = view.verticalScrollBar()
    watch = Watch()
    view.viewport().installEventFilter(watch)
    bar.setValue(bar.maximum() // 2)  # the button to the end covers the text now
    qtbot.waitUntil(lambda: watch.painted > 0)
    QApplication.processEvents()
    watch.painted = 0
    bar.setValue(bar.value() + 60)
    qtbot.waitUntil(lambda: watch.painted > 0)
    QApplication.processEvents()
    whole = view.viewport().width() * view.viewport().height()
    assert watch.painted < whole / 3


def test_a_text_that_the_keyboard_reached_has_a_ring_that_stays(view: TranscriptView, qtbot: QtBot) -> None:
    view.set_turns([AnswerTurn(AnswerModel(simulate("some words\n" * 200)), "m")])

    def edge() -> set[str]:
        picture = view.screen().grabWindow(view.winId()).toImage()
        return {picture.pixelColor(1, y).name() for y in range(40, 500)}

    ground = QColor(view.stack.setting.styles.palette.ground).name()
    view.clearFocus()
    qtbot.waitUntil(lambda: edge() == {ground})
    view.setFocus(Qt.FocusReason.TabFocusReason)
    qtbot.waitUntil(lambda: len(edge()) == 1 and ground not in edge())
    view.verticalScrollBar().setValue(view.verticalScrollBar().maximum() // 2)
    qtbot.waitUntil(lambda: len(edge()) == 1 and ground not in edge())


def test_screen_shows_what_painting_all_of_it_would(view: TranscriptView, qtbot: QtBot) -> None:
    """Scrolling and arriving rounds move painted pixels; none may be left behind."""

    def screen() -> QImage:
        return view.screen().grabWindow(view.winId()).toImage()

    trace = simulate((Path(__file__).read_text()[:3000] + "\n\nprose text\n") * 2, seed=5)
    view.set_turns([UserTurn("go"), AnswerTurn(AnswerModel(drawing()), "m")])
    view.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    bar = view.verticalScrollBar()
    steps = [0, 0, 0, 0, -60, 0, 35, -200, 0, 0, 400, 0, 0, -1000, 90, 0, 2000, 0, 0, 0]
    shown = 0
    for index, step in enumerate(steps):
        if step:
            bar.setValue(bar.value() + step)
        else:
            add(view, trace.rounds[shown : shown + 6])
            shown += 6
        # The label counts rounds ten times a second.
        qtbot.waitUntil(lambda shown=shown: f"{shown} rounds" in view.stack.items[-1].label)  # type: ignore[misc]
        QApplication.processEvents()
        moved = screen()
        view.viewport().update()
        QApplication.processEvents()
        assert moved == screen(), f"step {index}"


@pytest.mark.parametrize("width", range(90, 700, 25))
def test_nothing_breaks_away_from_its_word(view: TranscriptView, width: int) -> None:
    """Neither a full stop after struck drafts nor a control token, in which Qt would break lines."""
    rounds = [
        make_round(0, ["All", " of", " them", " are", " kept"], ".", " and", [" then", " sorted"]),
        make_round(1, [" None", " is", " lost", " here"], "!", " or", [" two"]),
        make_round(2, [], "", label="<|im_end|>"),
    ]
    spans = spans_of(make_trace(rounds))
    paragraph = Paragraph(Kind.PROSE)
    for span in spans:
        paragraph.add(span)
    layout = ParagraphLayout(paragraph, dataclasses.replace(view.stack.setting, width=width))
    by_text = {span.text: layout.token_rects(span) for span in spans}
    for word, behind in ((" kept", "."), (" here", "!"), ("!", "<|im_end|>")):
        if width > 200:  # room for the word and the drafts behind it
            assert len(by_text[behind]) == 1, f"{behind} is in one piece"
            assert by_text[behind][0].top() == by_text[word][-1].top()
    starts = [line.first for line in layout.lines[1:]]
    if width > 200:
        shown = layout.layout.text()
        assert all(shown[start - 1] == " " for start in starts), "and no word is broken"
    assert starts == [line.line.textStart() + line.line.textLength() for line in layout.lines[:-1]]


@pytest.mark.parametrize("x", range(200, 400, 9))
def test_a_continued_line_breaks_between_words_too(view: TranscriptView, x: int) -> None:
    paragraph = Paragraph(Kind.PROSE)
    for place, text in enumerate([" remarkable", " words", " follow", " here", " and", " there"]):
        paragraph.add(Span(text, "accepted", 0, place))
    setting = dataclasses.replace(view.stack.setting, width=400)
    layout = ParagraphLayout(paragraph, setting, QPointF(x, -20))
    assert all(paragraph.text[line.first - 1] == " " for line in layout.lines[1:])
    boxes = [rect for span in paragraph.spans for rect in layout.token_rects(span)]
    assert len(boxes) == len(paragraph.spans), "each in one piece"


def test_the_frame_of_an_empty_line_is_above_the_next_line(view: TranscriptView) -> None:
    view.set_turns([AnswerTurn(AnswerModel(make_trace([make_round(0, ["a\n", "\n", "b"], ".")])), "m")])
    first, empty, last = sorted(view.stack.round_rects(token(view, "b", "accepted")), key=QRectF.top)
    assert first.bottom() < empty.top() and empty.bottom() < last.top()
