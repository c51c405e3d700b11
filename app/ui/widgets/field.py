"""One row of a form: the parameter, its allowed values, and the control that sets it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QValidator, QWheelEvent
from PySide6.QtWidgets import QAbstractSpinBox, QComboBox, QFileDialog, QGridLayout, QLineEdit, QWidget

from app.engine.errors import SettingError
from app.engine.params import FileUse, Param, Value
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.access import NumberAccess, tell_readers
from app.ui.widgets.keys import Typing
from app.ui.widgets.labels import OneOf

Step = QAbstractSpinBox.StepEnabledFlag


class NumberBox(QAbstractSpinBox):
    """Edits one whole or decimal number of a parameter.

    Qt's own spin boxes clamp and stop at 32 bits; this one does neither.
    """

    edited = Signal()
    """The number was changed, by a step or by text that is complete but may be wrong."""

    def __init__(self, param: Param) -> None:
        tell_readers(NumberBox, NumberAccess)
        super().__init__()
        self.lineEdit().setObjectName("number")  # under its own name Qt gives it no text for screen readers
        self._param = param
        self.setAccelerated(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)  # the wheel scrolls past, it does not edit
        self.setAlignment(Qt.AlignmentFlag.AlignRight)
        self._typing = Typing(self, self.lineEdit().textEdited)
        self._typing.settled.connect(self._settled)
        self.lineEdit().returnPressed.connect(self._typing.settle)
        self.set_value(param.default)

    def value(self) -> Value:
        """The number; raises SettingError if the text is no number, or out of range."""
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
        """The same in a sentence, to be shown below the box."""
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
        """The text in the number format of programs."""
        text = self.lineEdit().text().strip().replace("−", "-")
        if self._param.kind is int:
            return text.replace(",", "").replace(" ", "")
        return text if "." in text else text.replace(",", ".")  # many keyboards have a decimal comma

    def _number(self) -> float | int | None:
        """The number in the box, even if it is out of range."""
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

    def _settled(self) -> None:
        self._mark()
        self.edited.emit()

    def _mark(self) -> None:
        set_role(self, state="wrong" if self.error() else "")


class Field(QWidget):
    """Name and help on the left, the control on the right. An error replaces the help, so that nothing below
    it moves."""

    edited = Signal()
    """The user changed the value, which may be wrong. Typed text is reported once it is complete."""
    control_below = False
    """Whether the control has its own row, because its content is long."""

    def __init__(self, param: Param, control: QWidget) -> None:
        super().__init__()
        self.param = param
        self._held: Value = param.default
        allowed = f"Allowed: {param.range_text()}."
        self.setToolTip(f"{param.doc}\n{allowed}")
        control.setAccessibleName(param.name)
        control.setAccessibleDescription(f"{param.doc} {allowed}")
        name = kit.label(param.name, "mono")
        name.setBuddy(control)
        numbers = kit.label(short_range(param), "caption")
        right, top = Qt.AlignmentFlag.AlignRight, Qt.AlignmentFlag.AlignTop
        doc = kit.label(param.doc, "caption", wrap=True, side=top, on=self)
        self._error = kit.label("", "error", wrap=True, plain=True, side=top, on=self)
        self._help = OneOf()
        for label in (doc, self._error):
            self._help.addWidget(label)
        grid = kit.grid((24, 2), stretch=0, on=self)
        grid.addWidget(name, 0, 0)
        grid.addLayout(self._help, 1, 0)
        if self.control_below:
            numbers.deleteLater()
            grid.addWidget(control, 2, 0, 1, 2)
        elif numbers.text():
            grid.addWidget(control, 0, 1, right | Qt.AlignmentFlag.AlignVCenter)
            grid.addWidget(numbers, 1, 1, right | top)
        else:
            numbers.deleteLater()
            grid.addWidget(control, 0, 1, 2, 1, right | top)

    def value(self) -> Value:
        """The value; raises SettingError if the control has no valid one."""
        raise NotImplementedError

    def set_value(self, value: Value) -> None:
        """Show a value, without emitting a signal."""
        self._held = value
        self._show(value)
        self._show_error()

    def held(self) -> Value:
        """The last value that was valid as a whole, not one that is being typed."""
        return self._held

    def _show(self, value: Value) -> None:
        raise NotImplementedError

    def error(self) -> SettingError | None:
        """What is wrong, if anything."""
        try:
            self.value()
        except SettingError as error:
            return error
        return None

    def problem(self) -> str:
        """The same in a sentence."""
        return str(self.error() or "")

    def error_text(self) -> str:
        """The error shown in place of the help; "" if nothing is wrong."""
        return self._error.text()

    def is_default(self) -> bool:
        return self.error() is None and self.value() == self.param.default

    def _was_edited(self) -> None:
        if self.error() is None:
            self._held = self.value()
        self._show_error()
        self.edited.emit()

    def _show_error(self) -> None:
        problem = self.problem()
        self._error.setText(problem)
        self._help.setCurrentIndex(1 if problem else 0)


class NumberField(Field):
    """A whole or decimal number."""

    def __init__(self, param: Param) -> None:
        self.control = NumberBox(param)
        super().__init__(param, self.control)
        self.control.edited.connect(self._was_edited)

    def value(self) -> Value:
        return self.control.value()

    def problem(self) -> str:
        return self.control.problem()

    def _show(self, value: Value) -> None:
        self.control.set_value(value)


class CheckField(Field):
    """On or off."""

    def __init__(self, param: Param) -> None:
        self.control = kit.check(name=param.name, kind="bare")
        self.control.setLayoutDirection(Qt.LayoutDirection.RightToLeft)  # at the edge, as other controls
        super().__init__(param, self.control)
        self.control.clicked.connect(self._was_edited)

    def value(self) -> Value:
        return self.control.isChecked()

    def _show(self, value: Value) -> None:
        self.control.setChecked(bool(value))


class QuietCombo(QComboBox):
    """A combo box that ignores the wheel, so that scrolling a form changes nothing in it."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()


def combo(
    name: str, items: Iterable[str] = (), act: Callable[..., object] | None = None, tip: str = ""
) -> QuietCombo:
    """A list to choose from, with its accessible name; `act` is called if the user chooses."""
    made = QuietCombo()
    made.setAccessibleName(name)
    made.addItems(list(items))
    made.setToolTip(tip)
    if act is not None:
        made.activated.connect(act)
    return made


class ChoiceField(Field):
    """One of a few words."""

    def __init__(self, param: Param) -> None:
        self.control = combo(param.name, param.choices, self._was_edited)
        super().__init__(param, self.control)

    def value(self) -> Value:
        return self.control.currentText()

    def _show(self, value: Value) -> None:
        self.control.setCurrentText(str(value))


class TextField(Field):
    """Any text."""

    control_below = True

    def __init__(self, param: Param) -> None:
        self.control = QLineEdit()
        super().__init__(param, self.control)
        self._typing = Typing(self.control, self.control.textEdited)
        self._typing.settled.connect(self._was_edited)

    def value(self) -> Value:
        return self.control.text()

    def _show(self, value: Value) -> None:
        self._typing.forget()
        self.control.setText(str(value))


def ask_for_file(parent: QWidget, folder: str, use: FileUse) -> str:
    """Let the user choose a file with the system's dialog; "" if nothing was chosen."""
    if use is FileUse.READ:
        return QFileDialog.getOpenFileName(parent, "Choose a file", folder)[0]
    keep = QFileDialog.Option.DontConfirmOverwrite  # the file is not overwritten
    return QFileDialog.getSaveFileName(parent, "Choose a file, or name a new one", folder, options=keep)[0]


class FileField(TextField):
    """The path of a file, typed or chosen."""

    def __init__(self, param: Param) -> None:
        super().__init__(param)
        self.button = kit.button("Choose…", self._ask, name=f"Choose the file {param.name}")
        beside = kit.row((self.control, 1), self.button, spacing=8)
        grid = self.layout()
        assert isinstance(grid, QGridLayout)
        grid.addLayout(beside, 2, 0, 1, 2)

    def _ask(self) -> None:
        assert self.param.file is not None
        before = self.control.text()
        folder = Path(before).expanduser().parent if before else Path.home()
        chosen = ask_for_file(self, str(folder), self.param.file)
        if chosen:
            self._typing.forget()
            self.control.setText(chosen)
            self._was_edited()


def make_field(param: Param) -> Field:
    """The field for a parameter's type."""
    if param.choices:
        return ChoiceField(param)
    if param.kind is bool:
        return CheckField(param)
    if param.kind is str:
        return TextField(param) if param.file is None else FileField(param)
    return NumberField(param)


def short_range(param: Param) -> str:
    """The allowed numbers in a few characters, with their unit; "" if the control shows them."""
    if param.kind not in (int, float) or param.choices:
        return ""
    unit = f" {param.unit}" if param.unit else ""
    if param.low is None:
        return param.unit
    if param.high is None or param.high > 1e9:
        return f"{param.low:,} or more{unit}"
    return f"{param.low:,} to {param.high:,}{unit}"
