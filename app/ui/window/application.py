"""Qt's application under this program's name, its end by a signal of the system, and errors that nothing
caught."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from types import TracebackType

from PySide6 import QtCore
from PySide6.QtWidgets import QApplication

from app import __version__
from app.base.processes import bug_line
from app.ui.widgets.background import Collector


def make_application() -> QApplication:
    """Make Qt's application, with its collector."""
    # Where no font has a script, Qt logs every font that it tries: hundreds of lines.
    QtCore.QLoggingCategory.setFilterRules("qt.text.font.db.info=false")
    application = QApplication(sys.argv[:1])
    application.setApplicationName("Draftscope")
    application.setApplicationVersion(__version__)
    application.setDesktopFileName("draftscope")
    Collector(application)
    return application


_NAMES = ("SIGTERM", "SIGHUP", "SIGINT")  # not every system has SIGHUP


class EndSignals(QtCore.QObject):
    """Reports signals on the window's thread. A signal that is ignored (nohup) stays ignored."""

    came = QtCore.Signal(int)
    """The signal's number."""

    def __init__(self, parent: QtCore.QObject) -> None:
        super().__init__(parent)
        # Python runs handlers only between its own instructions, and Qt's loop may wait long: the system
        # writes each signal's number into a socket that Qt watches.
        self._read_end, self._write_end = socket.socketpair()
        self._read_end.setblocking(False)
        self._write_end.setblocking(False)
        signal.set_wakeup_fd(self._write_end.fileno(), warn_on_full_buffer=False)
        for number in (getattr(signal, name) for name in _NAMES if hasattr(signal, name)):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda _number, _frame: None)
        notifier = QtCore.QSocketNotifier(self._read_end.fileno(), QtCore.QSocketNotifier.Type.Read, self)
        notifier.activated.connect(self._take)

    def _take(self) -> None:
        for number in self._read_end.recv(64)[:1]:
            self.came.emit(number)


log = logging.getLogger("draftscope")
_QT_LEVELS = {
    QtCore.QtMsgType.QtWarningMsg: logging.WARNING,
    QtCore.QtMsgType.QtCriticalMsg: logging.ERROR,
    QtCore.QtMsgType.QtFatalMsg: logging.CRITICAL,
}
_LOGGED = 3  # times that the same error is logged: one that paints itself comes sixty times a second


class BugWatch(QtCore.QObject):
    """Python's hooks for errors on the window's thread and on others, and Qt's for its messages."""

    met = QtCore.Signal(str)
    """A kind of error and its place. It is emitted only the first times, from any thread."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        """`tell` prints lines on standard error."""
        super().__init__()
        self._tell = tell
        self._met: Counter[str] = Counter()
        self._before = sys.excepthook, threading.excepthook
        sys.excepthook = self._uncaught
        threading.excepthook = self._uncaught_on_thread
        self._qt_before = QtCore.qInstallMessageHandler(self._qt_message)

    def close(self) -> None:
        """Restore the earlier hooks."""
        sys.excepthook, threading.excepthook = self._before
        QtCore.qInstallMessageHandler(self._qt_before)

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

    def _qt_message(self, kind: QtCore.QtMsgType, context: QtCore.QMessageLogContext, message: str) -> None:
        self._tell(f"{message}\n")
        level = _QT_LEVELS.get(kind)
        if level is not None and self._is_wanted(message):
            log.log(level, "Qt: %s", message)
            if level >= logging.ERROR:
                self.met.emit(f"Qt says “{message}”")

    def _is_wanted(self, what: str) -> bool:
        self._met[what] += 1
        return self._met[what] <= _LOGGED
