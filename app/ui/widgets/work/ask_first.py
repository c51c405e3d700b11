"""Asks before something is deleted, right where it was asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import isValid

from app.ui.widgets import kit

CHANGED = "That has changed meanwhile: nothing was done."


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A question as it stands now. `subject` is what it asks about: another subject makes another
    question."""

    words: str
    yes: str
    action: Callable[[], None]
    subject: object


class AskFirst(QWidget):
    """A question with two answers; hidden while nothing is asked.

    It comes from a function that looks at its subject. `refresh` looks again, and so does an answer: a
    question about something that has changed is withdrawn, and nothing is done. If the question was visible,
    a sentence in its place says so: nothing else comes under a moving pointer.
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
        """Ask the question that `look` gives; nothing where it gives None."""
        if (asked := look()) is None:
            return
        self._look, self._subject = look, asked.subject
        self._asked_at = QApplication.focusWidget()
        self._show(asked)
        self.show()
        self.no.setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot()
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

    @Slot()
    def withdraw(self) -> None:
        """Withdraw the question and give the focus back: a focused widget that is hidden would pass it to
        whatever comes next."""
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

    @Slot()
    def _do(self) -> None:
        asked = self._current()
        if asked is None:
            self._let_go()
            return
        self.withdraw()
        asked.action()

    def _let_go(self) -> None:
        """Stop asking, and leave everything where it is."""
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
