"""The settings in use: read here by all parts of the window, and saved a moment after a change."""

from __future__ import annotations

import dataclasses

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.base.paths import Paths
from app.engine.types import ModelOptions
from app.saved.settings import Settings, SettingsStore

SAVE_DELAY = 500  # milliseconds, so that moving a slider saves once


class SettingsInUse(QObject):
    """The settings, replaced as a whole by every change."""

    changed = Signal(object)
    """The names of the settings that changed, as a set."""
    due = Signal()
    """A change was made a moment ago; the settings should be saved now."""

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
        """Set settings by name, and emit the names of those that changed."""
        before, self.now = self.now, dataclasses.replace(self.now, **changes)  # type: ignore[arg-type]
        if names := {name for name in changes if getattr(before, name) != getattr(self.now, name)}:
            self.save_soon()
            self.changed.emit(names)

    @Slot()
    def save_soon(self) -> None:
        self._timer.start()

    def save(self, **changes: object) -> None:
        """Save the settings with these last changes; raises UserError."""
        self._timer.stop()
        self.now = dataclasses.replace(self.now, **changes)  # type: ignore[arg-type]
        self._store.save(self.now)

    def real(self, options: ModelOptions) -> ModelOptions:
        """The same options with symbolic links in the path resolved."""
        return dataclasses.replace(options, path=self._paths.model(options.path))

    def real_pair(self) -> tuple[ModelOptions, ModelOptions | None]:
        """The target and the draft in use, with their real paths."""
        target, draft = self.now.target, self.now.draft
        return self.real(target), self.real(draft) if draft is not None else None
