"""A question before something is deleted, at the place where the user acted; and the progress of a
measurement, with its buttons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from app.ui.widgets import kit
from app.ui.widgets.labels import ElidedLabel

CHANGED = "This changed in the meantime, so nothing was done."


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A question as it is now. `subject` is what it asks about: a different subject makes a different
    question."""

    words: str
    yes: str
    action: Callable[[], None]
    subject: object


class AskFirst(QWidget):
    """A question with two answers, hidden while there is none.

    It comes from a function that looks at its subject. `refresh` looks again, and so does an answer. If the
    subject has changed, the question is withdrawn and nothing is done. If the question was visible, a
    sentence in its place says so, because nothing else may appear under a moving pointer.
    """

    def __init__(self) -> None:
        super().__init__()
        self._look: Callable[[], Confirmation | None] = lambda: None
        self._subject: object = None
        self._asked_at: QWidget | None = None  # what had the focus before
        self._words = kit.label(wrap=True, plain=True)
        self.yes = kit.button("", self._do)
        self.no = kit.button("", self.withdraw)
        kit.row((self._words, 1), self.yes, self.no, spacing=8, on=self)
        self.hide()

    @property
    def words(self) -> str:
        """The text of the question."""
        return self._words.text()

    def ask(self, look: Callable[[], Confirmation | None]) -> None:
        """Ask the question that `look` gives; nothing if it gives None."""
        if (asked := look()) is None:
            return
        self._look, self._subject = look, asked.subject
        self._asked_at = QApplication.focusWidget()
        self._show(asked)
        self.show()
        self.no.setFocus(Qt.FocusReason.OtherFocusReason)

    def refresh(self) -> None:
        """Update the question, or withdraw it, because something may have changed."""
        if self.isHidden():
            return
        if (asked := self._current()) is not None:
            self._show(asked)
        elif self.isVisible():
            self._let_go()
        else:
            self.withdraw()

    def withdraw(self) -> None:
        """Withdraw the question and return the focus: a focused widget that is hidden would pass it to the
        next one."""
        held = QApplication.focusWidget()
        if held is not None and self.isAncestorOf(held):
            if self._asked_at is not None and isValid(self._asked_at) and self._asked_at.isVisible():
                self._asked_at.setFocus(Qt.FocusReason.OtherFocusReason)
            else:
                held.clearFocus()
        self.hide()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.withdraw()
        else:
            super().keyPressEvent(event)

    def _do(self) -> None:
        asked = self._current()
        if asked is None:
            self._let_go()
            return
        self.withdraw()
        asked.action()

    def _let_go(self) -> None:
        """Stop asking, without changing anything else."""
        self._look = lambda: None
        if self.yes.hasFocus():
            self.no.setFocus(Qt.FocusReason.OtherFocusReason)
        self._words.setText(CHANGED)
        self.yes.hide()
        self.no.setText("OK")

    def _current(self) -> Confirmation | None:
        """The question, while its subject is the same."""
        asked = self._look()
        return asked if asked is not None and asked.subject == self._subject else None

    def _show(self, asked: Confirmation) -> None:
        self._words.setText(asked.words)
        self.yes.setText(asked.yes)
        self.yes.show()
        self.no.setText("Keep")


class RunStrip(QWidget):
    """While something runs, one line with buttons on the right; then the result, in as many lines as it
    needs.

    After Pause and Cancel disappear, nothing appears in their place, so a late click does nothing.
    """

    def __init__(self) -> None:
        super().__init__()
        self.words = ElidedLabel(Qt.TextElideMode.ElideRight)
        self.result, self.remarks = (
            kit.label("", role, wrap=True, plain=True, selectable=True) for role in ("", "secondary")
        )
        self.left = kit.label("", "secondary")
        self.follow = kit.button("Follow the run", kind="flat", tip="Return to the running measurement")
        self.back = kit.button("Back to the lanes", kind="flat")
        for button in (self.follow, self.back):
            button.hide()
        self.pause = kit.button("Pause", tip="The current run will restart when the measurement resumes")
        self.cancel = kit.button("Cancel", tip="Stop the measurement; finished runs are kept")
        self.bar = kit.progress(1000)
        kit.reserve_space(self.bar)
        buttons = self.follow, self.back, self.left, self.pause, self.cancel
        row = kit.row((self.words, 1), (self.result, 1), *buttons, spacing=12)
        row.addStrut(self.cancel.sizeHint().height())  # so that the part below does not jump
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
        parts = words.split(" · ")
        self.words.set_text(words, f"{parts[0]} · {parts[-1]}", parts[0])
        self.words.setToolTip(words)
        self.words.setVisible(not result)
        self.result.setText(result)
        self.result.setVisible(bool(result))
        self.remarks.setText("\n".join(remarks))
        self.remarks.setVisible(bool(remarks))
