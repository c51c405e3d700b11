"""One line below the head: how far the measurement is, or what came out of it."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.ui.panels.elided import ElidedLabel
from app.ui.tips import as_text


class RunStrip(QWidget):
    """Words on the left, time left on the right, a bar below while something runs."""

    def __init__(self) -> None:
        super().__init__()
        self.words = ElidedLabel(Qt.TextElideMode.ElideRight)
        self.left = QLabel()
        self.left.setProperty("role", "secondary")
        self.follow = QPushButton("Follow the run")
        self.follow.setProperty("kind", "flat")
        self.follow.setToolTip("Show what is being measured again")
        policy = self.follow.sizePolicy()
        policy.setRetainSizeWhenHidden(True)  # what stands below does not jump
        self.follow.setSizePolicy(policy)
        self.follow.hide()
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setRange(0, 1000)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(self.words, 1)
        row.addWidget(self.follow)
        row.addWidget(self.left)
        column = QVBoxLayout(self)
        column.setContentsMargins(24, 10, 24, 0)
        column.setSpacing(6)
        column.addLayout(row)
        column.addWidget(self.bar)

    def say(self, words: str, left: str = "") -> None:
        """Show these words."""
        self.words.set_text(words)
        self.words.setToolTip(as_text(words))
        self.left.setText(left)

    def set_share(self, share: float | None) -> None:
        """How much is done, in [0, 1]; None hides the bar."""
        self.bar.setVisible(share is not None)
        if share is not None:
            self.bar.setValue(round(1000 * share))
