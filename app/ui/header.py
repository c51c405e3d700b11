"""The strip on top: the pair, the strategy and the sampling as chips, and what can be done at once."""

from __future__ import annotations

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QWidget

from app.paths import BUNDLED_DRAFT, BUNDLED_TARGET
from app.ui.icons import IconButton, pixmap
from app.ui.panels.chip import Chip
from app.ui.panels.model_panel import FileChooser, ModelPanel
from app.ui.panels.popover import Popover
from app.ui.panels.sampling_panel import SamplingPanel
from app.ui.panels.strategy_panel import StrategyPanel
from app.ui.theme import Theme


class Header(QWidget):
    """Chips with their panels, and buttons. The window fills and connects them."""

    def __init__(self, theme: Theme, choose_file: FileChooser) -> None:
        super().__init__()
        self._theme = theme
        self.target_panel = ModelPanel(theme, "target", BUNDLED_TARGET, choose_file)
        self.draft_panel = ModelPanel(theme, "draft", BUNDLED_DRAFT, choose_file)
        self.strategy_panel = StrategyPanel(theme)
        self.sampling_panel = SamplingPanel(theme)
        self.target = self._chip("target", self.target_panel)
        self.draft = self._chip("draft", self.draft_panel)
        self.strategy = self._chip("strategy", self.strategy_panel, mono=True)
        self.sampling = self._chip("sampling", self.sampling_panel)
        self._arrow = QLabel()
        self.sidebar = IconButton(theme, "sidebar", "Chats (Ctrl+B)")
        self.instruments = IconButton(theme, "compare", "Instruments (Ctrl+I)")
        self.clear = QPushButton("Clear")
        self.clear.setToolTip(
            "Put this chat into the trash and begin a new one. Undo is in the list of chats."
        )
        self.regenerate = QPushButton("Regenerate")
        self.regenerate.setToolTip("Answer the last message once more (Ctrl+R)")
        self.stop = QPushButton("Stop")
        self.stop.setToolTip("Stop the answer (Esc)")
        self.stop.setProperty("kind", "primary")

        row = QHBoxLayout(self)
        row.setContentsMargins(16, 9, 16, 9)
        row.setSpacing(8)
        for chip in (self.target, self._arrow, self.draft, self.strategy, self.sampling):
            row.addWidget(chip)
        row.addStretch(1)
        for button in (self.sidebar, self.instruments, self.clear, self.regenerate, self.stop):
            row.addWidget(button)
        theme.changed.connect(self._restyle)
        self._restyle()

    def _chip(self, caption: str, panel: QWidget, mono: bool = False) -> Chip:
        chip = Chip(self._theme, caption, mono)
        chip.set_popover(Popover(self._theme, panel))
        return chip

    def set_busy(self, busy: bool) -> None:
        """Stop stands where Regenerate stood: one place for the one thing to do."""
        self.stop.setVisible(busy)
        self.regenerate.setVisible(not busy)

    @Slot()
    def _restyle(self) -> None:
        side = round(14 * self._theme.scale)
        ratio = self.devicePixelRatio()
        picture = pixmap("arrow-left", self._theme.palette.faint, round(side * ratio))
        picture.setDevicePixelRatio(ratio)
        self._arrow.setPixmap(picture)
        self._arrow.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.fillRect(0, self.height() - 1, self.width(), 1, self._theme.palette.line)
