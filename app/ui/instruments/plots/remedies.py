"""The remedies named in an advice, each a button that applies it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QPushButton, QWidget

from app.engine.explain.advice import Remedy
from app.ui.instruments.styles import flat_button
from app.ui.theme import Theme
from app.ui.widgets.text.tips import as_text
from app.ui.widgets.wrap_layout import WrapLayout

GAP = 6  # pixels between buttons


class Remedies(QWidget):
    """Buttons for the remedies that can be applied now; hidden where there are none."""

    chosen = Signal(object)  # Remedy

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._shown: tuple[Remedy, ...] = ()
        self.applies: Callable[[Remedy], bool] = lambda remedy: False
        """Whether a remedy would change the settings in use; False until a controller sets this."""
        WrapLayout(self, GAP)
        self.hide()

    def show_remedies(self, remedies: tuple[Remedy, ...]) -> None:
        """Show buttons for the remedies that apply."""
        shown = tuple(remedy for remedy in remedies if self.applies(remedy))
        if shown == self._shown:
            return
        self._shown = shown
        for button in self.findChildren(QPushButton):
            button.hide()
            button.setParent(None)
            button.deleteLater()
        layout = self.layout()
        assert layout is not None
        for remedy in shown:
            button = QPushButton(f"Use {remedy.text}", self)
            button.setToolTip(as_text(f"{_what(remedy)} From the next answer on."))
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


def _what(remedy: Remedy) -> str:
    if remedy.spec is not None:
        return f"Sets the strategy {remedy.spec}."
    return "Loads the pair again with that change."
