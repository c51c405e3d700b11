"""One device in the list of those that may hold layers."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.engine.devices.memory import Device
from app.engine.errors import SettingError
from app.engine.params import Param
from app.ui.widgets.fields.number_box import NumberBox
from app.ui.widgets.text.elided import ElidedLabel
from app.ui.widgets.text.tips import as_text
from app.ui.widgets.words.numbers import file_size, percent

SHARE = Param("share", float, 1.0, "Its share of the layers, relative to the other shares.", 0, 1_000_000)


class DeviceRow(QWidget):
    """Whether the device is used, what it is, and its share where shares are set by hand."""

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
        self._percent = QLabel()
        self._percent.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self._percent.setProperty("role", "caption")
        self._percent.setMinimumWidth(self._percent.fontMetrics().horizontalAdvance("100 %"))
        words = ElidedLabel()
        words.setProperty("role", "caption")
        words.set_text(describe_device(device))
        words.setToolTip(as_text(device.description) if device else "")
        memory = QLabel(memory_words(device) if device else "")
        memory.setProperty("role", "caption")
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(self.check)
        head.addStretch()
        head.addWidget(memory)
        head.addWidget(self._box)
        head.addWidget(self._percent)
        below = QHBoxLayout()
        below.setContentsMargins(24, 0, 0, 0)
        below.addWidget(words, 1)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(head)
        layout.addLayout(below)
        self.set_share(None, 0)

    def share(self) -> float:
        """The share in the box; raises SettingError."""
        return float(self._box.value())

    def error(self) -> SettingError | None:
        return self._box.error() if self._box.isVisibleTo(self) else None

    def set_share(self, share: float | None, total: float) -> None:
        """Show a share of `total`; None where shares go by free memory. Text that is being typed stays."""
        self._box.setVisible(share is not None)
        self._percent.setVisible(share is not None)
        if share is not None:
            if self._box.error() is None and self.share() != share:
                self._box.set_value(share)
            self._percent.setText(percent(share / total if total else None))


def describe_device(device: Device | None) -> str:
    """What it is and where."""
    if device is None:
        return "Not on this machine, nor on its workers"
    parts = [f"worker at {device.endpoint}" if device.endpoint else device.kind, device.description]
    return " · ".join(dict.fromkeys(part for part in parts if part and part != device.endpoint))


def memory_words(device: Device) -> str:
    """Free and total memory."""
    if not device.total:
        return "memory unknown"
    return f"{file_size(device.free)} free of {file_size(device.total)}"
