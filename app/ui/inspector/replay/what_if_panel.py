"""What other draft settings would have given a recorded answer."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtWidgets import QGridLayout, QLabel, QSlider, QWidget

from app.engine.errors import SettingError
from app.engine.explain.what_if import WhatIf, check_what_if, what_if, with_settings
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategySpec
from app.engine.types import LengthRule
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.widgets.fields.segmented import Segmented
from app.ui.widgets.words.numbers import count
from app.ui.widgets.work.throttle import Throttle

_LONGEST = 16
_PERCENT = 100


class WhatIfPanel(QWidget):
    """Sliders for the draft's length and p_min, the length rule, and the rounds that these give."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.answer = AnswerModel()
        self.longest = QSlider(Qt.Orientation.Horizontal)
        self.longest.setRange(1, _LONGEST)
        self.p_min = QSlider(Qt.Orientation.Horizontal)
        self.p_min.setRange(0, _PERCENT)
        self.p_min.setSingleStep(5)
        self.rule = Segmented(theme, "length", [rule.value for rule in LengthRule])
        self.names = [QLabel() for _ in range(3)]
        self.outcome = QLabel()
        self.outcome.setProperty("role", "strong")
        self.recorded = QLabel()
        self.recorded.setProperty("role", "secondary")
        self.why = QLabel()
        self.why.setProperty("role", "secondary")
        for label in (self.outcome, self.recorded, self.why):
            label.setWordWrap(True)
            label.setTextFormat(Qt.TextFormat.PlainText)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setVerticalSpacing(8)
        grid.setHorizontalSpacing(12)
        grid.setColumnStretch(1, 1)
        for row, (name, control) in enumerate(zip(self.names, self._controls, strict=True)):
            name.setProperty("role", "mono")
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
        self.rule.set_choice(spec.length.value)
        for control in self._controls:
            control.blockSignals(False)
        shown = (part.length_key is not None, hasattr(part.params, "p_min"), True)
        for visible, name, control in zip(shown, self.names, self._controls, strict=True):
            name.setVisible(visible)
            control.setVisible(visible)
        self.longest.setAccessibleName(part.length_key or "")
        self.p_min.setAccessibleName("p_min")
        self._changed()

    def _recorded(self) -> StrategySpec:
        header = self.answer.header
        assert header is not None
        return StrategySpec.parse(header.strategy)

    @Slot()
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
                self._recorded(),
                self.longest.value(),
                self.p_min.value() / _PERCENT,
                LengthRule(self.rule.choice()),
            )
            if spec == self._recorded():
                self._say(f"Recorded: {recorded}", "", "These are the settings of the answer.")
                return
            found = what_if(trace, spec, self.answer.measurement.cost if self.answer.measurement else None)
        except SettingError as error:
            self._say(error.message, "", error.hint)
            return
        self._say(
            outcome_words(found),
            f"Recorded: {recorded}.",
            "Exact: the record decides it." if found.exact else f"Estimate. {' '.join(found.reasons)}",
        )

    def _say(self, outcome: str, recorded: str, why: str) -> None:
        self.outcome.setText(outcome)
        self.recorded.setText(recorded)
        self.recorded.setVisible(bool(recorded))
        self.why.setText(why)


def outcome_words(found: WhatIf) -> str:
    """The outcome in one line; "about" where it is an estimate."""
    about = "" if found.exact else "about "
    span = "" if found.fewest == found.most else f" ({count(found.fewest)} to {count(found.most)})"
    words = (
        f"{about}{count(round(found.rounds))} rounds{span}, {count(round(found.drafted))} drafted, "
        f"{count(round(found.accepted))} accepted"
    )
    factor = f", {found.factor:.2f}× predicted" if found.factor is not None else ""
    return words[0].upper() + words[1:] + factor
