"""The signals by which a system ends a program: they close the window as a user would, so nothing is lost."""

from __future__ import annotations

import signal
import socket

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot

_NAMES = ("SIGTERM", "SIGHUP", "SIGINT")  # not every system has SIGHUP


class EndSignals(QObject):
    """Reports signals on the window's thread. A signal that is ignored (nohup) stays ignored."""

    came = Signal(int)
    """The signal's number."""

    def __init__(self, parent: QObject) -> None:
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
        notifier = QSocketNotifier(self._read_end.fileno(), QSocketNotifier.Type.Read, self)
        notifier.activated.connect(self._take)

    @Slot()
    def _take(self) -> None:
        for number in self._read_end.recv(64)[:1]:
            self.came.emit(number)
