"""The transcript: a chat whose answers are painted token by token in the colours of their fates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from PySide6 import QtGui
from PySide6.QtCore import QPoint, QRect, QRectF, Qt, SignalInstance
from PySide6.QtWidgets import QMenu, QWidget

from app.base.numbers import ordinal
from app.ui.state.answer import AnswerModel, reconnect
from app.ui.theme import Theme
from app.ui.transcript.access import TranscriptAccess, TranscriptText, move_caret
from app.ui.transcript.controls import FateLegend
from app.ui.transcript.furniture import Furniture
from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.transcript.layout.block import Item, TextItem
from app.ui.transcript.layout.stack import BlockPlace, Token
from app.ui.transcript.layout.styles import Styles
from app.ui.transcript.surface import Surface
from app.ui.transcript.text.paragraphs import Kind
from app.ui.transcript.text.spans import AnswerTurn, Turn
from app.ui.widgets.access import tell_readers
from app.ui.widgets.background import Throttle

FRAME_EDGE = 2  # pixels by which a frame is larger than the line of its tokens


class TranscriptView(Surface):
    """Shows a chat. Given turns, it follows their answers, and emits signals for what the user asks for."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        tell_readers(TranscriptView, TranscriptAccess)
        super().__init__(theme, parent)
        self.setAccessibleName("Chat")
        theme.changed.connect(self._speak_anew)  # fates have other colours
        self._spoken: TranscriptText | None = None  # made once a screen reader asks
        self._spoken_behind = True  # the chat changed since it was filled
        self.can_speak = True
        self.rendered = False
        self._furniture = Furniture(theme, self)
        self.find_bar = self._furniture.find_bar
        self._seldom = Throttle(self._refresh_seldom, self)
        self.edit_asked.connect(self.edit)

    # ------------------------------------------------------------------------------------- contents

    def set_turns(self, turns: Sequence[Turn]) -> None:
        """Show a stored chat, from its end."""
        self._forget_places()
        self._leave(self.stack.items)
        self.stack.set_turns(list(turns), self.rendered, in_sight=self._in_sight)
        self._spoken_behind = True
        for item in self.stack.items:
            self._follow(item)
        self._search_again(0)
        self._furniture.rebuild()
        self.scroll_to_end()

    @property
    def turns(self) -> list[Turn]:
        return [item.turn for item in self.stack.items]

    def add_turn(self, turn: Turn) -> None:
        """Add a turn at the end and go there."""
        self._follow(self.stack.add(turn, self.rendered))
        self._spoken_behind = True
        self._search_again(len(self.stack) - 1)
        self._furniture.rebuild()
        self.scroll_to_end()

    def remove_from(self, turn: Turn) -> None:
        """Remove a turn and all turns after it; KeyError if there is no such turn."""
        index = self.stack.index_of(turn)
        self._leave(self.stack.items[index:])
        self._forget_places()
        self.stack.remove_from(index)
        self._spoken_behind = True
        self._search_again(index)
        self._furniture.rebuild()
        self.settle()

    def set_suggestions(self, prompts: Mapping[str, str]) -> None:
        """Prompts offered while the chat is empty: title -> prompt."""
        self._furniture.empty.set_suggestions(prompts)
        self.refresh()

    def offer_tour(self) -> None:
        """Offer the tour while the chat is empty."""
        self._furniture.empty.offers_tour = True
        self.refresh()

    def set_empty_words(self, title: str, line: str) -> None:
        """Set the words of an empty chat."""
        self._furniture.empty.set_words(title, line)
        self.refresh()

    # ------------------------------------------------------------------------------ answers that change

    @property
    def live(self) -> bool:
        return self._live is not None

    @property
    def _live(self) -> AnswerItem | None:
        """The answer that is still being written, which is the last one; None if there is none."""
        item = self.stack.items[-1] if self.stack.items else None
        return item if isinstance(item, AnswerItem) and item.live else None

    def _follow(self, item: Item) -> None:
        if isinstance(item, AnswerItem):
            reconnect(self._slots, None, item.answer)

    def _leave(self, items: Sequence[Item]) -> None:
        for item in items:
            if isinstance(item, AnswerItem):
                reconnect(self._slots, item.answer, None)

    def _slots(self, answer: AnswerModel) -> tuple[tuple[SignalInstance, object], ...]:
        changes = answer.began, answer.grew, answer.told, answer.ended
        seldom = (answer.moved, self._catch_up_in_sight), (answer.measured, self._speak_anew)
        return *((signal, self.catch_up) for signal in changes), *seldom

    @property
    def _in_sight(self) -> bool:
        """Whether the text is, or soon will be, on the screen, because its place is open."""
        return self.isVisible() or not self.window().isVisible()

    def _catch_up_in_sight(self) -> None:
        """Follow a cursor while this is on the screen. If it goes back within reasoning, that is laid out
        again."""
        if self._in_sight:
            self.catch_up()

    def showEvent(self, event: QtGui.QShowEvent) -> None:
        super().showEvent(event)
        self.catch_up()

    def catch_up(self) -> None:
        """Update the answers that changed."""
        for index, item in enumerate(self.stack.items):
            if isinstance(item, AnswerItem) and item.behind:
                self._catch_up_with(index, item)

    def _catch_up_with(self, index: int, item: AnswerItem) -> None:
        last, note, was_live = item.last_row, item.note, item.live
        added = item.catch_up()
        if not added:
            self.selection.clear()
            self.hover.clear()
        folded = self.folding.fold_over(item)
        self.stack.touch(index)
        if item.note is not note:
            self._furniture.rebuild()
        if not item.live:
            self._spoken_behind = True
            self.selection.clamp()
        if not (self.rendered and item.live):
            self._search_again(index)
        self._seldom.request()
        if added and item.live and was_live and not folded and last >= 0:
            self.settle_from(index, last)
        else:
            self.settle()

    # --------------------------------------------------------------------------------------- looks

    def set_rendered(self, rendered: bool) -> None:
        """Show answers as Markdown, or as tokens."""
        if rendered == self.rendered:
            return
        self.rendered = rendered
        self.selection.clear()
        self.hover.clear()
        place = self.scroller.place()
        for index, item in enumerate(self.stack.items):
            if isinstance(item, AnswerItem):
                item.set_rendered(rendered)
                self.stack.touch(index)
        self._search_again(0)
        self.scroller.go_to_place(place)
        self.refresh()

    def show_turn_at(self, at: int) -> None:
        """Scroll the turn with an index in the chat into view."""
        for index, item in enumerate(self.stack.items):
            if isinstance(item.turn, AnswerTurn) and item.turn.at == at:
                self.scroller.show_block(index, -1)
                self.refresh()

    def show_round(self, turn: Turn, round_index: int) -> None:
        """Scroll a round into view and point at its first token, unless one of its tokens is pointed at."""
        index = self.stack.index_of(turn)
        pointed = self.hover.token
        if pointed is not None and (pointed.item, pointed.span.round) == (index, round_index):
            return
        answer = self.stack.answer(index)
        if answer is None:
            return
        span = answer.spans.first_of_round(round_index, answer.setting.drafts_shown)
        if span is not None:
            self.show_token(Token(index, span))

    # ----------------------------------------------------------------------- find, copy, edit, menu

    def open_find(self) -> None:
        """Open the find bar, for the window's shortcut; the view itself handles Ctrl+F as a key."""
        self._furniture.open_find()

    def edit(self, turn: Turn) -> None:
        """Open the editor of a sent message; does nothing while an answer is being written."""
        item = self.stack.items[self.stack.index_of(turn)]
        if isinstance(item, TextItem) and item.editable and not self.live:
            self._forget_places()
            self._furniture.open_editor(item)

    def make_menu(self, point: QPoint) -> QMenu:
        """The context menu for a point of the viewport."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.addAction("Copy", self.copy).setEnabled(not self.selection.empty)
        y = self.to_column(point)[1]
        index = self.stack.index_at(y)
        if index < 0:
            return menu
        item = self.stack.items[index]
        answer = isinstance(item, AnswerItem)
        menu.addAction("Copy answer" if answer else "Copy message", lambda: self.copy_turn(item.turn))
        if isinstance(item, AnswerItem) and item.text_with_gap:
            clipboard = QtGui.QGuiApplication.clipboard()
            menu.addAction("Copy answer and surroundings", lambda: clipboard.setText(item.text_with_gap))
        token = self.stack.token_at(*self.to_column(point))
        if self.inspects and token is not None:
            inspect = partial(self.inspect_requested.emit, item.turn, token.span.round)
            menu.addAction(f"Inspect round {ordinal(token.span.round)}", inspect)
        if isinstance(item, AnswerItem) and item.folds:
            self.folding.offer(menu, item, BlockPlace(index, item.block_at(y - self.stack.top(index))))
        menu.addAction("Select all", self.select_all)
        menu.addAction("Find…", self.open_find)
        menu.addSeparator()
        turn = item.turn
        if isinstance(turn, AnswerTurn) and turn.versions > 1:
            for words, step in (("Previous version", -1), ("Next version", 1)):
                version = turn.version + step
                ask = partial(self.version_requested.emit, turn, version)
                menu.addAction(words, ask).setEnabled(0 <= version < turn.versions)
            menu.addAction("Compare versions", partial(self._furniture.compare, turn))
            menu.addSeparator()
        if answer and self.regenerates:
            again = partial(self.regenerate_requested.emit, item.turn)
            menu.addAction("Regenerate", again).setEnabled(not self.live)
        elif isinstance(item, TextItem) and item.editable:
            menu.addAction("Edit and send again", partial(self.edit, item.turn)).setEnabled(not self.live)
        return menu

    def menu_key_point(self) -> QPoint:
        """The point at which the menu key opens the menu: the token pointed at, else the topmost visible
        turn."""
        token = self.hover.token
        rects = self.stack.token_rects(token)[:1] if token is not None else []
        for rect in map(self.to_viewport, rects):
            if self.viewport().rect().contains(rect.center().toPoint()):
                return rect.center().toPoint()
        top = self.scroller.top
        for index, item in self.stack.visible(top, top + self.scroller.room):
            below_label = self.stack.top(index) + item.body_top - top
            return QPoint(self.column[0], round(max(below_label, 0)))
        return QPoint(self.column[0], 0)

    def contextMenuEvent(self, event: QtGui.QContextMenuEvent) -> None:
        by_key = event.reason() is QtGui.QContextMenuEvent.Reason.Keyboard
        point = self.menu_key_point() if by_key else event.pos()
        self.make_menu(point).popup(self.viewport().mapToGlobal(point) if by_key else event.globalPos())

    def spoken_text(self) -> TranscriptText:
        """The chat for screen readers, filled with what is shown now; an answer is in it once it is
        complete."""
        if self._spoken is None:
            self._spoken = TranscriptText(self._theme, self)
        if self._spoken_behind:
            self._spoken_behind = False
            self._spoken.fill([item for item in self.stack.items if item is not self._live])
        return self._spoken

    def _speak_anew(self) -> None:
        self._spoken_behind = True

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        # A key, not a shortcut: where the window has a shortcut Ctrl+F, that one comes first.
        if event.matches(QtGui.QKeySequence.StandardKey.Find):
            self.open_find()
        else:
            move_caret(self, event)
            super().keyPressEvent(event)

    # ---------------------------------------------------------------------------------------- inside

    def _search_again(self, item: int) -> None:
        """Search again from an item on, after texts changed."""
        if self.finder.active:
            self.finder.refresh(item)
            self._furniture.recount()

    def _refresh_seldom(self) -> None:
        """Update labels and rendered text, at most ten times a second."""
        if self._live is None:
            return
        item = len(self.stack) - 1
        self._live.count()
        if self.rendered:
            self._live.refresh_rendered()
            self.selection.clamp()
            self._search_again(item)
            self.stack.touch(item)
            self.settle()
            return
        left, width = self.column
        self.viewport().update(left, self.stack.top(item) - self.scroller.top, width, self._live.body_top)
        self.folding.repaint_lines(item)

    def covered_from(self) -> int:
        return self._furniture.covers_from()

    def _forget_places(self) -> None:
        """Clear everything that points into texts before they change."""
        self.selection.clear()
        self.hover.clear()
        self.outlines.forget()
        self._furniture.close_editor()


class AnswerView(TranscriptView):
    """One answer, without what a chat offers. Its text begins at the margin of the place around it, and has
    whole lines: a line or a note that would be cut is not shown."""

    margin = 24

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self.setAccessibleName("Answer")
        self.regenerates = False
        self.set_empty_words("", "")
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)

    def make_styles(self, theme: Theme) -> Styles:
        styles = Styles(theme)
        styles.margin = self.margin
        return styles

    @property
    def column(self) -> tuple[int, int]:
        return self.margin, self.stack.setting.width

    def shows_note(self, place: QRect) -> bool:
        return self.viewport().rect().contains(place)

    def whole_lines(self, height: float, most: float) -> int:
        """The height of whole lines of prose in pixels: about `height`, at most `most`, at least one line."""
        pitch = self.stack.setting.styles.texts[Kind.PROSE].pitch
        return max(min(round(height / pitch), int(most / pitch)), 1) * pitch

    def place_legend(self, legend: FateLegend, width: int, height: float) -> int:
        """Put a legend over the free room at the right of the column, level with the answer's label, if it
        fits into the given size. Returns its height in pixels."""
        styles, sample = self.stack.setting.styles, next(iter(legend.samples.values()))
        left = styles.column + 2 * self.margin
        room = max(width - left - self.margin - self.verticalScrollBar().sizeHint().width(), 0)
        above = styles.margin + round(styles.label_middle - sample.sizeHint().height() / 2)
        taken = legend.fit(room, height - above)
        legend.setGeometry(left, above, room, taken)
        return taken and above + taken

    def shift(self, by: int) -> None:
        """Repaint everything, because different lines are cut now."""
        self.viewport().update()

    def cut_edges(self) -> tuple[float, float]:
        """The heights of the cut lines at the top and at the bottom of the viewport."""
        top, room = self.scroller.top, self.scroller.room
        lines = list(self.stack.lines(top, top + room))
        above = max((below for begin, below in lines if begin < top - 1 and below > top), default=top)
        above = min([above, *(begin for begin, _end in lines if begin >= top - 1)])  # boxes may overlap
        below = min(
            (begin for begin, end in lines if end > top + room + 1 and begin < top + room), default=top + room
        )
        return above - top, top + room - below

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        super().paintEvent(event)
        above, below = self.cut_edges()
        viewport = self.viewport()
        painter = QtGui.QPainter(viewport)
        ground = QtGui.QColor(self.stack.setting.styles.palette.ground)
        if above > 0:
            painter.fillRect(QRectF(0, 0, viewport.width(), above), ground)
        if below > 0:
            edge = viewport.height() - below - FRAME_EDGE
            painter.fillRect(QRectF(0, edge, viewport.width(), below + FRAME_EDGE), ground)
