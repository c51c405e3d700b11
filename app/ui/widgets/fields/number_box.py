"""A spin box that keeps what was typed, also where it is wrong, and says what is allowed."""

from __future__ import annotations

import math

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QValidator, QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QWidget

from app.engine.errors import SettingError
from app.engine.params import Param, Value
from app.ui.theme.style import set_role
from app.ui.widgets.fields.typing import Typing

Step = QAbstractSpinBox.StepEnabledFlag


class NumberBox(QAbstractSpinBox):
    """Edits one whole or decimal number of a parameter.

    Qt's own spin boxes clamp and stop at 32 bits; this one does neither.
    """

    edited = Signal()
    """The number was changed, by stepping or by a settled text, which may be wrong."""

    def __init__(self, param: Param, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._param = param
        self.setAccelerated(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel scrolls past, it does not edit
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._typing = Typing(self, self.lineEdit().textEdited)
        self._typing.settled.connect(self._settled)
        self.lineEdit().returnPressed.connect(self._typing.settle)
        self.set_value(param.default)

    def value(self) -> Value:
        """The number; raises SettingError where the text is no number, or out of range."""
        return self._param.parse(self._plain())

    def set_value(self, value: Value) -> None:
        """Show a number, without emitting a signal."""
        self._typing.forget()
        self.lineEdit().setText(self._param.format(value))
        self._mark()

    def set_param(self, param: Param) -> None:
        """Change the limits; the text stays."""
        self._param = param
        self._mark()

    def error(self) -> SettingError | None:
        """What is wrong with the text."""
        try:
            self.value()
        except SettingError as error:
            return error
        return None

    def problem(self) -> str:
        """The same in a sentence, for below the box."""
        if self.error() is None:
            return ""
        text, allowed = self.lineEdit().text().strip(), self._param.range_text()
        return f"“{text}” is not {allowed}." if text else f"{allowed.capitalize()} is needed."

    # ------------------------------------------------------------------ what Qt asks

    def validate(self, text: str, position: int) -> tuple[QValidator.State, str, int]:
        return QValidator.State.Acceptable, text, position

    def fixup(self, text: str) -> str:
        return text

    def stepEnabled(self) -> QAbstractSpinBox.StepEnabledFlag:  # noqa: N802
        number = self._number()
        low, high = self._limits()
        enabled = Step.StepNone
        if number is None or number < high:
            enabled |= Step.StepUpEnabled
        if number is None or number > low:
            enabled |= Step.StepDownEnabled
        return enabled

    def stepBy(self, steps: int) -> None:  # noqa: N802
        number = self._number()
        low, high = self._limits()
        if number is None:
            moved: Value = self._param.default
        elif self._param.kind is int:
            moved = int(min(max(int(number) + steps, low), high))
        else:
            # On the grid of the step: 0.33 goes up to 0.35 and down to 0.3.
            size = 0.05 if high - low <= 10 else 1.0
            place = number / size
            grid = math.floor(place + 1e-9) if steps > 0 else math.ceil(place - 1e-9)
            moved = round(min(max((grid + steps) * size, low), high), 10)
        self.set_value(moved)
        self.edited.emit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()

    def sizeHint(self) -> QSize:
        digits = self.fontMetrics().horizontalAdvance("0") * 8
        return QSize(digits + 56, super().sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    # ------------------------------------------------------------------ inside

    def _plain(self) -> str:
        """The text in a program's number format."""
        text = self.lineEdit().text().strip().replace("−", "-")
        if self._param.kind is int:
            return text.replace(",", "").replace(" ", "")
        return text if "." in text else text.replace(",", ".")  # many keyboards have a decimal comma

    def _number(self) -> float | int | None:
        """The number in the box, also where it is out of range."""
        text = self._plain()
        try:
            number = int(text) if self._param.kind is int else float(text)
        except ValueError:
            return None
        return number if math.isfinite(number) else None

    def _limits(self) -> tuple[float, float]:
        low = -math.inf if self._param.low is None else self._param.low
        high = math.inf if self._param.high is None else self._param.high
        return low, high

    @Slot()
    def _settled(self) -> None:
        self._mark()
        self.edited.emit()

    def _mark(self) -> None:
        set_role(self, state="wrong" if self.error() else "")
