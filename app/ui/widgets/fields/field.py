"""One row of a form: what the parameter is, what is allowed, and the control to set it."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QGridLayout,
    QLabel,
    QLineEdit,
    QWidget,
)

from app.engine.errors import SettingError
from app.engine.params import FileUse, Param, Value
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.fields.number_box import NumberBox
from app.ui.widgets.fields.one_of import OneOf
from app.ui.widgets.fields.switch import Switch
from app.ui.widgets.fields.typing import Typing


class Field(QWidget):
    """Name and help on the left, the control on the right; an error is shown in place of the help, so that
    nothing below it moves."""

    edited = Signal()
    """The user changed the value, which may be wrong; typed text is reported when it is settled."""
    control_below = False
    """Whether the control has a row of its own, because what it holds is long."""

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
        doc = QLabel(param.doc, self)
        doc.setProperty("role", "caption")
        doc.setWordWrap(True)
        numbers = kit.label(short_range(param), "caption")
        right = Qt.AlignmentFlag.AlignRight
        self._error = QLabel(self)
        self._error.setTextFormat(Qt.TextFormat.PlainText)
        self._error.setProperty("role", "error")
        self._error.setWordWrap(True)
        self._help = OneOf()
        for label in (doc, self._error):
            label.setAlignment(Qt.AlignmentFlag.AlignTop)
            self._help.addWidget(label)
        grid = QGridLayout(self)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(24)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(0, 1)
        grid.addWidget(name, 0, 0)
        grid.addLayout(self._help, 1, 0)
        if self.control_below:
            numbers.deleteLater()
            grid.addWidget(control, 2, 0, 1, 2)
        elif numbers.text():
            grid.addWidget(control, 0, 1, right | Qt.AlignmentFlag.AlignVCenter)
            grid.addWidget(numbers, 1, 1, right | Qt.AlignmentFlag.AlignTop)
        else:
            numbers.deleteLater()
            grid.addWidget(control, 0, 1, 2, 1, right | Qt.AlignmentFlag.AlignTop)

    def value(self) -> Value:
        """The value; raises SettingError where the control holds no valid one."""
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
        """The error shown in place of the help; "" where nothing is wrong."""
        return self._error.text()

    def is_default(self) -> bool:
        return self.error() is None and self.value() == self.param.default

    @Slot()
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


class SwitchField(Field):
    """On or off."""

    def __init__(self, theme: Theme, param: Param) -> None:
        self.control = Switch(theme, param.name)
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


class ChoiceField(Field):
    """One of a few words."""

    def __init__(self, param: Param) -> None:
        self.control = QuietCombo()
        self.control.addItems(list(param.choices))
        super().__init__(param, self.control)
        self.control.activated.connect(self._was_edited)

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
    """Let the user choose a file with the system's dialog; "" where nothing was chosen."""
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

    @Slot()
    def _ask(self) -> None:
        assert self.param.file is not None
        before = self.control.text()
        folder = Path(before).expanduser().parent if before else Path.home()
        chosen = ask_for_file(self, str(folder), self.param.file)
        if chosen:
            self._typing.forget()
            self.control.setText(chosen)
            self._was_edited()


def make_field(theme: Theme, param: Param) -> Field:
    """The field for a parameter's type."""
    if param.choices:
        return ChoiceField(param)
    if param.kind is bool:
        return SwitchField(theme, param)
    if param.kind is str:
        return TextField(param) if param.file is None else FileField(param)
    return NumberField(param)


def short_range(param: Param) -> str:
    """The allowed numbers in a few characters, with their unit; "" where the control shows them."""
    if param.kind not in (int, float) or param.choices:
        return ""
    unit = f" {param.unit}" if param.unit else ""
    if param.low is None:
        return param.unit
    if param.high is None or param.high > 1e9:
        return f"{param.low:,} or more{unit}"
    return f"{param.low:,} to {param.high:,}{unit}"
