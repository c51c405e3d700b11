"""The surface on which the transcript is painted: it scrolls, selects, marks matches and points at tokens.

All text is painted by hand and laid out only if it is visible. So a chat of any length scrolls equally well,
and a batch of rounds costs only what it adds.
"""

from __future__ import annotations

from PySide6 import QtGui
from PySide6.QtCore import QEvent, QPoint, QRect, QRectF, Qt, Signal
from PySide6.QtWidgets import QAbstractScrollArea, QFrame, QWidget

from app.ui.theme import Theme
from app.ui.theme.rings import ring_shown
from app.ui.theme.style import focus_ring
from app.ui.transcript.find_bar import Finder
from app.ui.transcript.folding import Folding, Scroller
from app.ui.transcript.hover_card import Hover
from app.ui.transcript.layout.answer_item import AnswerItem
from app.ui.transcript.layout.block import Block
from app.ui.transcript.layout.stack import Position, Stack, Token, paint_item
from app.ui.transcript.layout.styles import NO_MARKS, Marks, Setting, Styles
from app.ui.transcript.outlines import Outlines
from app.ui.transcript.pointer import Pointer, Selection
from app.ui.transcript.text.paragraphs import Kind
from app.ui.transcript.text.spans import Turn


class Surface(QAbstractScrollArea):
    """Shows a stack of items, which the view fills."""

    token_clicked = Signal(object, int, int)  # turn, round, place in the draft or behind it
    inspect_requested = Signal(object, int)  # turn, round
    edit_asked = Signal(object)  # turn
    edit_submitted = Signal(object, object)  # turn, new Question
    regenerate_requested = Signal(object)  # turn
    version_requested = Signal(object, int)  # turn, version
    comparison_requested = Signal(object, object)  # turn whose versions are to be compared, the button for it
    note_action = Signal(object)  # turn whose note's button was pressed
    suggestion_chosen = Signal(str)  # its title
    tour_asked = Signal()
    setting_changed = Signal()  # the width, the font or the appearance changed
    settled = Signal()  # the layout is settled: the widgets in the text follow
    pointed = Signal(float)  # the pointer is at this y of the column
    pointer_left = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._styles = self.make_styles(theme)
        self.drafts_shown = True
        self.regenerates = True  # whether to offer it, and to continue; a recording cannot be answered again
        self.offers_end = True  # whether to offer a button to the end, where that is far
        self.inspects = False  # whether to offer to inspect rounds
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # The bar stays visible, so that the column does not move when a chat grows beyond the screen.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setMinimumSize(200, 120)
        viewport = self.viewport()
        viewport.setMouseTracking(True)
        viewport.setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)
        self.stack = Stack(self._make_setting())
        self.scroller = Scroller(self, self.stack)
        self.selection = Selection(self.stack)
        self.finder = Finder(self.stack)
        self.hover = Hover(theme, self, self.stack, self.to_viewport)
        self.outlines = Outlines(viewport, self.stack, self.hover, self.to_viewport)
        self.folding = Folding(self, self.stack)
        self.pointer = Pointer(self, self.stack, self.selection, self.hover)
        theme.changed.connect(self._theme_changed)

    @property
    def live(self) -> bool:
        """Whether an answer is being written."""
        return False

    def set_drafts_shown(self, shown: bool) -> None:
        """Show rejected and ignored drafts in place, or only what was emitted."""
        if shown != self.drafts_shown:
            self.drafts_shown = shown
            self.hover.clear()
            self._renew_setting()

    @property
    def column(self) -> tuple[int, int]:
        """Left edge and width of the text in the viewport, for widgets aligned to it."""
        width = self.stack.setting.width
        return (self.viewport().width() - width) // 2, width

    def shows_note(self, place: QRect) -> bool:
        """Whether a note at this place of the viewport is shown."""
        return True

    def to_viewport(self, rect: QRectF) -> QRectF:
        """A rectangle of the column as one of the viewport."""
        return rect.translated(self.column[0], -self.scroller.top)

    def to_column(self, point: QPoint) -> tuple[float, float]:
        """A point of the viewport as one of the column."""
        return point.x() - self.column[0], point.y() + self.scroller.top

    def settle(self) -> None:
        """Lay out the visible part after heights changed, and paint."""
        self.scroller.settle()
        self.refresh()

    def refresh(self) -> None:
        """Let the widgets follow the settled layout, and paint."""
        self.hover.place_card()
        self.settled.emit()
        self.viewport().update()

    def settle_from(self, item: int, block: int) -> None:
        """Like `settle`, if nothing changed before a block: paint only from there, and move the rest."""
        top = self.stack.block_top(item, block) - self.scroller.top
        self.scroller.settle()
        now = self.stack.block_top(item, block) - self.scroller.top
        self.settled.emit()
        self.shift(now - top)
        if now != top:  # behind the shift: lines are painted where they are now
            self.pointer.scrolled()
        self.hover.place_card()
        # A block may begin in the last line of the one before.
        line = self._styles.texts[Kind.PROSE].pitch * 2
        viewport = self.viewport()
        viewport.update(0, round(now - line), viewport.width(), viewport.height())

    def shift(self, by: int) -> None:
        """Move the painted pixels down by `by`, and paint only what that uncovers."""
        viewport = self.viewport()
        whole = viewport.devicePixelRatioF().is_integer()
        stays = self.hover.token is not None or ring_shown(self)  # what does not move with the text
        if abs(by) >= viewport.height() or not whole or stays:
            viewport.update()
        elif by:
            area = viewport.rect()
            area.setBottom(self.covered_from() - 1)
            viewport.scroll(0, by, area)
            viewport.update(0, area.bottom() + 1, viewport.width(), viewport.height())

    def covered_from(self) -> int:
        """The y in the viewport below which a widget may cover the text."""
        return self.viewport().height()

    def resize_item(self, turn: Turn) -> None:
        """Lay out again after a widget inside an item changed its height."""
        self.stack.touch(self.stack.index_of(turn))
        self.settle()

    def show_position(self, position: Position) -> None:
        """Scroll a position into view, unfolding it."""
        self.folding.unfold(position.item, position.block)
        self.scroller.show_block(position.item, position.block)
        for rect in self.stack.rects(position, position.offset + 1)[:1]:
            self.scroller.reveal(rect)
        self.refresh()

    def show_token(self, token: Token) -> None:
        """Scroll a token into view and point at it."""
        place = self._place
        answer = self.stack.answer(token.item)
        block = answer.block_of(token.span) if answer is not None else -1
        if block < 0:
            return
        self.folding.unfold(token.item, block)
        self.scroller.show_block(token.item, block)
        for rect in self.stack.token_rects(token)[:1]:
            self.scroller.reveal(rect)
        self.hover.choose(token)
        self._refresh_from(place)

    def frame_round(self, turn: Turn, index: int | None) -> None:
        """Scroll a round into view and draw a frame around it; None removes the frame."""
        place = self._place
        self.outlines.framed = (turn, index) if index is not None else None
        self._reveal_framed()
        self._refresh_from(place)

    def outline_tokens(self, turn: Turn, index: int, place: int, count: int) -> None:
        """Draw a dashed line around `count` emitted tokens, from a place of a round on; 0 removes it."""
        self.outlines.copied = (turn, index, place, count) if count else None
        self.outlines.repaint()

    @property
    def _place(self) -> tuple[int, int]:
        """The place of the text: its top, and its height."""
        return self.scroller.top, self.stack.height

    def _refresh_from(self, before: tuple[int, int]) -> None:
        """Lay out, paint, and let the widgets follow, if the text moved from its place before; else paint
        only the lines around it."""
        if self._place != before:
            self.settle()
        else:
            self.outlines.repaint()

    def _reveal_framed(self) -> None:
        """Scroll to the framed round: all of it if there is room, else its beginning."""
        token = self.outlines.framed_token()
        answer = self.stack.answer(token.item) if token is not None else None
        if token is not None and answer is not None:
            block = answer.block_of(token.span)
            self.folding.unfold(token.item, block)
            self.scroller.show_block(token.item, block)
            room = self.scroller.room
            self.stack.measure(self.scroller.top, self.scroller.top + 2 * room)
            rects = self.stack.round_rects(token)
            if rects:
                whole = rects[0].united(rects[-1])
                shown = whole if whole.height() <= room else rects[0]
                self.scroller.reveal(shown)
                self.scroller.begin_at_line(shown)

    def first_token_seen(self) -> Token | None:
        """The first token of the topmost answer on the screen."""
        top = self.scroller.top
        for index, item in self.stack.visible(top, top + self.scroller.room):
            if isinstance(item, AnswerItem):
                span = item.first_from(item.block_at(top - self.stack.top(index)))
                if span is not None:
                    return Token(index, span)
        return None

    def scroll_to_end(self) -> None:
        """Scroll to the end and follow it."""
        self.scroller.to_end()
        self.refresh()

    # Hides QWidget.find, which looks up a window by its number and is not used here.
    def find(self, text: str, forward: bool = True) -> tuple[int, int]:  # type: ignore[override]
        """Go to the next match, at first from the top of the screen; returns its number (from 1) and the
        total."""
        self.finder.search(text)
        top = self.stack.position_at(0, self.scroller.top) if len(self.stack) else None
        match = self.finder.step(forward, top)
        if match is not None:
            self.show_position(match.first)
        self.viewport().update()
        return self.finder.number, self.finder.total

    def end_find(self) -> None:
        """End the search and remove its marks."""
        self.finder.search("")
        self.viewport().update()

    def text_of(self, turn: Turn) -> str:
        """A turn's text, as it was emitted; KeyError if there is no such turn."""
        return self.stack.items[self.stack.index_of(turn)].text

    def copy_turn(self, turn: Turn) -> None:
        """Put a whole turn's text on the clipboard, as it was emitted."""
        QtGui.QGuiApplication.clipboard().setText(self.text_of(turn))

    def copy(self) -> None:
        """Put the selected text on the clipboard."""
        text = self.selection.text()
        if text:
            QtGui.QGuiApplication.clipboard().setText(text)

    def select_all(self) -> None:
        self.selection.select_all()
        self.viewport().update()

    # ---------------------------------------------------------------------------------------- events

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        painter = QtGui.QPainter(self.viewport())
        area = event.rect()
        painter.fillRect(area, QtGui.QColor(self._styles.palette.ground))
        top, left = self.scroller.top, self.column[0]
        first, end = top + area.top(), top + area.bottom() + 1
        for index, _ in self.stack.visible(first, end):
            offset = self.stack.top(index)
            painter.save()
            painter.translate(left, offset - top)
            paint_item(painter, self.stack, index, (first - offset, end - offset), self._marks)
            painter.restore()
        self.outlines.paint(painter, self._styles.palette)
        if ring_shown(self):
            self._paint_ring(painter)
        painter.end()

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        self.hover.clear()
        self._renew_setting()
        place = self._place
        self._reveal_framed()
        self._refresh_from(place)

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DevicePixelRatioChange:
            self._renew_setting()
        return super().event(event)

    def viewportEvent(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Leave:
            self.pointer.left()
            self.pointer_left.emit()
        return super().viewportEvent(event)

    def scrollContentsBy(self, dx: int, dy: int) -> None:  # noqa: N802
        shift = self.scroller.moved(-dy)
        if shift:
            self.settled.emit()
            self.shift(shift)
            self.pointer.scrolled()
            self.hover.place_card()

    def mousePressEvent(self, event: QtGui.QMouseEvent) -> None:
        self.pointer.pressed(event)

    def mouseMoveEvent(self, event: QtGui.QMouseEvent) -> None:
        self.pointer.moved(event)
        self.pointed.emit(self.to_column(event.position().toPoint())[1])

    def mouseReleaseEvent(self, event: QtGui.QMouseEvent) -> None:
        self.pointer.released(event)

    def mouseDoubleClickEvent(self, event: QtGui.QMouseEvent) -> None:
        self.pointer.double_clicked(event)

    def focusInEvent(self, event: QtGui.QFocusEvent) -> None:
        super().focusInEvent(event)
        self.viewport().update()

    def focusOutEvent(self, event: QtGui.QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.hover.clear()
        self.viewport().update()

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        if event.matches(QtGui.QKeySequence.StandardKey.Copy):
            self.copy()
        elif event.matches(QtGui.QKeySequence.StandardKey.SelectAll):
            self.select_all()
        elif event.key() == Qt.Key.Key_Home:
            self.scroller.to_top()
            self.refresh()
        elif event.key() == Qt.Key.Key_End:
            self.scroller.to_end()
            self.refresh()
        elif not self.pointer.key(event):
            super().keyPressEvent(event)

    # ---------------------------------------------------------------------------------------- inside

    def _paint_ring(self, painter: QtGui.QPainter) -> None:
        """Paint the focus ring, which shows that keys scroll here."""
        painter.setPen(QtGui.QPen(QtGui.QColor(focus_ring(self._styles.palette)), 2))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(QRectF(1, 1, self.viewport().width() - 2, self.covered_from() - 2))

    def _marks(self, item: int, block: int, content: Block) -> Marks:
        if self.selection.empty and not self.finder.active:
            return NO_MARKS
        return Marks(
            self.selection.within(item, block, len(content.text)),
            self.finder.within(item, block),
            self.finder.current_within(item, block),
        )

    def _make_setting(self) -> Setting:
        viewport = self.viewport()
        width = self._styles.column_width(viewport.width())
        return Setting(self._styles, width, self.drafts_shown, viewport.devicePixelRatioF())

    def _renew_setting(self) -> None:
        setting = self._make_setting()
        if setting != self.stack.setting:
            self.stack.set_setting(setting)
            self.setting_changed.emit()
        self.settle()

    def make_styles(self, theme: Theme) -> Styles:
        """Letters and distances in a theme."""
        return Styles(theme)

    def _theme_changed(self) -> None:
        self._styles = self.make_styles(self._theme)
        self.hover.clear()
        self._renew_setting()
