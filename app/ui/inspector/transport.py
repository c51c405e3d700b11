"""The bar at the foot of the Inspector: step, play, scrub, and what other draft settings would have given."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSignalBlocker, Qt, SignalInstance
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.engine.errors import SettingError
from app.engine.explain.what_if import WhatIf, check_what_if, what_if, with_settings
from app.engine.lengths.registry import LENGTHS
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategySpec
from app.ui.inspector.player import SLOW, TRUE_SPEED, Player, Speed
from app.ui.inspector.slow_motion import SlowMotion
from app.ui.state.answer import AnswerModel, reconnect
from app.ui.state.engine_session import EngineSession
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.background import Throttle
from app.ui.widgets.field import QuietCombo
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import SteadyLabel
from app.ui.widgets.popover import Popover
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.words import count

_LONGEST = 16
_PERCENT = 100


class WhatIfPanel(QWidget):
    """Sliders for the draft's length and p_min, the length rule, and the rounds that these give."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.answer = AnswerModel()
        self.longest = kit.slider("", 1, _LONGEST)
        self.p_min = kit.slider("p_min", 0, _PERCENT)
        self.p_min.setSingleStep(5)
        self.rule = Segmented(theme, "length", list(LENGTHS))
        self.names = [kit.label("", "mono") for _ in range(3)]
        self.outcome, self.recorded, self.why = (
            kit.label("", role, wrap=True, plain=True) for role in ("strong", "secondary", "secondary")
        )
        grid = kit.grid((12, 8), stretch=1, on=self)
        for row, (name, control) in enumerate(zip(self.names, self._controls, strict=True)):
            grid.addWidget(name, row, 0)
            grid.addWidget(control, row, 1)
        for row, label in enumerate((self.outcome, self.recorded, self.why), start=len(self.names)):
            grid.addWidget(label, row, 0, 1, 2)
        self._soon = Throttle(self._work_out, self)
        self.longest.valueChanged.connect(self._changed)
        self.p_min.valueChanged.connect(self._changed)
        self.rule.picked.connect(self._changed)

    @property
    def _controls(self) -> tuple[QWidget, ...]:
        return self.longest, self.p_min, self.rule

    def set_answer(self, answer: AnswerModel) -> None:
        """Ask about an answer, from its own settings on."""
        self.answer = answer
        try:
            spec = self._recorded()
            part = check_what_if(spec, spec)
        except SettingError as error:
            for widget in (*self.names, *self._controls):
                widget.hide()
            self._say(error.message, "", error.hint)
            return
        for control in self._controls:
            control.blockSignals(True)
        self.longest.setMaximum(max(_LONGEST, part.longest))
        self.longest.setValue(part.longest)
        self.p_min.setValue(round(getattr(part.params, "p_min", 0.0) * _PERCENT))
        self.rule.set_choices(list(LENGTHS))
        self.rule.set_choice(spec.length.name)
        for control in self._controls:
            control.blockSignals(False)
        shown = (part.length_key is not None, hasattr(part.params, "p_min"), True)
        for visible, name, control in zip(shown, self.names, self._controls, strict=True):
            name.setVisible(visible)
            control.setVisible(visible)
        self.longest.setAccessibleName(part.length_key or "")
        self._changed()

    def _recorded(self) -> StrategySpec:
        header = self.answer.header
        assert header is not None
        return StrategySpec.parse(header.strategy)

    def _changed(self) -> None:
        self.names[0].setText(f"{self.longest.accessibleName()} {self.longest.value()}")
        self.names[1].setText(f"p_min {self.p_min.value() / _PERCENT:.2f}")
        self.names[2].setText("length")
        self._soon.request()

    def _work_out(self) -> None:
        """Show the outcome of the settings."""
        trace = self.answer.trace
        if trace is None:
            return
        statistics = Statistics.of(trace.rounds)
        recorded = (
            f"{count(statistics.rounds)} rounds, {count(statistics.drafted)} drafted, "
            f"{count(statistics.accepted)} accepted"
        )
        try:
            spec = with_settings(
                self._recorded(), self.longest.value(), self.p_min.value() / _PERCENT, self.rule.choice()
            )
            if spec == self._recorded():
                self._say(f"Recorded: {recorded}", "", "These are the answer's own settings.")
                return
            found = what_if(trace, spec, self.answer.measurement.cost if self.answer.measurement else None)
        except SettingError as error:
            self._say(error.message, "", error.hint)
            return
        self._say(
            outcome_words(found),
            f"Recorded: {recorded}.",
            "Exact: the recording determines it." if found.exact else f"Estimate. {' '.join(found.reasons)}",
        )

    def _say(self, outcome: str, recorded: str, why: str) -> None:
        self.outcome.setText(outcome)
        self.recorded.setText(recorded)
        self.recorded.setVisible(bool(recorded))
        self.why.setText(why)


def outcome_words(found: WhatIf) -> str:
    """The outcome in one line; "about" if it is an estimate."""
    about = "" if found.exact else "about "
    span = "" if found.fewest == found.most else f" ({count(found.fewest)} to {count(found.most)})"
    words = (
        f"{about}{count(round(found.rounds))} rounds{span}, {count(round(found.drafted))} drafted, "
        f"{count(round(found.accepted))} accepted"
    )
    factor = f", {found.factor:.2f}× predicted" if found.factor is not None else ""
    return words[0].upper() + words[1:] + factor


SPEEDS = {
    "1 s per token": Speed(beat=1.0),
    "0.4 s per token": SLOW,
    "0.2 s per token": Speed(beat=0.2),
    "0.1 s per token": Speed(beat=0.1),
    "true speed": TRUE_SPEED,
    "2×": Speed(2.0),
    "4×": Speed(4.0),
}
_SCRUB_MS = 16
_HOLD = "Pause next answer"
_SLIDER = 5  # line heights: a shorter slider is in a row of its own
_ROOM = 60  # line heights: below this width words are shortened, since buttons cut theirs


class TransportBar(QWidget):
    """Moves the cursor of an answer. While the chat's engine writes it, the engine waits for the viewer."""

    def __init__(self, theme: Theme, session: EngineSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self.answer = AnswerModel()
        self.player = Player(session)
        self.slow_motion = SlowMotion(theme)
        self.first = IconButton(theme, "first", "To the start")
        self.back = IconButton(theme, "chevron-left", "One round back")
        self.play = IconButton(theme, "demos", "Play (Space)")
        self.step = IconButton(theme, "chevron-right", "One round forward (in slow motion: one step)")
        self.slider = kit.slider("Rounds shown")
        self.position = SteadyLabel("secondary")
        self.position.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.speed = QuietCombo()
        self.speed.setAccessibleName("Speed of the replay")
        self.speed.setToolTip(
            "“True speed” replays at the recorded pace. A time per token shows each round in slow motion: "
            "guess, check, verdict."
        )
        self.speed.addItems(list(SPEEDS))
        self.speed.setCurrentText("true speed")
        self.hold = kit.button(
            _HOLD, tip="Pause the chat's next answer before its first round, to step through it", name=_HOLD
        )
        self.hold.setCheckable(True)
        self.what_if = WhatIfPanel(theme)
        self._panel = Popover(theme, self.what_if, 420)
        self._panel.setParent(self)  # deleted with the bar; once opened it belongs to the window
        self.ask = kit.button("What if…", tip="How this answer would have run with other draft settings")
        self._scrub = Throttle(lambda: self.player.seek(self.slider.value()), self, _SCRUB_MS)
        self._follow = Throttle(self._show, self)
        self._lay_out()
        for button, act in (
            (self.first, self.player.first), (self.back, self.player.back),
            (self.play, self.player.toggle), (self.step, self.player.step),
        ):  # fmt: skip
            button.clicked.connect(act)
        self.slider.valueChanged.connect(self._scrub.request)
        self.speed.activated.connect(lambda: self.player.set_speed(SPEEDS[self.speed.currentText()]))
        self.hold.toggled.connect(self._hold)
        self.ask.clicked.connect(self._open_what_if)
        self.player.changed.connect(self._show)
        self.player.phased.connect(self.slow_motion.show_phase)
        reconnect(self._slots, None, self.answer)
        self._show()

    def _lay_out(self) -> None:
        left = self.first, self.back, self.play, self.step
        upper = kit.row(margins=(24, 8, 24, 0), spacing=8)
        row = kit.row(*left, kit.Spring(), self.hold, self.ask, margins=(24, 8, 24, 8), spacing=8)
        kit.column(self.slow_motion, upper, row, spacing=0, on=self)
        self._rows = upper, row
        self._place_slider(upper_row=False)

    def _place_slider(self, *, upper_row: bool) -> None:
        """Put the slider, its number and the speed between the buttons, or above them."""
        upper, row = self._rows
        for part in (self.slider, self.position, self.speed):
            for line in self._rows:
                line.removeWidget(part)
        to, at = (upper, 0) if upper_row else (row, row.indexOf(self.step) + 1)
        to.insertWidget(at, self.slider, 1)
        to.insertWidget(at + 1, self.position)
        to.insertWidget(at + 2, self.speed)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show()
        _upper, row = self._rows
        margins = row.contentsMargins()
        beside = self.first, self.back, self.play, self.step, self.position, self.speed, self.hold, self.ask
        taken = sum(part.sizeHint().width() + row.spacing() for part in beside)
        room = self.width() - margins.left() - margins.right() - taken
        self._place_slider(upper_row=room < _SLIDER * self.fontMetrics().height())

    def set_answer(self, answer: AnswerModel | None, paced: bool) -> None:
        """Move a different answer; `paced` says whether the chat's engine would write it."""
        before, self.answer = self.answer, answer if answer is not None else AnswerModel()
        reconnect(self._slots, before, self.answer)
        self._panel.close_panel()
        self.player.set_answer(self.answer, paced)

    def _slots(self, answer: AnswerModel) -> tuple[tuple[SignalInstance, Callable[[], None]], ...]:
        return (
            (answer.began, self._show), (answer.grew, self._follow.request), (answer.moved, self._show),
            (answer.ended, self._follow.now),
        )  # fmt: skip

    def _show(self) -> None:
        """Show where the cursor is, and what can be done."""
        answer, player = self.answer, self.player
        known = len(answer.rounds)
        with QSignalBlocker(self.slider):
            self.slider.setRange(0, known)
            self.slider.setPageStep(max(known // 20, 10))  # also what a click beside the handle goes
            self.slider.setValue(answer.cursor)
        narrow = self.width() < _ROOM * self.fontMetrics().height()
        behind = f" of {count(known)}{'' if narrow else ' rounds'}"
        self.position.set_text(f"{count(answer.cursor)}{behind}", widest=f"{count(known)}{behind}")
        self.hold.setText("Pause" if narrow else _HOLD)
        for control in (self.first, self.back):
            control.setEnabled(answer.cursor > 0)
        self.step.setEnabled(player.can_step)
        self.play.setEnabled(known > 0 or player.writing)
        self.slider.setEnabled(known > 0)
        self.play.set_icon("pause" if player.playing else "demos")
        self.play.set_tooltip("Pause (Space)" if player.playing else "Play (Space)")
        self.ask.setEnabled(known > 0 and answer.drafts)
        self.hold.setEnabled(self._session.server is None)
        with QSignalBlocker(self.hold):
            self.hold.setChecked(self._session.holds_next)
        self.speed.setCurrentText(next(words for words, speed in SPEEDS.items() if speed == player.speed))

    def _hold(self, held: bool) -> None:
        self._session.holds_next = held

    def _open_what_if(self) -> None:
        self.what_if.set_answer(self.answer)
        self._panel.open_below(self.ask)
