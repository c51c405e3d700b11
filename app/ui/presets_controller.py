"""Makes the panel of presets act: keeps the list, saves it, puts presets into use."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal, Slot

from app.engine.errors import UserError
from app.presets import Preset, PresetStore
from app.ui.panels.presets_panel import PresetsPanel
from app.ui.settings_in_use import SettingsInUse


class PresetsController(QObject):
    """Between the panel, the file and the window."""

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
        self._show()

    def mark(self) -> None:
        """What is in use has changed."""
        settings = self._settings.now
        self._panel.set_current([one.name for one in self.presets if one.in_use(settings)])

    @Slot(str)
    def _choose(self, name: str) -> None:
        self._panel.notice.clear()
        try:
            self._apply(next(one for one in self.presets if one.name == name))
        except UserError as error:
            self._panel.notice.show_error(error.message, error.hint)
            return
        self.applied.emit()

    @Slot(str)
    def _save(self, name: str) -> None:
        made = Preset.of(name, self._settings.now)
        presets = self._latest()
        if any(one.name == name for one in presets):
            changed = tuple(made if one.name == name else one for one in presets)
        else:
            changed = (*presets, made)
        if self._keep(changed):
            self._panel.field.clear()

    @Slot(str, str)
    def _rename(self, name: str, wanted: str) -> None:
        presets = self._latest()
        if any(one.name == wanted for one in presets):
            self._panel.notice.show_error(f"There is a preset “{wanted}” already.", "Choose another name.")
            return
        changed = tuple(dataclasses.replace(one, name=wanted) if one.name == name else one for one in presets)
        if self._keep(changed):
            self._panel.focus_row(wanted)

    @Slot(str)
    def _delete(self, name: str) -> None:
        presets = self._latest()
        deleted = next(((at, one) for at, one in enumerate(presets) if one.name == name), None)
        if self._keep(tuple(one for one in presets if one.name != name)) and deleted is not None:
            self._deleted = deleted
            self._panel.show_deleted(name)

    @Slot()
    def _undo(self) -> None:
        if self._deleted is None:
            return
        at, preset = self._deleted
        presets = tuple(one for one in self._latest() if one.name != preset.name)
        if self._keep((*presets[:at], preset, *presets[at:])):
            self._panel.focus_row(preset.name)

    def _latest(self) -> tuple[Preset, ...]:
        """What is kept by now: another window may have changed it."""
        return self._store.latest(self.presets)

    def _keep(self, changed: tuple[Preset, ...]) -> bool:
        """Write the list down and show it; False where it could not be written."""
        self._panel.notice.clear()
        try:
            self._store.save(changed)
        except UserError as error:
            self._panel.notice.show_error(error.message, error.hint)
            return False
        self.presets = changed
        self._deleted = None
        self._show()
        return True

    def _show(self) -> None:
        self._panel.hide_deleted()
        self._panel.set_presets(self.presets)
        self.mark()
