"""The audit of an answer: whether drafting changes its text. The finding opens above the button."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QPushButton, QTextBrowser, QWidget

from app.engine.errors import UserError
from app.engine.process.messages import Failed, Judge, JudgedRows
from app.engine.record.trace import Trace
from app.engine.types import FinishReason
from app.ui.chat.asking import Rerun
from app.ui.chat.baseline import repeatable
from app.ui.chat.chat_controller import ChatController
from app.ui.state.answer import AnswerModel
from app.ui.state.engine_session import Activity, Reply
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.background import Askers, Query
from app.ui.widgets.plot import ChooseFile, choose_file, write_export
from app.ui.widgets.popover import Popover

if TYPE_CHECKING:
    from app.lab.audit_finding import Audit, Step, Steps

WIDTH, LINES = 640, 14


class AuditPanel(QWidget):
    """A finding, its page, and its actions."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.title = kit.label(role="title", plain=True)
        self.words = kit.label(wrap=True, plain=True, selectable=True)
        self.page = QTextBrowser(openLinks=False)
        self.markdown = ""  # of the page, for a bug report
        self.page.setAccessibleName("Audit report")
        self.copy = kit.button("Copy page", self._copy, tip="Copy the report as Markdown, for a bug report.")
        self.save = kit.button("Save page…")
        self.said = kit.label(role="hint", plain=True)
        buttons = kit.row(self.copy, self.save, self.said, kit.Spring(1), spacing=8)
        kit.column(self.title, self.words, self.page, buttons, spacing=10, on=self)
        theme.changed.connect(self._apply_theme)
        self._apply_theme()

    def show_finding(self, title: str, words: str) -> None:
        self.title.setText(f"Audit: {title}")
        self.words.setText(words)
        self.show_page("")
        self.said.setText("Hashing the model files…")

    def show_page(self, page: str) -> None:
        self.markdown = page
        self._render()
        self.said.setText("")
        for button in (self.copy, self.save):
            button.setEnabled(bool(page))

    def _render(self) -> None:
        """Show the page without its title and first words, which are above. Code has the size of the font at
        this time."""
        self.page.setMarkdown(self.markdown.split("\n\n", 2)[-1])

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.markdown)
        self.said.setText("Copied. It contains the prompt and both answers.")

    @Slot()
    def _apply_theme(self) -> None:
        self.page.setFont(self._theme.sans(-1))
        self._render()
        self.page.setFixedHeight(self.page.fontMetrics().lineSpacing() * LINES + 16)


class AuditController(QObject):
    """Runs one audit at a time, and shows its finding."""

    progressed = Signal(object)  # what it is doing, in a few words; None: it has ended

    def __init__(self, theme: Theme, chat: ChatController, button: QPushButton) -> None:
        """The finding opens above `button`."""
        super().__init__()
        self.choose: ChooseFile = choose_file
        self._page, self._chat, self._session, self._button = chat.page, chat, chat.session, button
        self.panel = AuditPanel(theme)
        self.popover = Popover(theme, self.panel, WIDTH)
        self.popover.setParent(chat.page)  # until it opens in the window
        self.panel.save.clicked.connect(self._save)
        self._found: tuple[AnswerModel, Audit] | None = None
        self._steps: Steps | None = None
        self._answer: AnswerModel | None = None  # that is audited
        self._askers = Askers()

    def close(self) -> None:
        """Stop reading."""
        self._askers.close()

    @Slot()
    def audit(self) -> None:
        """Audit the answer on the screen, or say why not. If it was audited before, show the finding."""
        answer = self._chat.shown.answer
        if self._found is not None and self._found[0] is answer:
            self.popover.open_below(self._button)
            return
        if self._steps is not None or (request := repeatable(self._chat)) is None:
            return
        assert answer is not None and answer.header is not None
        from app.lab.audit import audit  # the start of the program leaves the lab out

        sampling = dataclasses.replace(request.sampling, seed=answer.header.seed)
        self._answer = answer
        self._steps = audit(dataclasses.replace(request, sampling=sampling))
        self._advance(partial(next, self._steps))

    def _advance(self, advance: Callable[[], Step]) -> None:
        """Take the next step, or show the finding."""
        try:
            step = advance()
        except StopIteration as end:
            self._show(end.value)
        except UserError as error:
            self._end(error)
        else:
            from app.lab.audit_finding import step_words

            self.progressed.emit(step_words(step))
            if isinstance(step, Judge):
                self._session.ask(step, self._judged)
            else:
                assert self._answer is not None and self._answer.header is not None
                prompt = self._answer.header.prompt
                self._session.generate(step, Rerun(self._session, prompt, self._answered, self._end))

    def _judged(self, reply: Reply) -> None:
        assert self._steps is not None
        if isinstance(reply, JudgedRows):
            self._advance(partial(self._steps.send, reply))
        elif isinstance(reply, Failed):
            self._end(UserError(reply.message, reply.hint))

    def _answered(self, trace: Trace) -> None:
        assert self._steps is not None and trace.totals is not None
        if trace.totals.finish_reason is FinishReason.CANCELLED:
            self._end(UserError("The run was stopped."))
        else:
            self._advance(partial(self._steps.send, trace))

    def _end(self, error: UserError) -> None:
        self._steps = None
        self._page.prompt.notices.tell(UserError(f"The answer was not audited: {error.message}", error.hint))
        self.progressed.emit(None)

    def _show(self, found: Audit) -> None:
        from app.lab.audit_finding import audit_page
        from app.lab.facts import sha256

        assert self._answer is not None
        self._steps, self._found = None, (self._answer, found)
        self.panel.show_finding(found.title, found.words)
        pages = Query(self._askers, self.panel.show_page, self._page.prompt.notices.tell)
        pages.ask(lambda: audit_page(found, partial(sha256, stopped=lambda: self._askers.closed)))
        self.progressed.emit(None)
        if self._chat.shown.answer is self._answer and self._session.activity is Activity.READY:
            self.popover.open_below(self._button)

    @Slot()
    def _save(self) -> None:
        if path := self.choose(self._button.window(), "audit.md", "Markdown (*.md)"):
            try:
                write_export(Path(path), self.panel.markdown.encode())
            except UserError as error:
                self.panel.said.setText(error.message)
            else:
                self.panel.said.setText("Saved. It contains the prompt and both answers.")
