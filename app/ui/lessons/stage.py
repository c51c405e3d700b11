"""The stage: the lessons on a screen of their own, in large type, for an audience."""

from __future__ import annotations

from dataclasses import replace

from PySide6 import QtGui
from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtWidgets import QLabel, QLayout, QWidget

from app.engine.fates import FATES, Origin
from app.engine.types import Round, TraceHeader
from app.ui.inspector.card import Card
from app.ui.inspector.content import OTHERS, CardContent
from app.ui.inspector.contents import before_verdict, cards_of, in_plain_words
from app.ui.inspector.round_time import RoundTime, RoundTimeView
from app.ui.inspector.slow_motion import Moment, RoundPhase, SlowMotion
from app.ui.lessons.course import Course, StepWords
from app.ui.lessons.player import AnswerText
from app.ui.theme import Theme
from app.ui.theme.theme import LargeTheme
from app.ui.transcript.controls import FateSample
from app.ui.transcript.layout.stack import Token
from app.ui.transcript.view import FRAME_EDGE
from app.ui.widgets import kit
from app.ui.widgets.keys import KeyTable
from app.ui.widgets.labels import ElidedLabel

LEAST = 28  # pixels of the smallest letters on a screen 768 pixels high
_HEIGHT = 768
_LINES = 2, 4  # of the answer's text, at least and at most
_SPACING = 2
_SPARE = 14  # pixels, at most, by which parts are further apart if there is room
_FOOT = 0.6  # of the letters of the foot, in those of the stage
_TIME_GAP = 24


class StageText(AnswerText):
    """The answer's text up to the step's round."""

    margin = 2 * FRAME_EDGE

    def follow_step(self) -> None:
        """Show the line in which the step's round ends, and those above it."""
        super().follow_step()
        for _ in range(2):  # the first time may lay lines out, which moves what is below them
            last = self.last_rect
            if last is not None:
                self.scroller.end_at(self.scroller.top + last.bottom())
        self.refresh()

    @property
    def last_rect(self) -> QRectF | None:
        """Where the last token of the step's round is in the viewport; None if none is laid out."""
        return next(reversed(self._rects), None)

    @property
    def lines_of_round(self) -> int:
        """The number of lines that the step's round is on."""
        return len({rect.top() for rect in self._rects})

    @property
    def _rects(self) -> list[QRectF]:
        """Where the tokens of the step's round are in the viewport, as far as they are laid out."""
        at = self.course.answer.inspected
        for turn in self.turns:
            index = self.stack.index_of(turn)
            item = self.stack.answer(index)
            span = item.spans.first_of_round(at, drafts=True) if item is not None and at is not None else None
            if span is not None:
                return [self.to_viewport(rect) for rect in self.stack.round_rects(Token(index, span))]
        return []

    def line_height(self) -> int:
        """The height of the tallest line."""
        return max(style.pitch for style in self.stack.setting.styles.texts.values())


class LessonStage(QWidget):
    """Shows the course's step: the line of the answer, the words, and the card that they are about.

    Right, Space, Enter or Page Down continue, also to the next lesson. Left or Page Up go back; 1, 2 and 3
    answer; D draws a place a thousand times; Esc leaves.
    """

    left = Signal()

    def __init__(self, theme: Theme, course: Course, parent: QWidget | None = None) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self._theme = theme
        self.course = course
        self._large = LargeTheme(theme, self, least=-1.5)  # of cards
        self._prose = LargeTheme(theme, self, least=1)  # of running text
        self.setWindowTitle("Lessons")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.title = ElidedLabel()
        self.text = StageText(self._prose, course)
        self.text.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.text.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.coming = SlowMotion(self._large, margin=0)
        self.coming.setAccessibleName("Draft of the next round")
        self.words = StepWords(self._prose, course, on_stage=True)
        for row in self.words.choices:
            row.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.card = Card(self._large, self, key="D")
        self._contents: list[CardContent] = []  # of the card, from the whole to the least
        self._titles: tuple[str, ...] = ("",)  # of the step, from the whole to the least
        self.time = RoundTimeView(self._large)
        self.foot = StageFoot(LargeTheme(theme, self, least=-1), course)
        for still in (self.card, self.card.draws):
            still.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        side = kit.column(self.words, self.time, kit.Spring(1), spacing=_TIME_GAP)
        body = kit.row((side, 4), (self.card, 5, Qt.AlignmentFlag.AlignTop), spacing=24)
        parts = self.title, self.text, self.coming, (body, 1), self.foot
        self._column = kit.column(*parts, margins=(24, 8, 24, 4), spacing=_SPACING, on=self)
        # Letters follow the height; a window that grew with its letters would never end growing.
        self._column.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        course.moved.connect(self._show)
        theme.changed.connect(self._fit)
        self._show()

    def _show(self) -> None:
        course, lesson, step = self.course, self.course.lesson, self.course.step
        record = lesson.trace.rounds[step.round]
        head = f"{course.at.lesson + 1}  {lesson.title} · {course.at.step + 1} of {len(lesson.steps)}"
        models, _comma, _more = lesson.models.partition(",")
        self._titles = f"{head} · {lesson.models}", f"{head} · {models}", head
        self.coming.show_phase(
            RoundPhase(record, Moment.GUESS, len(record.drafted)) if course.asking else None
        )
        shown = step.card != "none"
        if shown:
            place = step.place
            if course.asking and place is None and record.drafted:
                place = 0  # its own token would tell
            self._contents = staged(record, lesson.trace.header, place)
            if course.asking:
                self._contents = [before_verdict(content) for content in self._contents[:3]]
        self.card.setVisible(shown)
        measured = course.answer.measurement
        time = RoundTime.of_answer(measured) if measured else RoundTime.of(record, course.answer.priced)
        self.time.show_time(time if not shown else None)
        self._fit()

    # ------------------------------------------------------------------ keys

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        if not KEYS.act(self, event):
            super().keyPressEvent(event)

    def closeEvent(self, event: QtGui.QCloseEvent) -> None:
        super().closeEvent(event)
        self.left.emit()

    # ------------------------------------------------------------------ the look

    def showEvent(self, event: QtGui.QShowEvent) -> None:
        """Set all letters again: under a style sheet, widgets of a part that was given a new parent get back
        the letters that they had when they were polished."""
        super().showEvent(event)
        for theme in (self._large, self._prose):
            theme.changed.emit()
        self._fit()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Give the letters their size, and the answer's text its lines."""
        pixels = LEAST * max(self.height() / _HEIGHT, 1.0)
        margins = self._column.contentsMargins()
        for theme in (self._large, self._prose):
            theme.set_pixels(pixels)
        self.foot.theme.set_pixels(pixels * _FOOT)
        self.title.setFont(self._prose.sans(1))
        width = self.width() - margins.left() - margins.right()
        wide = QtGui.QFontMetrics(self.title.font()).horizontalAdvance
        self.title.set_text(next((title for title in self._titles if wide(title) <= width), self._titles[-1]))
        card = (width - 24) * 5 // 9
        line, (least, most) = self.text.line_height(), _LINES
        taken = [self.title.sizeHint().height(), margins.top() + margins.bottom() + 4 * _SPACING]
        if not self.coming.isHidden():
            taken.append(self.coming.heightForWidth(width))
        if not self.time.isHidden():
            taken.append(self.time.height_for(width) + _TIME_GAP)
        foot = self.foot.sizeHint().height()
        room = self.height() - sum(taken) - least * line - foot
        step, asking = self.course.step, self.course.asking
        self.text.resize(width, self.text.height())  # as the layout will, so that its lines are known
        lines = 1 if asking else min(max(self.text.lines_of_round, 1), most)
        for_card = room + (least - lines) * line  # no line of the answer that is without the step's round
        if asking and step.card != "none":  # a picture beside the question, if it has room
            self._show_card(card, for_card)
            beside = self.words.heightForWidth(width - 24 - card)
            self.card.setVisible(max(beside, self.card.height()) <= for_card)
        elif not self.card.isHidden():
            self._show_card(card, for_card)
            if lines > least and self.card.content in self._contents[-2:]:  # rather bars than all lines
                self._show_card(card, room)
        if not self.card.isHidden():
            width -= 24 + card
        for question in (True, False):  # it stays beside its answer, if it has room
            self.words.text.setVisible(question or asking or not step.choices)
            words = self.words.heightForWidth(width)
            if words <= min(room, for_card):
                break
        body = words if self.card.isHidden() else max(words, self.card.height())
        taken.append(body)
        # A long question leaves one line of the answer.
        self.foot.setVisible(sum(taken) + line + foot <= self.height())
        taken.append(foot * self.foot.isVisibleTo(self))
        lines = min(max((self.height() - sum(taken)) // line, 1), most)
        self.text.setFixedHeight(line * lines)
        spare = self.height() - sum(taken) - line * lines  # between the parts, rather than below them
        self._column.setSpacing(_SPACING + min(max(spare // 4, 0), _SPARE))
        self.foot.show_keys(draws=self.card.draws.isVisibleTo(self))
        self.update()

    def _show_card(self, width: int, room: int) -> None:
        """Show as much of the card as has room; what was drawn stays if it has room."""
        card = self.card
        keeps = card.draws.tally is not None and card.content in self._contents
        for content in () if keeps and card.height_for(width) <= room else self._contents:
            self.card.show_content(content)
            if self.card.height_for(width) <= room:
                break
        self.card.setFixedSize(width, self.card.height_for(width))


class StageFoot(QWidget):
    """The fates of tokens, the keys, and how far the lesson is."""

    def __init__(self, theme: LargeTheme, course: Course) -> None:
        super().__init__()
        self.theme = theme
        self._course = course
        self._samples = [FateSample(theme, fate, self) for fate in FATES if fate != Origin.PLAIN]
        self.keys = QLabel()
        kit.row(*self._samples, kit.Spring(1), self.keys, margins=(0, 2, 0, 4), spacing=12, on=self)
        theme.follow(self._restyle)

    def show_keys(self, *, draws: bool) -> None:
        """Name the keys that act now; `draws` says whether there is something to draw."""
        keys = ["1 2 3 answer"] * self._course.asking + ["→ next", "← back"] + ["D draw"] * draws
        self.keys.setText(" · ".join([*keys, "Esc leave"]))
        self.update()

    def _restyle(self) -> None:
        self.keys.setFont(self.theme.sans(-1))
        self.keys.setStyleSheet(f"color: {self.theme.palette.secondary}")

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        """Paint the steps of the lesson as parts of a line, those that were shown dark."""
        palette, steps = self.theme.palette, len(self._course.lesson.steps)
        painter = QtGui.QPainter(self)
        width = self.width() / steps
        for step in range(steps):
            colour = palette.text if step <= self._course.at.step else palette.line
            painter.fillRect(QRectF(step * width, 0, width - 4, 2), QtGui.QColor(colour))
        painter.end()


def staged(round: Round, header: TraceHeader, place: int | None) -> list[CardContent]:
    """The card of a place, or of the target's own token, in letters readable from far: the whole, then with
    fewer tokens, a brief legend and fewer sums."""
    found = []
    for rows in (4, 3, 2):
        cards = cards_of(round, header, rows)
        card = next((card for card in cards if card.own), cards[-1]) if place is None else cards[place]
        found.append(_for_stage(card, own=place is None))
    brief = [replace(card, brief=True) for card in found]
    fewest = [replace(card, sums=card.sums[-1:]) for card in brief]
    return [*found, brief[-1], *fewest, replace(fewest[-1], sums=()), replace(fewest[-1], law=None, bars=())]


def _for_stage(content: CardContent, *, own: bool) -> CardContent:
    """A card without notes and with one of its two tokens."""
    instead = content.instead
    if own and instead is not None:
        content = replace(
            content, title=instead.title, fate=instead.fate, line=instead.line, sums=instead.sums
        )
    bars = tuple(replace(bar, token="others") if bar.token == OTHERS else bar for bar in content.bars)
    return in_plain_words(replace(content, word=content.fate, bars=bars, notes=(), instead=None))


KEYS: KeyTable[LessonStage] = KeyTable(
    ("Space Right PgDown Return Enter", "Stage: next step or lesson", lambda stage: stage.course.next()),
    ("Left PgUp Backspace", "Stage: previous step", lambda stage: stage.course.back()),
    ("1", "Stage: the first answer", lambda stage: stage.course.choose(0)),
    ("2", "Stage: the second answer", lambda stage: stage.course.choose(1)),
    ("3", "Stage: the third answer", lambda stage: stage.course.choose(2)),
    ("D", "Stage: draw 1,000 times", lambda stage: stage.card.draws.start()),
    ("Escape", "Stage: leave", lambda stage: stage.close()),
)
