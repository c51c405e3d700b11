"""The remedies named in an advice, each a button that applies it."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QStyle, QStyleOptionButton, QStylePainter, QWidget

from app.engine.explain.remedies import Remedy
from app.ui.instruments.styles import flat_button
from app.ui.theme import Theme
from app.ui.widgets.text.tips import as_text
from app.ui.widgets.wrap_layout import WrapLayout

GAP = 6  # pixels between buttons
_PIECE = re.compile(r"[^\s+:]*(?:[+:]|\s|$)")  # of a text: a strategy may be broken after + and :


class Remedies(QWidget):
    """Buttons for the remedies that can be applied now; hidden where there are none."""

    chosen = Signal(object)  # Remedy

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._remedies: tuple[Remedy, ...] = ()
        self._shown: tuple[tuple[Remedy, bool], ...] = ()
        self.applies: Callable[[Remedy], bool] = lambda remedy: False
        """Whether a remedy would change the settings in use; False until a controller sets this."""
        self.tries: Callable[[Remedy], bool] = lambda remedy: False
        """Whether a click also answers again with it, and measures that."""
        WrapLayout(self, GAP)
        self.hide()

    def show_remedies(self, remedies: tuple[Remedy, ...]) -> None:
        """Show buttons for the remedies that apply."""
        self._remedies = remedies
        self.refresh()

    def refresh(self) -> None:
        """Show buttons for those that apply now: the settings may have changed."""
        remedies = self._remedies
        shown = tuple((remedy, self.tries(remedy)) for remedy in remedies if self.applies(remedy))
        if shown == self._shown:
            return
        self._shown = shown
        for button in self.findChildren(QPushButton):
            button.hide()
            button.setParent(None)
            button.deleteLater()
        layout = self.layout()
        assert layout is not None
        for remedy, tried in shown:
            words = f"Try {remedy.text} and measure" if tried else f"Use {remedy.text}"
            button = _WrappedButton(words, self)
            then = "Then answers again, and measures that." if tried else "From the next answer on."
            button.setToolTip(as_text(f"{_what(remedy)} {then}"))
            button.clicked.connect(lambda _checked, remedy=remedy: self.chosen.emit(remedy))
            layout.addWidget(button)
            button.show()
        self.apply_theme()
        self.setVisible(bool(shown))
        self.updateGeometry()

    def apply_theme(self) -> None:
        for button in self.findChildren(QPushButton):
            button.setFont(self._theme.sans(-1.5))
            button.setStyleSheet(flat_button(self._theme.palette, framed=True))


class _WrappedButton(QPushButton):
    """A button with as many lines of text as its width asks for."""

    def __init__(self, text: str, parent: QWidget) -> None:
        super().__init__(text, parent)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    def minimumSizeHint(self) -> QSize:
        return QSize(0, super().minimumSizeHint().height())

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        more = len(self._lines(width)) - 1
        return self.sizeHint().height() + more * self.fontMetrics().lineSpacing()

    def paintEvent(self, event: QPaintEvent) -> None:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = "\n".join(self._lines(self.width()))
        QStylePainter(self).drawControl(QStyle.ControlElement.CE_PushButton, option)

    def _lines(self, width: int) -> list[str]:
        """The text in lines, the frame and the padding left out of `width`."""
        metrics = self.fontMetrics()
        room = width - self.sizeHint().width() + metrics.horizontalAdvance(self.text())
        lines = [""]
        for piece in _PIECE.findall(self.text()):
            if lines[-1] and metrics.horizontalAdvance(lines[-1] + piece.rstrip()) > room:
                lines.append("")
            lines[-1] += piece
        return [line.rstrip() for line in lines]


def _what(remedy: Remedy) -> str:
    if remedy.spec is not None:
        return f"Sets the strategy {remedy.spec}."
    return "Loads the pair again with that change."
