"""The light: where a model would run, as a dot, in words, and with its numbers in the tooltip."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QWidget

from app.hub.fits import Fit, Light
from app.ui.models.words import capital, fit_words
from app.ui.theme import Theme

UNKNOWN = "Free memory is not known yet"


class _Dot(QWidget):
    """Full: on the GPU. Half: in memory. Three quarters: on both. Crossed: it will not fit. The shape says it
    without colour. While it is not known, there is none: an empty circle would look like a verdict."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._light: Light | None = None
        theme.changed.connect(self.update)

    def set_light(self, light: Light | None) -> None:
        self._light = light
        self.update()

    def sizeHint(self) -> QSize:
        side = round(self.fontMetrics().height() * 0.75)
        return QSize(side, side)

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._light is None:
            return
        colours = self._theme.palette
        shade = colours.error if self._light is Light.NOT else colours.good
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        side = self.sizeHint().width() - 2.5
        circle = QRectF(0, 0, side, side)
        circle.moveCenter(QRectF(self.rect()).center())
        painter.setPen(QPen(QColor(shade), 1.5))
        painter.drawEllipse(circle)
        painter.setBrush(QColor(shade))
        if self._light is Light.GPU:
            painter.drawEllipse(circle)
        elif self._light is Light.MEMORY:
            painter.drawPie(circle, 90 * 16, 180 * 16)
        elif self._light is Light.BOTH:
            painter.drawPie(circle, 90 * 16, 270 * 16)
        elif self._light is Light.NOT:
            inset = side * 0.15
            inner = circle.adjusted(inset, inset, -inset, -inset)
            painter.drawLine(inner.bottomLeft(), inner.topRight())


class FitLight(QWidget):
    """Shows where a model would run."""

    def __init__(self, theme: Theme, words: Callable[[Fit], str] = fit_words, unknown: str = UNKNOWN) -> None:
        """`words` gives a text that fits the room, and `unknown` is the one while there is no light; the
        tooltip has the whole sentence."""
        super().__init__()
        self._words_of = words
        self._unknown = unknown
        self._dot = _Dot(theme)
        self._label = QLabel()
        self._label.setProperty("role", "caption")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(6)
        row.addWidget(self._dot, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._label, 1)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.set_fit(None)

    @property
    def words(self) -> str:
        return self._label.text()

    def set_wordless(self, wordless: bool) -> None:
        """Show the dot alone, where there is no room for words; the tooltip has them."""
        self._label.setHidden(wordless)

    def set_fit(self, fit: Fit | None) -> None:
        """Show a light, or (None) that the memory is not known yet."""
        self._dot.set_light(fit.light if fit else None)
        self._label.setText(self._words_of(fit) if fit else self._unknown)
        words = capital(str(fit)) if fit else UNKNOWN
        self.setToolTip(words)
        self.setAccessibleName(words)


def light_words(fit: Fit) -> str:
    """The light alone, in few words."""
    return "GPU and memory" if fit.light is Light.BOTH else capital(fit.light)
