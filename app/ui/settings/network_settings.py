"""Settings of the network: offline mode, and the Hugging Face token that is kept on this computer."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout

from app.engine.errors import UserError
from app.ui.settings.section import SettingsSection, words_label
from app.ui.state.settings_in_use import SettingsInUse
from app.ui.theme import Theme
from app.ui.widgets.fields.offline_switch import OFFLINE, OfflineSwitch
from app.ui.widgets.notice import Notice
from app.ui.widgets.work.ask_first import AskFirst, Confirmation

NO_TOKEN = "No token is saved. Gated repositories ask for one when you fetch them."
REMOVE = (
    "Remove it from this computer? Other programs that use it lose it too. On the Hub it stays valid until "
    "you revoke it there."
)


class NetworkSettings(SettingsSection):
    """A switch and a token. The Hub's client is imported when this is first shown."""

    def __init__(self, theme: Theme, settings: SettingsInUse) -> None:
        super().__init__()
        self._settings = settings
        self.offline = OfflineSwitch(theme)
        self.offline.toggled.connect(lambda offline: settings.change(offline=offline))
        settings.changed.connect(self._settings_changed)
        self._offline_words = words_label(OFFLINE)
        self._token_words = words_label("")
        self.remove = QPushButton("Remove…")
        self.remove.setAccessibleName("Remove the Hugging Face token")
        self.remove.clicked.connect(self._ask)
        self.asking = AskFirst()
        self.notice = Notice(theme)
        switch = QHBoxLayout()
        switch.setSpacing(12)
        switch.addWidget(self.offline, 0, Qt.AlignmentFlag.AlignTop)
        switch.addWidget(self._offline_words, 1)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._token_words, 1)
        row.addWidget(self.remove)
        token = QVBoxLayout()
        token.setSpacing(8)
        token.addLayout(row)
        token.addWidget(self.asking)
        token.addWidget(self.notice)
        self.add_row("Offline mode", switch)
        self.add_row("Hub token", token)

    @Slot(object)
    def _settings_changed(self, names: set[str]) -> None:
        if "offline" in names:
            self._show_offline(forced=not self.offline.isEnabled())

    @property
    def token_words(self) -> str:
        return self._token_words.text()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        from app.hub.offline import is_forced_offline

        self._show_offline(forced=is_forced_offline())
        self._show_token()

    def _show_offline(self, forced: bool) -> None:
        self._offline_words.setText(self.offline.show_mode(self._settings.now.offline, forced=forced))

    def _show_token(self) -> None:
        from app.hub.token import kept_token

        kept = kept_token()
        where = "From" if kept is not None and kept.by_variable else "Saved in"
        self._token_words.setText(f"{where} {kept}" if kept is not None else NO_TOKEN)
        self.remove.setVisible(kept is not None and not kept.by_variable)
        self.asking.refresh()

    @Slot()
    def _ask(self) -> None:
        self.notice.clear()
        self.asking.ask(self._confirmation)

    def _confirmation(self) -> Confirmation | None:
        from app.hub.token import kept_token

        kept = kept_token()
        return Confirmation(REMOVE, "Remove", self._remove, kept) if kept is not None else None

    def _remove(self) -> None:
        from app.hub.token import forget_token

        try:
            forget_token()
        except UserError as error:
            self.notice.tell(error)
        self._show_token()
