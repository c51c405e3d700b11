"""Applies the list of drafter files: reads them, offers what they bring, and leaves out those that do
harm."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.engine.drafters.outside.tried_drafters import TriedDrafters
from app.engine.errors import SettingError
from app.engine.strategy import StrategySpec
from app.ui.settings.drafter_files import DrafterFiles
from app.ui.state.engine.engine_session import BUSY, EngineSession
from app.ui.state.settings_in_use import SettingsInUse


class DraftersController(QObject):
    """Connects the list, the known strategies, and the engine, which is sent the files."""

    used = Signal()
    """Strategies may have come or gone."""

    def __init__(
        self,
        files: DrafterFiles,
        drafters: TriedDrafters,
        session: EngineSession,
        settings: SettingsInUse,
    ) -> None:
        super().__init__()
        self._files = files
        self._drafters = drafters
        self._session = session
        self._settings = settings
        files.files_changed.connect(self._files_changed)

    def use(self, files: tuple[str, ...]) -> None:
        """Register the strategies of exactly these files, and say what is wrong with the others."""
        problems = self._drafters.use(files)
        self._files.set_files(files, problems)
        self._session.drafters = tuple(file for file in files if file not in problems)

    @Slot(object)
    def _files_changed(self, files: tuple[str, ...]) -> None:
        """Use exactly these drafter files; what they bring is offered at once."""
        settings = self._settings
        if self._session.activity in BUSY:
            self._files.notice.tell("The engine is still at work.", "Stop the answer first.")
            return
        if files == settings.now.drafters:  # nothing added or removed: to be tried again
            self._drafters.forget()
        self.use(files)
        settings.change(drafters=files)
        before = settings.now.strategy
        try:
            StrategySpec.parse(before)
        except SettingError:
            settings.change(strategy=settings.now.usual_strategy)
            self._files.notice.tell(f"{before} was in use.", f"The strategy is {settings.now.strategy} now.")
        self.used.emit()
