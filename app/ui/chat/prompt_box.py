"""The prompt box: text, mode, system prompt, thinking; Send and Stop.

In infill mode it has two fields, for the texts before and after the gap. The second keeps its text while a
different mode hides it.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.engine.errors import UserError
from app.engine.templates.options import TemplateOptions, Thinking
from app.engine.types import PairInfo
from app.saved.chats.conversation import INFILL, Question
from app.saved.chats.recorder import NOTHING, Unsent
from app.ui.chat.prompt_edit import MOST_LINES, GapSuffix, PromptEdit, PromptFrame, SystemPrompt
from app.ui.chat.prompt_foot import IDLE_HINT, PromptFoot
from app.ui.chat.try_prompts import TryPanel
from app.ui.theme import Theme
from app.ui.theme.rings import by_mouse
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.background import Throttle
from app.ui.widgets.notice import MessageArea, Notices, Remark, WayOut

MODE_HELP = (
    "chat: your text is a message, formatted by the model's chat template.\ncompletion: the model "
    "continues the text in this box.\ninfill: the model fills the gap between two texts, such as the body "
    "of a function.\nCompletion and infill send only this box: no earlier messages, no system prompt."
)
NO_TARGET = "No target is loaded."
NO_TOKENS = "This target cannot fill in the middle: it has no tokens for it."
INFILL_NEEDS = "Infill needs a code model, such as Qwen2.5-Coder."
NO_TEMPLATE = "This target has no chat template: it can only continue texts."
CHAT_NEEDS = "Chat needs an instruct model, with a chat template in its file."
GAP_LINES = 6  # of the text before the gap; each field is lower, so that the transcript keeps its room
SIDES = (16, 12, 8, 8)  # between the frame and what is inside
FRAME = SIDES[0] + SIDES[2]


class PromptBox(QWidget):
    """The prompt box. Sending clears the field; Up in the empty field brings the text back."""

    submitted = Signal(object)  # Question
    refused = Signal()  # Enter, while an answer streams
    typed = Signal()  # what is not sent changed
    stop_requested = Signal()
    mode_changed = Signal(str)
    system_changed = Signal(str)
    """The user edited the system prompt. Emitted shortly after the last key press, and before `submitted`."""
    options_changed = Signal(dict)
    """The user chose options of the chat template."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._busy = self._sending = False
        self.suggestion = ""  # what Enter sends from the empty field
        self._last: Question | None = None
        self._wished = "chat"  # the chosen mode; another one is shown while the target cannot be asked in it
        self._why_not: dict[str, tuple[str, str]] = {}  # by mode in which the loaded target cannot be asked
        self.notices = Notices(theme)
        self.remark = Remark(theme)  # about the question on the screen
        self.try_panel = TryPanel(theme)
        self._edit = PromptEdit()
        self._edit.setAccessibleName("Prompt")
        self._edit.entered.connect(self._send)
        self._edit.escaped.connect(self.stop)
        self._edit.recall_requested.connect(self._recall)
        self._system = SystemPrompt()
        self._system.hide()
        self._system.edited.connect(self._system_edited)
        self._system.left.connect(self._to_prompt)
        self._suffix = GapSuffix(self._edit)
        self._suffix.hide()
        self._suffix.edit.entered.connect(self._send)
        self._suffix.edit.escaped.connect(self.stop)
        self._suffix.moved.connect(self._to_prompt)
        self._foot = PromptFoot(theme, self.try_panel)
        self._foot.pressed.connect(self._press)
        self._mode, self.try_this, self.thinking = self._foot.mode, self._foot.try_this, self._foot.thinking
        self._mode.picked.connect(self._mode_chosen)
        self._mode.refused.connect(self._mode_refused)
        self._foot.system.toggled.connect(self._toggle_system)
        self.thinking.picked.connect(self.options_changed)
        self.thinking.left.connect(self._to_prompt)
        self._frame = PromptFrame((self._edit, self._suffix.edit, self._system.edit))
        kit.column(
            self._system, self._edit, self._suffix, self._foot, margins=SIDES, spacing=8, on=self._frame
        )
        self.messages = MessageArea(self.remark, self.notices)
        kit.column(self.messages, self._frame, spacing=8, on=self)
        for field in (self._edit, self._suffix.edit):
            field.textChanged.connect(self._tell_typed)
        self.setFocusProxy(self._edit)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        theme.changed.connect(self._restyle)
        self.set_pair(None)
        self._restyle()

    # ------------------------------------------------------------------ what the window says

    def text(self) -> str:
        return self._edit.text()

    def set_text(self, text: str) -> None:
        """Replace the text in the field."""
        self._edit.set_text(text)

    def take_key(self, event: QKeyEvent) -> None:
        """Take the focus and a key press that no other widget used."""
        self._edit.setFocus(Qt.FocusReason.OtherFocusReason)
        self._edit.keyPressEvent(event)

    @property
    def unsent(self) -> Question:
        """What was typed and not sent."""
        return Question(self._edit.text(), self._suffix.edit.text() or None)

    def set_unsent(self, words: Question) -> None:
        """Show the text that was typed in a different chat."""
        for field, text in ((self._edit, words.text), (self._suffix.edit, words.suffix or "")):
            if field.text() != text:
                field.set_text(text)

    def put_back(self, question: Question) -> None:
        """Insert a question that could not be sent before newly typed text."""
        for field, text in ((self._edit, question.text), (self._suffix.edit, question.suffix)):
            typed = field.text()
            if text is not None:
                field.set_text(f"{text}\n\n{typed}" if typed.strip() else text)

    def set_suggestion(self, text: str) -> None:
        """The text that Enter sends from an empty field; "" for none."""
        self.suggestion = text
        self._refresh()

    def set_last_prompt(self, question: Question | None) -> None:
        """The text that Up recalls into the empty field."""
        self._last = question

    def set_busy(self, busy: bool) -> None:
        """While an answer streams, Send is Stop, and Enter keeps the text."""
        if busy == self._busy:
            return  # the engine may still be stopping: the button says so
        self._busy = busy
        self._foot.set_busy(busy)

    def set_mode(self, mode: str) -> None:
        """Show one of MODES, without a signal."""
        self._wished = mode
        self._show_mode()

    def _show_mode(self) -> None:
        without_template = self._wished == "chat" and "chat" in self._why_not
        self._mode.set_choice("completion" if without_template else self._wished)
        self._refresh()

    def set_system(self, text: str) -> None:
        """Show a chat's system prompt, without a signal."""
        self._system.show_text(text)
        self._refresh()

    def set_template_options(self, options: TemplateOptions) -> None:
        """Show the options of a chat's template, without a signal."""
        self.thinking.set_options(options)
        self._refresh()

    def set_thinking(self, thinking: Thinking | None) -> None:
        """Offer the thinking options of the loaded target's template."""
        self.thinking.set_thinking(thinking)
        self._refresh()

    def set_pair(self, pair: PairInfo | None) -> None:
        """Offer what the loaded pair can do; None if none is loaded."""
        for message, _hint in self._why_not.values():
            self.notices.withdraw(message)
        self._why_not = {}
        if pair is not None and not pair.target.has_chat_template:
            self._why_not["chat"] = NO_TEMPLATE, CHAT_NEEDS
        if pair is None or not pair.fills_middle:
            self._why_not[INFILL] = NO_TARGET if pair is None else NO_TOKENS, INFILL_NEEDS
        self._mode.set_unavailable(self._why_not)
        self._mode.set_help("\n".join([MODE_HELP, *map(" ".join, self._why_not.values())]))
        self._suffix.set_why_not(self._why_not.get(INFILL, ("",))[0] if pair is not None else "")
        self._show_mode()
        self.set_thinking(pair.thinking if pair is not None else None)

    def tell_system(self) -> None:
        """Report an edited system prompt now instead of after a pause in typing."""
        self._system.tell()

    def give_back(self, question: Question | None, message: str, hint: str, *offers: WayOut) -> None:
        """Return a question that could not be sent, if any, to the fields, and say why."""
        if question is not None:
            self.put_back(question)
        self.notices.tell(message, hint, *offers)

    def use_completion(self) -> None:
        """Choose the mode in which no template is needed."""
        self.notices.clear_passing()
        self.set_mode("completion")
        self._to_prompt()
        self.mode_changed.emit("completion")

    def set_try_offered(self, offered: bool) -> None:
        """Show the button for demo prompts, if the pair has any."""
        self._foot.set_try_offered(offered)

    # ------------------------------------------------------------------ what the user does

    def _press(self) -> None:
        if self._busy:
            self.stop()
        else:
            self._send()

    def _send(self) -> None:
        if self._busy:
            if not self.unsent.is_blank:
                self.refused.emit()
            return
        question = self._typed()
        if question.is_blank:
            return
        self._system.tell()
        self.notices.clear_passing()
        self._last = question
        self._sending = True  # until the chat has it, it is not sent
        self._edit.clear()
        if question.suffix is not None:
            self._suffix.edit.clear()
            self._edit.setFocus(Qt.FocusReason.OtherFocusReason)
        self.submitted.emit(question)
        self._sending = False
        self._tell_typed()

    def _tell_typed(self) -> None:
        if not self._sending:
            self.typed.emit()

    def _typed(self) -> Question:
        """The text to send; an empty field sends the suggestion."""
        text = self._edit.text()
        if self._mode.choice() == INFILL:
            return Question(text, self._suffix.edit.text())
        return Question(text if text.strip() else self.suggestion)

    def stop(self) -> None:
        """Ask to stop the answer in progress, if there is one; asking twice sends one signal."""
        if self._busy and not self._foot.is_stopping:
            self._foot.show_stopping()
            self.stop_requested.emit()

    def _recall(self) -> None:
        if self._last is None:
            return
        self._edit.set_text(self._last.text)
        if self._last.suffix is not None and self._suffix.edit.is_empty():
            self._suffix.edit.set_text(self._last.suffix)

    def _mode_chosen(self, mode: str) -> None:
        self._wished = mode
        self._refresh()
        if by_mouse(self._mode):  # the user types the next prompt
            self._edit.setFocus(Qt.FocusReason.OtherFocusReason)
        self.mode_changed.emit(mode)

    def _mode_refused(self, mode: str) -> None:
        if by_mouse(self._mode):
            self._to_prompt()
        self.notices.tell(*self._why_not[mode])

    def _toggle_system(self, opened: bool) -> None:
        self._refresh()
        (self._system if opened else self._edit).setFocus(Qt.FocusReason.OtherFocusReason)

    def _system_edited(self, text: str) -> None:
        self._refresh()
        self.system_changed.emit(text)

    def _to_prompt(self) -> None:
        self._edit.setFocus(Qt.FocusReason.OtherFocusReason)

    # ------------------------------------------------------------------ showing

    def _refresh(self) -> None:
        chat, infill = self._mode.choice() == "chat", self._mode.choice() == INFILL
        self._system.setVisible(chat and self._foot.system.isChecked())
        what = "Ask" if chat else "Start a text to continue (nothing else is sent)"
        demo = ", or press Enter for a demo prompt" if self.suggestion else ""
        name = "Text before the gap" if infill else "Prompt"
        self._edit.setPlaceholderText(name if infill else what + demo)
        self._edit.setAccessibleName(name)
        self._edit.setAccessibleDescription(IDLE_HINT if infill else f"{what}{demo}. {IDLE_HINT}")
        self._edit.viewport().update()  # Qt shows a changed placeholder only after a repaint
        self._suffix.setVisible(infill)
        self._edit.most_lines = GAP_LINES if infill else MOST_LINES
        set_role(self._edit, kind="mono" if infill else "")
        self._edit.use_font(self._theme.mono(0) if infill else self._theme.sans(0.5))
        self._foot.show_for(chat=chat, told=bool(self._system.told.strip()))

    def minimumSizeHint(self) -> QSize:
        return QSize(FRAME + self._foot.minimumSizeHint().width(), super().minimumSizeHint().height())

    def _restyle(self) -> None:
        self._system.edit.use_font(self._theme.sans(0.5))
        self._suffix.edit.use_font(self._theme.mono(0))
        self._refresh()


DELAY_MS = 700
_AGAIN_MS = 2000  # between two tries to write what could not be written
_CAUSE = "unsent"


class UnsentWords(QObject):
    """The words of the chat on the screen."""

    def __init__(
        self, prompt: PromptBox, unsent: Unsent, chat_id: Callable[[], str], words: Callable[[], Question]
    ) -> None:
        """`chat_id` returns the shown chat's id, "" while it is new; `words` returns its unsent text."""
        super().__init__(prompt)  # its timer ends with the prompt box
        self._prompt = prompt
        self._unsent = unsent
        self._chat_id, self._words = chat_id, words
        self._id = ""  # the chat of the words that were last kept
        self._kept = NOTHING
        self._owed: dict[str, Question] = {}  # what is not written yet, by chats
        self._again = QTimer(self, interval=_AGAIN_MS)
        self._again.timeout.connect(self._write)
        self._soon = Throttle(self.keep, self, DELAY_MS)
        prompt.typed.connect(self._soon.request)

    def show(self) -> None:
        """Show a different chat's draft message; the previous one was saved."""
        self._id, self._kept = self._chat_id(), NOTHING
        try:
            self._kept = self._unsent.read(self._id)
        except UserError as error:
            self._prompt.notices.tell(error)
        self._kept = self._owed.get(self._id, self._kept)
        self._prompt.set_unsent(self._kept)

    def keep(self) -> None:
        """Save the message, if it changed or its chat was saved for the first time."""
        chat_id, words = self._chat_id(), self._words()
        if (chat_id, words) != (self._id, self._kept):
            self._owed |= {self._id: NOTHING, chat_id: words}
            self._id, self._kept = chat_id, words
        if error := self._write():
            self._prompt.notices.tell(error, cause=_CAUSE)

    def _write(self) -> UserError | None:
        """Write unsaved text; the notice stays until it is saved. Returns why that fails."""
        try:
            for chat_id in list(self._owed):
                self._unsent.keep(chat_id, self._owed[chat_id])
                del self._owed[chat_id]
        except UserError as error:
            self._again.start()
            return error
        self._again.stop()
        self._prompt.notices.withdraw(_CAUSE)
        return None
