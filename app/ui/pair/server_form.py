"""The form for a running server: its address, its key if it needs one, and what it reports about itself."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QWidget

from app.engine.errors import SettingError
from app.engine.types import PairInfo
from app.servers.address import baseline_words, can_keep, fate_words, server_address, server_words
from app.ui.state.servers import Servers
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.notice import Notice
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
