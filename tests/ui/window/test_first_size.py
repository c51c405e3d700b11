"""The size of a window that was never open before, and of one that was."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QSize

from app.ui.window.main_window import SMALLEST
from app.wiring import first_size
from tests.ui.windows import Windows


@pytest.mark.parametrize(
    ("screen", "size"), [((1920, 1080), (1280, 800)), ((1024, 768), (1008, 720)), ((1366, 768), (1280, 720))]
)
def test_a_first_window_fits_the_screen_with_its_frame(
    screen: tuple[int, int], size: tuple[int, int]
) -> None:
    assert first_size(QSize(*screen)).toTuple() == size
    assert size[0] >= SMALLEST[0] and size[1] >= SMALLEST[1]


def test_a_narrow_window_too_is_known_to_have_been_open_before(windows: Windows) -> None:
    desk = windows.open()
    assert not desk.window.restored
    desk.window.resize(SMALLEST[0] + 10, 600)
    windows.close(desk)
    assert windows.open().window.restored
