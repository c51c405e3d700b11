"""One preset to pick, rename or delete."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QWidget

from app.base.paths import BUNDLED
from app.engine.types import ModelOptions
from app.saved.presets import NAME_LENGTH, Preset
from app.ui.setup.sampling_panel import chip_words
from app.ui.theme import Theme
from app.ui.widgets.fields.two_line_button import TwoLineButton
from app.ui.widgets.icons import IconButton
from app.ui.widgets.words.model_words import file_name


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
        self.field = QLineEdit()
        self.field.setMaxLength(NAME_LENGTH)
        self.field.setAccessibleName(f"New name of {preset.name}")
        self.field.returnPressed.connect(self._finish)
        self.field.hide()
        self.rename = IconButton(theme, "pencil", f"Rename {preset.name} (F2)")
        self.rename.clicked.connect(self.edit)
        self.delete = IconButton(theme, "trash", f"Delete {preset.name} (Del)")
        self.delete.clicked.connect(self.delete_asked)
        self.controls = (self.button, self.rename, self.delete)
        self.field.installEventFilter(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.button, 1)
        row.addWidget(self.field, 1)
        row.addWidget(self.rename)
        row.addWidget(self.delete)

    @Slot()
    def edit(self) -> None:
        """Let the name be edited; Enter saves it, Escape does not."""
        self.field.setText(self.name)
        self._show_field(True)
        self.field.setFocus(Qt.FocusReason.OtherFocusReason)
        self.field.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Keys that the control in focus did not take."""
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

    @Slot()
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
