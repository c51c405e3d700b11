"""The window as a whole: models, settings, restart, closing."""

from __future__ import annotations

import time

from PySide6.QtCore import Qt

from tests.ui.windows import Windows


def test_try(windows: Windows) -> None:
    began = time.perf_counter()
    desk = windows.open()
    print("open", time.perf_counter() - began)
    desk.press(Qt.Key.Key_Return)
    item = desk.answered()
    print("answered", time.perf_counter() - began, repr(item.text), desk.texts(), desk.notes())
    b = time.perf_counter()
    item = desk.ask("hello")
    print("answered", time.perf_counter() - b, repr(item.text), desk.notes())
    b = time.perf_counter()
    windows.close(desk)
    print("closed", time.perf_counter() - b)
    b = time.perf_counter()
    again = windows.open()
    print("again", time.perf_counter() - b, again.texts(), again.chats())
