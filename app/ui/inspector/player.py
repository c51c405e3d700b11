"""Plays an answer: its cursor follows a clock, or its engine follows the viewer."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from PySide6.QtCore import QElapsedTimer, QObject, Qt, QTimer, Signal

from app.ui.inspector.slow_motion import RoundPhase
from app.ui.state.answer import AnswerModel
from app.ui.state.engine_session import EngineSession

FRAME_MILLISECONDS = 16


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast an answer is played."""

    factor: float = 1.0  # relative to the recorded speed
    beat: float = 0.0  # seconds for a token in slow motion; 0: as recorded


TRUE_SPEED = Speed()
SLOW = Speed(beat=0.4)


class Player(QObject):
    """Steps and plays an answer at its recorded speed, faster, or in slow motion.

    As recorded, a round is shown when it had ended. In slow motion its phases follow each other in human
    time, and a step goes to the end of the next moment. After the last round of the chat's live answer, the
    engine makes one. At true speed it does so at once, in slow motion once the last round was seen.
    """

    changed = Signal()  # whether it plays, or its speed
    phased = Signal(object)  # the RoundPhase that is shown in slow motion; None: none is

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self.answer = AnswerModel()
        self.speed = TRUE_SPEED
        self.playing = False
        self.phase: RoundPhase | None = None
        self._session = session
        self._paced = False  # the answer is the one that the engine writes
        self._phases: list[RoundPhase] = []  # of the round that is shown in slow motion: those to come
        self._asked = False  # the engine was asked for a round, to be shown in slow motion
        self._ends: list[float] = []  # of the rounds, in recorded seconds
        self._from = 0.0  # recorded seconds at the last start of the clock
        self._clock = QElapsedTimer()
        self._timer = QTimer(self, interval=FRAME_MILLISECONDS)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)

    def set_answer(self, answer: AnswerModel, paced: bool) -> None:
        """Play a different answer; `paced` says whether the chat's engine would write it. An answer
        that is held before its first round is stepped in slow motion; any other live answer comes at its own
        speed."""
        self._timer.stop()
        self._catch_up()
        if self._paced:
            self.answer.ended.disconnect(self._over)
            self.answer.grew.disconnect(self._arrived)
            self.answer.paced = False
        self.answer, self._paced, self._ends, self._asked = answer, paced, [], False
        if paced:
            answer.ended.connect(self._over)
            answer.grew.connect(self._arrived)
        self.playing = self.writing and not self._session.held
        if self.writing:
            self.speed = TRUE_SPEED if self.playing else self.speed if self.speed.beat else SLOW
        self._lag()
        self._show(None)
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
    def can_step(self) -> bool:
        """Whether there is something to step to."""
        return bool(self._phases) or not self._at_end or self.writing

    @property
    def _at_end(self) -> bool:
        return self.answer.cursor == len(self.answer.rounds)

    # ------------------------------------------------------------------ by hand

    def first(self) -> None:
        """Go before the first round."""
        self.seek(0)

    def back(self) -> None:
        """Undo the round that is coming in slow motion, else the last shown one."""
        self.seek(self.answer.cursor - (not self._phases))

    def step(self) -> None:
        """Show the next round, in slow motion the end of its next moment. After the last one the engine makes
        one more."""
        self.pause()
        self.answer.pin(None)
        if self._phases:
            moment = self._phases[0].moment
            while self._phases and self._phases[0].moment is moment:
                self._next_phase()
        elif self._at_end:
            self._ask()
        elif self.speed.beat:
            self._begin_round()
            self.step()
        else:
            self.seek(self.answer.cursor + 1)

    def seek(self, cursor: int) -> None:
        """Show the first `cursor` rounds, and play on from there if it plays."""
        self._phases = []
        self._show(None)
        self.answer.pin(None)
        self.answer.move(cursor)
        if self._timer.isActive():
            self._start_clock()

    # ------------------------------------------------------------------ by the clock

    def toggle(self) -> None:
        """Play or pause."""
        if self.playing:
            self.pause()
        else:
            self.play()

    def play(self) -> None:
        """Play from the cursor, from the start if a finished answer is shown whole."""
        if not self.answer.rounds and not self.writing:
            return
        self.answer.pin(None)
        self.playing = True
        if not self.writing and not self.can_step:
            self.answer.move(0)
        self._go_on()
        self.changed.emit()

    def _go_on(self) -> None:
        """Play in the way of the speed."""
        if self.writing:
            self._session.set_pace(bool(self.speed.beat), slow=bool(self.speed.beat))
        if self.speed.beat and self._at_end and not self._phases:
            self._ask()
        elif not self._at_end:
            self._start_clock()

    def pause(self) -> None:
        """Stop where it is."""
        self._timer.stop()
        if self.writing and self.playing:
            self._session.set_pace(True)
        self.playing = False
        self.changed.emit()

    def set_speed(self, speed: Speed) -> None:
        """Play at a different speed from now on."""
        self._timer.stop()
        self.speed = speed
        if not speed.beat:
            self._catch_up()
            self._show(None)
        self._lag()
        if self.playing:
            self._go_on()
        self.changed.emit()

    def leave(self) -> None:
        """Stop watching: a live answer continues at true speed, unless it waits for a step."""
        if self.writing and self.speed.beat and self.playing:
            self.set_speed(TRUE_SPEED)

    def _lag(self) -> None:
        """Show new rounds, at once or in slow motion."""
        self.answer.paced = self.writing and bool(self.speed.beat)

    def _catch_up(self) -> None:
        """Show the round that is coming whole."""
        if self._phases:
            self._phases = []
            self.answer.move(self.answer.cursor + 1)

    def _ask(self) -> None:
        """Let the engine make one more round."""
        if self.writing and not (self._asked and self.speed.beat):
            self._asked = True
            self._session.set_pace(True, steps=1, slow=self.playing)

    def _start_clock(self) -> None:
        """Start the clock at the end of the last shown round."""
        self._note_ends()
        self._from = self._ends[self.answer.cursor - 1] if self.answer.cursor else 0.0
        self._clock.restart()
        self._timer.start(round(self.speed.beat * 1000) or FRAME_MILLISECONDS)
        if self.speed.beat:
            self._beat()

    def _note_ends(self) -> None:
        rounds = self.answer.rounds[len(self._ends) :]
        self._ends += [round.offset + round.seconds for round in rounds]

    def _now(self) -> float:
        return self._from + self._clock.elapsed() / 1000 * self.speed.factor

    def _tick(self) -> None:
        if self.speed.beat:
            self._beat()
            return
        self._note_ends()
        self.answer.move(max(bisect_right(self._ends, self._now()), self.answer.cursor))
        if self._at_end:
            self._end()

    def _end(self) -> None:
        """All known rounds are shown."""
        self._timer.stop()
        if self.writing:
            if self.speed.beat:
                self._ask()
        else:
            self.playing = False
            self._show(None)
            self.changed.emit()

    # ------------------------------------------------------------------ in slow motion

    def _beat(self) -> None:
        """Show the next phase."""
        if self._phases:
            self._next_phase()
        elif self._at_end:
            self._end()
        else:
            self._begin_round()
            self._next_phase()

    def _begin_round(self) -> None:
        """Prepare the phases of the round after the cursor."""
        self._phases = RoundPhase.all_of(self.answer.rounds[self.answer.cursor])

    def _next_phase(self) -> None:
        phase = self._phases.pop(0)
        self._show(phase)
        if not self._phases:
            self.answer.move(self.answer.cursor + 1)

    def _show(self, phase: RoundPhase | None) -> None:
        self.phase = phase
        self.phased.emit(phase)

    def _arrived(self, first: int, _last: int) -> None:
        """Show a round that the engine has just made in slow motion; at true speed it is shown already."""
        asked, self._asked = self._asked, False
        if self.answer.paced and self.answer.cursor == first and not self._phases:
            if self.playing:
                self._start_clock()
            elif asked:
                self.step()

    def _over(self) -> None:
        """The engine has ended the answer."""
        self._asked = False
        self._lag()
        self.playing = self._timer.isActive()
        self.changed.emit()
