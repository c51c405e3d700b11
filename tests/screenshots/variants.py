"""Every state of the window in twelve variants: three sizes, light and dark, text at 1.0 and 1.6.

    python -m tests.screenshots --states FOLDER [SCENE …]

These pictures are looked at and not kept. Each file is FOLDER/STATE-WIDTH-THEME-SCALE.png; of what scrolls
there is one for each screenful: …-2.png, …-3.png.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QWidget

from app.ui.window.main_window import MainWindow
from tests.benchmarks.ui.window import turn
from tests.screenshots.scenes import Visitor

SIZES = (1024, 768), (1600, 1000), (1920, 1080)
THEMES = "light", "dark"
SCALES = 1.0, 1.6
_CALM = 0.15  # seconds without a change of any widget's place
_LONGEST = 3.0  # seconds to wait for that: what runs is never calm


class StateVisitor(Visitor):
    """A user who shows each state in every variant."""

    def __init__(self, window: MainWindow, folder: Path) -> None:
        super().__init__(window)
        self.folder = folder

    def variants(
        self,
        state: str,
        *,
        of: QWidget | None = None,
        again: Callable[[], object] = lambda: None,
        scroll: QAbstractScrollArea | None = None,
        sizes: tuple[tuple[int, int], ...] = SIZES,
    ) -> None:
        """Take a state's pictures, and leave the window at 1600 × 1000, light, text at 1.0. `of` is another
        window; `again` restores in each variant what does not outlast it, such as a pointer's place or a
        menu; `scroll` is turned screenful by screenful."""
        settings, window = self.window.settings, of or self.window
        for scale, theme, (width, height) in itertools.product(SCALES, THEMES, sizes):  # styles take longest
            settings.change(theme=theme, text_scale=scale)
            window.resize(width, height)
            self.calm()
            name = f"{state}-{width}-{theme}-{scale}"
            bar = scroll.verticalScrollBar() if scroll is not None else None
            if bar is not None:
                bar.setValue(0)
            again()
            self._take(name, window)
            page = 1
            while bar is not None and bar.value() < bar.maximum():
                page += 1
                bar.setValue(bar.value() + bar.pageStep())
                self._take(f"{name}-{page}", window)
        settings.change(theme="light", text_scale=1.0)
        window.resize(1600, 1000)
        self.calm()
        print(state, flush=True)

    def _take(self, name: str, window: QWidget) -> None:
        """Save a picture of a window and of the menu over it, and close the menu."""
        self.calm()
        picture = window.grab().toImage()
        if (menu := QApplication.activePopupWidget()) is not None:
            painter = QPainter(picture)
            painter.drawPixmap(window.mapFromGlobal(menu.pos()), menu.grab())
            painter.end()
            menu.close()
        file = self.folder / f"{name}.png"
        if not picture.save(str(file)):
            raise OSError(f"cannot write {file}")

    def calm(self) -> None:
        """Wait until the layout is settled."""
        before: list[object] = []
        began = since = time.monotonic()
        calm = False  # for good: `turn` asks again at its end

        def settled() -> bool:
            nonlocal since, calm
            now = [widget.geometry() for widget in self.window.findChildren(QWidget)]
            if now != before:
                since = time.monotonic()
            before[:] = now
            calm = calm or time.monotonic() - since > _CALM or time.monotonic() - began > _LONGEST
            return calm

        turn(settled)


Scene = Callable[[StateVisitor], None]
