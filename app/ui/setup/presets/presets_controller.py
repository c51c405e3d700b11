"""Carries out what is chosen in the panel of presets: keeps the list, saves it, puts presets into use."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from app.engine.errors import UserError
from app.saved.presets import Preset, Presets, PresetStore
from app.ui.setup.presets.presets_panel import PresetsPanel
from app.ui.state.settings_in_use import SettingsInUse


class PresetsController(QObject):
    """Connects the panel, the file and the window."""

    applied = Signal()
    """A preset was put into use from the panel."""

    def __init__(
        self,
        panel: PresetsPanel,
        store: PresetStore,
        settings: SettingsInUse,
        apply: Callable[[Preset], None],
    ) -> None:
        """`apply` puts a preset into use, or raises UserError."""
        super().__init__(panel)
        self._panel = panel
        self._store = store
        self._settings = settings
        self._apply = apply
        self._deleted: tuple[int, Preset] | None = None
        loaded = store.load()
        self.presets = loaded.presets
        self.notices = loaded.notices
        panel.chosen.connect(self._choose)
        panel.save_requested.connect(self._save)
        panel.renamed.connect(self._rename)
        panel.delete_requested.connect(self._delete)
        panel.undo_requested.connect(self._undo)
        settings.changed.connect(self._mark)
        self._show()

    @Slot()
    def _mark(self) -> None:
        """Mark the presets that are in use."""
        settings = self._settings.now
        self._panel.set_current([preset.name for preset in self.presets if preset.in_use(settings)])

    @Slot(str)
    def _choose(self, name: str) -> None:
        self._panel.notice.clear()
        try:
            self._apply(next(preset for preset in self.presets if preset.name == name))
        except UserError as error:
            self._panel.notice.tell(error)
            return
        self.applied.emit()

    @Slot(str)
    def _save(self, name: str) -> None:
        made = Preset.of(name, self._settings.now)

        def saved(presets: Presets) -> Presets:
            if any(preset.name == name for preset in presets):
                return tuple(made if preset.name == name else preset for preset in presets)
            return (*presets, made)

        if self._change(saved):
            self._panel.field.clear()

    @Slot(str, str)
    def _rename(self, name: str, wanted: str) -> None:
        def renamed(presets: Presets) -> Presets:
            if any(preset.name == wanted for preset in presets):
                raise UserError(f"There is a preset “{wanted}” already.", "Choose another name.")
            return tuple(
                dataclasses.replace(preset, name=wanted) if preset.name == name else preset
                for preset in presets
            )

        if self._change(renamed):
            self._panel.focus_row(wanted)

    @Slot(str)
    def _delete(self, name: str) -> None:
        found: list[tuple[int, Preset]] = []

        def deleted(presets: Presets) -> Presets:
            found.extend((at, preset) for at, preset in enumerate(presets) if preset.name == name)
            return tuple(preset for preset in presets if preset.name != name)

        if self._change(deleted) and found:
            self._deleted = found[0]
            self._panel.show_deleted(name)

    @Slot()
    def _undo(self) -> None:
        if self._deleted is None:
            return
        at, preset = self._deleted

        def restored(presets: Presets) -> Presets:
            others = tuple(kept for kept in presets if kept.name != preset.name)
            return (*others[:at], preset, *others[at:])

        if self._change(restored):
            self._panel.focus_row(preset.name)

    def _change(self, change: Callable[[Presets], Presets]) -> bool:
        """Change the list on disk and show it; False where that failed."""
        self._panel.notice.clear()
        try:
            self.presets = self._store.change(change, self.presets)
        except UserError as error:
            self._panel.notice.tell(error)
            return False
        self._deleted = None
        self._show()
        return True

    def _show(self) -> None:
        self._panel.hide_deleted()
        self._panel.set_presets(self.presets)
        self._mark()
