"""Answers shown as Markdown: scrolling, selecting, copying and finding work as with tokens."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtGui import QTextDocument
from pytestqt.qtbot import QtBot

from app.ui.state.answer import AnswerModel
from app.ui.theme import DARK, LIGHT, Theme
from app.ui.transcript import AnswerTurn, TranscriptView, UserTurn
from app.ui.transcript.layout.rendered import SealedDocument
from tests.ui.pixels import colours_of
from tests.ui.traces import simulate
from tests.ui.transcript.places import add, answer, last, point, turn

LEFT = Qt.MouseButton.LeftButton
NONE = Qt.KeyboardModifier.NoModifier
TEXT = """# A title

Some *stressed* words with `code`.

- one
- two

```python
def f(x):
    return "x"
```

The end 😀 of it.
"""


@pytest.fixture
def chat(view: TranscriptView) -> TranscriptView:
    view.set_turns([UserTurn("Say *it*."), AnswerTurn(AnswerModel(simulate(TEXT, rate=0.6)), "m")])
    view.set_rendered(True)
    view.repaint()
    return view


def test_one_block_for_each_piece(chat: TranscriptView) -> None:
    texts = [block.text for block in answer(chat).blocks]
    assert texts == [
        "A title", "Some stressed words with code.", "one\ntwo", 'def f(x):\n    return "x"',
        "The end 😀 of it.",
    ]  # fmt: skip


def test_what_the_user_wrote_stays_as_it_is(chat: TranscriptView) -> None:
    assert chat.stack.items[0].blocks[0].text == "Say *it*."


def test_selecting_and_copying(qtbot: QtBot, chat: TranscriptView) -> None:
    viewport = chat.viewport()
    qtbot.mousePress(viewport, LEFT, NONE, point(chat, "stressed"))
    qtbot.mouseMove(viewport, point(chat, "stressed") + QPoint(400, 0))
    qtbot.mouseMove(viewport, point(chat, "one") + QPoint(700, 0))
    qtbot.mouseRelease(viewport, LEFT, NONE, point(chat, "one") + QPoint(700, 0))
    assert chat.selection.text() == "stressed words with code.\n\none"
    chat.select_all()
    assert chat.selection.text().startswith("Say *it*.\n\nA title\n\nSome stressed")
    chat.copy_turn(turn(chat, "a"))
    assert chat.text_of(turn(chat, "a")) == TEXT  # a whole answer is copied as it was emitted


def test_places_behind_emoji_are_right(qtbot: QtBot, chat: TranscriptView) -> None:
    viewport, start = chat.viewport(), point(chat, "of it")
    qtbot.mousePress(viewport, LEFT, NONE, start)
    qtbot.mouseMove(viewport, start + QPoint(100, 0))
    qtbot.mouseMove(viewport, start + QPoint(200, 0))
    qtbot.mouseRelease(viewport, LEFT, NONE, start + QPoint(200, 0))
    assert chat.selection.text() == "of it."


def test_finding(chat: TranscriptView) -> None:
    assert chat.find("stressed words") == (1, 1)
    assert chat.find("*stressed*") == (0, 0)
    assert chat.find("return") == (1, 1)
    chat.repaint()


def test_the_current_match_is_brought_into_view(view: TranscriptView) -> None:
    view.set_turns([AnswerTurn(AnswerModel(simulate(TEXT * 40 + "\nneedle\n" + TEXT * 40)), "m")])
    view.set_rendered(True)
    assert view.find("needle") == (1, 1)
    match = view.finder.current
    assert match is not None
    rect = view.to_viewport(view.stack.rects(match.first, match.end.offset)[0])
    assert rect.top() >= 0 and rect.bottom() <= view.viewport().height()


def test_switching_keeps_the_place(view: TranscriptView) -> None:
    many = "".join(f"Paragraph {number} of many words.\n\n" for number in range(200))
    view.set_turns([AnswerTurn(AnswerModel(simulate(many)), "m")])
    bar = view.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    view.set_rendered(True)
    assert 0.4 < bar.value() / bar.maximum() < 0.6
    view.set_rendered(False)
    assert 0.4 < bar.value() / bar.maximum() < 0.6


def test_at_the_end_it_stays_at_the_end(chat: TranscriptView) -> None:
    chat.resize(900, 250)
    bar = chat.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    chat.set_rendered(False)
    assert bar.value() == bar.maximum() > 0


def test_a_live_answer_is_rendered_as_it_grows(qtbot: QtBot, view: TranscriptView) -> None:
    view.set_rendered(True)
    trace = simulate(TEXT * 3, rate=0.7)
    view.add_turn(AnswerTurn(AnswerModel(live=True), "m"))
    last(view).begin(trace.header)
    for start in range(0, len(trace.rounds), 5):
        add(view, trace.rounds[start : start + 5])
    assert trace.totals is not None
    qtbot.waitUntil(lambda: len(answer(view).blocks) > 10)
    before = list(answer(view).blocks)
    last(view).end(trace.totals)
    after = answer(view).blocks
    assert [block.text for block in after].count("A title") == 3
    assert before[:8] == after[:8]  # finished blocks are not made again
    view.set_rendered(False)
    assert view.text_of(turn(view, "a")) == trace.totals.text


def test_tokens_cannot_be_pointed_at(qtbot: QtBot, chat: TranscriptView) -> None:
    assert chat.stack.token_at(*chat.to_column(point(chat, "stressed") + QPoint(3, 0))) is None
    qtbot.keyClick(chat, Qt.Key.Key_Right, Qt.KeyboardModifier.AltModifier)
    assert chat.hover.token is None


def test_nothing_is_ever_loaded(monkeypatch: pytest.MonkeyPatch, view: TranscriptView) -> None:
    asked: list[object] = []
    real = SealedDocument.loadResource

    def load(self, kind, name):
        asked.append(name)
        return real(self, kind, name)

    monkeypatch.setattr(SealedDocument, "loadResource", load)
    hostile = (
        "![x](https://example.org/a.png) <img src='file:///etc/hostname'> "
        "[l](https://example.org)\n\n<link rel=stylesheet href=https://example.org/x.css>\n"
    )
    view.set_turns([AnswerTurn(AnswerModel(simulate(hostile)), "m")])
    view.set_rendered(True)
    view.repaint()
    assert asked == []
    document = SealedDocument()
    kind = QTextDocument.ResourceType.ImageResource.value
    assert not real(document, kind, QUrl("file:///etc/hostname"))


def test_colours_follow_the_theme(chat: TranscriptView, theme: Theme) -> None:
    def found() -> set[str]:
        return set(colours_of(chat.grab().toImage()))

    assert LIGHT.panel in found() and LIGHT.tint("accepted") not in found()
    theme.set_mode("dark")
    assert DARK.panel in found() and LIGHT.panel not in found()
