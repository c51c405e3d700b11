"""The widgets in or over the text: notes, the editor, actions, the button to the end, the find bar."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QFontMetricsF
from PySide6.QtWidgets import QPushButton, QWidget

from app.saved.chats.conversation import Question
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.transcript.controls import EmptyState, NoteCard, TurnActions, VersionBar, end_button
from app.ui.transcript.find_bar import FindBar
from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.transcript.layout.block import Item, TextItem
from app.ui.transcript.layout.stack import LABEL_ROOM
from app.ui.transcript.surface import Surface
from app.ui.transcript.text.spans import AnswerTurn
from app.ui.transcript.turn_editor import TurnEditor

_NOTE_GAP = 10


class Furniture(QObject):
    """Makes the widgets when they are needed and places them beside their text."""

    def __init__(self, theme: Theme, view: Surface) -> None:
        super().__init__(view)
        self._theme = theme
        self._view = view
        self._stack = view.stack
        viewport = view.viewport()
        self._notes: dict[Item, NoteCard] = {}
        self._drafts: dict[AnswerItem, QPushButton] = {}  # that show an answer's drafts, or fold them
        self._bars: dict[Item, VersionBar] = {}
        self._pointed: Item | None = None
        self.editor: TurnEditor | None = None
        self._edited: TextItem | None = None
        self.empty = EmptyState(theme, viewport)
        self.empty.suggestion_chosen.connect(view.suggestion_chosen)
        self.empty.tour_asked.connect(view.tour_asked)
        self.empty.outgrown.connect(self._place_empty)
        self.actions = TurnActions(theme, viewport)
        self.actions.copy_asked.connect(self._copy)
        self.actions.edit_asked.connect(self._edit)
        self.actions.regenerate_asked.connect(self._regenerate)
        # A child of the view and not of the viewport: it keeps its place while the text scrolls.
        self.to_end = end_button(theme, view)
        self.to_end.clicked.connect(self._to_end)
        self.find_bar = FindBar(theme, view)
        self.find_bar.text_changed.connect(self._find)
        self.find_bar.step_asked.connect(self._find_step)
        self.find_bar.closed.connect(self._end_find)
        view.settled.connect(self.place)
        view.setting_changed.connect(self.measure)
        view.pointed.connect(self.point)
        view.pointer_left.connect(self.leave)

    def rebuild(self) -> None:
        """Make the notes again, after turns or notes were added or removed."""
        former = {bar.turn.at: bar for bar in self._bars.values()}
        self._bars = {
            item: self._bar(item.turn)
            for item in self._stack.items
            if isinstance(item.turn, AnswerTurn) and item.turn.versions > 1
        }
        for bar in self._bars.values():
            if bar.turn.at in former:
                bar.take_focus_of(former[bar.turn.at])
        for widget in (*self._notes.values(), *self._drafts.values(), *former.values()):
            widget.hide()
            widget.deleteLater()
        self._drafts = {}
        self._notes = {item: self._note(item) for item in self._stack.items if item.note}
        self._pointed = None
        self.actions.hide()
        self.measure()

    def measure(self) -> None:
        """Give notes the height that their words need in the column."""
        for index, item in enumerate(self._stack.items):
            card = self._notes.get(item)
            height = 0
            if card is not None:
                height = card.heightForWidth(item.setting.width) + _NOTE_GAP
            if height != item.note_height:
                item.note_height = height
                self._stack.touch(index)

    def place(self) -> None:
        """Move all widgets to where their text is now."""
        viewport = self._view.viewport()
        left, width = self._view.column
        top = self._view.scroller.top
        for index, item in enumerate(self._stack.items):
            card = self._notes.get(item)
            if card is not None:
                y = self._stack.top(index) + item.note_top + _NOTE_GAP - top
                card.setGeometry(left, y, width, item.note_height - _NOTE_GAP)
                card.setVisible(self._view.shows_note(card.geometry()))
            if isinstance(item, AnswerItem) and (item.offers_drafts or item in self._drafts):
                self._place_drafts(item, left, self._stack.top(index) - top)
            bar = self._bars.get(item)
            if bar is not None:
                bar.adjustSize()  # the size of the text may have changed
                bar.move(left + width - bar.width(), self._label_middle(index, bar))
                bar.show()
                if not (isinstance(item, AnswerItem) and item.offers_drafts):
                    item.label_room = width - self._actions_room(item)
        if self.editor is not None and self._edited is not None:
            y = self._stack.top(self._stack.index_of(self._edited.turn)) + self._edited.body_top - top
            edge = round(12 * self._theme.scale)
            self.editor.setGeometry(left - edge, y, width + 2 * edge, self._edited.editor_height)
        self.find_bar.adjustSize()
        self.find_bar.move(viewport.width() - self.find_bar.width() - 12, 12)
        self._place_actions()
        far = self._view.scroller.below > (24 if self._view.live else viewport.height())
        side = self.to_end.width()
        self.to_end.move((viewport.width() - side) // 2, viewport.height() - side - 12)
        low = viewport.height() <= 6 * side  # it would stand over most of the text
        self.to_end.setVisible(far and self._view.offers_end and not low)
        self._place_empty()

    def _place_drafts(self, item: AnswerItem, left: int, y: int) -> None:
        """Put the button that shows an answer's drafts beside its label."""
        button = self._drafts.get(item)
        if button is None:
            button = self._drafts[item] = QPushButton(self._view.viewport())
            set_role(button, kind="flat")
            button.setCursor(Qt.CursorShape.ArrowCursor)
            button.clicked.connect(lambda: self._view.folding.toggle_drafts(self._stack.index_of(item.turn)))
        button.setText(item.drafts.words)
        button.adjustSize()
        styles, width = item.setting.styles, item.setting.width
        label = ceil(QFontMetricsF(styles.label).horizontalAdvance(item.label)) + 6
        room = width - self._actions_room(item)
        if label + button.width() > room:  # without the share, in a narrow lane
            button.setText(item.drafts.words.partition(" (")[0])
            button.adjustSize()
        x = max(0, min(label, room - button.width()))
        item.label_room = max(1, x - 6) if item.offers_drafts else 0
        button.move(left + x, y + round(styles.label_middle - button.height() / 2))
        button.setVisible(item.offers_drafts)

    def covers_from(self) -> int:
        """The y in the viewport below which the button to the end covers the text."""
        return self.to_end.y() if self.to_end.isVisible() else self._view.viewport().height()

    def point(self, y: float) -> None:
        """Show the actions of the turn at a y of the column, where the pointer is."""
        index = self._stack.index_at(y)
        item = self._stack.items[index] if index >= 0 else None
        if item is not None and y > self._stack.height:
            item = None
        if item is not self._pointed:
            self._pointed = item
            self._place_actions()

    def leave(self) -> None:
        """The pointer left: hide the actions, unless one of them has the focus."""
        if not self.actions.focused:
            self._pointed = None
            self.actions.hide()

    def open_editor(self, item: TextItem) -> None:
        self.close_editor()
        editor = TurnEditor(self._theme, item.unsent or item.question, self._view.viewport())
        editor.submitted.connect(self._submitted)
        editor.cancelled.connect(lambda: self.close_editor(keep=False))
        editor.resized.connect(self._resized)
        self.editor, self._edited = editor, item
        # The editor's height depends on its width.
        editor.resize(self._view.column[1] + round(24 * self._theme.scale), 60)
        editor.show()
        editor.before.remember()
        editor.setFocus()
        self._view.scroller.hold(self._stack.index_of(item.turn), -1)  # it may be higher than the text was
        self._resized()
        self._view.scroller.resume()

    def close_editor(self, keep: bool = True) -> None:
        """Show the message again. With `keep`, the next editing starts with the typed text."""
        editor, item = self.editor, self._edited
        if editor is None or item is None:
            return
        item.unsent = editor.question if keep and not editor.question.is_blank else None
        self.editor = self._edited = None
        item.editor_height = 0
        editor.before.give_back(self._view)
        editor.hide()
        editor.deleteLater()
        if item in self._stack.items:
            self._view.resize_item(item.turn)

    def open_find(self) -> None:
        self.find_bar.open()
        self.place()
        self._find(self.find_bar.field.text())

    def recount(self) -> None:
        """Update the count of the find bar after the text changed."""
        if self.find_bar.isVisible():
            self.find_bar.show_count(self._view.finder.number, self._view.finder.total)

    def _note(self, item: Item) -> NoteCard:
        assert item.note is not None
        note = item.note if self._view.regenerates else replace(item.note, action="")
        card = NoteCard(self._theme, note, self._view.viewport())
        card.action_asked.connect(lambda: self._view.note_action.emit(item.turn))
        return card

    def _place_actions(self) -> None:
        item = self._pointed
        if item is None or item not in self._stack.items or item.editor_height:
            self.actions.hide()
            return
        answer = isinstance(item, AnswerItem)
        quiet = not self._view.live
        live = isinstance(item, AnswerItem) and item.live
        editable = isinstance(item, TextItem) and item.editable
        self.actions.offer(
            item.turn, edit=editable and quiet, regenerate=answer and quiet and self._view.regenerates
        )
        left, width = self._view.column
        right = left + width - self._bar_room(item)
        y = self._label_middle(self._stack.index_of(item.turn), self.actions)
        self.actions.move(right - self.actions.width(), y)
        self.actions.setVisible(not live)

    def _actions_room(self, item: Item) -> int:
        """The width at the right of an item's label for its actions, and for its versions if it has any."""
        room = LABEL_ROOM if self._view.regenerates else LABEL_ROOM // 3  # for Copy alone
        return room + self._bar_room(item)

    def _bar_room(self, item: Item) -> int:
        bar = self._bars.get(item)
        return bar.width() + 8 if bar is not None else 0

    def _label_middle(self, index: int, widget: QWidget) -> int:
        """The y of a widget in the line of an item's label."""
        middle = self._stack.items[index].setting.styles.label_middle
        y = self._stack.top(index) - self._view.scroller.top
        return y + round(middle - widget.height() / 2)

    def compare(self, turn: AnswerTurn) -> None:
        """Ask for the comparison of an answer's versions."""
        for item, bar in self._bars.items():
            if item.turn is turn:
                self._view.comparison_requested.emit(turn, bar.compare)

    def _bar(self, turn: AnswerTurn) -> VersionBar:
        bar = VersionBar(self._theme, turn, self._view.viewport())
        bar.asked.connect(lambda version: self._view.version_requested.emit(turn, version))
        bar.compare_asked.connect(lambda button: self._view.comparison_requested.emit(turn, button))
        return bar

    def _place_empty(self) -> None:
        viewport = self._view.viewport()
        self.empty.setVisible(len(self._stack) == 0)
        if len(self._stack):
            return
        width = min(self._view.column[1], round(460 * self._theme.scale))
        height = self.empty.fit(width, viewport.height() - 2 * _NOTE_GAP)
        y = max(0, round((viewport.height() - height) * 0.44))
        self.empty.setGeometry((viewport.width() - width) // 2, y, width, height)

    def _find(self, text: str) -> None:
        if text:
            self.find_bar.show_count(*self._view.find(text))
        else:
            self._view.end_find()
            self.find_bar.show_count(0, 0)

    def _find_step(self, forward: bool) -> None:
        if self.find_bar.field.text():
            self.find_bar.show_count(*self._view.find(self.find_bar.field.text(), forward))

    def _end_find(self) -> None:
        self.find_bar.end(self._view)
        self._view.end_find()

    def _copy(self) -> None:
        if self.actions.turn is not None:
            self._view.copy_turn(self.actions.turn)

    def _edit(self) -> None:
        if self.actions.turn is not None:
            self._view.edit_asked.emit(self.actions.turn)

    def _regenerate(self) -> None:
        if self.actions.turn is not None:
            self._view.regenerate_requested.emit(self.actions.turn)

    def _to_end(self) -> None:
        self._view.scroll_to_end()
        self._view.setFocus()

    def _submitted(self, question: Question) -> None:
        edited = self._edited
        self.close_editor(keep=False)
        if edited is not None:
            self._view.edit_submitted.emit(edited.turn, question)

    def _resized(self) -> None:
        if self.editor is not None and self._edited is not None:
            self._edited.editor_height = self.editor.wanted_height()
            self._view.resize_item(self._edited.turn)
