"""All versions of an answer in a table: how each was made, its speed, and where the texts diverge. Also the
sums over answers, opened from the instruments."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.engine.errors import UserError
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.saved.chats.conversation import Answer
from app.ui.chat.asking import why_not
from app.ui.chat.chat_controller import ChatController
from app.ui.instruments.sums_panel import WIDTH as SUMS_WIDTH
from app.ui.instruments.sums_panel import SinceReset, Sums, SumsPanel
from app.ui.state.answer import AnswerModel
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.transcript import AnswerTurn
from app.ui.transcript.text.facts import manner
from app.ui.widgets import kit
from app.ui.widgets import words as numbers
from app.ui.widgets.background import Throttle
from app.ui.widgets.popover import Popover

WIDTH = 720  # of the panel, in pixels at text scale 1
_TITLES = ("Version", "Strategy", "Tokens", "Acceptance", "Tokens/s", "Text")
_MOST = 40  # characters of the text where two versions diverge


class VersionsPanel(QWidget):
    """One row per version; all are compared with the version in the chat."""

    inspect_asked = Signal(int)  # the version

    def __init__(self, traces: Sequence[Trace | None], shown: int) -> None:
        """`traces` has None if a trace cannot be read; `shown` is the version in the chat."""
        super().__init__()
        grid = kit.grid((16, 8), stretch=len(_TITLES) - 1, on=self)
        grid.setColumnStretch(1, 2)
        for column, title in enumerate(_TITLES):
            label = self._put(grid, title, 0, column)
            set_role(label, role="caption")
        for version, trace in enumerate(traces):
            words = [str(version + 1), *_numbers(trace), _difference(traces[shown], trace, version == shown)]
            for column, text in enumerate(words):
                self._put(grid, text, version + 1, column)
            if trace is not None:
                button = kit.button("Inspect", kind="flat", name=f"Inspect version {version + 1}")
                button.clicked.connect(lambda _checked=False, at=version: self.inspect_asked.emit(at))
                grid.addWidget(button, version + 1, len(_TITLES))

    def _put(self, grid: QGridLayout, text: str, row: int, column: int) -> QLabel:
        wrap = column in (1, len(_TITLES) - 1)
        label = kit.label(text, wrap=wrap, plain=True, selectable=column != 1)  # a strategy stays whole
        number = _TITLES[column] in ("Tokens", "Acceptance", "Tokens/s")
        side = Qt.AlignmentFlag.AlignRight if number else Qt.AlignmentFlag.AlignLeft
        grid.addWidget(label, row, column, Qt.AlignmentFlag(0) if label.wordWrap() else side)
        return label


def _numbers(trace: Trace | None) -> list[str]:
    if trace is None:
        return [numbers.NONE] * 4
    statistics = Statistics.of_answer(trace)
    return [
        f"{trace.header.strategy}\n{manner(trace.header)}",
        numbers.count(statistics.emitted),
        numbers.percent(statistics.acceptance_rate),
        numbers.significant(statistics.tokens_per_second),
    ]


def _difference(shown: Trace | None, trace: Trace | None, same: bool) -> str:
    """Where the text of a version diverges from that of the shown one."""
    if same:
        return "in the chat"
    if trace is None:
        return "The tokens are lost."
    if shown is None:
        return "The tokens of the version in the chat are lost."
    pairs = zip(trace.token_ids, shown.token_ids, strict=False)
    at = next((place for place, (one, other) in enumerate(pairs) if one != other), None)
    if at is None:
        n, m = len(trace.token_ids), len(shown.token_ids)
        return "the same tokens" if n == m else f"identical up to token {min(n, m):,}, where one ends"
    return f"diverges at token {at + 1:,}: “{_from(trace, at)}”"


def _from(trace: Trace, at: int) -> str:
    """The first words of an answer from a token on, in one line."""
    pieces = [token.piece for round in trace.rounds for token in round.emitted][at:]
    words = " ".join(b"".join(pieces).decode(errors="replace").split())
    return words if len(words) <= _MOST else f"{words[:_MOST]}…"


class VersionsController(QObject):
    """Carries out the actions at an answer with versions."""

    changed = Signal()  # the stored chat changed
    inspect_requested = Signal(object, int, str)  # an answer, a round, its name

    def __init__(self, theme: Theme, chat: ChatController) -> None:
        super().__init__()
        self._theme = theme
        self._page, self._store, self._session, self._shown = chat.page, chat.store, chat.session, chat.shown
        page = chat.page
        page.transcript.version_requested.connect(self._show)
        page.transcript.comparison_requested.connect(self._compare)

    def _show(self, turn: AnswerTurn, version: int) -> None:
        """Make the chat continue from a different version."""
        shown = self._shown
        if shown.live is not None:
            self._page.prompt.notices.tell(*why_not(self._session.activity))
            return
        answer = self._answer(turn)
        if answer is None or turn.at is None or version >= len(answer.versions):
            self._page.prompt.notices.tell("The new version of this answer was not saved.")
            return
        self._page.prompt.tell_system()
        try:
            chat = self._store.show_version(shown.chat, turn.at, version)
        except UserError as error:
            self._page.prompt.notices.tell(error)
            return
        shown.show(chat)
        self._page.transcript.show_turn_at(turn.at)
        self.changed.emit()

    def _compare(self, turn: AnswerTurn, anchor: QWidget) -> None:
        """Open the table of the versions beside their arrows."""
        chat, answer = self._shown.chat, self._answer(turn)
        if answer is None:
            return
        versions = answer.versions
        traces = [self._store.load_trace(chat.id, version).trace for version in versions]
        panel = VersionsPanel(traces, answer.version)
        popover = Popover(self._theme, panel, WIDTH)

        def inspect(at: int) -> None:
            popover.close_panel()
            trace = traces[at]
            if at == answer.version:
                self.inspect_requested.emit(turn.answer, 0, "")
            elif trace is not None:
                name = f"{self._shown.name}, version {at + 1} of {len(versions)}"
                self.inspect_requested.emit(AnswerModel(trace), 0, name)

        panel.inspect_asked.connect(inspect)
        popover.closed.connect(popover.deleteLater)
        popover.open_below(anchor)

    def _answer(self, turn: AnswerTurn) -> Answer | None:
        """The stored answer of a turn; None before it starts."""
        turns = self._shown.chat.turns
        found = turns[turn.at] if turn.at is not None and turn.at < len(turns) else None
        return found if isinstance(found, Answer) else None


class SumsController(QObject):
    """Shows the sums of the answer and the chat on the screen, and of all answers since the last reset."""

    def __init__(self, theme: Theme, chat: ChatController) -> None:
        super().__init__()
        self.since_reset = SinceReset()
        self._page, self._shown, self._session = chat.page, chat.shown, chat.session
        page = chat.page
        self.panel = SumsPanel(theme)
        self.popover = Popover(theme, self.panel, SUMS_WIDTH)
        self.popover.setParent(page)  # until it opens in the window
        self._soon = Throttle(self._show, self)
        page.instruments.head.sums.clicked.connect(self._open)
        page.instruments.head.reset_requested.connect(self.since_reset.reset)
        self.panel.reset_requested.connect(self._reset)
        chat.answers.asked.connect(self.since_reset.follow)
        chat.shown.answer_shown.connect(self._renew)
        self.since_reset.changed.connect(self._renew)

    def _open(self) -> None:
        self._show()
        self.popover.open_below(self._page.instruments.head.sums)

    def _reset(self, forget: bool) -> None:
        if forget:
            self._session.forget()
        self.since_reset.reset()

    def _renew(self) -> None:
        if self.popover.isVisible():
            self._soon.request()

    def _show(self) -> None:
        answer = self._shown.answer
        mine = [answer] if answer is not None else []
        self.panel.show_sums((Sums.over(mine), Sums.over(self._shown.answers), self.since_reset.sums))
