"""A gated repository: its conditions, and the field for a token."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices, QShowEvent
from PySide6.QtWidgets import QLineEdit, QWidget

from app.engine.errors import UserError
from app.hub.token import kept_token, save_token
from app.ui.models.hub_session import HubSession
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.notice import Notice
from app.ui.widgets.work.background import Query

WITHOUT = (
    "This repository is gated. Accept its conditions on its page, then enter a Hugging Face token with read "
    "access. It is saved where Hugging Face's own tools save it."
)
WITH = (
    "This repository is gated. Your Hugging Face token is used; it opens the files once you have accepted "
    "the conditions on its page."
)


class TokenPanel(QWidget):
    """Saves a token, and does not keep what was typed."""

    saved = Signal()
    """The Hub accepted the token, and it was saved."""

    def __init__(self, theme: Theme, session: HubSession) -> None:
        super().__init__()
        self._session = session
        self._repo = ""
        self._question: Query[None] = Query(session.askers, self._done, self._failed)
        self.words = kit.label("", "secondary", wrap=True)
        self.page = kit.button("Open its page", self._open_page, tip="Show the repository in the browser")
        self.other = kit.button("Use another token", self._show_field)
        self.field = QLineEdit()
        self.field.setEchoMode(QLineEdit.EchoMode.Password)
        self.field.setPlaceholderText("hf_…")
        self.field.setAccessibleName("Hugging Face token")
        self.field.returnPressed.connect(self._save)
        self.field.textChanged.connect(self._refresh)
        self.save = kit.button("Save token", self._save)
        self.notice = Notice(theme)
        row = kit.row(self.page, self.other, (self.field, 1), self.save, kit.Spring(), spacing=8)
        kit.column(self.words, row, self.notice, spacing=8, on=self)
        session.offline_changed.connect(self._refresh)
        session.token_changed.connect(self._show_token)
        self._show_token()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if kept_token() is None:  # it may have been removed in the settings
            self._show_token()

    def set_repo(self, repo: str) -> None:
        """Set the repository that the token is for."""
        self._repo = repo
        self.notice.clear()
        self._show_token()

    @Slot()
    def _show_token(self) -> None:
        known = kept_token() is not None
        self.words.setText(WITH if known else WITHOUT)
        self.other.setVisible(known)
        self.field.setVisible(not known)
        self.save.setVisible(not known)
        self._refresh()

    @Slot()
    def _show_field(self) -> None:
        self.other.hide()
        self.field.show()
        self.save.show()
        self.field.setFocus()

    @Slot()
    def _refresh(self) -> None:
        offline = self._session.is_offline
        self.field.setEnabled(not offline)
        self.field.setReadOnly(self._question.pending)  # not disabled: the keyboard focus would move
        self.save.setEnabled(not offline and bool(self.field.text().strip()))
        self.save.setText("Asking the Hub…" if self._question.pending else "Save token")
        self.save.setToolTip("Offline: the Hub has to check a token first." if offline else "")
        self.page.setEnabled(not offline)

    @Slot()
    def _save(self) -> None:
        if self.save.isEnabled() and not self._question.pending:
            self.notice.clear()
            self._question.ask(partial(save_token, self._session.hub, self.field.text()))
            self._refresh()

    def _done(self, _answer: None) -> None:
        self.field.clear()
        self._session.token_changed.emit()
        self.saved.emit()

    def _failed(self, error: UserError) -> None:
        self.field.clear()
        self.notice.tell(error)
        self._refresh()

    @Slot()
    def _open_page(self) -> None:
        QDesktopServices.openUrl(QUrl(f"{self._session.hub.endpoint}/{self._repo}"))
