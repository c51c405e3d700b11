"""The player: a step of a lesson beside its round."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QScrollArea, QScrollBar, QVBoxLayout, QWidget

from app.ui.inspector.round_view import RoundView
from app.ui.inspector.slow_motion import Moment, RoundPhase, SlowMotion
from app.ui.lessons.course import Course, StepWords
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.transcript import AnswerTurn, AnswerView
from app.ui.transcript.controls import FateLegend
from app.ui.widgets import kit
from app.ui.widgets.keys import KeyTable
from app.ui.widgets.labels import ElidedLabel, as_text


class AnswerText(AnswerView):
    """Shows the answer of the course up to its step."""

    def __init__(self, theme: Theme, course: Course) -> None:
        super().__init__(theme)
        self.course = course
        self.offers_end = False  # the step's round is shown, which is the last
        self._shown: AnswerModel | None = None
        course.moved.connect(self.follow_step)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.follow_step()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.follow_step()

    def follow_step(self) -> None:
        """Show the text of the step's answer, and frame its round."""
        if not self.isVisible():
            return
        answer = self.course.answer
        if self._shown is not answer:
            self._shown = answer
            self.set_turns([AnswerTurn(answer, "")])
        self.catch_up()
        for turn in self.turns:
            self.frame_round(turn, answer.inspected)
            if self.course.asking:  # the latest round stays in sight, but the question is not about it
                self.frame_round(turn, None)


_WIDE = 820  # pixels at text scale 1: from here on the words are beside the cards, not above them
_LEAST_LINES = 2.5  # of the answer's text that are always in sight
_MARGIN = 4  # pixels below a card that is scrolled into sight
_TEXT_SHARE = 0.24  # of the height, at most, for that text
_SCROLL = QScrollBar.SliderAction


class LessonPlayer(QWidget):
    """Shows the course's step, and moves it by buttons and keys."""

    left = Signal()  # back to the list

    def __init__(self, theme: Theme, course: Course, inspect: Callable[[], None]) -> None:
        """`inspect` opens the round of the step in the Inspector."""
        super().__init__()
        self._theme = theme
        self.course = course
        self.title, self.about = ElidedLabel(role="title"), ElidedLabel(role="secondary")
        self.inspect = kit.button(
            "Inspector", inspect, tip="Open this round in the Inspector, with the timeline and the replay"
        )
        self.text = AnswerText(theme, course)
        self.legend = FateLegend(theme, self.text)
        self.coming = SlowMotion(theme)
        self.coming.setAccessibleName("Draft of the next round")
        self.words = StepWords(theme, course)
        self.round = RoundView(theme, for_learners=True)
        self.back = kit.button("Back", course.back, tip="Previous step (Left)")
        self.next = kit.button("Next", course.next, kind="primary", tip="Next step (Right)")
        self._wide = True
        self._lay_out()
        for widget in (self.text, self._words_area, self._cards, self.next, self.back, *self.words.choices):
            widget.installEventFilter(self)
        self._cards.verticalScrollBar().rangeChanged.connect(self._reveal)  # the cards are laid out
        course.moved.connect(self._show)
        theme.changed.connect(self._fit)
        self._show()

    def _lay_out(self) -> None:
        head = kit.row(
            (self.title, 1), self.inspect, self.back, self.next, margins=(24, 12, 24, 4), spacing=12
        )
        about = kit.row(self.about, margins=(24, 0, 24, 8))
        self._words_area = _scrolled("Words of the step", self.words)
        self._cards = _scrolled("Cards of the round", self.round)
        body = kit.row((self._words_area, 2), (self._cards, 3), margins=(24, 12, 24, 16), spacing=24)
        kit.column(head, about, kit.line(), self.text, self.coming, (body, 1), spacing=0, on=self)

    def _show(self) -> None:
        course, lesson, step = self.course, self.course.lesson, self.course.step
        header = lesson.trace.header
        self.title.set_text(lesson.title)
        place = f"Step {course.at.step + 1} of {len(lesson.steps)}"
        if course.path is not course.every:
            place = f"Tour, {course.path.index(course.at) + 1} of {len(course.path)}"
        question = header.messages[-1].content if header.messages else header.prompt
        manner = f"{header.strategy} · temperature {header.sampling.temperature:g}"
        self.about.set_text(f"{place} · {lesson.models} · {' '.join(question.split())} · {manner}")
        self.about.setToolTip(as_text(question))
        self.legend.set_undrawn(header.sampling.temperature == 0)
        rounds = lesson.trace.rounds
        verdicts = {str(token.verdict) for round in rounds for token in round.drafted}
        self.legend.show_fates(verdicts | {str(token.origin) for round in rounds for token in round.emitted})
        if self.round.answer is not course.answer:
            self.round.set_answer(course.answer)
        record = lesson.trace.rounds[step.round]
        # While the question is open only the draft is there: the cards would tell.
        self.round.asks, self.round.in_whole = step.round if course.asking else None, step.card == "none"
        self.round.draw()
        self.coming.show_phase(
            RoundPhase(record, Moment.GUESS, len(record.drafted)) if course.asking else None
        )
        self.next.setText("Show the answer" if course.asking else "Next")
        self.back.setEnabled(not course.is_first)
        self._fit()
        self._words_area.verticalScrollBar().setValue(0)
        QTimer.singleShot(0, self, self._reveal)  # once the words are laid out

    def _reveal(self) -> None:
        """Scroll to what the step is about: its card; if the cards are below the words, its answer."""
        self._cards.verticalScrollBar().setValue(0)
        course, cards = self.course, self.round.grid.cards
        if not self._wide:
            if course.step.choices and not course.asking:
                self._words_area.ensureWidgetVisible(self.words.why)
        elif cards and not course.asking and course.step.card != "none" and self.round.chain.isHidden():
            # A block is judged by its chain, which is above the cards.
            own = next((card for card in cards if card.content is not None and card.content.own), cards[-1])
            shown = own if course.step.place is None else cards[course.step.place]
            self._cards.ensureWidgetVisible(shown, 0, _MARGIN)

    def scroll_by(self, action: QScrollBar.SliderAction) -> None:
        """Scroll the cards, or if they are below the words both."""
        (self._cards if self._wide else self._words_area).verticalScrollBar().triggerAction(action)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the keys before areas that would scroll with them, and buttons that would pass them on."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return KEYS.act(self, event)
        return super().eventFilter(watched, event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not KEYS.act(self, event):
            super().keyPressEvent(event)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.next.setFocus(Qt.FocusReason.OtherFocusReason)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Put the cards beside the words if there is room, else below; give the text its share of the
        height."""
        wide = self.width() >= _WIDE * self._theme.scale
        if wide != self._wide:
            self._wide = wide
            _put(self.round, self._cards if wide else self._words_area)
        self._cards.setVisible(wide)
        line = QFontMetricsF(self._theme.sans(2)).height() * 1.6
        most = max(_LEAST_LINES * line, self.height() * _TEXT_SHARE)
        legend = self.text.place_legend(self.legend, self.width(), most)
        self.text.setFixedHeight(round(min(max(self.text.stack.height, _LEAST_LINES * line, legend), most)))


def _put(widget: QWidget, area: QScrollArea) -> None:
    """Put a widget below all others in a scroll area."""
    holder = area.widget()
    column = holder.layout() if holder is not None else None
    assert isinstance(column, QVBoxLayout)
    column.insertWidget(column.count() - 1, widget)


def _scrolled(name: str, widget: QWidget) -> QScrollArea:
    """A scroll area with the widget at its top."""
    area = kit.scroll(name, kit.holder(kit.column(widget, kit.Spring(1), spacing=12)))
    area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    return area


KEYS: KeyTable[LessonPlayer] = KeyTable(
    ("Right PgDown", "Next step, or answer the question", lambda player: player.course.next()),
    ("Left PgUp", "Previous step", lambda player: player.course.back()),
    ("1", "The first answer", lambda player: player.course.choose(0)),
    ("2", "The second answer", lambda player: player.course.choose(1)),
    ("3", "The third answer", lambda player: player.course.choose(2)),
    ("Up", "Scroll up", lambda player: player.scroll_by(_SCROLL.SliderSingleStepSub)),
    ("Down", "Scroll down", lambda player: player.scroll_by(_SCROLL.SliderSingleStepAdd)),
    ("Escape", "Back to the list of lessons", lambda player: player.left.emit()),
)
