"""The settings in use: read here by all parts of the window, and saved a moment after a change."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from PySide6.QtCore import QObject, QTimer, Signal

from app.base.paths import Paths
from app.engine.types import ModelOptions
from app.saved.settings import Settings, SettingsStore

SAVE_DELAY = 500  # milliseconds, so that moving a slider saves once
_PAIR = ("target", "draft", "server")  # chosen together
LENT = (*_PAIR, "strategy", "sampling", "max_tokens", "stop")


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
        self.before: Mapping[str, object] = {}
        """The user's own LENT settings, by name, while others are lent: these are saved, and given back."""
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SAVE_DELAY)
        self._timer.timeout.connect(self.due)

    def change(self, **changes: object) -> None:
        """Set settings by name, and emit the names of those that changed."""
        before, self.now = self.now, dataclasses.replace(self.now, **changes)  # type: ignore[arg-type]
        if names := {name for name in changes if getattr(before, name) != getattr(self.now, name)}:
            if names & set(_PAIR):
                names |= set(_PAIR) & set(self.before)
            self.before = {name: value for name, value in self.before.items() if name not in names}
            self.save_soon()
            self.changed.emit(names)

    def lend(self, before: Settings) -> None:
        """Remember what `before` has in place of the settings in use: a demo's, for as long as it is shown.
        One that is changed meanwhile is the user's own again."""
        self.before = {name: getattr(before, name) for name in LENT}
        self.save_soon()

    def save_soon(self) -> None:
        self._timer.start()

    def save(self, **changes: object) -> None:
        """Save the settings with these last changes; raises UserError."""
        self._timer.stop()
        self.now = dataclasses.replace(self.now, **changes)  # type: ignore[arg-type]
        self._store.save(self.own)

    @property
    def own(self) -> Settings:
        """The user's own settings: those in use, with what was lent given back."""
        return dataclasses.replace(self.now, **self.before)  # type: ignore[arg-type]

    def real(self, options: ModelOptions) -> ModelOptions:
        """The same options with symbolic links in the path resolved."""
        return dataclasses.replace(options, path=self._paths.model(options.path))

    def real_pair(self) -> tuple[ModelOptions, ModelOptions | None]:
        """The target and the draft in use, with their real paths."""
        target, draft = self.now.target, self.now.draft
        return self.real(target), self.real(draft) if draft is not None else None
