"""Ways to load a pair with less memory, each a button that says how much it saves."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QPushButton, QVBoxLayout, QWidget

from app.engine.devices.lighter import LighterPair
from app.ui.widgets.text.tips import as_text
from app.ui.widgets.words.numbers import file_size

FITS, ONE_FITS = "Any of these makes it fit:", "This makes it fit:"
SAVES = "Each of these takes less memory:"


class LighterOffers(QWidget):
    """A button for each way; hidden where there is none."""

    chosen = Signal(object)  # LighterPair

    def __init__(self) -> None:
        super().__init__()
        self._pairs: tuple[LighterPair, ...] = ()
        self._title = QLabel()
        self._title.setProperty("role", "caption")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 2, 0, 0)
        self._column.setSpacing(4)
        self._column.addWidget(self._title)
        self.hide()

    def show_pairs(self, pairs: Sequence[LighterPair], title: str = FITS) -> None:
        """Show these ways below a line."""
        self._title.setText(ONE_FITS if title == FITS and len(pairs) == 1 else title)
        if tuple(pairs) == self._pairs:
            return
        self._pairs = tuple(pairs)
        for button in self.findChildren(QPushButton):
            button.hide()
            button.deleteLater()
        for pair in self._pairs:
            button = QPushButton(f"Load with {pair.words}: saves {file_size(pair.saves)}")
            if pair.draft is None:
                button.setToolTip(
                    as_text("A strategy that needs the draft is replaced by one that does not.")
                )
            button.clicked.connect(lambda _checked, pair=pair: self.chosen.emit(pair))
            self._column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        self.setVisible(bool(self._pairs))
