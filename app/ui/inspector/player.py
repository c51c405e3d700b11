"""Plays an answer: its cursor follows a clock, or its engine follows the viewer; a round in slow motion."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

from PySide6.QtCore import QElapsedTimer, QObject, QRectF, QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.engine.fates import STRUCK, Verdict
from app.engine.loop.pace import PAUSED, TRUE_SPEED
from app.engine.types import Round
from app.ui.state.answer import AnswerModel
from app.ui.state.engine_session import EngineSession
from app.ui.theme import Theme
from app.ui.transcript.text.facts import visible

_FALL = 1 / 3  # of the time behind the draft: the part at its end in which verdicts fall
_PADDING = 8
_MARGIN = 24.0
_GAP = 6


@dataclass(frozen=True, slots=True)
class RoundPhase:
    """How far a round is: its drafted tokens so far, and how many fates have been told. The last fate is that
    of the target's own token."""

    round: Round
    drafted: int
    told: int

    @classmethod
    def at(cls, round: Round, seconds: float) -> RoundPhase:
        """The phase so many seconds into the round. Tokens share the time of the draft; verdicts, which come
        at once, share the end of the target's pass, so that they can be seen."""
        count, draft = len(round.drafted), round.draft_seconds
        drafted = count if seconds >= draft else int(count * seconds / draft)
        fall = (round.seconds - draft) * _FALL
        share = (seconds - (round.seconds - fall)) / fall if fall > 0 else float(seconds >= round.seconds)
        whole = cls.whole(round).told
        return cls(round, drafted, min(max(int(share * (whole + 1)), 0), whole))

    @classmethod
    def whole(cls, round: Round) -> RoundPhase:
        """The phase at the end of the round; an answer that ended within a draft has no token behind it."""
        count = len(round.drafted)
        return cls(round, count, count + (len(round.emitted) > round.accepted))

    @property
    def reached(self) -> RoundPhase:
        """The last state that is whole: nothing yet, the draft, or the round with all its verdicts."""
        whole = self.whole(self.round)
        if self.told:
            return whole
        return replace(whole, drafted=self.drafted if self.drafted == whole.drafted else 0, told=0)

    @property
    def tokens(self) -> list[tuple[str, str]]:
        """The tokens so far: text, and fate, or "" before it is told."""
        tokens = [
            (visible(token.piece, token.label), token.verdict.value if at < self.told else "")
            for at, token in enumerate(self.round.drafted[: self.drafted])
        ]
        if self.told > len(self.round.drafted):
            own = self.round.emitted[self.round.accepted]
            tokens.append((visible(own.piece, own.label), own.origin.value))
        return tokens


class SlowMotion(QWidget):
    """Paints the phase of a round as tokens, in as many rows as the whole round needs."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.phase: RoundPhase | None = None
        self.setAccessibleName("Round in slow motion")
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        theme.changed.connect(self._restyle)
        self._restyle()
        self.hide()

    def show_phase(self, phase: RoundPhase | None) -> None:
        """Paint a phase; None hides the row."""
        if phase is not None and self._theme.less_motion:
            phase = phase.reached
        if phase != self.phase:
            before, self.phase = self.phase, phase
            if phase is not None and (before is None or before.round is not phase.round):
                self.updateGeometry()
            self.update()
        self.setVisible(phase is not None)

    def sizeHint(self) -> QSize:
        return QSize(200, self._height(1))

    def heightForWidth(self, width: int) -> int:
        if self.phase is None:
            return self._height(1)
        places = self._places(RoundPhase.whole(self.phase.round), width)
        return self._height(1 + max((row for row, _left, _width in places), default=0))

    def _height(self, rows: int) -> int:
        return round(rows * self._row() - _GAP + 2 * _PADDING)

    def _row(self) -> float:
        return QFontMetricsF(self._theme.mono(0)).height() + 8 + _GAP

    def _places(self, phase: RoundPhase, width: int) -> list[tuple[int, float, float]]:
        """Row, left edge and width of each token."""
        metrics = QFontMetricsF(self._theme.mono(0))
        places = []
        row, left = 0, _MARGIN
        for text, _fate in phase.tokens:
            wide = metrics.horizontalAdvance(text) + 2 * _PADDING
            if left > _MARGIN and left + wide > width - _MARGIN:
                row, left = row + 1, _MARGIN
            places.append((row, left, wide))
            left += wide + _GAP
        return places

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.phase is None:
            return
        palette = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(self._theme.mono(0))
        height = self._row()
        places = self._places(self.phase, self.width())
        for (text, fate), (row, left, width) in zip(self.phase.tokens, places, strict=True):
            box = QRectF(left, _PADDING + row * height, width, height - _GAP)
            painter.setPen(QPen(QColor(palette.fate(fate) if fate else palette.line), 1.5))
            painter.setBrush(QColor(palette.tint(fate)) if fate else Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 4, 4)
            painter.setPen(QColor(palette.text if fate else palette.secondary))
            painter.drawText(box, Qt.AlignmentFlag.AlignCenter, text)
            if fate in STRUCK:
                style = Qt.PenStyle.SolidLine if fate == Verdict.REJECTED else Qt.PenStyle.DashLine
                painter.setPen(QPen(QColor(palette.fate(fate)), 1.5, style))
                middle = box.center().y()
                painter.drawLine(round(box.left() + 4), round(middle), round(box.right() - 4), round(middle))

    @Slot()
    def _restyle(self) -> None:
        self.updateGeometry()
        self.update()


FRAME_MILLISECONDS = 16


class Player(QObject):
    """Steps and plays an answer at a speed relative to the recorded one.

    A recorded round is shown when it had ended. Behind the last round of a live answer of the chat, steps and
    speeds up to 1 are the engine's own. Below 1 the clock shows each of its rounds while the engine waits
    with the next one, so that a live round is seen in slow motion too.
    """

    changed = Signal()  # whether it plays, or its speed
    phased = Signal(object)  # the RoundPhase of the round that is coming, in slow motion; None: none is

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self.answer = AnswerModel()
        self.speed = TRUE_SPEED
        self.playing = False
        self._session = session
        self._paced = False  # the answer is the one that the engine writes
        self._ends: list[float] = []  # of the rounds, in recorded seconds
        self._from = 0.0  # recorded seconds at the last start of the clock
        self._until: int | None = None  # the cursor at which the clock stops; None: behind the last round
        self._trails = False  # the clock shows what the engine has just made, and nobody went back
        self._clock = QElapsedTimer()
        self._timer = QTimer(self, interval=FRAME_MILLISECONDS)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)

    def set_answer(self, answer: AnswerModel, paced: bool) -> None:
        """Play another answer; `paced` says whether the chat's engine would write it."""
        self._timer.stop()
        self._catch_up()
        if self._paced:
            self.answer.ended.disconnect(self._over)
            self.answer.grew.disconnect(self._arrived)
            self.answer.paced = False
        self.answer, self._paced, self._ends = answer, paced, []
        if paced:
            answer.ended.connect(self._over)
            answer.grew.connect(self._arrived)
        self._lag()
        self.playing = self.writing and not self._session.held
        self.phased.emit(None)
        self.changed.emit()

    @property
    def writing(self) -> bool:
        """Whether the chat's engine is writing the answer."""
        return self._paced and self.answer.live

    @property
    def held(self) -> bool:
        """Whether the engine waits for a step before its next round."""
        return self.writing and not self.playing

    @property
    def _at_end(self) -> bool:
        return self.answer.cursor == len(self.answer.rounds)

    # ------------------------------------------------------------------ by hand

    @Slot()
    def first(self) -> None:
        """Go before the first round."""
        self.seek(0)

    @Slot()
    def back(self) -> None:
        """Take the last round that is shown back."""
        self.seek(self.answer.cursor - 1)

    @Slot()
    def step(self) -> None:
        """Show the next round, in slow motion below true speed; behind the last one the engine makes one
        more. A round that is just coming is shown whole instead."""
        wanted, coming = self.answer.cursor + 1, self._timer.isActive()
        self.pause()
        if coming:
            self.seek(max(wanted, self.answer.cursor))
        elif not self._at_end:
            self._show_one()
        elif self.writing:
            self.answer.pin(None)
            self._session.set_pace(PAUSED, steps=1)

    def _show_one(self) -> None:
        """Show the round behind the cursor."""
        if self.speed < TRUE_SPEED:
            self.answer.pin(None)
            self._until = self.answer.cursor + 1
            self._start_clock()
        else:
            self.seek(self.answer.cursor + 1)

    def seek(self, cursor: int) -> None:
        """Show the first `cursor` rounds, and play on from there if it plays."""
        self._trails = False
        self.answer.pin(None)
        self.answer.move(cursor)
        if self._timer.isActive():
            self._start_clock()

    # ------------------------------------------------------------------ by the clock

    @Slot()
    def toggle(self) -> None:
        """Play or pause."""
        if self.playing:
            self.pause()
        else:
            self.play()

    def play(self) -> None:
        """Play from the cursor, from the start where a finished answer is shown whole."""
        if not self.answer.rounds and not self.writing:
            return
        self.answer.pin(None)
        self.playing = True
        if self.writing:
            self._session.set_pace(min(self.speed, TRUE_SPEED))
        elif self._at_end:
            self.answer.move(0)
        self._until = None
        if not self._at_end:
            self._start_clock()
        self.changed.emit()

    def pause(self) -> None:
        """Stop where it is; a round that the engine has just made is shown whole."""
        self._timer.stop()
        if self.writing:
            self._session.set_pace(PAUSED)
        self.playing = False
        self._catch_up()
        self.phased.emit(None)
        self.changed.emit()

    def set_speed(self, speed: float) -> None:
        """Play at another speed from now on."""
        if self._timer.isActive():
            self._from = self._now()
            self._clock.restart()
        self.speed = speed
        self._lag()
        if self.writing and self.playing:
            self._session.set_pace(min(speed, TRUE_SPEED))
        self.changed.emit()

    def _lag(self) -> None:
        """Let the clock show new rounds where the engine is slowed down, and the engine where it is not."""
        self.answer.paced = self.writing and self.speed < TRUE_SPEED

    def _catch_up(self) -> None:
        if self._trails:
            self._trails = False
            self.answer.move(len(self.answer.rounds))

    def _start_clock(self) -> None:
        """Begin at the moment at which the last shown round had ended."""
        self._note_ends()
        self._from = self._ends[self.answer.cursor - 1] if self.answer.cursor else 0.0
        self._clock.restart()
        self._timer.start()

    def _note_ends(self) -> None:
        rounds = self.answer.rounds[len(self._ends) :]
        self._ends += [round.offset + round.seconds for round in rounds]

    def _now(self) -> float:
        return self._from + self._clock.elapsed() / 1000 * self.speed

    @Slot()
    def _tick(self) -> None:
        self._note_ends()
        shown = max(bisect_right(self._ends, self._now()), self.answer.cursor)
        self.answer.move(shown if self._until is None else min(shown, self._until))
        if self._at_end or self.answer.cursor == self._until:
            self._timer.stop()
            if not self.writing:  # else the engine plays on
                self.playing = False
                self.changed.emit()
        self._show_phase()

    def _show_phase(self) -> None:
        """Show how far the coming round is, where it is slowed down."""
        slow = self._timer.isActive() and self.speed < TRUE_SPEED
        coming = self.answer.rounds[self.answer.cursor] if slow else None
        self.phased.emit(RoundPhase.at(coming, self._now() - coming.offset) if coming is not None else None)

    @Slot(int, int)
    def _arrived(self, first: int, _last: int) -> None:
        """Show rounds that the engine has just made in slow motion; at true speed they are shown already."""
        if self.answer.paced and self.answer.cursor == first and not self._timer.isActive():
            self._trails = True
            self._until = None
            self._start_clock()

    @Slot()
    def _over(self) -> None:
        """The engine has ended the answer."""
        self._lag()
        self.playing = self._timer.isActive()
        if not self.playing:
            self._catch_up()
        self.changed.emit()
