"""The panel of presets: saved choices of pair, strategy and sampling."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QHideEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.saved.presets import NAME_LENGTH, Preset
from app.ui.setup.presets.preset_row import PresetRow
from app.ui.theme import Theme
from app.ui.widgets.fields.grid_keys import GridKeys
from app.ui.widgets.notice import Notice
from app.ui.widgets.text.elided import ElidedLabel

EMPTY = "No presets yet. Name what is in use now, to bring it back with one click."


class PresetsPanel(QWidget):
    """Shows the presets; what the user chooses is emitted as signals and done elsewhere."""

    chosen = Signal(str)
    save_requested = Signal(str)
    """The name for what is in use; a preset of that name is replaced."""
    renamed = Signal(str, str)
    """(name, new name)"""
    delete_requested = Signal(str)
    undo_requested = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.rows: list[PresetRow] = []
        self._keys = GridKeys(self, lambda: [row.controls for row in self.rows])
        title = QLabel("Presets")
        title.setProperty("role", "title")
        help_line = QLabel("A preset keeps the pair, the strategy and the sampling.")
        help_line.setProperty("role", "caption")
        self._empty = QLabel(EMPTY)
        self._empty.setProperty("role", "secondary")
        self._empty.setWordWrap(True)
        self.notice = Notice(theme)
        holder = QWidget()  # rows that are added later still come before the field in the tab order
        self._list = QVBoxLayout(holder)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(2)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(title)
        layout.addWidget(help_line)
        layout.addWidget(self._empty)
        layout.addWidget(holder)
        layout.addWidget(self._build_undo())
        layout.addWidget(self.notice)
        layout.addLayout(self._build_save())

    # ------------------------------------------------------------------ what the window says

    def set_presets(self, presets: Sequence[Preset]) -> None:
        """Show these presets."""
        for row in self.rows:
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
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
        """The deletion can no longer be undone."""
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
        self._undo_row = QWidget()
        self._undo_words = ElidedLabel()
        self.undo = QPushButton("Undo")
        self.undo.setProperty("kind", "flat")
        self.undo.clicked.connect(self.undo_requested)
        row = QHBoxLayout(self._undo_row)
        row.setContentsMargins(8, 0, 0, 0)
        row.addWidget(self._undo_words, 1)
        row.addWidget(self.undo)
        self._undo_row.hide()
        return self._undo_row

    def _build_save(self) -> QHBoxLayout:
        self.field = QLineEdit()
        self.field.setPlaceholderText("Save current as…")
        self.field.setAccessibleName("Name of a new preset")
        self.field.setMaxLength(NAME_LENGTH)
        self.field.textChanged.connect(self._name_changed)
        self.field.returnPressed.connect(self._save)
        self.save = QPushButton("Save")
        self.save.clicked.connect(self._save)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self.field, 1)
        row.addWidget(self.save)
        return row

    # ------------------------------------------------------------------ what the user does

    @property
    def _name(self) -> str:
        return " ".join(self.field.text().split())

    @Slot()
    def _name_changed(self) -> None:
        name = self._name
        self.save.setEnabled(bool(name))
        known = any(row.name == name for row in self.rows)
        self.save.setText("Replace" if known else "Save")

    @Slot()
    def _save(self) -> None:
        if self._name:
            self.save_requested.emit(self._name)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        if not event.spontaneous():  # and not only together with its window
            self.hide_deleted()
            self.notice.clear()
