"""Which devices hold the layers, and how they are split over several."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.engine.devices.memory import Device, offload_devices
from app.engine.devices.placement import chosen_names
from app.engine.errors import SettingError
from app.engine.params import params_of
from app.engine.types import ModelOptions
from app.ui.pair.placement.device_row import DeviceRow
from app.ui.pair.placement.split import (
    SEVERAL,
    device_option,
    read_shares,
    shares_option,
)
from app.ui.theme import Theme
from app.ui.widgets.fields.field import ChoiceField, QuietCombo
from app.ui.widgets.fields.segmented import Segmented

BY_MEMORY, BY_HAND = "by free memory", "by shares"
_PARAMS = {param.name: param for param in params_of(ModelOptions)}


class Placement(QWidget):
    """Edits `device`, `split_mode`, `tensor_split` and `main_gpu`. `set_devices` sets the devices."""

    edited = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._options = ModelOptions("")
        self._there: dict[str, Device] = {}
        self.rows: list[DeviceRow] = []
        self._known = False
        self._list = QVBoxLayout()
        self._list.setSpacing(6)
        self._words = QLabel()
        self._words.setProperty("role", "caption")
        self._words.setWordWrap(True)
        self._mode = ChoiceField(_PARAMS["split_mode"])
        self._mode.edited.connect(self._mode_edited)
        self._shares = Segmented(theme, "Split over the devices", (BY_MEMORY, BY_HAND))
        self._shares.picked.connect(self._shares_picked)
        self._shares_row = _row("tensor_split", self._shares)
        self._main = QuietCombo()
        self._main.setAccessibleName("The one device in use")
        self._main.activated.connect(self._main_picked)
        self._main_row = _row("main_gpu", self._main)
        self._error = QLabel()
        self._error.setTextFormat(Qt.TextFormat.PlainText)
        self._error.setProperty("role", "error")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addLayout(self._list)
        layout.addWidget(self._words)
        for widget in (self._mode, self._shares_row, self._main_row, self._error):
            layout.addWidget(widget)
        self._build_rows()

    # ------------------------------------------------------------------ what the form says

    def set_devices(self, devices: Sequence[Device]) -> None:
        """Set the devices, including those of the workers in the form."""
        there = {device.name: device for device in offload_devices(devices)}
        if there != self._there or not self._known:
            self._there, self._known = there, True
            self._build_rows()

    def set_value(self, options: ModelOptions) -> None:
        """Show these options, without emitting a signal."""
        self._options = options
        self._build_rows()

    def put_into(self, options: ModelOptions) -> ModelOptions:
        """`options` with what is edited here; raises SettingError for a wrong share."""
        error = self.error()
        if error is not None:
            raise error
        mine = self._options
        return dataclasses.replace(
            options,
            device=mine.device,
            split_mode=mine.split_mode,
            tensor_split=mine.tensor_split,
            main_gpu=mine.main_gpu,
        )

    def error(self) -> SettingError | None:
        """What is wrong with the shares."""
        for row in self.rows:
            error = row.error()
            if error is not None:
                return error
        shares = self._own_shares()
        if shares is not None and not any(shares.values()):
            return SettingError("At least one share must be above 0.")
        return None

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names of the devices in use, in their order."""
        return chosen_names(self._options.device, tuple(self._there))

    # ------------------------------------------------------------------ what the user does

    @Slot()
    def _toggled(self) -> None:
        before = self.chosen
        checked = {row.name for row in self.rows if row.check.isChecked()}
        after = tuple(row.name for row in self.rows if row.name in checked)
        shares = self._own_shares()
        main = before[self._options.main_gpu] if self._options.main_gpu < len(before) else ""
        self._change(
            device=device_option(after, tuple(self._there)),
            tensor_split=shares_option(shares, after),
            main_gpu=after.index(main) if main in after else 0,
        )

    @Slot()
    def _mode_edited(self) -> None:
        self._change(split_mode=str(self._mode.value()))

    @Slot(str)
    def _shares_picked(self, choice: str) -> None:
        shares = dict.fromkeys(self.chosen, 1.0) if choice == BY_HAND else None
        self._change(tensor_split=shares_option(shares, self.chosen))

    @Slot()
    def _share_edited(self) -> None:
        if any(row.error() for row in self.rows):
            self._show_error()
            self.edited.emit()
            return
        shares = {row.name: row.share() for row in self.rows}
        self._change(tensor_split=shares_option(shares, self.chosen))

    @Slot(int)
    def _main_picked(self, place: int) -> None:
        self._change(main_gpu=place)

    def _change(self, **changes: object) -> None:
        self._options = dataclasses.replace(self._options, **changes)  # type: ignore[arg-type]
        self._show()
        self.edited.emit()

    # ------------------------------------------------------------------ showing

    def _own_shares(self) -> dict[str, float] | None:
        return read_shares(self._options.tensor_split, self.chosen)

    def _build_rows(self) -> None:
        names = tuple(dict.fromkeys((*self._there, *self.chosen)))
        while (item := self._list.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self.rows = [DeviceRow(name, self._there.get(name)) for name in names]
        for row in self.rows:
            row.toggled.connect(self._toggled)
            row.share_edited.connect(self._share_edited)
            self._list.addWidget(row)
        self._show()

    def _show(self) -> None:
        chosen, mode = self.chosen, self._options.split_mode
        several = len(chosen) > 1
        for row in self.rows:
            row.check.setChecked(row.name in chosen)
        self._words.setText(_words(self._known, bool(self._there), chosen))
        self._words.setVisible(bool(self._words.text()))
        self._mode.set_value(mode)
        self._mode.setVisible(several)
        self._shares_row.setVisible(several and mode in SEVERAL)
        self._main_row.setVisible(several and mode not in SEVERAL)
        shares = self._own_shares() if several and mode in SEVERAL else None
        self._shares.set_choice(BY_MEMORY if shares is None else BY_HAND)
        total = sum(shares.values()) if shares else 0.0
        for row in self.rows:
            row.set_share(shares.get(row.name) if shares else None, total)
        self._main.clear()
        self._main.addItems(list(chosen))
        self._main.setCurrentIndex(min(self._options.main_gpu, len(chosen) - 1))
        self._show_error()

    def _show_error(self) -> None:
        error = self.error()
        self._error.setText(str(error) if error else "")
        self._error.setVisible(error is not None)


def _words(known: bool, there: bool, chosen: Sequence[str]) -> str:
    if not known:
        return "Devices are listed once the engine is ready."
    if not there:
        return "There is no device besides the CPU."
    return "" if chosen else "None is chosen: the CPU computes all layers."


def _row(name: str, control: QWidget) -> QWidget:
    """A row like those of a form, for a parameter with a control of our own."""
    made = QWidget()
    made.setToolTip(_PARAMS[name].doc)
    label = QLabel(name)
    label.setProperty("role", "mono")
    row = QHBoxLayout(made)
    row.setContentsMargins(0, 0, 0, 0)
    row.addWidget(label)
    row.addStretch()
    row.addWidget(control)
    return made
