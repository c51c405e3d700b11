"""Showing that something does not happen."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

QUIET_SECONDS = 0.4
"""How long nothing must happen: longer than what the window puts off (`QTimer`s of up to 150 ms) and what the
download queue takes to begin. Nothing ends such a wait early, and on a busy machine it may be too short to
show a fault; what does happen is awaited by its condition instead."""


def stays(look: Callable[[], object]) -> bool:
    """Whether what `look` returns stays as it is for QUIET_SECONDS, while Qt's events are processed."""
    before, until = look(), time.monotonic() + QUIET_SECONDS
    while time.monotonic() < until:
        if "PySide6.QtCore" in sys.modules:
            sys.modules["PySide6.QtCore"].QCoreApplication.processEvents()
        if look() != before:
            return False
        time.sleep(0.005)
    return True
