"""Whole windows over real engines, each with its own home folder, and the actions of a user."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PySide6.QtCore import QCoreApplication, QEvent, QRect, Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QListView, QWidget
from pytestqt.qtbot import QtBot

from app.base.paths import Paths, find_paths
from app.engine.process.host import EngineHome, ProcessHome
from app.engine.record.trace import Trace
from app.engine.types import ModelOptions
from app.saved.settings import Settings, SettingsStore
from app.ui.chat.prompt_edit import PromptEdit
from app.ui.state.chat_side import SettingsInUse
from app.ui.state.engine_session import BUSY, Activity
from app.ui.theme.style import Styler
from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.transcript.layout.block import Item
from app.ui.widgets.form import FoldButton
from app.ui.widgets.lazy_place import LazyPlace
from app.ui.widgets.notice import Notice
from app.ui.window.main_window import MainWindow
from tests.ui.named import named

PATIENCE = 60_000  # milliseconds; the machine may be busy
_DOUBT = ": does not work with these settings"


def settings_in_use(paths: Paths, **changes: object) -> SettingsInUse:
    """Settings without a window: the defaults and these changes."""
    return SettingsInUse(Settings(**changes), SettingsStore(paths.settings), paths)  # type: ignore[arg-type]


class Desk:
    """A window, and the actions of its user."""

    def __init__(
        self, qtbot: QtBot, window: MainWindow, paths: Paths, homes: Sequence[EngineHome] = ()
    ) -> None:
        """`homes` are those of the engines that were started so far."""
        self.qtbot = qtbot
        self.window = window
        self.paths = paths
        self.page = window.page
        self.header = window.header
        self.controller = window.controller
        self.session = window.session
        prompt = window.page.prompt.focusProxy()
        assert isinstance(prompt, PromptEdit)
        self.prompt = prompt
        self._homes = homes

    # ------------------------------------------------------------------ waiting

    def until(self, condition: Callable[[], object], timeout: int = PATIENCE) -> None:
        self.qtbot.waitUntil(lambda: bool(condition()), timeout=timeout)

    def until_ready(self) -> None:
        self.until(lambda: self.session.activity is Activity.READY)

    def until_laid_out(self) -> None:
        """Wait until the layout is settled, with the layouts that it causes."""
        before: list[QRect] = []

        def same() -> bool:
            now = [widget.geometry() for widget in self.window.findChildren(QWidget)]
            still = now == before
            before[:] = now
            return still

        self.until(same)

    def until_streaming(self, tokens: int = 1) -> None:
        """Wait until the answer on the screen has so many tokens and is still growing."""
        self.until(lambda: self.page.transcript.live and self.tokens() >= tokens)
        assert self.session.activity is Activity.GENERATING

    def busy(self) -> bool:
        return self.session.activity in BUSY

    # ------------------------------------------------------------------ acting

    def press(self, key: Qt.Key, widget: QWidget | None = None, **keys: Qt.KeyboardModifier) -> None:
        self.qtbot.keyClick(widget or self.prompt, key, **keys)

    def type(self, text: str) -> None:
        self.page.prompt.set_text(text)
        self.press(Qt.Key.Key_Return)

    def type_strategy(self, spec: str) -> None:
        """Type a strategy as text into its panel."""
        line = self.header.strategy_panel.text.line
        line.selectAll()
        self.qtbot.keyClicks(line, spec)
        self.press(Qt.Key.Key_Return, line)

    def ask(self, text: str) -> AnswerItem:
        """Send a prompt and wait for the whole answer."""
        self.type(text)
        return self.answered()

    def ask_refused(self, text: str) -> None:
        """Send a prompt that is longer than the context."""
        self.type(text)
        self.until(lambda: "context" in self.error() and not self.busy())

    def answered(self) -> AnswerItem:
        self.until(self.busy)
        self.until_ready()
        return self.answers()[-1]

    def open_trace(self, file: Path) -> None:
        """Open a trace file, and wait until it is shown or refused."""
        self.window.open_trace(file)
        self.until_opened()

    def until_opened(self) -> None:
        """Wait until no trace file is being read."""
        self.until(lambda: not self.window.opener.opening)

    def load(self, target: Path | str | None = None, draft: Path | None = None, **changes: Any) -> None:
        """Apply a target or a draft from its panel, and wait until that has ended."""
        panel = self.header.target_panel if target is not None else self.header.draft_panel
        options = dataclasses.replace(ModelOptions(str(target or draft)), **changes)
        panel.applied.emit(options)
        assert self.session.activity is Activity.LOADING
        self.until(lambda: self.session.activity is not Activity.LOADING)

    # ------------------------------------------------------------------ looking

    @property
    def engine_pid(self) -> int:
        """The process id of the engine that was started last."""
        home = self._homes[-1]
        assert isinstance(home, ProcessHome)
        self.until(lambda: home.pid)
        return home.pid or 0

    def system_prompt(self) -> PromptEdit:
        """The field of the system prompt, unfolded."""
        (fold,) = self.page.prompt.findChildren(FoldButton)
        fold.setChecked(True)
        return named(self.page.prompt, "System prompt", PromptEdit)

    def place(self, name: str) -> Any:
        """A place that is made when first opened; None before."""
        lazy = next(place.widget for place in self.window.places if place.name == name)
        assert isinstance(lazy, LazyPlace)
        return lazy.place

    def items(self) -> list[Item]:
        return self.page.transcript.stack.items

    def answers(self) -> list[AnswerItem]:
        return [item for item in self.items() if isinstance(item, AnswerItem)]

    def tokens(self) -> int:
        answers = self.answers()
        return sum(len(round.emitted) for round in answers[-1].answer.rounds) if answers else 0

    @property
    def trace(self) -> Trace | None:
        """The trace of the answer that the numbers are about."""
        answer = self.controller.shown.answer
        return answer.trace if answer is not None else None

    def texts(self) -> list[str]:
        return [item.text for item in self.items()]

    def fates(self) -> list[list[tuple[str, str, int, int]]]:
        """Every token on the screen with its fate."""
        return [
            [(span.text, span.fate, span.round, span.place) for span in item.spans] for item in self.answers()
        ]

    def notes(self) -> list[str]:
        return [item.note.message for item in self.items() if item.note is not None]

    def error(self) -> str:
        """The error that the prompt box shows."""
        return " ".join(_words(notice) for notice in self.page.prompt.notices.strips)

    def offers(self) -> list[str]:
        """The buttons beside the error."""
        return [words for notice in self.page.prompt.notices.strips for words in notice.ways_out]

    def panel_error(self, panel: QWidget) -> str:
        return _words(panel.notice)  # type: ignore[attr-defined]

    def saved(self) -> dict[str, object]:
        """The settings file."""
        self.window.save()
        return json.loads(self.paths.settings.read_text())

    def chats(self) -> list[str]:
        """The titles in the list of chats."""
        rows = self.page.chats.findChild(QListView).model()
        return [rows.index(row, 0).data() for row in range(rows.rowCount())]


def chip_text(chip: QAbstractButton) -> str:
    """What a chip says is in use, without its caption."""
    return chip.accessibleName().partition(" ")[2].removesuffix(_DOUBT)


def doubted(chip: QAbstractButton) -> bool:
    """Whether a chip says that what is in use does not work."""
    return chip.accessibleName().endswith(_DOUBT)


def _words(notice: Notice) -> str:
    return f"{notice.message} {notice.hint}".strip() if notice.isVisibleTo(notice.parentWidget()) else ""


class Windows:
    """Opens windows on the same home folder and closes those left open."""

    def __init__(self, qtbot: QtBot, home: Path, pair: tuple[Path, Path]) -> None:
        self._qtbot = qtbot
        self.pair = pair
        self.homes: list[EngineHome] = []
        self._open: list[Desk] = []
        self.paths = find_paths({"DRAFTSCOPE_HOME": str(home)})
        # A theme takes the application's font size as the system's, and other tests need no style sheet.
        self._look = QApplication.font(), QApplication.palette()

    def settings(self, **changes: object) -> None:
        """Write a settings file: the tiny pair, short answers, no network, and these changes."""
        target, draft = (ModelOptions(str(path)) for path in self.pair)
        defaults = {"target": target, "draft": draft, "max_tokens": 24, "offline": True}
        SettingsStore(self.paths.settings).save(Settings(**defaults | changes))  # type: ignore[arg-type]

    def open(
        self, engine: str = "thread", ready: bool = True, first: bool = False, **changes: object
    ) -> Desk:
        """Open a window; with changes of settings, or without a settings file, on new settings; `first`:
        without any, as on a first start."""
        from app.wiring import make_window

        if changes or not (first or self.paths.settings.exists()):
            self.settings(**changes)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        window = make_window(application, self.paths, engine)
        desk = Desk(self._qtbot, window, self.paths, self.homes)
        self._open.append(desk)
        window.resize(1280, 800)
        window.show()
        if ready:
            desk.until_ready()
        return desk

    def close(self, desk: Desk) -> None:
        """Close a window as a user does."""
        self._open.remove(desk)
        theme = desk.window.appearance.theme
        desk.window.close()
        desk.window.deleteLater()
        theme.deleteLater()
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        for styler in application.findChildren(Styler):
            styler.deleteLater()
        # The window goes first, so that it does not follow the changes of the look.
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        font, palette = self._look
        application.setStyleSheet("")
        QApplication.setFont(font)
        QApplication.setPalette(palette)

    def close_all(self) -> None:
        for desk in list(self._open):
            self.close(desk)


def seconds_until(condition: Callable[[], object], limit: float) -> float:
    """Seconds until a condition holds while events are processed; `limit` where it does not hold by then."""
    began = time.perf_counter()
    while not condition() and time.perf_counter() - began < limit:
        QCoreApplication.processEvents()
        time.sleep(0.0005)
    return time.perf_counter() - began
