"""The composition root: the one place that puts concrete parts together.

Qt is imported last, by the first module of `app.ui`, because PySide6 reads the source of every module that
is imported after it: that took a tenth of the start.
"""

from __future__ import annotations

import gc
import logging
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.base.files import remove_partials
from app.base.paths import Paths, find_paths
from app.care.log import CrashFile, keep_log, take_crashes
from app.cli.terminal.console import tell
from app.demo import FIRST_PROMPT, REAL_PAIR, SMALL_PAIR, read_prompts
from app.engine.errors import UserError
from app.engine.plugins import TriedDrafters
from app.engine.process.host import make_home
from app.saved.chats.store import ChatStore
from app.saved.settings import Settings, SettingsStore
from app.ui.state.chat_side import ChatSide, SettingsInUse
from app.ui.state.engine_session import EngineSession
from app.ui.state.servers import Servers
from app.ui.theme import Theme
from app.ui.theme.style import Styler
from app.ui.widgets.lazy_place import LazyPlace
from app.ui.window.application import BugWatch, EndSignals, make_application
from app.ui.window.main_window import MainWindow
from app.ui.window.rail import Place

if TYPE_CHECKING:
    from PySide6.QtCore import QSize
    from PySide6.QtWidgets import QApplication

    from app.ui.compare.place import ComparePlace
    from app.ui.inspector.place import InspectorPlace
    from app.ui.lessons.place import LessonsPlace
    from app.ui.models.place import ModelsPlace

log = logging.getLogger("draftscope")
SLOW_MODULES = (
    "app.hub.catalogue", "app.hub.downloads", "app.hub.library.library", "app.hub.repo", "app.hub.library",
    "app.hub.hub", "app.lab.drafts",
)  # fmt: skip
"""Modules of the Models place, slow to import: most of them import the Hub's client."""
_HOMES = {"process": "separate process", "thread": "thread of this process"}


def make_window(application: QApplication, paths: Paths, engine: str) -> MainWindow:
    """Build the window and everything behind it; nothing is loaded yet. Raises UserError."""
    paths.prepare()
    is_first = not paths.settings.exists()
    settings_store = SettingsStore(paths.settings, _first_settings(paths))
    drafters = TriedDrafters()
    loaded = settings_store.load(drafters.use)
    settings = loaded.settings
    chat_store = ChatStore(paths.chats)
    theme = Theme(paths.fonts, settings.theme, settings.text_scale, settings.palette, settings.motion)
    theme.setParent(application)
    styler = Styler(application, theme, paths.icons)
    servers = Servers()
    session = EngineSession(partial(make_home, engine), servers.key_of)
    in_use, prompts = SettingsInUse(settings, settings_store, paths), read_prompts(paths)
    places = partial(_make_places, theme, paths, engine)
    window = MainWindow(
        theme, paths, in_use, chat_store, session, servers, _HOMES[engine], prompts, places, drafters
    )
    styler.apply()  # last: earlier, every step of building would style the widgets again
    window.shown_first.connect(partial(_follow_motion, theme))
    window.shown_first.connect(window.load_pair)
    window.shown_first.connect(lambda: _tidy(paths, chat_store))
    window.shown_first.connect(_settle_memory)
    if is_first and settings.target == REAL_PAIR.target:
        window.page.prompt.set_text(FIRST_PROMPT)
    for notice in (*loaded.notices, *window.presets.notices):  # on what could not be restored
        window.page.prompt.notices.tell(notice)
    return window


def _first_settings(paths: Paths) -> Settings:
    """The settings of a first start: SmolLM2 if set-up could fetch it, else the small pair."""
    pair = REAL_PAIR if paths.real_target.is_file() else SMALL_PAIR
    return Settings(pair.target, pair.draft, strategy=pair.strategy)


def _make_places(theme: Theme, paths: Paths, engine: str, chat: ChatSide) -> tuple[Place, ...]:
    """The places that are made when they are first opened, in the order of the rail."""
    inspector = LazyPlace("Inspector", lambda: _make_inspector(theme, chat))
    compare = LazyPlace("Compare", lambda: _make_compare(theme, paths, engine, chat))
    models = LazyPlace("Models", lambda: _make_models(theme, paths, engine, chat), SLOW_MODULES)
    lessons = LazyPlace("Lessons", lambda: _make_lessons(theme, paths, chat))
    return (
        Place("inspector", "Inspector", "Ctrl+E", inspector, _inspector_keys),
        Place("compare", "Compare", "Ctrl+K", compare, _compare_keys),
        Place("models", "Models", "Ctrl+M", models),
        Place("lessons", "Lessons", "Ctrl+Shift+L", lessons, _lesson_keys),
    )


def _inspector_keys() -> list[tuple[str, str]]:
    """The keys of the Inspector for Help, when that is first opened."""
    from app.ui.inspector.place import KEYS
    from app.ui.inspector.round_view import KEYS as ROUND
    from app.ui.inspector.timeline import KEYS as TIMELINE

    return [*KEYS, *ROUND, *TIMELINE]


def _lesson_keys() -> list[tuple[str, str]]:
    """The keys of the Lessons place for Help, when that is first opened."""
    from app.ui.lessons.place import KEYS
    from app.ui.lessons.player import KEYS as PLAYER
    from app.ui.lessons.stage import KEYS as STAGE

    return [*PLAYER, *KEYS, *STAGE]


def _compare_keys() -> list[tuple[str, str]]:
    """The keys of Compare for Help, when that is first opened."""
    from PySide6.QtGui import QKeySequence

    from app.ui.compare.place import RUN_KEY

    return [("Run the measurement", QKeySequence(RUN_KEY).toString(QKeySequence.SequenceFormat.NativeText))]


def _make_inspector(theme: Theme, chat: ChatSide) -> InspectorPlace:
    """Build the Inspector, when it is first opened."""
    from app.ui.inspector.place import InspectorPlace

    return InspectorPlace(theme, chat.inspection, chat.engine, chat.open_trace)


def _make_lessons(theme: Theme, paths: Paths, chat: ChatSide) -> LessonsPlace:
    """Build the Lessons place, when it is first opened."""
    from app.lessons.lesson import lesson_files, read_tour, tell_lesson
    from app.ui.lessons.course import Course
    from app.ui.lessons.place import LessonsPlace

    course = Course([tell_lesson(path) for path in lesson_files(paths.resources)])
    plan = read_tour(paths.resources)
    return LessonsPlace(theme, course, plan, chat.inspection, chat.go, chat.tour_wanted)


def _make_models(theme: Theme, paths: Paths, engine: str, chat: ChatSide) -> ModelsPlace:
    """Build the Models place, when it is first opened."""
    from app.lab.drafts import KeptDrafts
    from app.lab.suites import built_in
    from app.ui.models.drafts_page import DraftsPage
    from app.ui.models.drafts_table import DraftsWork
    from app.ui.models.hub_session import HubSession
    from app.ui.models.place import ModelsPlace

    session = HubSession(paths, chat.settings, chat.use_models)
    work = DraftsWork(chat.engine, partial(make_home, engine), KeptDrafts(paths.data / "drafts"))
    drafts = DraftsPage(theme, session, chat, work, built_in(paths.resources))
    return ModelsPlace(theme, session, chat.models_in_use, drafts)


def _make_compare(theme: Theme, paths: Paths, engine: str, chat: ChatSide) -> ComparePlace:
    """Build the Compare place, when it is first opened."""
    from app.lab.suites import built_in
    from app.ui.compare.place import ComparePlace

    return ComparePlace(
        theme, chat, partial(make_home, engine), paths.data / "compare", built_in(paths.resources)
    )


def _follow_motion(theme: Theme) -> None:
    """Follow the desktop's setting for less motion, if it has one."""
    if sys.platform == "linux":
        from app.ui.theme.system_motion import SystemMotion

        SystemMotion(theme)


def _tidy(paths: Paths, chats: ChatStore) -> None:
    """Remove expired chats, and the partial files of killed processes."""
    try:
        chats.purge()
        for folder in (paths.config, paths.data):
            remove_partials(folder)
    except (UserError, OSError) as error:  # the next start tries again
        log.warning("Not tidied: %s", error)


def _settle_memory() -> None:
    """Exempt everything that exists now from garbage collection.

    A full collection over all modules and widgets takes some 50 ms: a dropped frame.
    """
    gc.collect()
    gc.freeze()


def run_window(engine: str = "process", trace: str | None = None, demo: bool = False) -> int:
    """Open the window and run until it is closed; returns the exit code. Raises UserError."""
    application = make_application()
    paths = find_paths()
    watch = BugWatch(tell)
    window = make_window(application, paths, engine)
    keep_log(paths.logs)
    watch.met.connect(window.care.tell_bug)
    crashes = _watch_crashes(paths.logs, window)
    if trace is not None:
        window.open_trace(Path(trace))
    if not window.restored:
        window.resize(first_size(window.screen().availableSize()))
    window.show()
    EndSignals(application).came.connect(partial(_end, application, window))
    if demo:
        window.shown_first.connect(window.start_demo)
    code = application.exec()
    if window.isVisible():
        window.close()  # the display is gone: that ends the loop alone
    watch.close()
    if crashes is not None:
        crashes.close()
    return code


def first_size(screen: QSize) -> QSize:
    """The size of a window that was never open before: smaller than the screen, for its frame."""
    from PySide6.QtCore import QSize

    return QSize(1280, 800).boundedTo(screen - QSize(16, 48))


def _watch_crashes(folder: Path, window: MainWindow) -> CrashFile | None:
    """Report how earlier windows died, and begin the record of this one; None if it cannot be written."""
    try:
        for death in take_crashes(folder):
            window.care.tell_death(death)
        return CrashFile(folder)
    except OSError as error:
        log.warning("No crash file: %s", error)
        return None


def _end(application: QApplication, window: MainWindow, number: int) -> None:
    """Close the window, whatever dialog is open; the exit code names the signal."""
    window.close()
    application.exit(128 + number)
