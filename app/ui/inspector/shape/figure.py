"""A card with one figure: its title, its bars, what they say."""

from __future__ import annotations

from PySide6.QtCore import Slot
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout

from app.engine.errors import UserError
from app.ui.inspector.shape.bars import Bars
from app.ui.inspector.shape.contents import Content
from app.ui.theme import Theme
from app.ui.widgets.text.steady_label import SteadyLabel


class Figure(QFrame):
    """Shows bars, or a sentence on why there are none."""

    def __init__(self, theme: Theme, title: str, definition: str, bars: Bars) -> None:
        super().__init__()
        self.setProperty("kind", "figure")
        self.bars = bars
        self.title = QLabel(title)
        self.title.setProperty("role", "strong")
        self.note = SteadyLabel()
        self.note.setProperty("role", "caption")
        self.caption = QLabel(wordWrap=True)
        self.caption.setProperty("role", "caption")
        for part in (self.title, self.note, self.caption):
            part.setToolTip(definition)
        bars.setAccessibleName(title)
        bars.failed.connect(self._not_saved)
        row = QHBoxLayout()
        row.addWidget(self.title)
        row.addStretch(1)
        row.addWidget(self.note)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 14, 12)
        column.setSpacing(8)
        column.addLayout(row)
        column.addWidget(bars)
        column.addWidget(self.caption)
        column.addStretch(1)
        theme.changed.connect(self._fit)

    def show_content(self, content: Content) -> None:
        """Show bars and words; without bars there are only words."""
        self.bars.set_bars(content.bars, content.top)
        self.bars.setVisible(bool(content.bars))
        self.note.set_text(content.note)
        self.caption.setText(content.words)

    @Slot(object)
    def _not_saved(self, error: UserError) -> None:
        self.caption.setText(str(error))

    @Slot()
    def _fit(self) -> None:
        self.bars.updateGeometry()
