"""The settings that hold now: everyone reads them here, and what changes them is saved a moment later."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.base.paths import Paths
from app.engine.types import ModelOptions
from app.saved.settings import Settings, SettingsStore

SAVE_DELAY = 500  # milliseconds: a slider that moves is saved once


class SettingsInUse(QObject):
    """One state of the settings, replaced as a whole by every change."""

    changed = Signal(object)
    """A set of names: these settings have other values now."""
    due = Signal()
    """Something was changed a moment ago: it is time to save."""

    def __init__(self, settings: Settings, store: SettingsStore, paths: Paths) -> None:
        super().__init__()
        self.now = settings
        self._store = store
        self._paths = paths
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_DELAY)
        self._timer.timeout.connect(self.due)

    def change(self, **changes: object) -> None:
        """Take over settings by name, and tell which of them have changed."""
        before, self.now = self.now, dataclasses.replace(self.now, **changes)  # type: ignore[arg-type]
        if names := {name for name in changes if getattr(before, name) != getattr(self.now, name)}:
            self.save_soon()
            self.changed.emit(names)

    @Slot()
    def save_soon(self) -> None:
        self._timer.start()

    def save(self, **changes: object) -> None:
        """Write them down with these last changes; raises UserError."""
        self._timer.stop()
        self.now = dataclasses.replace(self.now, **changes)  # type: ignore[arg-type]
        self._store.save(self.now)

    def real(self, options: ModelOptions) -> ModelOptions:
        """The same with the file's real path in place of a symbolic one."""
        return dataclasses.replace(options, path=self._paths.model(options.path))

    def real_pair(self) -> tuple[ModelOptions, ModelOptions | None]:
        """The target and the draft in use, with their real paths."""
        target, draft = self.now.target, self.now.draft
        return self.real(target), self.real(draft) if draft is not None else None
