"""The form for a running server: its address, its key if needed, and its description. Also the list of
workers, other machines that compute layers, added by address."""

from __future__ import annotations

import re
from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from app.engine.devices.memory import Device
from app.engine.devices.workers import DEFAULT_PORT, Endpoint, WorkerError
from app.engine.errors import SettingError
from app.engine.types import PairInfo, split_list
from app.servers.address import baseline_words, can_keep, fate_words, server_address, server_words
from app.ui.state.servers import Servers
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import ElidedLabel
from app.ui.widgets.notice import Notice, WayOut
from app.ui.widgets.words import parameters

ASKING = "Contacting the server. It is asked for one token."


class ServerForm(QWidget):
    """Asks a server what it is."""

    described = Signal(object)
    """The PairInfo of a server that answered the question of this form."""

    def __init__(self, theme: Theme, servers: Servers, action: str) -> None:
        """`action` is the text of the button that asks."""
        super().__init__()
        self._servers = servers
        self._action = action
        self._at = ""  # the server that is shown
        self._asked = False  # by this form
        self.address = kit.field("Address of the server", "http://127.0.0.1:8080", entered=self._act)
        self.act = kit.button(action, self._act)
        self.key = kit.field("Key of the server", "Key", entered=self._act, secret=True)
        self.keep = QCheckBox("Save it in the system's keyring")
        self.notice = Notice(theme)
        self.facts = kit.label(
            "", "secondary", wrap=True, plain=True, selectable=True
        )  # a server's own words
        self._key_row = kit.holder(kit.row((self.key, 1), self.keep, spacing=8))
        row = kit.row((self.address, 1), self.act, spacing=8)
        for part in (self._key_row, self.notice, self.facts):
            part.hide()
        kit.column(row, self.notice, self._key_row, self.facts, spacing=8, on=self)
        servers.changed.connect(self._changed)

    def set_address(self, address: str, *, fixed: bool) -> None:
        """Show a server; `fixed`: the address cannot be edited here."""
        self.address.setText(address)
        self.address.setReadOnly(fixed)
        if address != self._at:
            self._at, self._asked = address, False
            self.notice.clear()
            self.key.clear()
        self._show()

    def _act(self) -> None:
        """Ask the server, or stop asking it."""
        if self._servers.known(self._at).asking:
            self._servers.stop(self._at)
            return
        self.notice.clear()
        try:
            address = server_address(self.address.text())
        except SettingError as error:
            self.notice.tell(error)
            return
        key = self.key.text().strip() if address == self._at else ""
        self._at, self._asked = address, True
        self._servers.ask(address, key, keep=self.keep.isChecked())

    def _changed(self, address: str) -> None:
        if address != self._at:
            return
        self._show()
        known = self._servers.known(address)
        if not self._asked or known.asking:
            return
        self._asked = False
        if known.problem is not None:
            hint = "Type its key below." if known.wants_key else known.problem.hint
            self.notice.tell(known.problem.message, hint)
        if known.wants_key:
            self.key.setFocus(Qt.FocusReason.OtherFocusReason)
        elif known.info is not None:
            self.key.clear()
            self.described.emit(known.info)

    def _show(self) -> None:
        known = self._servers.known(self._at)
        self.act.setText("Stop" if known.asking else self._action)
        self._key_row.setVisible(known.wants_key)
        if known.wants_key:
            self.keep.setVisible(can_keep())
        told = ASKING if known.asking else told_words(known.info) if known.info is not None else ""
        self.facts.setText(told)
        self.facts.setVisible(bool(told))


def told_words(info: PairInfo) -> str:
    """What a server reports about itself, one sentence per line."""
    assert info.server is not None
    target = info.target
    model = [target.quantisation, f"{parameters(target.n_params)} parameters" if target.n_params else ""]
    model.append(f"context {target.n_ctx:,} tokens" if target.n_ctx else "")
    lines = [server_words(info.server), ", ".join(part for part in model if part)]
    lines[1] = f"Its model: {lines[1]}." if lines[1] else ""
    lines += [fate_words(info.server), baseline_words(info.server)]
    return "\n".join(line for line in lines if line)


def told_line(info: PairInfo) -> str:
    """What a server reports about itself, in a few words."""
    assert info.server is not None
    target, server = info.target, info.server
    parts = [f"{server.model} {target.quantisation}".strip(), "+".join(server.speculation) or "no drafts"]
    parts.append(f"context {target.n_ctx:,}" if target.n_ctx else "")
    parts.append(f"{server.slots} slots" if server.slots > 1 else "")
    return " · ".join(part for part in parts if part)


WARNING = (
    "The protocol has no encryption and no password. Anyone who can reach a worker's port can use that "
    "machine and read the traffic. Use workers only on a network that you trust."
)
HOW = f"Run on the other machine: draftscope worker --host ITS-ADDRESS --port {DEFAULT_PORT}"


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
            again = WayOut("Check again", self.look_asked.emit)
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
