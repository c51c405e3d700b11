"""Errors that nothing caught: logged, printed, and told to the user; the window stays open."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from types import TracebackType

from PySide6.QtCore import QMessageLogContext, QObject, QtMsgType, Signal, qInstallMessageHandler

from app.base.bugs import bug_line

log = logging.getLogger("draftscope")
_QT_LEVELS = {
    QtMsgType.QtWarningMsg: logging.WARNING,
    QtMsgType.QtCriticalMsg: logging.ERROR,
    QtMsgType.QtFatalMsg: logging.CRITICAL,
}
_LOGGED = 3  # times that the same error is logged: one that paints itself comes sixty times a second


class BugWatch(QObject):
    """Python's hooks for errors on the window's thread and on others, and Qt's for its messages."""

    met = Signal(str)
    """A kind of error and its place, the first times that it comes; from any thread."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """`tell` prints lines on standard error."""
        super().__init__()
        self._tell = tell
        self._met: Counter[str] = Counter()
        self._before = sys.excepthook, threading.excepthook
        sys.excepthook = self._uncaught
        threading.excepthook = self._uncaught_on_thread
        self._qt_before = qInstallMessageHandler(self._qt_message)

    def close(self) -> None:
        """Put the earlier hooks back."""
        sys.excepthook, threading.excepthook = self._before
        qInstallMessageHandler(self._qt_before)

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        self._take(error.with_traceback(trace), bug_line(error))

    def _uncaught_on_thread(self, told: threading.ExceptHookArgs) -> None:
        if told.exc_value is not None and not issubclass(told.exc_type, SystemExit):
            name = told.thread.name if told.thread is not None else "a thread"
            self._take(told.exc_value, f"{bug_line(told.exc_value)} (on the thread {name})")

    def _take(self, error: BaseException, what: str) -> None:
        self._tell("".join(traceback.format_exception(error)))  # what went wrong may quote a file
        if self._is_wanted(what):
            log.error("%s", what, exc_info=error)
            self.met.emit(what)

    def _qt_message(self, kind: QtMsgType, context: QMessageLogContext, message: str) -> None:
        self._tell(f"{message}\n")
        level = _QT_LEVELS.get(kind)
        if level is not None and self._is_wanted(message):
            log.log(level, "Qt: %s", message)
            if level >= logging.ERROR:
                self.met.emit(f"Qt says “{message}”")

    def _is_wanted(self, what: str) -> bool:
        self._met[what] += 1
        return self._met[what] <= _LOGGED
