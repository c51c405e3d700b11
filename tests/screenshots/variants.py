"""Every state of the window in twelve variants: three sizes, light and dark, text at 1.0 and 1.6.

    python -m tests.screenshots --states FOLDER [SCENE …]

These pictures are looked at and not kept. Each file is FOLDER/STATE-WIDTH-THEME-SCALE.png.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.ui.window.main_window import MainWindow
from tests.benchmarks.ui.window import turn
from tests.screenshots.scenes import Visitor

SIZES = (1024, 768), (1600, 1000), (1920, 1080)
THEMES = "light", "dark"
SCALES = 1.0, 1.6
_CALM = 0.25  # seconds without a change of any widget's place


class StateVisitor(Visitor):
    """A user who shows each state in every variant."""

    def __init__(self, window: MainWindow, folder: Path) -> None:
        super().__init__(window)
        self._folder = folder

    def variants(
        self, state: str, *, of: QWidget | None = None, again: Callable[[], object] = lambda: None
    ) -> None:
        """Take a state's pictures, and leave the window at 1600 × 1000, light, text at 1.0. `of` is another
        window; `again` restores in each variant what does not outlast it, such as a pointer's place."""
        settings, window = self.window.settings, of or self.window
        for (width, height), scale, theme in itertools.product(SIZES, SCALES, THEMES):
            settings.change(theme=theme, text_scale=scale)
            window.resize(width, height)
            self.calm()
            again()
            picture = window.grab().toImage()
            file = self._folder / f"{state}-{width}-{theme}-{scale}.png"
            if not picture.save(str(file)):
                raise OSError(f"cannot write {file}")
        settings.change(theme="light", text_scale=1.0)
        window.resize(1600, 1000)
        self.calm()
        print(state, flush=True)

    def calm(self) -> None:
        """Wait until the layout is settled."""
        before: list[object] = []
        since = time.monotonic()

        def settled() -> bool:
            nonlocal since
            now = [widget.geometry() for widget in self.window.findChildren(QWidget)]
            if now != before:
                since = time.monotonic()
            before[:] = now
            return time.monotonic() - since > _CALM

        turn(settled)


Scene = Callable[[StateVisitor], None]
