"""Sections of the Settings place: rows with their names on the left, for when something goes wrong and for
the network."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFormLayout, QLabel, QLayout, QPushButton, QVBoxLayout, QWidget

from app.engine.errors import UserError
from app.ui.state.settings_in_use import SettingsInUse
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.ask_first import AskFirst, Confirmation
from app.ui.widgets.notice import Notice
from app.ui.widgets.segmented import OFFLINE, OfflineSwitch, Switch


class SettingsSection(QWidget):
    """Rows of settings; the page gives the names of all sections one width (`labels`)."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[QLabel] = []
        self._form = QFormLayout(self)
        self._form.setContentsMargins(0, 8, 0, 0)
        self._form.setHorizontalSpacing(24)
        self._form.setVerticalSpacing(12)

    def add_row(self, name: str, contents: QLayout) -> None:
        """Add a row at the end."""
        label = kit.label(name, "secondary")
        label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.labels.append(label)
        self._form.addRow(label, contents)


REPORT = (
    "Versions, devices, settings and the last lines of the log, as text for a message. Nothing that was said "
    "is in it."
)
CHECK = "Looks for what is damaged or left over in chats, lists and measurements. Nothing is changed."
COPIED = "The report is on the clipboard."


class CareSettings(SettingsSection):
    """Two buttons and what they found; `CareController` does the work."""

    report_requested = Signal(bool)
    """Copy a report; whether with the texts of the settings."""
    check_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.report_words = kit.label(REPORT, wrap=True, plain=True, selectable=True)
        self._texts = Switch(theme, "With the system prompt and the stop strings")
        self._texts.setToolTip("Otherwise the report has only their lengths")
        copy = kit.button("Copy a report", lambda: self.report_requested.emit(self._texts.isChecked()))
        self.check_words = kit.label(CHECK, wrap=True, plain=True, selectable=True)
        self._check = kit.button("Check my data", self.check_requested)
        self.asking = AskFirst()
        report = _beside(self.report_words, copy)
        texts = kit.row(
            self._texts,
            (
                kit.label(
                    "With the system prompt and the stop strings of the settings",
                    wrap=True,
                    plain=True,
                    selectable=True,
                ),
                1,
            ),
            spacing=12,
        )
        report.addLayout(texts)
        check = _beside(self.check_words, self._check)
        check.addWidget(self.asking)
        self.add_row("Report", report)
        self.add_row("Check and repair", check)

    def show_check(self, words: str, *, busy: bool = False) -> None:
        """Say what was found or done; while `busy` no second check begins."""
        self.asking.withdraw()
        self.check_words.setText(words)
        self._check.setEnabled(not busy)

    def ask(self, found: Confirmation) -> None:
        """Ask whether what was found is to be mended."""
        self.asking.ask(lambda: found)


def _beside(words: QLabel, button: QPushButton) -> QVBoxLayout:
    row = kit.row((words, 1), (button, 0, Qt.AlignmentFlag.AlignTop), spacing=8)
    return kit.column(row, spacing=8)


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
        self._offline_words = kit.label(OFFLINE, wrap=True, plain=True, selectable=True)
        self.token_words = kit.label("", wrap=True, plain=True, selectable=True)
        self.remove = kit.button("Remove…", self._ask, name="Remove the Hugging Face token")
        self.asking = AskFirst()
        self.notice = Notice(theme)
        switch = kit.row((self.offline, 0, Qt.AlignmentFlag.AlignTop), (self._offline_words, 1), spacing=12)
        row = kit.row((self.token_words, 1), self.remove, spacing=8)
        token = kit.column(row, self.asking, self.notice, spacing=8)
        self.add_row("Offline mode", switch)
        self.add_row("Hub token", token)

    def _settings_changed(self, names: set[str]) -> None:
        if "offline" in names:
            self._show_offline(forced=not self.offline.isEnabled())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        from app.hub.token import is_forced_offline

        self._show_offline(forced=is_forced_offline())
        self._show_token()

    def _show_offline(self, forced: bool) -> None:
        self._offline_words.setText(self.offline.show_mode(self._settings.now.offline, forced=forced))

    def _show_token(self) -> None:
        from app.hub.token import kept_token

        kept = kept_token()
        where = "From" if kept is not None and kept.by_variable else "Saved in"
        self.token_words.setText(f"{where} {kept}" if kept is not None else NO_TOKEN)
        self.remove.setVisible(kept is not None and not kept.by_variable)
        self.asking.refresh()

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
