"""Presets: saved choices of pair, strategy and sampling, to pick, rename or delete in their panel."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QWidget

from app.base.paths import BUNDLED
from app.engine.errors import UserError
from app.engine.types import ModelOptions
from app.saved.presets import NAME_LENGTH, Preset, Presets, PresetStore
from app.ui.setup.sampling_panel import chip_words
from app.ui.state.chat_side import SettingsInUse
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.buttons import TwoLineButton
from app.ui.widgets.icons import IconButton
from app.ui.widgets.keys import GridKeys
from app.ui.widgets.labels import ElidedLabel
from app.ui.widgets.notice import Notice
from app.ui.widgets.words import file_name


def preset_words(preset: Preset) -> str:
    """What a preset puts into use: "draft-simple · greedy · target.gguf + draft.gguf"."""
    pair = _model(preset.target)
    pair += f" + {_model(preset.draft)}" if preset.draft is not None else ", no draft"
    return " · ".join((preset.strategy, chip_words(preset.sampling)[0], pair))


def _model(options: ModelOptions) -> str:
    name = file_name(options.path)
    return f"bundled {name.removesuffix('.gguf')}" if options.path.startswith(BUNDLED) else name


class PresetRow(QWidget):
    """The button, and the other actions; the name is edited in place."""

    chosen = Signal()
    renamed = Signal(str)
    """The new name, not empty and different from the old one."""
    delete_asked = Signal()

    def __init__(self, theme: Theme, preset: Preset) -> None:
        super().__init__()
        self.name = preset.name
        self.button = TwoLineButton(theme, preset.name, preset_words(preset))
        self.button.clicked.connect(self.chosen)
        self.field = kit.field(f"New name of {preset.name}", entered=self._finish, most=NAME_LENGTH)
        self.field.hide()
        self.rename = IconButton(theme, "pencil", f"Rename {preset.name} (F2)", act=self.edit)
        self.delete = IconButton(theme, "trash", f"Delete {preset.name} (Del)", act=self.delete_asked)
        self.controls = (self.button, self.rename, self.delete)
        self.field.installEventFilter(self)
        kit.row((self.button, 1), (self.field, 1), self.rename, self.delete, spacing=4, on=self)

    def edit(self) -> None:
        """Let the name be edited; Enter saves it, Escape does not."""
        self.field.setText(self.name)
        self._show_field(True)
        self.field.setFocus(Qt.FocusReason.OtherFocusReason)
        self.field.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle keys that the focused control did not use."""
        if event.key() == Qt.Key.Key_F2 and not self.field.isVisible():
            self.edit()
        elif event.key() == Qt.Key.Key_Delete and not self.field.isVisible():
            self.delete_asked.emit()
        else:
            super().keyPressEvent(event)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Escape in the field ends the renaming; it does not close the panel or stop the answer."""
        keys = (QEvent.Type.ShortcutOverride, QEvent.Type.KeyPress)
        if not isinstance(event, QKeyEvent) or event.type() not in keys:
            return False
        if event.key() != Qt.Key.Key_Escape:
            return False
        event.accept()
        if event.type() == QEvent.Type.KeyPress:
            self._leave()
        return True

    def _finish(self) -> None:
        name = " ".join(self.field.text().split())
        if name and name != self.name:
            self.renamed.emit(name)
        else:
            self._leave()

    def _leave(self) -> None:
        self._show_field(False)
        self.button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_field(self, shown: bool) -> None:
        self.setMinimumHeight(self.button.sizeHint().height())  # the rows below stay where they are
        self.field.setVisible(shown)
        for control in self.controls:
            control.setVisible(not shown)


EMPTY = "No presets yet. Save the current setup to restore it with one click."


class PresetsPanel(QWidget):
    """Shows the presets; what the user chooses is emitted as signals and done elsewhere."""

    chosen = Signal(str)
    save_requested = Signal(str)
    """The name for what is in use; a preset of that name is replaced."""
    renamed = Signal(str, str)
    """(name, new name)"""
    delete_requested = Signal(str)
    undo_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.rows: list[PresetRow] = []
        self._keys = GridKeys(self, lambda: [row.controls for row in self.rows])
        help_line = kit.label("A preset saves the models, the strategy and the sampling.", "caption")
        self._empty = kit.label(EMPTY, "secondary", wrap=True)
        self.notice = Notice(theme)
        self._list = kit.column(spacing=2)
        kit.column(
            kit.label("Presets", "title"),
            help_line,
            self._empty,
            kit.holder(self._list),  # rows added later still come before the field in the tab order
            self._build_undo(),
            self.notice,
            self._build_save(),
            spacing=8,
            on=self,
        )

    # ------------------------------------------------------------------ what the window says

    def set_presets(self, presets: Sequence[Preset]) -> None:
        """Show these presets."""
        kit.empty(self._list)
        self.rows = [self._row(preset) for preset in presets]
        self._empty.setVisible(not self.rows)
        self._name_changed()

    def set_current(self, names: Sequence[str]) -> None:
        """Mark the presets in use: two may be the same under different names."""
        for row in self.rows:
            row.button.set_current(row.name in names)

    def focus_row(self, name: str) -> None:
        """Focus a preset."""
        for row in self.rows:
            if row.name == name:
                row.button.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_deleted(self, name: str) -> None:
        """Say that a preset was deleted, and offer to undo it while the panel is open."""
        self._undo_words.set_text(f"Deleted “{name}”")
        self._undo_row.show()
        self.undo.setFocus(Qt.FocusReason.OtherFocusReason)

    def hide_deleted(self) -> None:
        """Withdraw the offer, because the deletion can no longer be undone."""
        self._undo_row.hide()

    # ------------------------------------------------------------------ building

    def _row(self, preset: Preset) -> PresetRow:
        row = PresetRow(self._theme, preset)
        name = preset.name
        row.chosen.connect(lambda: self.chosen.emit(name))
        row.renamed.connect(lambda wanted: self.renamed.emit(name, wanted))
        row.delete_asked.connect(lambda: self.delete_requested.emit(name))
        for control in row.controls:
            self._keys.watch(control)
        self._list.addWidget(row)
        row.show()  # now: the layout would show it later, and it may be focused before that
        return row

    def _build_undo(self) -> QWidget:
        self._undo_words = ElidedLabel()
        self.undo = kit.button("Undo", self.undo_requested, kind="flat")
        self._undo_row = kit.holder(kit.row((self._undo_words, 1), self.undo, margins=(8, 0, 0, 0)))
        self._undo_row.hide()
        return self._undo_row

    def _build_save(self) -> QHBoxLayout:
        self.field = kit.field(
            "Name of a new preset",
            "Save current as…",
            entered=self._save,
            typed=self._name_changed,
            most=NAME_LENGTH,
        )
        self.save = kit.button("Save", self._save)
        return kit.row((self.field, 1), self.save, spacing=8)

    # ------------------------------------------------------------------ what the user does

    @property
    def _name(self) -> str:
        return " ".join(self.field.text().split())

    def _name_changed(self) -> None:
        name = self._name
        self.save.setEnabled(bool(name))
        known = any(row.name == name for row in self.rows)
        self.save.setText("Replace" if known else "Save")

    def _save(self) -> None:
        if self._name:
            self.save_requested.emit(self._name)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not event.spontaneous():  # and not only together with its window
            self.hide_deleted()
            self.notice.clear()


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

    def _mark(self) -> None:
        """Mark the presets that are in use."""
        settings = self._settings.now
        self._panel.set_current([preset.name for preset in self.presets if preset.in_use(settings)])

    def _choose(self, name: str) -> None:
        self._panel.notice.clear()
        try:
            self._apply(next(preset for preset in self.presets if preset.name == name))
        except UserError as error:
            self._panel.notice.tell(error)
            return
        self.applied.emit()

    def _save(self, name: str) -> None:
        made = Preset.of(name, self._settings.now)

        def saved(presets: Presets) -> Presets:
            if any(preset.name == name for preset in presets):
                return tuple(made if preset.name == name else preset for preset in presets)
            return (*presets, made)

        if self._change(saved):
            self._panel.field.clear()

    def _rename(self, name: str, wanted: str) -> None:
        def renamed(presets: Presets) -> Presets:
            if any(preset.name == wanted for preset in presets):
                raise UserError(f"A preset named “{wanted}” already exists.", "Choose another name.")
            return tuple(
                dataclasses.replace(preset, name=wanted) if preset.name == name else preset
                for preset in presets
            )

        if self._change(renamed):
            self._panel.focus_row(wanted)

    def _delete(self, name: str) -> None:
        found: list[tuple[int, Preset]] = []

        def deleted(presets: Presets) -> Presets:
            found.extend((at, preset) for at, preset in enumerate(presets) if preset.name == name)
            return tuple(preset for preset in presets if preset.name != name)

        if self._change(deleted) and found:
            self._deleted = found[0]
            self._panel.show_deleted(name)

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
        """Change the list on disk and show it; False if that failed."""
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
