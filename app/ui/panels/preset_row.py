"""One preset to pick, rename or delete."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QRect, QRectF, QSize, Qt, Signal, Slot
from PySide6.QtGui import QColor, QFont, QFontMetrics, QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QLineEdit, QWidget

from app.engine.types import ModelOptions
from app.paths import BUNDLED
from app.presets import NAME_LENGTH, Preset
from app.ui.icons import IconButton, pixmap
from app.ui.panels.model_words import file_name
from app.ui.panels.sampling_panel import chip_words
from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import chosen, focus_ring, hover

_PADDING = 8
_CHECK = 14
_GAP = 2  # between the two lines


def preset_words(preset: Preset) -> str:
    """What a preset puts into use: "draft-simple · greedy · target.gguf + draft.gguf"."""
    pair = _model(preset.target)
    pair += f" + {_model(preset.draft)}" if preset.draft is not None else ", no draft"
    return " · ".join((preset.strategy, chip_words(preset.sampling)[0], pair))


def _model(options: ModelOptions) -> str:
    name = file_name(options.path)
    return f"bundled {name.removesuffix('.gguf')}" if options.path.startswith(BUNDLED) else name


class PresetButton(QAbstractButton):
    """The name and, below it, what is behind it; a check where it is in use."""

    def __init__(self, theme: Theme, preset: Preset) -> None:
        super().__init__()
        self._theme = theme
        self._name = preset.name
        self._words = preset_words(preset)
        self._current = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setToolTip(self._words)
        self.set_current(False)
        theme.changed.connect(self.updateGeometry)

    @property
    def current(self) -> bool:
        return self._current

    def set_current(self, current: bool) -> None:
        """Mark it as the one in use."""
        self._current = current
        self.setAccessibleName(f"{self._name}, in use" if current else self._name)
        self.setAccessibleDescription(self._words)
        self.update()

    def sizeHint(self) -> QSize:
        height = self._metrics(self._strong()).height() + self._metrics(self._small()).height()
        return QSize(160, height + _GAP + round(12 * self._theme.scale))

    def minimumSizeHint(self) -> QSize:
        return QSize(80, self.sizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        colours = self._theme.palette
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        card = QRectF(self.rect()).adjusted(1, 1, -1, -1)
        painter.setPen(Qt.PenStyle.NoPen)
        if self._current or self.isDown():
            painter.setBrush(QColor(chosen(colours)))
            painter.drawRoundedRect(card, 6, 6)
        elif self.underMouse():
            painter.setBrush(QColor(hover(colours)))
            painter.drawRoundedRect(card, 6, 6)
        if ring_shown(self):
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(QPen(QColor(focus_ring(colours)), 2))
            painter.drawRoundedRect(card, 6, 6)
        side = round(_CHECK * self._theme.scale)
        room = self.rect().adjusted(_PADDING, 0, -_PADDING - side - _PADDING, 0)
        high = self._metrics(self._strong()).height()
        low = self._metrics(self._small()).height()
        top = (self.height() - high - low - _GAP) // 2
        self._line(painter, QRect(room.left(), top, room.width(), high), self._strong(), self._name, True)
        below = QRect(room.left(), top + high + _GAP, room.width(), low)
        self._line(painter, below, self._small(), self._words, False)
        if self._current:
            ratio = self.devicePixelRatio()
            check = pixmap("check", colours.text, round(side * ratio))
            check.setDevicePixelRatio(ratio)
            painter.drawPixmap(self.width() - _PADDING - side, (self.height() - side) // 2, check)

    def enterEvent(self, event: object) -> None:
        self.update()

    def leaveEvent(self, event: object) -> None:
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def _line(self, painter: QPainter, room: QRect, font: QFont, text: str, strong: bool) -> None:
        colours = self._theme.palette
        painter.setFont(font)
        painter.setPen(QColor(colours.text if strong else colours.secondary))
        shown = self._metrics(font).elidedText(text, Qt.TextElideMode.ElideRight, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter, shown)

    def _strong(self) -> QFont:
        return self._theme.sans(0, QFont.Weight.Medium)

    def _small(self) -> QFont:
        return self._theme.sans(-1)

    def _metrics(self, font: QFont) -> QFontMetrics:
        return QFontMetrics(font, self)


class PresetRow(QWidget):
    """The button, and what else can be done; the name is edited in its place."""

    chosen = Signal()
    renamed = Signal(str)
    """The new name, not empty and another one."""
    delete_asked = Signal()

    def __init__(self, theme: Theme, preset: Preset) -> None:
        super().__init__()
        self.name = preset.name
        self.button = PresetButton(theme, preset)
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
        """Let the name be typed anew; Enter takes it, Escape does not."""
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
        """Escape in the field ends the renaming, not the panel nor the answer."""
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
        for other in (self.button, self.rename, self.delete):
            other.setVisible(not shown)
