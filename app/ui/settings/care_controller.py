"""Says what went wrong in the program, copies reports, and checks and repairs the user's data on another
thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, Slot
from PySide6.QtGui import QGuiApplication

from app.base.paths import Paths
from app.engine.process.messages import DevicesListed, Failed
from app.ui.settings.sections import COPIED, CareSettings
from app.ui.state.engine_session import Activity, EngineSession
from app.ui.state.engine_thread import Reply
from app.ui.state.mailbox import Mailbox, call_each
from app.ui.widgets.ask_first import Confirmation
from app.ui.widgets.background import Askers, Query
from app.ui.widgets.notice import Notices, WayOut

if TYPE_CHECKING:
    from app.care.check import DataFault

T = TypeVar("T")

_IDLE = (Activity.EMPTY, Activity.READY)
_BUSY = "not asked for: the engine is at work"
SHOWN = 12
"""Findings that are listed; the command lists all."""


class CareController(QObject):
    """Connects the section of the settings, the engine, which knows the devices, and the user's folders."""

    def __init__(self, view: CareSettings, notices: Notices, paths: Paths, session: EngineSession) -> None:
        """`notices` show what went wrong."""
        super().__init__()
        self._view = view
        self._notices = notices
        self._paths = paths
        self._session = session
        self._askers: Askers | None = None  # from the first check on
        view.report_requested.connect(self.copy_report)
        view.check_requested.connect(self.check)

    def close(self) -> None:
        """Drop what is being looked for."""
        if self._askers is not None:
            self._askers.close()
            self._askers.mailbox.close()

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
                put(f"not known: {answer.message} {answer.hint}")

        if self._session.activity in _IDLE:
            self._view.report_words.setText("The report is being made…")
            self._session.questions.list_devices("", told)
        else:
            pair = self._session.pair
            put(f"{_BUSY}, on {pair.devices}" if pair is not None else _BUSY)

    def tell_bug(self, what: str) -> None:
        """Say that a part of this program failed."""
        hint = "What was said is kept. Where something looks wrong now, start Draftscope again."
        self._tell_with_report(f"Something went wrong in Draftscope: {what}.", hint, "bug")

    def tell_death(self, how: str) -> None:
        """Say that an earlier window ended without being closed."""
        hint = "What was said is kept. The log says where it was, and a report holds the log's end."
        self._tell_with_report(f"Draftscope ended unexpectedly: {how}.", hint, "death")

    def _tell_with_report(self, message: str, hint: str, cause: str) -> None:
        notices = self._notices

        def copy() -> None:
            self.copy_report(copied=lambda: notices.tell(message, COPIED, cause=cause))

        notices.tell(message, hint, WayOut("Copy a report", copy), cause=cause)

    def check(self) -> None:
        """Look for what is wrong, and say what would be done about it."""
        self._view.show_check("Looking through your data…", busy=True)
        self._query(self._found).ask(partial(_look, self._paths))

    def _found(self, findings: tuple[DataFault, ...]) -> None:
        to_do = tuple(finding for finding in findings if finding.mend is not None)
        lines = [f"{finding.words} {finding.remedy}".strip() for finding in findings[:SHOWN]]
        if len(findings) > SHOWN:
            lines.append(f"And {len(findings) - SHOWN:,} more; the command draftscope check lists all.")
        self._view.show_check("\n".join(lines) or "Nothing is damaged.")
        if to_do:
            words = f"Do that for {_things(len(to_do))}? Nothing is deleted."
            self._view.ask(Confirmation(words, "Repair", partial(self._repair, to_do), to_do))

    def _repair(self, findings: tuple[DataFault, ...]) -> None:
        self._view.show_check("Repairing…", busy=True)
        self._query(partial(self._repaired, len(findings))).ask(partial(_mend, findings))

    def _repaired(self, count: int, failed: tuple[str, ...]) -> None:
        done = f"{count - len(failed)} of {_things(count)} mended."
        self._view.show_check("\n".join([done, *failed[:SHOWN]]))

    def _query(self, answered: Callable[[T], None]) -> Query[T]:
        """A question whose answer goes to `answered`."""
        if self._askers is None:
            self._askers = Askers(Mailbox(call_each))
        return Query(self._askers, answered, lambda error: self._view.show_check(str(error)))


def _look(paths: Paths) -> tuple[DataFault, ...]:
    from app.care.check import check_data  # with the lab, which the start does without

    return check_data(paths)


def _mend(findings: tuple[DataFault, ...]) -> tuple[str, ...]:
    from app.care.check import repair

    return repair(findings)


def _things(count: int) -> str:
    return f"{count:,} finding{'s' * (count != 1)}"
