"""States of an answer: in the chat, in the Inspector, and in slow motion."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QComboBox, QScrollArea, QWidget

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, REAL_DRAFT, REAL_TARGET
from app.demo import FIRST_PROMPT
from app.engine.record.trace import write_trace
from app.engine.types import ModelOptions, Sampling
from app.ui.inspector.place import InspectorPlace
from app.ui.state.engine_session import Activity
from app.ui.transcript.layout.stack import Token
from app.ui.transcript.surface import Surface
from app.ui.widgets.icons import LATE_MILLISECONDS
from app.ui.widgets.segmented import Segmented
from tests.benchmarks.ui.window import turn
from tests.files.tiny import Tiny, write_tiny
from tests.screenshots.variants import Scene, StateVisitor
from tests.ui.named import all_named, name_of, named

Kind = TypeVar("Kind", bound=QWidget)
Key = Qt.Key
GREEDY = Sampling(temperature=0)
DRAWN = Sampling(temperature=1.0, min_p=0.2, seed=8)
STORY = "Tell me a short story about a fox."
TRY, COMPARE = "Demo prompts", "Compare versions"


# ----------------------------------------------------------------------------------------- what a user does


def part(visitor: StateVisitor, kind: type[Kind]) -> Kind:
    """The part of a kind that is on the screen."""
    return next(each for each in visitor.window.findChildren(kind) if each.isVisible())


def press(visitor: StateVisitor, *keys: Qt.Key, on: QWidget | None = None) -> None:
    """Press keys where the focus is."""
    for key in keys:
        QTest.keyClick(on or visitor.window.focusWidget() or visitor.window, key)
        visitor.calm()


def begins(visitor: StateVisitor, words: str) -> str:
    """The whole name of the button whose name begins so."""
    buttons = visitor.window.findChildren(QAbstractButton)
    return next(name_of(each) for each in buttons if each.isVisible() and name_of(each).startswith(words))


def load(visitor: StateVisitor, target: str, draft: str, strategy: str) -> None:
    """Load other models, and draft with this strategy."""
    window = visitor.window
    window.settings.change(target=ModelOptions(target), draft=ModelOptions(draft), strategy=strategy)
    window.load_pair()
    turn(lambda: window.session.activity is Activity.READY)


def ask(visitor: StateVisitor, text: str, **settings: object) -> None:
    """Ask in a new chat with these settings, and wait for the answer."""
    new_chat(visitor, text, **settings)
    visitor.work("Send")


def new_chat(visitor: StateVisitor, text: str = "", **settings: object) -> None:
    """Start a chat with these settings, and write a question."""
    visitor.window.go("chat")
    visitor.click("New chat")
    visitor.window.settings.change(**settings)
    visitor.window.page.prompt.set_text(text)


def tokens(view: Surface, fate: str) -> Iterator[Token]:
    """The tokens of a fate in the last answer."""
    index = len(view.stack) - 1
    answer = view.stack.answer(index)
    assert answer is not None
    return (Token(index, span) for span in answer.spans if span.fate == fate)


def point_at(visitor: StateVisitor, fate: str) -> QPoint:
    """Point at the first token of a fate; returns where it is in the text."""
    view = part(visitor, Surface)
    token = next(tokens(view, fate))
    view.show_token(token)
    return view.to_viewport(view.stack.token_rects(token)[0]).center().toPoint()


def choose(visitor: StateVisitor, fate: str) -> None:
    """Click the first token of a fate, which pins its round, or in the Inspector shows its card."""
    view = part(visitor, Surface)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=point_at(visitor, fate))
    visitor.calm()


def inspect(visitor: StateVisitor, fate: str) -> None:
    """Open the round of the first token of a fate in the Inspector, at its card."""
    choose(visitor, fate)
    visitor.window.go("inspector")
    visitor.calm()


def draw(visitor: StateVisitor) -> None:
    """Draw a thousand times at the first card that offers it."""
    visitor.click("Draw 1,000 times")
    draws = all_named(visitor.window, "Draw 1,000 times", QAbstractButton)
    turn(lambda: any(each.text() == "Draw again" for each in draws))


# ----------------------------------------------------------------------------------------------- the chat


def chat_empty(visitor: StateVisitor) -> None:
    """As after the first start."""
    visitor.window.go("chat")
    visitor.window.page.prompt.set_text(FIRST_PROMPT)
    visitor.variants("chat-empty")
    visitor.window.page.prompt.set_text("")
    visitor.click(begins(visitor, TRY))
    visitor.variants("try-small-pair")
    models = next(each for each in visitor.window.findChildren(Segmented) if name_of(each)[:7] == "Prompts")
    press(visitor, Key.Key_Left, on=models)
    visitor.variants("try-smollm2")
    press(visitor, Key.Key_Escape)


def chat(visitor: StateVisitor) -> None:
    """An answer with several fates, and what is said of it."""
    new_chat(visitor)
    visitor.work("One name, everywhere")
    visitor.variants("chat-answer")
    for fate in ("accepted", "rejected", "resampled"):
        visitor.variants(f"chat-hover-{fate}", again=partial(point_at, visitor, fate))
    choose(visitor, "rejected")
    visitor.variants("chat-pinned")
    press(visitor, Key.Key_Escape)
    visitor.work("Measure baseline")
    visitor.variants("chat-measured")
    visitor.click("Audit text")
    turn(lambda: all_named(visitor.window, "Copy page", QAbstractButton) != [])
    visitor.variants("chat-audited")
    press(visitor, Key.Key_Escape)
    visitor.work("Regenerate")
    visitor.variants("chat-versions", again=partial(point_at, visitor, "accepted"))
    visitor.variants("chat-versions-compared", again=lambda: compare(visitor))


def compare(visitor: StateVisitor) -> None:
    """Compare the versions of the answer, whose first line is in view."""
    press(visitor, Key.Key_Escape)
    point_at(visitor, "accepted")
    part(visitor, Surface).hover.clear()
    reopen(visitor, COMPARE)


def reopen(visitor: StateVisitor, name: str) -> None:
    """Open a panel that the last variant left open, where it belongs now."""
    press(visitor, Key.Key_Escape)
    visitor.click(name)
    visitor.calm()


def writing(visitor: StateVisitor) -> None:
    """An answer that is being written, and one that was stopped."""
    load(visitor, REAL_TARGET, REAL_DRAFT, "draft-eagle3:n_max=3")  # slow enough
    new_chat(visitor, "Write a long story about a fox and a lighthouse.", max_tokens=1500)
    session = visitor.window.session

    def again() -> None:
        if session.activity is Activity.GENERATING:
            visitor.work("Stop")
            QTest.qWait(LATE_MILLISECONDS)
        visitor.click("Regenerate" if visitor.window.page.transcript.turns else "Send")
        shown = visitor.window.controller.shown
        turn(lambda: shown.live is not None and shown.answer is not None and len(shown.answer.rounds) > 8)

    visitor.variants("chat-writing", again=again)
    again()
    visitor.work("Stop")
    visitor.variants("chat-stopped")
    load(visitor, BUNDLED_TARGET, BUNDLED_DRAFT, "draft-simple:n_max=4")


# ------------------------------------------------------------------------------------------- the Inspector


def cards(visitor: StateVisitor, name: str, *fates: str) -> None:
    """The first card of each fate."""
    for fate in fates:
        inspect(visitor, fate)
        visitor.variants(f"{name}-{fate}")


def greedy(visitor: StateVisitor) -> None:
    """Cards at temperature 0, what-if, and the shape of the answer."""
    ask(visitor, STORY, strategy="draft-simple:n_max=4", max_tokens=120, sampling=GREEDY)
    cards(visitor, "greedy", "accepted", "rejected", "ignored", "bonus")
    visitor.click("What if…")
    visitor.variants("what-if", again=lambda: reopen(visitor, "What if…"))
    press(visitor, Key.Key_Escape)
    visitor.variants("shape", again=lambda: show_shape(visitor))


def show_shape(visitor: StateVisitor) -> None:
    place = part(visitor, InspectorPlace)
    scroll = named(place, "Round", QScrollArea)
    scroll.ensureWidgetVisible(place.shape, 0, 0)
    visitor.calm()


def sampled(visitor: StateVisitor) -> None:
    """The law, its draws, and its proof; many rounds."""
    ask(visitor, STORY, strategy="draft-simple:n_max=4:sample=1", max_tokens=200, sampling=DRAWN)
    cards(visitor, "law", "accepted", "rejected", "bonus")
    inspect(visitor, "rejected")
    draw(visitor)
    visitor.variants("law-drawn")
    ask(visitor, STORY, strategy="draft-simple:n_max=4", sampling=DRAWN)
    cards(visitor, "best-token", "rejected")


def rules(visitor: StateVisitor) -> None:
    """Other rules of verification, and a strategy that copies."""
    ask(visitor, STORY, strategy="draft-simple:n_max=4:sample=1:verify=block", sampling=DRAWN)
    cards(visitor, "block", "accepted", "rejected")
    ask(visitor, STORY, strategy="draft-simple:n_max=4:verify=match", sampling=DRAWN)
    cards(visitor, "match", "accepted", "rejected")
    ask(visitor, STORY, strategy="none", sampling=DRAWN)
    cards(visitor, "plain", "plain")
    ask(visitor, FIRST_PROMPT, strategy="suffix", sampling=GREEDY)
    cards(visitor, "copied", "accepted")


def heads(visitor: StateVisitor) -> None:
    """An EAGLE-3 head's card, and DFlash's candidates."""
    load(visitor, REAL_TARGET, REAL_DRAFT, "draft-eagle3")
    ask(visitor, FIRST_PROMPT, max_tokens=60)
    cards(visitor, "head", "accepted", "rejected")
    with tempfile.TemporaryDirectory() as folder:
        files = (
            Tiny(name="target", n_ctx=256),
            Tiny(name="block", architecture="dflash", n_layers=1, n_ctx=256, seed=3),
        )
        target, block = (str(write_tiny(Path(folder) / f"{tiny.name}.gguf", tiny)) for tiny in files)
        load(visitor, target, block, "draft-dflash:n_max=4")
        ask(visitor, "abcabc", max_tokens=16)
        visitor.window.go("inspector")
        press(visitor, Key.Key_Home)
        visitor.variants("dflash")
        load(visitor, BUNDLED_TARGET, BUNDLED_DRAFT, "draft-simple:n_max=4")


def slow_motion(visitor: StateVisitor) -> None:
    """An answer that waits, its guess, its check and its verdict; a replay; a trace that was opened."""
    new_chat(visitor, STORY, strategy="draft-simple:n_max=4:sample=1", sampling=DRAWN, max_tokens=60)
    visitor.window.go("inspector")
    visitor.click("Pause next answer")
    visitor.window.go("chat")
    visitor.click("Send")
    turn(lambda: visitor.window.session.held)
    visitor.variants("held-chat")
    visitor.window.go("inspector")
    visitor.variants("held")
    for moment in ("guess", "check", "verdict"):
        step(visitor)
        visitor.variants(f"held-{moment}")
    for _moment in range(4):
        step(visitor)
    visitor.window.go("chat")
    visitor.variants("held-later-chat")
    visitor.work("Stop")
    visitor.window.go("inspector")
    visitor.variants("stopped-inspector")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a story.jsonl"
        answer = visitor.window.controller.shown.answer
        assert answer is not None and answer.trace is not None
        write_trace(file, answer.trace)
        visitor.window.open_trace(file)
        turn(lambda: not visitor.window.opener.opening)
        visitor.variants("recording-inspector")
        visitor.window.go("chat")
        visitor.variants("recording-chat")
        visitor.click("Close recording")


def step(visitor: StateVisitor) -> None:
    visitor.click("One round forward (in slow motion: one step)")
    visitor.calm()


def replay(visitor: StateVisitor) -> None:
    """An answer of many rounds, and its slow motion."""
    strategy = "draft-simple:n_max=4:sample=1"
    new_chat(visitor, "Once upon a time", strategy=strategy, max_tokens=1800, sampling=DRAWN)
    visitor.window.page.prompt.use_completion()
    visitor.work("Send")
    visitor.window.go("inspector")
    visitor.variants("many-rounds")
    visitor.click("To the start")
    speed = named(visitor.window, "Speed of the replay", QComboBox)
    press(visitor, *[Key.Key_Up] * 3, on=speed)
    for moment in ("guess", "check", "verdict"):
        step(visitor)
        visitor.variants(f"replay-{moment}")


SCENES: dict[str, Scene] = {
    scene.__name__: scene
    for scene in (chat_empty, chat, writing, greedy, sampled, rules, heads, slow_motion, replay)
}
