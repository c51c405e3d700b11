"""Which devices the layers are on, and how they are split over several."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from app.engine.devices.memory import Device, offload_devices
from app.engine.devices.placement import NO_DEVICE, chosen_names, without_worker_devices
from app.engine.errors import SettingError
from app.engine.params import Param, params_of
from app.engine.types import ModelOptions, split_list
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.field import ChoiceField, NumberBox, QuietCombo
from app.ui.widgets.labels import ElidedLabel, as_text
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.words import file_size, percent

SEVERAL = ("layer", "row")  # split modes that use several devices


def device_option(chosen: Sequence[str], there: Sequence[str]) -> str:
    """The option `device` for these names, out of those that are `there`; empty for all of them."""
    if not chosen:
        return NO_DEVICE
    return "" if tuple(chosen) == tuple(there) else ",".join(chosen)


def read_shares(text: str, chosen: Sequence[str]) -> dict[str, float] | None:
    """Device name -> its share; None if they go by free memory, or if the text is no list of shares."""
    try:
        numbers = [float(word) for word in re.split(r"[,/]", text)] if text.strip() else []
    except ValueError:
        return None
    if not numbers or not chosen:
        return None
    numbers += [0.0] * (len(chosen) - len(numbers))  # as llama.cpp reads a list that is too short
    return dict(zip(chosen, numbers, strict=False))


def shares_option(shares: Mapping[str, float] | None, chosen: Sequence[str]) -> str:
    """The option `tensor_split`; a device without a share so far gets 1."""
    if shares is None or len(chosen) < 2:
        return ""
    return ",".join(f"{shares.get(name, 1.0):g}" for name in chosen)


def with_workers(options: ModelOptions, rpc: str) -> ModelOptions:
    """The options with these workers. Their devices are numbered in the order of `rpc`. If a worker is
    removed, later devices get other names, so options with device names or positions are dropped."""
    before, after = options.endpoints, split_list(rpc)
    if before == after:
        return options
    if options.device and after[: len(before)] == before:
        return dataclasses.replace(options, rpc=",".join(after))
    device = without_worker_devices(options.device)
    return dataclasses.replace(options, rpc=",".join(after), device=device, tensor_split="", main_gpu=0)


SHARE = Param("share", float, 1.0, "Share of the layers, relative to the other shares.", 0, 1_000_000)


class DeviceRow(QWidget):
    """A device: whether it is used, what it is, and its share if shares are set by hand."""

    toggled = Signal()
    share_edited = Signal()

    def __init__(self, name: str, device: Device | None) -> None:
        """`device` is None for a name that no device has."""
        super().__init__()
        self.name = name
        self.check = QCheckBox(name)
        self.check.clicked.connect(self.toggled)
        self._box = NumberBox(SHARE)
        self._box.setAccessibleName(f"Share of {name}")
        self._box.setToolTip(SHARE.doc)
        self._box.edited.connect(self.share_edited)
        self._box.setFixedWidth(self._box.fontMetrics().horizontalAdvance("0") * 4 + 48)
        self._percent = kit.label("", "caption")
        self._percent.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._percent.setMinimumWidth(self._percent.fontMetrics().horizontalAdvance("100 %"))
        words = ElidedLabel(role="caption", text=describe_device(device))
        words.setToolTip(as_text(device.description) if device else "")
        memory = kit.label(memory_words(device) if device else "", "caption")
        head = kit.row(self.check, kit.Spring(), memory, self._box, self._percent, spacing=8)
        kit.column(head, kit.row((words, 1), margins=(24, 0, 0, 0)), spacing=0, on=self)
        self.set_share(None, 0)

    def share(self) -> float:
        """The share in the box; raises SettingError."""
        return float(self._box.value())

    def error(self) -> SettingError | None:
        return self._box.error() if self._box.isVisibleTo(self) else None

    def set_share(self, share: float | None, total: float) -> None:
        """Show a share of `total`; None if shares go by free memory. Text that is being typed stays."""
        self._box.setVisible(share is not None)
        self._percent.setVisible(share is not None)
        if share is not None:
            if self._box.error() is None and self.share() != share:
                self._box.set_value(share)
            self._percent.setText(percent(share / total if total else None))


def describe_device(device: Device | None) -> str:
    """What it is and where."""
    if device is None:
        return "Not on this machine or its workers"
    parts = [f"worker at {device.endpoint}" if device.endpoint else device.kind, device.description]
    return " · ".join(dict.fromkeys(part for part in parts if part and part != device.endpoint))


def memory_words(device: Device) -> str:
    """Free and total memory."""
    if not device.total:
        return "memory unknown"
    return f"{file_size(device.free)} free of {file_size(device.total)}"


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
        self._list = kit.column(spacing=6)
        self._words = kit.label("", "caption", wrap=True)
        self._mode = ChoiceField(_PARAMS["split_mode"])
        self._mode.edited.connect(lambda: self._change(split_mode=str(self._mode.value())))
        self._shares = Segmented(theme, "Split over the devices", (BY_MEMORY, BY_HAND))
        self._shares.picked.connect(self._shares_picked)
        self._shares_row = _row("tensor_split", self._shares)
        self._main = QuietCombo()
        self._main.setAccessibleName("The only device in use")
        self._main.activated.connect(lambda place: self._change(main_gpu=place))
        self._main_row = _row("main_gpu", self._main)
        self._error = kit.label("", "error", plain=True)
        parts = self._list, self._words, self._mode, self._shares_row, self._main_row, self._error
        kit.column(*parts, spacing=8, on=self)
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

    def _shares_picked(self, choice: str) -> None:
        shares = dict.fromkeys(self.chosen, 1.0) if choice == BY_HAND else None
        self._change(tensor_split=shares_option(shares, self.chosen))

    def _share_edited(self) -> None:
        if any(row.error() for row in self.rows):
            self._show_error()
            self.edited.emit()
            return
        shares = {row.name: row.share() for row in self.rows}
        self._change(tensor_split=shares_option(shares, self.chosen))

    def _change(self, **changes: object) -> None:
        self._options = dataclasses.replace(self._options, **changes)  # type: ignore[arg-type]
        self._show()
        self.edited.emit()

    # ------------------------------------------------------------------ showing

    def _own_shares(self) -> dict[str, float] | None:
        return read_shares(self._options.tensor_split, self.chosen)

    def _build_rows(self) -> None:
        names = tuple(dict.fromkeys((*self._there, *self.chosen)))
        kit.empty(self._list)
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
        return "Devices are listed when the engine is ready."
    if not there:
        return "The CPU is the only device."
    return "" if chosen else "None is chosen, so all layers are on the CPU."


def _row(name: str, control: QWidget) -> QWidget:
    """A row like those of a form, for a parameter with a control of our own."""
    made = kit.holder(kit.row(kit.label(name, "mono"), kit.Spring(), control))
    made.setToolTip(_PARAMS[name].doc)
    return made
