"""The meaning of the colours, painted by the same code as the text, and the two switches of the
transcript."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QSize, Signal
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPaintEvent
from PySide6.QtWidgets import QWidget

from app.engine.fates import FATES, STRUCK
from app.ui.theme import Theme
from app.ui.transcript.layout.styles import FateShapes, TextStyle
from app.ui.widgets import kit
from app.ui.widgets.kit import WrapLayout


class Legend(QWidget):
    """A sample of every fate, and the switches at the right."""

    drafts_shown_changed = Signal(bool)
    rendered_changed = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.samples = {fate: FateSample(theme, fate, self) for fate in FATES}
        self.drafts_shown = kit.check("Show drafts", kind="quiet")
        self.drafts_shown.setChecked(True)
        self.drafts_shown.setToolTip(
            "Show rejected and ignored drafts in place, struck through.\nThey are never copied, searched "
            "or sent."
        )
        self.rendered = kit.check("Formatted text", kind="quiet")
        self.rendered.setToolTip("Show answers as formatted text instead of tokens.")
        row = WrapLayout(self, gap=12)
        for sample in self.samples.values():
            row.addWidget(sample)
        row.add_at_right(self.drafts_shown)
        row.add_at_right(self.rendered)
        self.drafts_shown.toggled.connect(self.drafts_shown_changed)
        self.rendered.toggled.connect(self.rendered_changed)
        self.rendered.toggled.connect(self._rendered_toggled)

    def set_undrawn(self, undrawn: bool) -> None:
        """Explain the fates for temperature 0, at which the target draws nothing, or for a higher one."""
        for sample in self.samples.values():
            sample.explain(undrawn)

    def _rendered_toggled(self, rendered: bool) -> None:
        # Formatted text has no place for drafts.
        self.drafts_shown.setEnabled(not rendered)
        for sample in self.samples.values():
            sample.setEnabled(not rendered)


class FateSample(QWidget):
    """The name of a fate as a token of that fate."""

    def __init__(self, theme: Theme, fate: str, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._fate = fate
        self.setAccessibleName(fate)
        self.explain(undrawn=False)
        theme.follow(self._theme_changed)

    def explain(self, undrawn: bool) -> None:
        """Say what the fate means, at temperature 0 if `undrawn`."""
        fate = FATES[self._fate]
        self.setToolTip(fate.explained(self._fate, undrawn))
        self.setAccessibleDescription((undrawn and fate.undrawn) or fate.definition)

    def sizeHint(self) -> QSize:
        width = QFontMetricsF(self._style.font).horizontalAdvance(self._fate)
        return QSize(round(width + 2 * self._padding), self._style.pitch)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        palette = self._theme.palette
        painter = QPainter(self)
        shapes = FateShapes(self.devicePixelRatioF())
        baseline = (self.height() - self._style.pitch) // 2 + self._style.above
        struck = self._fate in STRUCK
        inset = self._padding / 2 if struck else 0
        shapes.add(self._fate, inset, self.width() - inset, baseline, self._style)
        if not self.isEnabled():
            painter.setOpacity(0.45)
        shapes.paint_tints(painter, palette)
        painter.setFont(self._style.font)
        painter.setPen(QColor(palette.secondary))
        painter.drawText(QPointF(self._padding, baseline), self._fate)
        shapes.paint_cues(painter, palette)
        painter.end()

    def _theme_changed(self) -> None:
        font = self._theme.sans(-0.5)
        self._style = TextStyle(font, font, 1.78)
        self._padding = round(4 * self._theme.scale)
        self.updateGeometry()
        self.update()
