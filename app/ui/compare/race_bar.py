"""The race: recorded lanes replayed together, each at its true speed; its numbers and its controls."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from PySide6.QtCore import QElapsedTimer, Qt, QTimer, Signal
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QStyle, QStyleOptionComboBox, QStylePainter, QWidget

from app.engine.record.trace import Trace
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.field import QuietCombo, combo
from app.ui.widgets.icons import IconButton


@dataclass(frozen=True, slots=True)
class LaneAt:
    """A lane's progress at one moment of the race."""

    rounds: int  # that are finished: a cursor into its trace
    tokens: int  # emitted
    finished: bool
    place: int | None  # 1 for the first to finish; None while the lane runs
    ahead: float | None
    """Seconds ahead of its baseline (negative: behind) at the lane's last token; None without a baseline, and
    for a baseline itself."""


class RaceLane:
    """One lane's tokens over time."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.times = tuple(round.offset + round.seconds for round in trace.rounds)
        """Seconds from the start of round 0 to the end of each round."""
        self.tokens = tuple(accumulate(len(round.emitted) for round in trace.rounds))
        """Tokens emitted up to the end of each round."""

    @property
    def finish(self) -> float:
        """Seconds at the last token."""
        return self.times[-1] if self.times else 0.0

    def rounds_at(self, seconds: float) -> int:
        return bisect_right(self.times, seconds)

    def seconds_of(self, tokens: int) -> float:
        """Seconds until `tokens` were emitted, a round's tokens together; for more than all, the end."""
        if tokens <= 0 or not self.times:
            return 0.0
        index = bisect_right(self.tokens, tokens - 1)
        return self.times[min(index, len(self.times) - 1)]


class LaneRace:
    """The lanes of one prompt and repeat, started together."""

    def __init__(self, traces: Mapping[int, Trace], baseline_of: Callable[[int], int | None]) -> None:
        """`traces` by lane; `baseline_of` is Experiment's: the lane that a lane is compared with."""
        self.lanes = {lane: RaceLane(trace) for lane, trace in traces.items()}
        self._baseline_of = baseline_of

    @property
    def seconds(self) -> float:
        """Seconds until the last lane finishes."""
        return max((lane.finish for lane in self.lanes.values()), default=0.0)

    @property
    def order(self) -> tuple[int, ...]:
        """The lanes by tokens/s, the fastest first: answers may differ in length."""

        def pace(lane: int) -> float:
            racer = self.lanes[lane]
            return racer.finish / racer.tokens[-1] if racer.tokens else float("inf")

        return tuple(sorted(self.lanes, key=pace))

    def at(self, seconds: float) -> dict[int, LaneAt]:
        """Every lane at one moment, from 0 to `seconds`."""
        finishing = sorted(self.lanes, key=lambda lane: self.lanes[lane].finish)
        places = {lane: place for place, lane in enumerate(finishing, start=1)}
        state = {}
        for lane, racer in self.lanes.items():
            rounds = racer.rounds_at(seconds)
            tokens = racer.tokens[rounds - 1] if rounds else 0
            finished = rounds == len(racer.times)
            baseline = self._baseline_of(lane)
            base = self.lanes.get(baseline) if baseline is not None else None
            ahead = None
            if base is not None and base is not racer:
                ahead = base.seconds_of(tokens) - racer.seconds_of(tokens)
            state[lane] = LaneAt(rounds, tokens, finished, places[lane] if finished else None, ahead)
        return state


STEPS = 2000
FRAME_MILLISECONDS = 33
STILL_MILLISECONDS = 500  # with less motion: the race continues in steps
SPEEDS = {"true speed": 1.0, "4× slower": 4.0, "20× slower": 20.0}


class CutCombo(QuietCombo):
    """A combo box that elides a text that does not fit."""

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        option = QStyleOptionComboBox()
        self.initStyleOption(option)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        parts = QStyle.SubControl
        field = self.style().subControlRect(
            QStyle.ComplexControl.CC_ComboBox, option, parts.SC_ComboBoxEditField, self
        )
        elide = Qt.TextElideMode.ElideRight
        option.currentText = self.fontMetrics().elidedText(self.currentText(), elide, field.width() - 8)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)


_ROOM = 700  # pixels at text scale 1: in a narrower bar the choices are below the clock


class RaceBar(QWidget):
    """A clock over the `seconds` of a race; `moved` reports its position at most 30 times a second,
    with less motion twice."""

    moved = Signal(float)
    chosen = Signal(int, int)
    """The repeat and the prompt that the user chose."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._seconds = 0.0
        self.at = 0.0  # the shown moment, in seconds from the start
        self._began = 0.0
        self._clock = QElapsedTimer()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.timeout.connect(self._tick)
        self.play = IconButton(theme, "demos", "Race: replay all lanes together at their true speed")
        self.play.clicked.connect(self._toggle)
        self._words = kit.label("Race at", "secondary")
        tip = "True speed is the recorded pace; choose a slower one to see details"
        self.speed = combo("Speed of the race", SPEEDS, self._speed_chosen, tip)
        self.slider = kit.slider("Moment of the race", 0, STEPS)
        self.slider.setSingleStep(STEPS // 100)
        self.slider.valueChanged.connect(self._seek)
        self.clock = kit.label("", "mono")
        self.prompt = CutCombo()
        self.prompt.setAccessibleName("Prompt that the lanes show")
        self.prompt.setToolTip("The prompt that the lanes show")
        self.prompt.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self.prompt.setMinimumContentsLength(12)
        self.prompt.activated.connect(self._choose)
        self.repeat = combo("Repeat that the lanes show", act=self._choose)
        parts = self.play, self._words, self.speed, (self.slider, 3), self.clock, 8
        row = kit.row(*parts, margins=(24, 4, 24, 4), spacing=8)
        self._lower = kit.row(margins=(24, 0, 24, 4), spacing=8)
        kit.column(row, self._lower, spacing=0, on=self)
        self._row = row
        self._place_choices(below=False)
        theme.follow(self._restyle)
        self.set_seconds(0.0)

    def _place_choices(self, *, below: bool) -> None:
        """Put the prompt and the repeat beside the clock, or below it."""
        to = self._lower if below else self._row
        if to.indexOf(self.prompt) < 0:
            to.addWidget(self.prompt, 2)
            to.addWidget(self.repeat)
        self._lower.setContentsMargins(24, 0, 24, 4 * below)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_choices(below=self.width() < _ROOM * self._theme.scale)

    @property
    def playing(self) -> bool:
        return self._timer.isActive()

    def set_choices(self, prompts: Sequence[str], repeats: int) -> None:
        """Set the prompts and repeats to choose from."""
        shown = [self.prompt.itemText(at) for at in range(self.prompt.count())]
        if shown != list(prompts):
            self.prompt.clear()
            self.prompt.addItems(list(prompts))
        if self.repeat.count() != repeats:
            self.repeat.clear()
            self.repeat.addItems([f"repeat {repeat + 1}" for repeat in range(repeats)])
        self.repeat.setVisible(repeats > 1)

    def set_choice(self, repeat: int, prompt: int) -> None:
        """Show which repeat and prompt are shown."""
        self.repeat.setCurrentIndex(repeat)
        self.prompt.setCurrentIndex(prompt)

    def set_seconds(self, seconds: float) -> None:
        """Set the length of the race, 0 if there is none, and move to its end."""
        self.stop()
        self._seconds = seconds
        self._show(seconds)
        for control in (self.play, self.slider, self.speed):
            control.setEnabled(seconds > 0)

    def start(self) -> None:
        """Play from the current moment, or from the start if that is the end."""
        if self._seconds <= 0:
            return
        self._began = 0.0 if self.at >= self._seconds else self.at
        self._clock.start()
        self._timer.start()
        self.play.set_icon("pause")
        self.play.set_tooltip("Pause the race")
        self._tick()

    def stop(self) -> None:
        """Stop playing."""
        self._timer.stop()
        self.play.set_icon("demos")
        self.play.set_tooltip("Race: replay all lanes together at their true speed")

    def _toggle(self) -> None:
        if self.playing:
            self.stop()
        else:
            self.start()

    def _tick(self) -> None:
        at = self._began + self._clock.elapsed() / 1000 / SPEEDS[self.speed.currentText()]
        if at >= self._seconds:
            self.stop()
        self._show(min(at, self._seconds))
        self.moved.emit(self.at)

    def _speed_chosen(self) -> None:
        self._began = self.at
        self._clock.restart()

    def _seek(self, step: int) -> None:
        """The user moved the slider."""
        self.at = self._seconds * step / STEPS
        if self.playing:
            self._began = self.at
            self._clock.restart()
        self._say()
        self.moved.emit(self.at)

    def _choose(self) -> None:
        self.chosen.emit(max(self.repeat.currentIndex(), 0), max(self.prompt.currentIndex(), 0))

    def _show(self, at: float) -> None:
        self.at = at
        self.slider.blockSignals(True)
        self.slider.setValue(round(STEPS * at / self._seconds) if self._seconds > 0 else 0)
        self.slider.blockSignals(False)
        self._say()

    def _say(self) -> None:
        self.clock.setText(f"{self.at:6.2f} / {self._seconds:.2f} s" if self._seconds > 0 else "")

    def _restyle(self) -> None:
        self.clock.setFont(self._theme.mono(-0.5))
        self._timer.setInterval(STILL_MILLISECONDS if self._theme.less_motion else FRAME_MILLISECONDS)
