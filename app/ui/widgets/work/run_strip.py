"""The strip below the head: the progress of a measurement with its buttons, then its result."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLabel, QProgressBar, QWidget

from app.ui.widgets import kit
from app.ui.widgets.text.elided import ElidedLabel


class RunStrip(QWidget):
    """One line while something runs, its buttons on the right; a result in as many lines as it takes.

    Nothing takes the place of Pause and Cancel when they disappear, so that a late click does nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words = ElidedLabel(Qt.TextElideMode.ElideRight)
        self.result = _wrapped("")
        self.remarks = _wrapped("secondary")
        self.left = kit.label("", "secondary")
        self.follow = kit.button("Follow the run", kind="flat", tip="Show what is being measured again")
        self.follow.hide()
        self.pause = kit.button("Pause", tip="The current run will restart when the measurement resumes")
        self.cancel = kit.button("Cancel", tip="Stop for good; finished runs are kept")
        self.bar = QProgressBar()
        self.bar.setTextVisible(False)
        self.bar.setRange(0, 1000)
        keeps = self.bar.sizePolicy()
        keeps.setRetainSizeWhenHidden(True)  # the part below does not jump when it comes
        self.bar.setSizePolicy(keeps)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addStrut(self.cancel.sizeHint().height())  # so that the part below does not jump
        row.addWidget(self.words, 1)
        row.addWidget(self.result, 1)
        for widget in (self.follow, self.left, self.pause, self.cancel):
            row.addWidget(widget)
        kit.column(row, self.remarks, self.bar, margins=(24, 6, 24, 0), spacing=4, on=self)
        self.set_at_work(False, may_pause=False, paused=False)

    @property
    def text(self) -> str:
        """The text without the remarks."""
        return self.words.text() or self.result.text()

    def say(self, words: str, left: str = "", remarks: Sequence[str] = ()) -> None:
        """Show a line that changes often."""
        self._show(words, "", remarks)
        self.left.setText(left)

    def conclude(self, result: str, remarks: Sequence[str] = ()) -> None:
        """Show a whole result, with remarks below it."""
        self._show("", result, remarks)
        self.left.setText("")

    def set_share(self, share: float | None) -> None:
        """Show how much is done, in [0, 1]; None hides the bar."""
        self.bar.setVisible(share is not None)
        if share is not None:
            self.bar.setValue(round(1000 * share))

    def set_at_work(self, at_work: bool, *, may_pause: bool, paused: bool) -> None:
        """Show the buttons that apply to the work."""
        self.cancel.setVisible(at_work)
        self.pause.setVisible(at_work and may_pause)
        self.pause.setText("Resume" if paused else "Pause")

    def _show(self, words: str, result: str, remarks: Sequence[str]) -> None:
        self.words.set_text(words)
        self.words.setToolTip(words)
        self.words.setVisible(not result)
        self.result.setText(result)
        self.result.setVisible(bool(result))
        self.remarks.setText("\n".join(remarks))
        self.remarks.setVisible(bool(remarks))


def _wrapped(role: str) -> QLabel:
    label = kit.label("", role, wrap=True, plain=True, selectable=True)
    return label
