"""The list of saved chats: choose, search, rename, delete and undo, in view and store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QModelIndex, QObject, QPoint, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QHideEvent, QKeyEvent, QKeySequence, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QHBoxLayout, QLineEdit, QListView, QMenu, QWidget

from app.engine.errors import UserError
from app.saved.chats.conversation import ChatHead
from app.ui.chat.chat_rows import DAMAGED, ID, ChatRowPainter, ChatRows
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.icons import FieldIcons, IconButton, icon
from app.ui.widgets.labels import ElidedLabel

if TYPE_CHECKING:
    from app.ui.chat.chat_controller import ChatController

Search = Callable[[str], Sequence[ChatHead]]

SEARCH_DELAY_MS = 150
UNDO_SECONDS = 10
TICK_MS = 30_000
EMPTY = "No chats yet. Chats are saved here automatically."


class ChatList(QWidget):
    """Shows the chats it is given and emits a signal for everything the user asks for."""

    chat_chosen = Signal(str)
    new_requested = Signal()
    renamed = Signal(str, str)
    """(id, title)"""
    delete_requested = Signal(str)
    undo_requested = Signal()
    """Restore the chat that was deleted last."""
    fold_requested = Signal()

    def __init__(self, theme: Theme, search: Search) -> None:
        """`search` gives the chats that contain the words, newest first; it may raise UserError."""
        super().__init__()
        self._theme = theme
        self._search = search
        self._all: tuple[ChatHead, ...] = ()
        self._waiting = False
        self._rows = ChatRows(self)
        self._rows.renamed.connect(self.renamed)
        self._empty = kit.label(EMPTY, "secondary", wrap=True, plain=True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._empty.setContentsMargins(8, 8, 8, 8)
        upper = self._build_head(), self._build_field()
        lower = (self._build_view(), 1), (self._empty, 1), self._build_toast()
        kit.column(*upper, *lower, margins=(8, 8, 8, 8), spacing=8, on=self)
        self._search_timer = QTimer(self, singleShot=True, interval=SEARCH_DELAY_MS)
        self._search_timer.timeout.connect(self._show_rows)
        self._undo_timer = QTimer(self, singleShot=True, interval=UNDO_SECONDS * 1000)
        self._undo_timer.timeout.connect(self.hide_deleted)
        self._tick_timer = QTimer(self, interval=TICK_MS)
        self._tick_timer.timeout.connect(self._tick)
        theme.follow(self._restyle)
        self._show_rows()

    # ------------------------------------------------------------------ what the window says

    def set_chats(self, heads: Sequence[ChatHead]) -> None:
        """All chats, newest first; a search in progress is repeated."""
        self._all = tuple(heads)
        self._show_rows()

    def set_current(self, chat_id: str) -> None:
        """Mark the chat that is on the screen; "" for one that is not saved yet."""
        self._rows.set_open(chat_id)
        self._view.viewport().update()
        row = self._rows.row_of(chat_id)
        if row >= 0:
            self._view.setCurrentIndex(self._rows.index(row))

    def show_deleted(self, title: str) -> None:
        """Say that a chat was deleted, and offer to undo it for a while."""
        self._toast_words.set_text(f"Deleted “{title}”")
        self._toast.show()
        self._undo_timer.start()

    def hide_deleted(self) -> None:
        """Hide the offer to undo a deletion."""
        self._undo_timer.stop()
        self._toast.hide()

    # ------------------------------------------------------------------ building

    def _build_head(self) -> QHBoxLayout:
        self._new = kit.button("New chat", self.new_requested)
        fold = IconButton(self._theme, "sidebar", "Hide the list of chats", act=self.fold_requested)
        return kit.row((self._new, 1), fold, spacing=8)

    def _build_field(self) -> QLineEdit:
        self._field = kit.field("Search chats", "Search", typed=self._words_changed)
        self._field.installEventFilter(self)
        _lens, self._clear = FieldIcons(self._theme, self._field, "search", "close").actions
        self._clear.setToolTip("Clear the search")
        self._clear.setVisible(False)
        self._clear.triggered.connect(self._field.clear)
        return self._field

    def _build_view(self) -> QListView:
        self._view = QListView()
        self._view.setAccessibleName("Chats")
        self._view.setModel(self._rows)
        painter = ChatRowPainter(self._theme, self._view)
        painter.closeEditor.connect(self._edited, Qt.ConnectionType.QueuedConnection)
        self._view.setItemDelegate(painter)
        self._view.setUniformItemSizes(True)
        self._view.setMouseTracking(True)
        self._view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        triggers = QAbstractItemView.EditTrigger
        self._view.setEditTriggers(triggers.EditKeyPressed | triggers.DoubleClicked)
        self._view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._view.customContextMenuRequested.connect(self._open_menu)
        self._view.clicked.connect(self._choose)
        self._view.installEventFilter(self)
        return self._view

    def _build_toast(self) -> QWidget:
        self._toast = QWidget()
        self._toast_words = ElidedLabel()
        undo = kit.button("Undo", self.undo, kind="flat")
        kit.row((self._toast_words, 1), undo, margins=(8, 0, 0, 0), on=self._toast)
        self._toast.hide()
        return self._toast

    # ------------------------------------------------------------------ what the user does

    def _words_changed(self) -> None:
        self._clear.setVisible(bool(self._field.text()))
        self._search_timer.start()

    def _choose(self, index: QModelIndex) -> None:
        if index.isValid():
            self.chat_chosen.emit(index.data(ID))

    def undo(self) -> None:
        """Undo the deletion that is shown at the moment, if there is one."""
        if not self._toast.isHidden():
            self.hide_deleted()
            self.undo_requested.emit()

    def _open_menu(self, place: QPoint) -> None:
        index = self._view.indexAt(place)
        if index.isValid():
            menu = self.menu_for(index)
            menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
            menu.popup(self._view.viewport().mapToGlobal(place))

    def menu_for(self, index: QModelIndex) -> QMenu:
        """The context menu of a chat."""
        chat_id = index.data(ID)  # the list may have changed when an action is chosen
        menu = QMenu(self)
        menu.addAction("Open", lambda: self.chat_chosen.emit(chat_id))
        rename = menu.addAction("Rename", lambda: self._rename(chat_id))
        rename.setEnabled(not index.data(DAMAGED))
        menu.addAction("Delete", lambda: self.delete_requested.emit(chat_id))
        return menu

    def _rename(self, chat_id: str) -> None:
        row = self._rows.row_of(chat_id)
        if row >= 0:
            self._view.edit(self._rows.index(row))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.KeyPress or not isinstance(event, QKeyEvent):
            return False
        return self._field_key(event) if watched is self._field else self._view_key(event)

    def _field_key(self, event: QKeyEvent) -> bool:
        if event.key() == Qt.Key.Key_Escape and self._field.text():
            self._field.clear()
            self._show_rows()
            return True
        if event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._show_rows()
            if self._rows.rowCount():
                if not self._view.currentIndex().isValid():
                    self._view.setCurrentIndex(self._rows.index(0))
                self._view.setFocus(Qt.FocusReason.TabFocusReason)
            return True
        return False

    def _view_key(self, event: QKeyEvent) -> bool:
        if self._renaming():
            return False  # the title's editor left this key unused
        index = self._view.currentIndex()
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._choose(index)
            return True
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            if index.isValid():
                self.delete_requested.emit(index.data(ID))
            return True
        if event.matches(QKeySequence.StandardKey.Undo):
            self.undo()
            return True
        return False

    # ------------------------------------------------------------------ showing

    def _show_rows(self) -> None:
        self._search_timer.stop()
        if self._renaming():
            self._waiting = True  # new rows would close the editor and lose what was typed
            return
        words = self._field.text().strip()
        current = self._view.currentIndex()
        kept = current.data(ID) if current.isValid() else ""
        scrolled = self._view.verticalScrollBar().value()
        message = f"Nothing found for “{words}”." if words else EMPTY
        try:
            heads = self._search(words) if words else self._all
        except UserError as error:
            heads, message = (), str(error)
        self._rows.set_heads(heads)
        row = self._rows.row_of(kept)
        if row >= 0:
            self._view.setCurrentIndex(self._rows.index(row))
        self._empty.setText(message)
        self._empty.setVisible(not heads)
        self._view.setVisible(bool(heads))
        self._view.verticalScrollBar().setValue(scrolled)  # another window may have changed the list

    def _renaming(self) -> bool:
        return self._view.state() == QAbstractItemView.State.EditingState

    def _edited(self) -> None:
        if self._waiting:
            self._waiting = False
            self._show_rows()

    def _tick(self) -> None:
        self._rows.tick()
        self._view.viewport().update()

    def _restyle(self) -> None:
        colours = self._theme.palette
        self._new.setIcon(icon("plus", colours.text))
        side = round(14 * self._theme.scale)
        self._new.setIconSize(QSize(side, side))
        self._view.doItemsLayout()
        self._view.viewport().update()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._tick()
        self._tick_timer.start()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._tick_timer.stop()


_UNREAD = "chats could not be read"  # the cause of a notice
LOOK_MS = 1000
"""How often the store is checked for changes by another window. A check reads the time of a single
file."""


class ChatListController(QObject):
    """Connects the list of chats with the store. The Chat place chooses which chat is shown."""

    deleted = Signal(str)  # id of a chat that was put into the trash
    restored = Signal(str)  # id of a chat that was taken out of the trash

    def __init__(self, chat: ChatController) -> None:
        super().__init__()
        self._page, self._store, self._session, self._shown = chat.page, chat.store, chat.session, chat.shown
        self._answers = chat.answers
        self._deleted: list[str] = []
        chats = chat.page.chats
        chats.renamed.connect(self._rename)
        chats.delete_requested.connect(self.delete)
        chats.undo_requested.connect(self._undo_delete)
        self._answers.saved.connect(self.refresh)
        self._version = 0  # of the chats in the list
        look = QTimer(chats, interval=LOOK_MS)
        look.timeout.connect(self._look)
        look.start()

    def refresh(self) -> None:
        """Read the list of chats again."""
        self._read()
        self._page.chats.set_current(self._shown.chat.id)

    def _look(self) -> None:
        """Read the list again if a different window saved, renamed or deleted a chat."""
        if self._store.version() != self._version:
            self._read()

    def _read(self) -> None:
        self._version = self._store.version()
        self._page.chats.set_chats(self.heads())

    def heads(self) -> list[ChatHead]:
        """All chats; empty if the folder cannot be read, and the error is shown."""
        try:
            heads = self._store.heads()
        except UserError as error:
            self._page.prompt.notices.tell(error, cause=_UNREAD)
            return []
        self._page.prompt.notices.withdraw(_UNREAD)
        return heads

    def delete(self, chat_id: str) -> None:
        """Move a chat to the trash, where Undo finds it; an answer that is being written for it stops."""
        head = next((head for head in self.heads() if head.id == chat_id), None)
        if self._answers.of(chat_id) is not None:
            self._session.stop()
        if head is None:
            self._page.prompt.notices.tell(
                "This chat is not on disk, so it cannot be moved to the trash.",
                "Choose New chat to start a new one.",
            )
            return
        if not self._try(lambda: self._store.delete(chat_id)):
            return
        self._deleted.append(chat_id)
        self._page.chats.show_deleted(head.title)
        self.deleted.emit(chat_id)
        self.refresh()

    def empty_trash(self) -> None:
        """Permanently remove the deleted chats."""
        self._try(self._store.empty_trash)
        self._page.chats.hide_deleted()

    def _rename(self, chat_id: str, title: str) -> None:
        self._try(lambda: self._store.rename(chat_id, title))
        self.refresh()

    def _undo_delete(self) -> None:
        if not self._deleted:
            return
        chat_id = self._deleted[-1]
        if self._try(lambda: self._store.restore(chat_id)):
            self._deleted.pop()
            self._page.chats.hide_deleted()
            self.refresh()
            self.restored.emit(chat_id)

    def _try(self, action: Callable[[], object]) -> bool:
        try:
            action()
        except UserError as error:
            self._page.prompt.notices.tell(error)
            return False
        return True
