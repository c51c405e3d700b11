"""Workers: other machines that compute layers, added by their address."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from app.engine.devices.memory import Device
from app.engine.devices.workers import DEFAULT_PORT, Endpoint, WorkerError
from app.engine.types import split_list
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import ElidedLabel
from app.ui.widgets.notice import Notice, WayOut

WARNING = (
    "The protocol has no encryption and no password. Anyone who can reach a worker's port can use that "
    "machine and read the traffic. Use workers only on a network that you trust."
)
HOW = f"On the other machine: draftscope worker --host ITS-ADDRESS --port {DEFAULT_PORT}"


class WorkerList(QWidget):
    """Edits `rpc`. Whether a worker answers is set by `set_devices`."""

    edited = Signal()
    look_asked = Signal()
    """The user asks to check again whether the workers answer."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._workers: tuple[str, ...] = ()
        self._devices: tuple[Device, ...] = ()
        self._lost: tuple[str, ...] = ()  # workers that a problem is about
        title = kit.label("Workers on other machines", "strong")
        self._list = kit.column(spacing=2)
        example = f"host:port, such as 192.168.1.20:{DEFAULT_PORT}"
        self._address = kit.field("Address of a worker, as host:port", example, entered=self._add)
        self._add_button = kit.button("Add", self._add)
        self._notice = Notice(theme)
        warning = kit.label(WARNING, "caption", wrap=True)
        how = kit.label(HOW, "caption", wrap=True)
        row = kit.row((self._address, 1), self._add_button)
        kit.column(title, self._list, row, self._notice, warning, how, spacing=6, on=self)

    def value(self) -> str:
        """The option `rpc`."""
        return ",".join(self._workers)

    def set_value(self, rpc: str) -> None:
        """Show the workers of an option, without emitting a signal."""
        self._workers = split_list(rpc)
        self._show()

    def set_devices(self, devices: Sequence[Device]) -> None:
        """Set the devices that were found."""
        self._devices = tuple(devices)
        self._show()

    def blamed(self, message: str) -> tuple[str, ...]:
        """The workers whose whole address is in a message."""
        return tuple(
            worker for worker in self._workers if re.search(rf"(?<![\w.-]){re.escape(worker)}(?!\w)", message)
        )

    def show_problem(self, message: str, hint: str) -> None:
        """Say what is wrong with the workers; "" for nothing."""
        self._lost = self.blamed(message)
        self._show()
        if message:
            again = WayOut("Look again", self.look_asked.emit)
            self._notice.tell(message, hint, *((again,) if self._workers else ()))
        else:
            self._notice.clear()

    def _add(self) -> None:
        text = self._address.text().strip()
        if not text:
            self._address.setFocus()
            return
        try:
            endpoint = str(Endpoint.parse(text))
        except WorkerError as error:
            self._notice.tell(error)
            return
        self._address.clear()
        self._notice.clear()
        if endpoint not in self._workers:
            self._change((*self._workers, endpoint))

    def _remove(self, worker: str) -> None:
        self._notice.clear()
        self._address.setFocus()  # the focused button is removed
        self._change(tuple(kept for kept in self._workers if kept != worker))

    def _change(self, workers: tuple[str, ...]) -> None:
        self._workers = workers
        self._show()
        self.edited.emit()

    def _show(self) -> None:
        kit.empty(self._list)
        for worker in self._workers:
            self._list.addWidget(self._row(worker))

    def _row(self, worker: str) -> QWidget:
        words = ElidedLabel(role="caption", text=self._state(worker))
        remove = IconButton(
            self._theme, "close", f"Remove the worker at {worker}", act=lambda: self._remove(worker)
        )
        return kit.holder(kit.row(kit.label(worker, "mono"), (words, 1), remove, spacing=8))

    def _state(self, worker: str) -> str:
        if worker in self._lost:
            return "does not answer"
        names = [device.name for device in self._devices if device.endpoint == worker]
        where = "this machine" if _is_here(worker) else "not protected"
        return f"{', '.join(names) or 'not reached yet'} · {where}"


def _is_here(worker: str) -> bool:
    try:
        return Endpoint.parse(worker).is_loopback
    except WorkerError:
        return False
