"""Fixtures of the tests of the window."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.base.paths import find_paths
from app.engine.process.host import EngineHome, Take
from app.engine.types import ModelOptions
from app.ui.theme import Theme
from app.ui.theme.style import Styler
from app.ui.widgets.background import Collector
from tests.files.tiny import Tiny
from tests.ui.homes import Homes
from tests.ui.windows import PATIENCE, Desk, Windows

for wait in (QtBot.waitUntil, QtBot.waitSignal, QtBot.waitExposed, QtBot.waitActive):
    assert wait.__kwdefaults__ is not None
    wait.__kwdefaults__["timeout"] = PATIENCE  # pytest-qt gives up after 5 s


@pytest.fixture(autouse=True)
def own_templates(request: pytest.FixtureRequest) -> None:
    """Where a test does not count processes."""
    if "fresh_templates" not in request.fixturenames:
        request.getfixturevalue("kept_templates")


@pytest.fixture
def fresh_templates() -> None:
    """Each engine starts its own process for chat templates."""


@pytest.fixture(scope="session")
def collector(qapp: QApplication) -> Collector:
    return Collector(qapp)


@pytest.fixture(autouse=True)
def collected_here(collector: Collector) -> Iterator[None]:
    """As in the application, garbage is collected by the window's collector."""
    yield
    collector.collect_due()


@pytest.fixture(autouse=True)
def mouse_let_go(qapp: QApplication) -> Iterator[None]:
    """A double click made by a test leaves the button down for the next test."""
    yield
    if QApplication.mouseButtons() != Qt.MouseButton.NoButton:
        QTest.mouseRelease(QWidget(), Qt.MouseButton.LeftButton)


@pytest.fixture
def theme(qtbot: QtBot) -> Iterator[Theme]:
    made = Theme(find_paths().fonts, "light")
    yield made
    made.deleteLater()


@pytest.fixture
def styled(qapp: QApplication, theme: Theme) -> Iterator[Theme]:
    """The application in our style for one test."""
    before = qapp.palette(), qapp.font()
    styler = Styler(qapp, theme, find_paths().icons)
    styler.apply()
    yield theme
    theme.changed.disconnect(styler.apply)
    styler.deleteLater()
    qapp.setStyleSheet("")
    qapp.setPalette(before[0])
    qapp.setFont(before[1])


@pytest.fixture
def windows(
    qtbot: QtBot, tmp_path: Path, pair_files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Windows]:
    """Whole windows over the tiny pair, on a home folder of their own."""
    import app.wiring

    # Without a collection, a test process keeps every window of every test.
    monkeypatch.setattr("app.wiring._settle_memory", lambda: None)
    made = Windows(qtbot, tmp_path / "home", pair_files)
    make_home = app.wiring.make_home  # type: ignore[attr-defined] # as it is imported there

    def remember(engine: str, take: Take | None = None) -> EngineHome:
        made.homes.append(make_home(engine, take))
        return made.homes[-1]

    monkeypatch.setattr("app.wiring.make_home", remember)
    yield made
    made.close_all()


@pytest.fixture
def homes(monkeypatch: pytest.MonkeyPatch) -> Homes:
    """Engines of windows that say what the test tells them to."""
    made = Homes()
    monkeypatch.setattr("app.wiring.make_home", lambda _engine, take: made(take))
    return made


@pytest.fixture(scope="session")
def slow_target(tiny_file: Callable[[Tiny], Path]) -> ModelOptions:
    """A target that fills its whole context in seconds."""
    return ModelOptions(str(tiny_file(Tiny(name="slow", n_layers=6, n_embd=128, n_ff=512, n_ctx=8192))))


@pytest.fixture
def slow(windows: Windows, slow_target: ModelOptions) -> Callable[..., Desk]:
    """A function that opens a window whose answers take seconds."""

    def make(engine: str = "thread", ready: bool = True) -> Desk:
        return windows.open(engine, ready, target=slow_target, draft=None, strategy="none", max_tokens=8000)

    return make
