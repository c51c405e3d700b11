"""The signals by which a system ends a program: the window is closed as by hand, and nothing is lost."""

from __future__ import annotations

import signal
import socket

from PySide6.QtCore import QObject, QSocketNotifier, Signal, Slot

_NAMES = ("SIGTERM", "SIGHUP", "SIGINT")  # the second is not known everywhere


class EndSignals(QObject):
    """Tells in the window's thread that a signal came. One that is ignored (nohup) stays so."""

    came = Signal(int)
    """The signal's number."""

    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        # Python runs handlers between its own instructions only, and Qt's loop may wait for long: the system
        # writes each signal's number into a socket that Qt looks at.
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
