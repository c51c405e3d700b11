"""What each picture shows, and how a user gets there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QWidget

from app import wiring
from app.base.paths import find_paths
from app.saved.settings import Settings, SettingsStore
from app.ui.compare.chips import SetupBar
from app.ui.state.engine_session import Activity
from app.ui.window.application import make_application
from app.ui.window.main_window import MainWindow
from tests.benchmarks.ui.window import turn
from tests.screenshots.picture import FOLDER, save
from tests.ui.named import all_named

SIZE = 1280, 860
_STILL = 10  # looks, 20 ms apart


class Visitor:
    """A window and its user."""

    def __init__(self, window: MainWindow) -> None:
        self.window = window

    def click(self, name: str) -> None:
        """Click a button as soon as it can be clicked."""
        turn(lambda: any(button.isEnabled() for button in self._buttons(name)))
        QTest.mouseClick(self._buttons(name)[0], Qt.MouseButton.LeftButton)

    def _buttons(self, name: str) -> list[QAbstractButton]:
        return all_named(self.window, name, QAbstractButton)

    def work(self, name: str) -> None:
        """Click a button, and wait until the work of the engine that it begins is over."""
        session, seen = self.window.session, set[Activity]()

        def see() -> None:
            seen.add(session.activity)

        session.changed.connect(see)
        self.click(name)
        turn(lambda: bool(seen - {Activity.READY}) and session.activity is Activity.READY)
        session.changed.disconnect(see)

    def take(self, name: str) -> None:
        """Save a picture of the window once its layout is settled."""
        before: list[object] = []
        still = 0  # looks without a change: numbers follow within a tenth of a second

        def settled() -> bool:
            nonlocal still
            now = [widget.geometry() for widget in self.window.findChildren(QWidget)]
            still = still + 1 if now == before or still > _STILL else 0  # `turn` asks again at its end
            before[:] = now
            return still > _STILL

        turn(settled)
        file = FOLDER / f"{name}.png"
        save(self.window.grab().toImage(), file)
        print(f"{file}: {file.stat().st_size / 1000:.0f} kB", flush=True)

    def take_both(self, name: str) -> None:
        """Save it light and dark."""
        self.take(f"{name}-light")
        self.window.settings.change(theme="dark")
        self.take(f"{name}-dark")
        self.window.settings.change(theme="light")


def chat(visitor: Visitor) -> None:
    visitor.click("Chat")
    visitor.work("One name, everywhere")
    visitor.work("Measure baseline")
    visitor.click("Dismiss this notice")
    visitor.take_both("chat")


def inspector(visitor: Visitor) -> None:
    """Of the chat's answer."""
    visitor.click("Chat")
    visitor.click("Inspect this round")
    for _round in range(2):  # back to a draft that was partly rejected
        QTest.keyClick(visitor.window.focusWidget(), Qt.Key.Key_Left)
    visitor.take("inspector")


def compare(visitor: Visitor) -> None:
    visitor.click("Compare (Ctrl+K)")
    bar = visitor.window.findChild(SetupBar)
    assert isinstance(bar, SetupBar)
    amount = replace(bar.setup.amount, per_category=4)
    bar.set_setup(replace(bar.setup, categories=("code", "rewrite"), amount=amount))
    visitor.work("Run")
    visitor.take("compare")


def lesson(visitor: Visitor) -> None:
    visitor.click("Lessons (Ctrl+Shift+L)")
    visitor.click("7  Temperature: p, q and the residual · SmolLM2")
    visitor.click("Next")
    visitor.click("2: It is rejected")
    visitor.take_both("lesson")


SCENES: dict[str, Callable[[Visitor], None]] = {
    scene.__name__: scene for scene in (chat, inspector, compare, lesson)
}


def visit(names: Sequence[str]) -> None:
    """Open the window, and show these scenes, or all."""
    with opened(*SIZE) as window:
        for name in names or SCENES:
            SCENES[name](Visitor(window))


@contextmanager
def opened(width: int, height: int) -> Iterator[MainWindow]:
    """The window over an engine process, ready."""
    paths = find_paths()
    SettingsStore(paths.settings).save(Settings(theme="light", offline=True))
    window = wiring.make_window(make_application(), paths, "process")
    window.resize(width, height)
    window.show()
    turn(lambda: window.session.activity is Activity.READY)
    yield window
    window.close()
