"""The Inspector place: the answer's text, its rounds, and one round in detail; traces opened and saved
from it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from PySide6 import QtGui
from PySide6.QtCore import QCoreApplication, QEvent, QObject, QPoint, Qt, QTimer, SignalInstance
from PySide6.QtWidgets import QFileDialog, QWidget

from app.base.files import reason
from app.engine.record.trace import write_trace
from app.ui.inspector.part import InspectorHead, missing_rounds
from app.ui.inspector.round_view import RoundView
from app.ui.inspector.shape_view import ShapeView
from app.ui.inspector.timeline import Timeline
from app.ui.inspector.transport import TransportBar
from app.ui.state.answer import AnswerModel, reconnect
from app.ui.state.chat_side import Inspection, OpenTrace, dropped_trace
from app.ui.state.engine_session import EngineSession
from app.ui.theme import Theme
from app.ui.transcript import AnswerTurn, AnswerView
from app.ui.transcript.controls import FateLegend
from app.ui.widgets import kit
from app.ui.widgets.background import Throttle
from app.ui.widgets.keys import KeyTable
from app.ui.widgets.lazy_place import PlaceWidget
from app.ui.widgets.notice import Notice
from app.ui.widgets.plot import ChooseFile, choose_file

PATTERN = "Traces (*.jsonl)"


def choose_trace(window: QWidget, _name: str, pattern: str) -> str:
    """Let the user choose a trace to open, with the system's dialog."""
    path, _ = QFileDialog.getOpenFileName(window, "Open trace", "", pattern)
    return path


def file_name(answer: str) -> str:
    """The name of a trace file for an answer, without what some systems refuse in names."""
    words = re.sub(r'[\\/:*?"<>|\x00-\x1f]+', " ", answer.removesuffix(".jsonl"))
    return f"{' '.join(words.split()).strip(' .…') or 'answer'}.jsonl"


class TraceFiles(QObject):
    """The two buttons of the head, and the message if one of them fails."""

    def __init__(
        self,
        theme: Theme,
        inspection: Inspection,
        open_trace: OpenTrace,
        parent: QWidget,
        choose: ChooseFile = choose_trace,
        choose_new: ChooseFile = choose_file,
    ) -> None:
        super().__init__(parent)
        self._inspection = inspection
        self._open_trace = open_trace
        self._window, self._choose, self._choose_new = parent, choose, choose_new
        self.message = Notice(theme)
        self.open = kit.button(
            "Open trace…", tip="Replay an answer from a file. You can also drop a file on the window."
        )
        self.save = kit.button(
            "Save trace…", tip="Save this answer to a file, with everything that was recorded"
        )
        self.open.clicked.connect(self._ask_to_open)
        self.save.clicked.connect(self._ask_to_save)

    def show_answer(self) -> None:
        """Show whether there is something to save."""
        answer = self._inspection.answer
        self.save.setEnabled(answer is not None and bool(answer.rounds) and not answer.live)

    def _ask_to_open(self) -> None:
        path = self._choose(self._window, "", PATTERN)
        if path:
            self.open_file(Path(path))

    def open_file(self, file: Path) -> None:
        """Show a trace file, and say what is wrong with it."""
        self.message.hide()
        self._open_trace(file, self.message.tell)

    def _ask_to_save(self) -> None:
        answer = self._inspection.answer
        assert answer is not None and answer.trace is not None
        path = self._choose_new(self._window, file_name(self._inspection.name), PATTERN)
        if not path:
            return
        self.message.hide()
        try:
            write_trace(Path(path), answer.trace)
        except OSError as error:
            name = Path(path).name
            self.message.tell(f"{name} was not saved: {reason(error)}.", "Choose a different folder.")


_DIRECT = Qt.FindChildOption.FindDirectChildrenOnly
_NESTED = 12  # layouts, at most, one in another
_LEAST_LINES = 2.5  # of the text that is always in sight
_TEXT_SHARE = {False: 0.2, True: 0.12}  # of the height, at most, for the text; in a low window
_TALL = 720  # pixels at text scale 1: from here on all tracks of the timeline have room


class InspectorPlace(PlaceWidget):
    """Shows the answer of an inspection. All parts draw its model, and choose a round by pinning it."""

    def __init__(
        self, theme: Theme, inspection: Inspection, session: EngineSession, open_trace: OpenTrace
    ) -> None:
        super().__init__()
        self._theme = theme
        self._inspection = inspection
        self._session = session
        self.answer = AnswerModel()  # before the first answer
        self.head = InspectorHead()
        self.text = AnswerView(theme)
        self.legend = FateLegend(theme, self.text)
        self.timeline = Timeline(theme)
        self.round = RoundView(theme)
        self.shape = ShapeView(theme)
        self.replay = TransportBar(theme, session)
        self.files = TraceFiles(theme, inspection, open_trace, self)
        for button in (self.files.open, self.files.save):
            self.head.buttons.addWidget(button)
        self.title = kit.label("", "title")
        self.hint = kit.label("", "secondary")
        self.setAcceptDrops(True)
        self._parts = (self.timeline, self.round, self.shape)  # each has set_answer
        self._follow = Throttle(self._show_round, self)
        self._keeps = False  # whether the chosen card stays in view: until the user scrolls
        self._lay_out()
        self.round.source_changed.connect(self._outline_source)
        self.text.token_clicked.connect(lambda _turn, index, place: self.answer.pin(index, place))
        self._scroll.verticalScrollBar().rangeChanged.connect(self._reveal)
        self._scroll.verticalScrollBar().actionTriggered.connect(self._let_go)
        self.round.place_focused.connect(self._let_go)
        for area in (self.text, self._scroll, self._body):
            area.installEventFilter(self)
        reconnect(self._slots, None, self.answer)
        self.replay.player.changed.connect(self._show_state)
        self.replay.player.phased.connect(self._show_state)
        inspection.changed.connect(self._show_answer)
        inspection.reading.connect(self.shape.rest)
        theme.changed.connect(self._fit)
        self._show_answer()

    def _lay_out(self) -> None:
        for label in (self.title, self.hint):
            label.setTextFormat(Qt.TextFormat.PlainText)
            label.setAlignment(Qt.AlignmentFlag.AlignCenter)
            label.setWordWrap(True)
        self._empty = kit.holder(
            kit.column(kit.Spring(1), self.title, self.hint, kit.Spring(2), margins=(24, 24, 24, 24))
        )

        self._below = QWidget()  # what scrolls: the round, and under it what is about the whole answer
        kit.column(self.round, self.shape, kit.Spring(1), margins=(24, 8, 24, 16), spacing=16, on=self._below)
        self._scroll = kit.scroll("Round", self._below)
        self._scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.round.place_focused.connect(self._scroll.ensureWidgetVisible)

        self._body = kit.holder(kit.column(self.text, self.timeline, (self._scroll, 1), spacing=0))
        self._stack = kit.stack(self._empty, self._body)
        parts = self.head, kit.line(), self.files.message, (self._stack, 1), self.replay
        kit.column(*parts, spacing=0, on=self)

    # ------------------------------------------------------------------ the answer that it shows

    def _show_answer(self) -> None:
        """Show the answer of the inspection: a different one, or the same under a different name."""
        shown = self._inspection.answer
        before, self.answer = self.answer, shown if shown is not None else AnswerModel()
        reconnect(self._slots, before, self.answer)
        for part in self._parts:
            part.set_answer(shown)
        if self.answer is not before:
            self._scroll.verticalScrollBar().setValue(0)
        paced = self._inspection.is_chats and self._session.server is None  # a server writes at its own speed
        self.replay.set_answer(shown, paced)
        self._show_text()
        self._show_state()

    def _show_text(self) -> None:
        """Show the answer's text. While the place is hidden it is not laid out, and does not grow."""
        shown = self._inspection.answer
        has = next((turn.answer for turn in self.text.turns if isinstance(turn, AnswerTurn)), None)
        if shown is None or not self.isVisible():
            if has is not None and (has is not shown or has.live):
                self.text.set_turns([])
        elif has is not shown:
            self.text.set_turns([AnswerTurn(shown, "")])
            self._outline_source()
        self._show_round()

    def _slots(self, answer: AnswerModel) -> tuple[tuple[SignalInstance, Callable[[], None]], ...]:
        return (
            (answer.began, self._show_state), (answer.told, self._show_state), (answer.grew, self._grow),
            (answer.ended, self._end), (answer.moved, self._move), (answer.pinned, self._pinned),
        )  # fmt: skip

    def _grow(self) -> None:
        if self._stack.currentWidget() is self._empty:
            self._show_state()
        self._follow.request()

    def _move(self) -> None:
        self._show_state()
        self._show_round()

    def _end(self) -> None:
        self._show_state()
        self._follow.now()

    def _show_state(self) -> None:
        """Show the head, and the rounds or why there are none."""
        answer = self._inspection.answer
        player = self.replay.player
        self.head.show_answer(answer, self._inspection.name, held=player.held)
        self.files.show_answer()
        header = answer.header if answer is not None else None
        self.legend.set_undrawn(header is not None and header.sampling.temperature == 0)
        title, hint = missing_rounds(
            answer, held=player.held, playing=player.playing, coming=player.phase is not None
        )
        self.title.setText(title)
        self.hint.setText(hint)
        self._stack.setCurrentWidget(self._empty if title else self._body)

    def _show_round(self) -> None:
        """Frame the inspected round in the text."""
        self.text.catch_up()  # the answer tells this place before its text
        for turn in self.text.turns:
            # The latest round of an answer that is being written needs no frame: it changes all the time.
            following = self.answer.live and self.answer.pinned_at is None
            self.text.frame_round(turn, None if following else self.answer.inspected)
        self._fit()

    def _outline_source(self) -> None:
        """Outline the tokens of the text that the inspected round's draft was copied from."""
        for turn in self.text.turns:
            self.text.outline_tokens(turn, *(self.round.source or (0, 0, 0)))

    # ------------------------------------------------------------------ what people do

    def _pinned(self) -> None:
        if self.answer.pinned_at is None and self._keeps:
            self._scroll.verticalScrollBar().setValue(0)  # another round; the user has not scrolled
        self._show_round()
        self._reveal_soon()

    def _reveal_soon(self) -> None:
        self._keeps = True
        QTimer.singleShot(0, self, self._reveal)

    def _let_go(self) -> None:
        self._keeps = False

    def _reveal(self) -> None:
        """Bring the chosen round into sight, at the card of a chosen token; again if its cards or the room
        change."""
        if self._keeps and self.answer.pinned_at is not None:
            bar, chosen = self._scroll.verticalScrollBar(), self.round.grid.chosen
            bar.setValue(0)
            if chosen is not None:
                self._scroll.ensureWidgetVisible(chosen, 0, 0)  # the round's head stays if it can
                if bar.value():  # no part of the head is cut
                    parts = self.round.findChildren(QWidget, options=_DIRECT)
                    tops = (self._top(part) for part in parts if part.isVisible())
                    bar.setValue(min([self._top(chosen), *(top for top in tops if top >= bar.value())]))

    def _top(self, part: QWidget) -> int:
        return part.mapTo(self._below, QPoint()).y()

    def keyPressEvent(self, event: QtGui.QKeyEvent) -> None:
        if not KEYS.act(self, event):
            super().keyPressEvent(event)

    def leave(self) -> None:
        """Go back to the place that led here."""
        self._inspection.leave()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Take the keys before areas that would scroll with them. Fit the text into a changed body, and
        settle all layouts before the window's next frame. Layouts follow each other from the inside out, each
        in its own turn. Otherwise a frame would show half a step, and the next would paint it again. (Only
        here: where widgets are replaced, a layout that is settled too early lacks the new ones for a
        frame.)"""
        if watched is self.window():
            if event.type() == QEvent.Type.UpdateRequest:
                for _ in range(_NESTED):
                    QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)
        elif watched is self._body:
            if event.type() == QEvent.Type.Resize:
                self._fit()
        elif (
            isinstance(event, QtGui.QKeyEvent)
            and event.type() == QEvent.Type.KeyPress
            and not event.modifiers()
        ):
            return KEYS.act(self, event)
        return super().eventFilter(watched, event)

    def showEvent(self, event: QtGui.QShowEvent) -> None:
        super().showEvent(event)
        self.window().installEventFilter(self)
        self._show_text()
        self._reveal_soon()
        self.round.setFocus(Qt.FocusReason.OtherFocusReason)

    def hideEvent(self, event: QtGui.QHideEvent) -> None:
        super().hideEvent(event)
        self.replay.player.leave()
        self.window().removeEventFilter(self)
        self._show_text()

    def dragEnterEvent(self, event: QtGui.QDragEnterEvent) -> None:
        if dropped_trace(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QtGui.QDropEvent) -> None:
        """Open a trace file that was dropped here, and say here what is wrong with it."""
        file = dropped_trace(event)
        if file is not None:
            event.acceptProposedAction()
            self.files.open_file(file)

    # ------------------------------------------------------------------ the look

    def resizeEvent(self, event: QtGui.QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()
        QTimer.singleShot(0, self, self._reveal)

    def _fit(self) -> None:
        """Give the text the height of its words, but not more than its share."""
        low = self.height() < _TALL * self._theme.scale
        self.timeline.set_compact(low)
        line = QtGui.QFontMetricsF(self._theme.sans(2)).height() * 1.6
        most = max((_LEAST_LINES - low) * line, self.height() * _TEXT_SHARE[low])
        room = self._body.height() - self.timeline.height() - self._scroll.minimumSizeHint().height()
        # With large type in a low window, what is below would overlap. No line is cut at the bottom.
        most = self.text.whole_lines(most, room)
        legend = self.text.place_legend(self.legend, self.width(), most)
        self.text.setFixedHeight(round(min(max(self.text.stack.height, 2 * line, legend), most)))


KEYS: KeyTable[InspectorPlace] = KeyTable(
    ("Left", "Previous round", lambda place: place.answer.step(-1)),
    ("Right", "Next round", lambda place: place.answer.step(1)),
    ("Home", "First round", lambda place: place.answer.pin(0)),
    ("End", "Last round", lambda place: place.answer.pin(None)),
    ("Space", "Play or pause", lambda place: place.replay.player.toggle()),
    ("Escape", "Go back to where you chose the round", lambda place: place.leave()),
)
