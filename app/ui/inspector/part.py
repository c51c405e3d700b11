"""The common base of the Inspector's parts, which follow an answer while visible. Also the head of the place:
the shown answer and its settings."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QTimer, SignalInstance
from PySide6.QtGui import QPaintEvent, QShowEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.engine.types import FinishReason, TraceHeader
from app.ui.state.answer import AnswerModel, reconnect
from app.ui.transcript.text.facts import CAPTIONS
from app.ui.widgets import kit
from app.ui.widgets.background import Throttle
from app.ui.widgets.labels import ElidedLabel, as_text
from app.ui.widgets.words import pair_words


class InspectorPart(QWidget):
    """Follows an answer: `draw` is called when its rounds, its cursor or the inspected round changed.

    While an answer grows, that is at most ten times a second; never while the part is hidden or out of sight.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answer = AnswerModel()  # before the first answer
        self._stale = True  # something changed since `draw`
        self._soon = Throttle(self._redraw, self)
        self._scrolled_in = QTimer(self, singleShot=True, interval=0)  # nothing changes while it is painted
        self._scrolled_in.timeout.connect(self._redraw)
        reconnect(self._slots, None, self.answer)

    def draw(self) -> None:
        """Show the answer as it is now."""
        raise NotImplementedError

    def set_answer(self, answer: AnswerModel | None) -> None:
        """Show a different answer; None shows none."""
        before, self.answer = self.answer, answer if answer is not None else AnswerModel()
        reconnect(self._slots, before, self.answer)
        self._redraw()

    @property
    def in_sight(self) -> bool:
        """Whether any of it is on the screen. A part that nothing was drawn in yet may have no height."""
        return self.isVisible() and (self.size().isEmpty() or not self.visibleRegion().isEmpty())

    def _slots(self, answer: AnswerModel) -> tuple[tuple[SignalInstance, Callable[[], None]], ...]:
        return (
            (answer.began, self._redraw), (answer.grew, self._grow), (answer.ended, self._redraw),
            (answer.moved, self._redraw), (answer.pinned, self._redraw),
        )  # fmt: skip

    def _grow(self) -> None:
        self._stale = True
        if self.in_sight:
            self._soon.request()

    def _redraw(self) -> None:
        self._stale = True
        if self.in_sight:
            self._stale = False
            self.draw()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._stale:
            self._redraw()

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._stale:  # it was scrolled into sight
            self._scrolled_in.start()


EMPTY = "No answer to inspect yet"
EMPTY_HINT = "Ask something in Chat. You can take apart every round of the answer here, live or later."


def answer_facts(answer: AnswerModel, *, held: bool = False) -> str:
    """The answer's progress and settings, in one line. `held`: the engine waits for a step."""
    facts = ["paused" if held and answer.live else _state(answer)]
    if answer.header is not None:
        facts += _made_with(answer.header)
    return " · ".join(filter(None, facts))


def missing_rounds(
    answer: AnswerModel | None, *, held: bool = False, playing: bool = False, coming: bool = False
) -> tuple[str, str]:
    """Why no round can be shown, and what helps; two empty texts if there are rounds, or soon will be.
    `held`: the engine waits for a step; `playing`: a recorded answer is replayed; `coming`: its first round
    is in slow motion."""
    if answer is None:
        return EMPTY, EMPTY_HINT
    if answer.cursor:
        return "", ""
    if coming:
        return "The first round in slow motion", "Follow it below. It appears here after its verdict."
    if answer.live and held and answer.header is not None:
        return (
            "Paused before the first round",
            "Step runs one round, in slow motion one part of it; Play runs to the end.",
        )
    if answer.live:
        return answer.progress or "Waiting for the first round", ""
    if answer.rounds and playing:
        return "", ""  # words for the length of a round would flash
    if answer.rounds:
        return "Before the first round", "Step forward to see it."
    reason = (
        " ".join(filter(None, (answer.note.message, answer.note.hint))) if answer.note is not None else ""
    )
    if answer.totals is not None:
        reason = answer.totals.error or reason
    if answer.trace is None:
        return "The tokens of this answer are not known", reason
    ended = "It broke off before" if answer.totals is None else "It ended before"
    return "This answer has no rounds", reason or f"{ended} the first round."


def _state(answer: AnswerModel) -> str:
    if answer.live:
        return "running"
    if answer.trace is None:
        return ""
    if answer.totals is None:
        return "recorded, incomplete"
    failed = answer.totals.finish_reason is FinishReason.FAILED
    return f"recorded, {CAPTIONS[FinishReason.FAILED].lower()}" if failed else "recorded"


def _made_with(header: TraceHeader) -> list[str]:
    return [
        pair_words(header.pair),
        header.strategy,
        f"{header.verification} verification" if header.strategy != "none" else "",
        f"temperature {header.sampling.temperature:g}",
        f"seed {header.seed}",
        "warm" if header.warm else "",
    ]


class InspectorHead(QWidget):
    """Names the answer; views add their buttons to `buttons`."""

    def __init__(self) -> None:
        super().__init__()
        self.title = ElidedLabel(text="Inspector", role="strong")
        self.title.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.facts = ElidedLabel(role="secondary")
        self.buttons = kit.row(spacing=8)
        kit.row(self.title, (self.facts, 1), self.buttons, margins=(24, 12, 24, 12), spacing=12, on=self)

    def show_answer(self, answer: AnswerModel | None, name: str, *, held: bool = False) -> None:
        """Describe an answer; None describes nothing. `held`: the engine waits for a step."""
        self.title.set_text(name or "Inspector")
        facts = answer_facts(answer, held=held) if answer is not None else ""
        self.facts.set_text(facts)
        self.facts.setToolTip(as_text(facts))
