"""How many layers are kept on devices: a slider with its number, all, none, or what fits."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QGridLayout, QSlider, QWidget

from app.engine.devices.memory import ALL_LAYERS
from app.engine.errors import SettingError
from app.engine.params import Param
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.field import NumberBox


class LayersField(QWidget):
    """Edits `n_gpu_layers`. `set_most` sets how many layers there are, once the model's file is known."""

    edited = Signal()
    fit_asked = Signal()

    def __init__(self, param: Param) -> None:
        super().__init__()
        self._param = param
        self._value = ALL_LAYERS
        self.most: int | None = None
        name = kit.label(param.name, "mono")
        self._of = kit.label("", "caption")
        self._words = kit.label("", "caption", wrap=True)
        self._box = NumberBox(param)
        self._box.setAccessibleName("Layers on devices")
        self._box.edited.connect(self._typed)
        self._slider = QuietSlider(Qt.Orientation.Horizontal)
        self._slider.setAccessibleName("Layers on devices")
        self._slider.valueChanged.connect(self._slid)
        self.none = kit.button(
            "None",
            lambda: self._choose(0),
            kind="flat",
            tip="Keep every layer in main memory: the CPU computes all of them.",
        )
        self.all = kit.button(
            "All", lambda: self._choose(ALL_LAYERS), kind="flat", tip="Keep every layer on devices."
        )
        self.fit = kit.button(
            "Fit for me",
            self.fit_asked,
            tip="As many layers as the devices' free memory holds, the target's first. Sets target and "
            "draft.",
        )
        right = Qt.AlignmentFlag.AlignRight
        head = QGridLayout()
        head.setVerticalSpacing(2)
        head.setColumnStretch(0, 1)
        head.addWidget(name, 0, 0)
        head.addWidget(self._box, 0, 1, right)
        head.addWidget(self._words, 1, 0)
        head.addWidget(self._of, 1, 1, right)
        row = kit.row((self._slider, 1), 8, self.none, self.all, self.fit, spacing=4)
        kit.column(head, row, spacing=4, on=self)
        self.setToolTip(f"{param.doc}\nllama.cpp counts the output layer as one more.")
        self.set_most(None)

    def value(self) -> int:
        """The option; raises SettingError where the box holds no such number."""
        if self.most is not None:
            self._box.value()
        return self._value

    def set_value(self, value: int) -> None:
        """Show a value, without emitting a signal."""
        self._value = value
        self._show()

    def set_most(self, most: int | None) -> None:
        """Set how many layers the model has, counting the output layer; None: not known (yet)."""
        self.most = most
        known = most is not None
        if known:
            self._box.set_param(dataclasses.replace(self._param, low=0, high=most))
        self._box.setVisible(known)
        self._of.setVisible(known)
        self._of.setText(f"0 to {most}")
        self._slider.setEnabled(known)
        self._slider.blockSignals(True)
        self._slider.setRange(0, most or 1)
        self._slider.blockSignals(False)
        self._show()

    def set_fitting(self, fitting: bool) -> None:
        """Layers are being fitted, or no longer."""
        self.fit.setEnabled(not fitting)
        self.fit.setText("Fitting…" if fitting else "Fit for me")

    def error(self) -> SettingError | None:
        return self._box.error() if self.most is not None else None

    def _choose(self, value: int) -> None:
        self.set_value(value)
        self.edited.emit()

    def _typed(self) -> None:
        error = self._box.error()
        if error is None:
            self._take(int(self._box.value()))
        self._show(box=False)
        self.edited.emit()

    def _slid(self, value: int) -> None:
        self._take(value)
        self._show()
        self.edited.emit()

    def _take(self, layers: int) -> None:
        self._value = ALL_LAYERS if layers == self.most else layers

    def _show(self, box: bool = True) -> None:
        most = self.most
        problem = "" if box or most is None else self._box.problem()
        set_role(self._words, role="error" if problem else "caption")
        if most is None:
            asked = "all layers" if self._value < 0 else f"{self._value} layers"
            self._words.setText(f"On devices: {asked}.")
            return
        layers = most if self._value < 0 else min(self._value, most)
        if box:
            self._box.set_value(layers)
        self._slider.blockSignals(True)
        self._slider.setValue(layers)
        self._slider.blockSignals(False)
        rest = most - layers
        if problem:
            self._words.setText(problem)
        elif not layers:
            self._words.setText("The CPU computes all layers.")
        elif rest:
            self._words.setText(f"{layers} on devices, the other {rest} on the CPU.")
        else:
            self._words.setText("All layers are on devices.")


class QuietSlider(QSlider):
    """A slider that ignores the wheel, so that scrolling a form changes nothing in it."""

    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()
