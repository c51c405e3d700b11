"""Sections of the Settings place: rows with names on the left, for problems and for the network. Also the
controller that reports, checks and repairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication, QShowEvent
from PySide6.QtWidgets import QLabel, QLayout, QPushButton, QVBoxLayout, QWidget

from app.base import numbers
from app.base.paths import Paths
from app.engine.errors import UserError
from app.engine.process.messages import DevicesListed, Failed, ListDevices
from app.ui.state.chat_side import SettingsInUse
from app.ui.state.engine_session import Activity, EngineSession, Reply
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.ask_first import AskFirst, Confirmation
from app.ui.widgets.background import Askers, Query
from app.ui.widgets.notice import Notice, Notices, WayOut
from app.ui.widgets.segmented import OFFLINE, OfflineSwitch

if TYPE_CHECKING:
    from app.care.check import DataFault


class SettingsSection(QWidget):
    """Rows of settings; the page gives the names of all sections one width (`labels`)."""

    def __init__(self) -> None:
        super().__init__()
        self.labels: list[QLabel] = []
        # No QFormLayout: of rows with long sentences it cuts one, and gives the other its room.
        self._grid = kit.grid((24, 12), stretch=1, on=self)
        self._grid.setContentsMargins(0, 8, 0, 0)

    def add_row(self, name: str, contents: QLayout, *, top: bool = True) -> None:
        """Add a row at the end, its name at the `top`, or else in the middle."""
        label = kit.label(name, "secondary")
        if top:
            label.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop)
        self.labels.append(label)
        row = self._grid.rowCount()
        self._grid.addWidget(label, row, 0)
        self._grid.addLayout(contents, row, 1)

    def add_line(self, name: str, *controls: QWidget) -> None:
        """Add a row of controls, from the left."""
        self.add_row(name, kit.row(*controls, kit.Spring(1), spacing=8), top=False)


REPORT = "Copies versions, devices, settings and the last lines of the log as text. It contains no chat text."
CHECK = "Looks for damaged or leftover files in chats, lists and measurements. Asks before it repairs."
COPIED = "Report copied to the clipboard."


class CareSettings(SettingsSection):
    """Buttons that report and check, and what was found; `CareController` does the work."""

    report_requested = Signal(bool)
    """Copy a report; whether with the texts of the settings."""
    check_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.report_words = _words(REPORT)
        self._texts = kit.check(name="Include the system prompt and the stop strings", kind="bare")
        self._texts.setToolTip("Otherwise the report contains only their lengths")
        copy = kit.button("Copy a report", lambda: self.report_requested.emit(self._texts.isChecked()))
        self.check_words = _words(CHECK)
        self._check = kit.button("Check my data", self.check_requested)
        self.asking = AskFirst()
        report = _beside(self.report_words, copy)
        told = "Include the system prompt and the stop strings of the settings"
        label = kit.label(told, wrap=True, plain=True, selectable=True)
        report.addLayout(kit.row(self._texts, (label, 1), spacing=6))
        check = _beside(self.check_words, self._check)
        check.addWidget(self.asking)
        self.add_row("Report", report)
        self.add_row("Check and repair", check)

    def show_check(self, words: str, *, busy: bool = False) -> None:
        """Say what was found or done. While `busy`, no second check starts."""
        self.asking.withdraw()
        self.check_words.setText(words)
        self._check.setEnabled(not busy)

    def ask(self, found: Confirmation) -> None:
        """Ask whether to repair what was found."""
        self.asking.ask(lambda: found)


def _words(text: str) -> QLabel:
    """Words whose first line is beside the name of their row."""
    return kit.label(text, wrap=True, plain=True, selectable=True, side=Qt.AlignmentFlag.AlignTop)


def _beside(words: QLabel, button: QPushButton) -> QVBoxLayout:
    row = kit.row((words, 1), (button, 0, Qt.AlignmentFlag.AlignTop), spacing=8)
    return kit.column(row, spacing=8)


NO_TOKEN = "No token is saved. You can enter one when you open a gated or private repository."
REMOVE = (
    "Remove it from this computer? Other programs that use it lose it too. It stays valid on the Hub until "
    "you revoke it there."
)


class NetworkSettings(SettingsSection):
    """A switch and a token. The Hub's client is imported when this is first shown."""

    def __init__(self, theme: Theme, settings: SettingsInUse) -> None:
        super().__init__()
        self._settings = settings
        self.offline = OfflineSwitch()
        self.offline.toggled.connect(lambda offline: settings.change(offline=offline))
        settings.changed.connect(self._settings_changed)
        self._offline_words = _words(OFFLINE)
        self.token_words = kit.label("", wrap=True, plain=True, selectable=True)
        self.remove = kit.button("Remove…", self._ask, name="Remove the Hugging Face token")
        self.asking = AskFirst()
        self.notice = Notice(theme)
        switch = kit.row((self.offline, 0, Qt.AlignmentFlag.AlignTop), (self._offline_words, 1), spacing=6)
        row = kit.row((self.token_words, 1), self.remove, spacing=8)
        token = kit.column(row, self.asking, self.notice, spacing=8)
        self.add_row("Offline mode", switch)
        self.add_row("Hub token", token)

    def _settings_changed(self, names: set[str]) -> None:
        if "offline" in names:
            self._show_offline(forced=not self.offline.isEnabled())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        from app.hub.hub import is_forced_offline

        self._show_offline(forced=is_forced_offline())
        self._show_token()

    def _show_offline(self, forced: bool) -> None:
        self._offline_words.setText(self.offline.show_mode(self._settings.now.offline, forced=forced))

    def _show_token(self) -> None:
        from app.hub.hub import kept_token

        kept = kept_token()
        where = "From" if kept is not None and kept.by_variable else "Saved in"
        self.token_words.setText(f"{where} {kept}" if kept is not None else NO_TOKEN)
        self.remove.setVisible(kept is not None and not kept.by_variable)
        self.asking.refresh()

    def _ask(self) -> None:
        self.notice.clear()
        self.asking.ask(self._confirmation)

    def _confirmation(self) -> Confirmation | None:
        from app.hub.hub import kept_token

        kept = kept_token()
        return Confirmation(REMOVE, "Remove", self._remove, kept) if kept is not None else None

    def _remove(self) -> None:
        from app.hub.hub import forget_token

        try:
            forget_token()
        except UserError as error:
            self.notice.tell(error)
        self._show_token()


T = TypeVar("T")

_IDLE = (Activity.EMPTY, Activity.READY)
_BUSY = "unknown: the engine is busy"
SHOWN = 12
"""The most findings that are listed here; the command lists all."""


class CareController(QObject):
    """Connects the section of the settings with the engine, which knows the devices, and with the user's
    folders."""

    def __init__(self, view: CareSettings, notices: Notices, paths: Paths, session: EngineSession) -> None:
        """`notices` show what went wrong."""
        super().__init__()
        self._view = view
        self._notices = notices
        self._paths = paths
        self._session = session
        self._askers = Askers()
        self.close = self._askers.close
        view.report_requested.connect(self.copy_report)
        view.check_requested.connect(self.check)

    @Slot(bool)
    def copy_report(self, texts: bool = False, copied: Callable[[], object] = lambda: None) -> None:
        """Put a report on the clipboard, as soon as the engine has said what devices it has; then `copied` is
        called."""

        def put(devices: DevicesListed | str) -> None:
            from app.care.report import make_report

            QGuiApplication.clipboard().setText(make_report(self._paths, devices, texts=texts))
            self._view.report_words.setText(COPIED)
            copied()

        def told(answer: Reply) -> None:
            if isinstance(answer, DevicesListed):
                put(answer)
            elif isinstance(answer, Failed):
                put(f"unknown: {answer.message} {answer.hint}")

        if self._session.activity in _IDLE:
            self._view.report_words.setText("Making the report…")
            self._session.ask(ListDevices(0), told)
        else:
            pair = self._session.pair
            put(f"{_BUSY}, on {pair.devices}" if pair is not None else _BUSY)

    def tell_bug(self, what: str) -> None:
        """Say that a part of this program failed."""
        hint = "Your chats are safe. If something looks wrong, restart Draftscope."
        self._tell_with_report(f"Something went wrong in Draftscope: {what}.", hint, "bug")

    def tell_death(self, how: str) -> None:
        """Say that an earlier window ended without being closed."""
        hint = (
            "Your chats are safe. The log says where it happened, and a report includes the end of the log."
        )
        self._tell_with_report(f"Draftscope ended unexpectedly: {how}.", hint, "death")

    def _tell_with_report(self, message: str, hint: str, cause: str) -> None:
        notices = self._notices

        def copy() -> None:
            self.copy_report(copied=lambda: notices.tell(message, COPIED, cause=cause))

        notices.tell(message, hint, WayOut("Copy a report", copy), cause=cause)

    def check(self) -> None:
        """Look for what is wrong, and say what would be done about it."""
        self._view.show_check("Checking your data…", busy=True)
        self._query(self._found).ask(partial(_look, self._paths))

    def _found(self, findings: tuple[DataFault, ...]) -> None:
        to_do = tuple(finding for finding in findings if finding.mend is not None)
        lines = [f"{finding.words} {finding.remedy}".strip() for finding in findings[:SHOWN]]
        if len(findings) > SHOWN:
            lines.append(f"And {len(findings) - SHOWN:,} more; the command draftscope check lists all.")
        self._view.show_check("\n".join(lines) or "Nothing is damaged.")
        if to_do:
            words = f"Repair {numbers.count(len(to_do), 'finding')} as described? Nothing is deleted."
            self._view.ask(Confirmation(words, "Repair", partial(self._repair, to_do), to_do))

    def _repair(self, findings: tuple[DataFault, ...]) -> None:
        self._view.show_check("Repairing…", busy=True)
        self._query(partial(self._repaired, len(findings))).ask(partial(_mend, findings))

    def _repaired(self, count: int, failed: tuple[str, ...]) -> None:
        done = f"{count - len(failed)} of {numbers.count(count, 'finding')} repaired."
        self._view.show_check("\n".join([done, *failed[:SHOWN]]))

    def _query(self, answered: Callable[[T], None]) -> Query[T]:
        """A question whose answer goes to `answered`."""
        return Query(self._askers, answered, lambda error: self._view.show_check(str(error)))


def _look(paths: Paths) -> tuple[DataFault, ...]:
    from app.care.check import check_data  # with the lab, which the start does without

    return check_data(paths)


def _mend(findings: tuple[DataFault, ...]) -> tuple[str, ...]:
    from app.care.check import repair

    return repair(findings)
