"""The prompt box: what to ask, in which mode, under which system prompt, thinking or not; Send and Stop.

In the mode infill it has two fields, for the texts before and after the gap. What is typed into the second
stays while another mode hides it.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.engine.templates.options import TemplateOptions
from app.engine.templates.thinking import Thinking
from app.engine.types import PairInfo
from app.saved.chats.conversation import INFILL, MODES, Question
from app.ui.chat.prompt.gap_suffix import GapSuffix
from app.ui.chat.prompt.prompt_edit import MOST_LINES, PromptEdit
from app.ui.chat.prompt.prompt_frame import PromptFrame
from app.ui.chat.prompt.system_prompt import SystemPrompt
from app.ui.chat.prompt.thinking_choice import ThinkingChoice
from app.ui.chat.try_panel import WIDTH as TRY_WIDTH
from app.ui.chat.try_panel import TryPanel
from app.ui.theme import Theme
from app.ui.theme.rings import by_mouse
from app.ui.theme.style import set_role
from app.ui.widgets.fields.panel_button import PanelButton
from app.ui.widgets.fields.segmented import Segmented
from app.ui.widgets.fold import FoldButton
from app.ui.widgets.icons import IconButton
from app.ui.widgets.notice import Notices, Remark
from app.ui.widgets.popover import Popover

MODE_HELP = (
    "chat: your text is one message, wrapped by the model's template.\n"
    "completion: the model continues exactly the text in this box.\n"
    "infill: the model writes what belongs between two texts, such as the body of a function.\n"
    "Completion and infill send only what is in this box, no earlier texts and no system prompt."
)
NO_TARGET = "No target is loaded."
NO_TOKENS = "This target has no tokens to fill in the middle."
INFILL_NEEDS = "Infill needs a code model, such as Qwen2.5-Coder."
GAP_LINES = 6  # of the text before the gap; each field is lower, so that the transcript keeps its room
TRY_HELP = "Prompts to try, and what to look for in each (Ctrl+T)"
IDLE_HINT = "Enter sends · Shift+Enter starts a line"
BUSY_HINT = "Esc stops"
STOPPING_HINT = "Stopping"
SPACING, CLOSE = 16, 4
SIDES = (16, 12, 8, 8)  # between the frame and what is inside
FRAME = SIDES[0] + SIDES[2]


class PromptBox(QWidget):
    """The prompt box. Sending clears the field; Up in the empty field brings the text back."""

    submitted = Signal(object)  # Question
    stop_requested = Signal()
    mode_changed = Signal(str)
    system_changed = Signal(str)
    """The user edited the system prompt; comes shortly after the last key, and before `submitted`."""
    options_changed = Signal(dict)
    """The user chose options of the chat template."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._busy = False
        self.suggestion = ""  # what Enter sends from the empty field
        self._last: Question | None = None
        self._why_not = ""  # why the loaded target cannot be asked to fill a gap
        self.notices = Notices(theme)
        self.remark = Remark(theme)  # about the question on the screen
        self.try_panel = TryPanel(theme)
        self.try_this = PanelButton(theme, "demos", TRY_HELP, Popover(theme, self.try_panel, TRY_WIDTH))
        self.try_this.setText("Try this")
        self.try_this.hide()
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
        self._frame = PromptFrame(theme, (self._edit, self._suffix.edit, self._system.edit))
        inside = QVBoxLayout(self._frame)
        inside.setContentsMargins(*SIDES)
        inside.setSpacing(8)
        inside.addWidget(self._system)
        inside.addWidget(self._edit)
        inside.addWidget(self._suffix)
        inside.addLayout(self._build_foot())
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(8)
        layout.addWidget(self.remark)
        layout.addWidget(self.notices)
        layout.addWidget(self._frame)
        self.setFocusProxy(self._edit)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        theme.changed.connect(self._restyle)
        self.set_pair(None)
        self._restyle()

    # ------------------------------------------------------------------ what the window says

    def text(self) -> str:
        return self._edit.text()

    def set_text(self, text: str) -> None:
        """Put a text into the field, in place of what stands there."""
        self._edit.set_text(text)

    def take_key(self, event: QKeyEvent) -> None:
        """Take the focus and a key press that no other widget used."""
        self._edit.setFocus(Qt.FocusReason.OtherFocusReason)
        self._edit.keyPressEvent(event)

    def put_back(self, question: Question) -> None:
        """Put a question that could not be sent before what was typed since."""
        for field, text in ((self._edit, question.text), (self._suffix.edit, question.suffix)):
            typed = field.text()
            if text is not None:
                field.set_text(f"{text}\n\n{typed}" if typed.strip() else text)

    def set_suggestion(self, text: str) -> None:
        """What Enter sends from an empty field; "" for nothing."""
        self.suggestion = text
        self._refresh()

    def set_last_prompt(self, question: Question | None) -> None:
        """What Up brings back into the empty field."""
        self._last = question

    def set_busy(self, busy: bool) -> None:
        """While an answer streams, Send is Stop, and Enter keeps the text."""
        if busy == self._busy:
            return  # the engine may still be stopping: the button says so
        self._busy = busy
        self._button.setEnabled(True)
        self._refresh()

    def set_mode(self, mode: str) -> None:
        """Show one of MODES, without a signal."""
        self._mode.set_choice(mode)
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
        """Offer what the loaded pair can do; None where none is loaded."""
        self.notices.withdraw(self._why_not)
        self._why_not = NO_TARGET if pair is None else "" if pair.fills_middle else NO_TOKENS
        self._mode.set_unavailable((INFILL,) if self._why_not else ())
        help_lines = [MODE_HELP, f"{self._why_not} {INFILL_NEEDS}"] if self._why_not else [MODE_HELP]
        self._mode.setToolTip("\n".join(help_lines))
        self._mode.setAccessibleDescription(self._mode.toolTip())
        self._suffix.set_why_not(self._why_not if pair is not None else "")
        self.set_thinking(pair.thinking if pair is not None else None)

    def tell_system(self) -> None:
        """Report an edited system prompt now instead of after a pause in typing."""
        self._system.tell()

    def give_back(self, question: Question | None, message: str, hint: str) -> None:
        """Put a question that could not be sent, if there is one, back into the fields, and say why."""
        if question is not None:
            self.put_back(question)
        self.notices.tell(message, hint)

    def set_try_offered(self, offered: bool) -> None:
        """Show the button for the prompts to try, where the pair has any."""
        if offered == self.try_this.isHidden():
            self.try_this.close_panel()
            self.try_this.setVisible(offered)
            self._fit()

    def open_try_panel(self) -> None:
        """Open the prompts to try, or close them."""
        self.try_this.click()

    # ------------------------------------------------------------------ building

    def _build_foot(self) -> QVBoxLayout:
        self._mode = Segmented(self._theme, "Mode", MODES)
        self._mode.picked.connect(self._mode_chosen)
        self._mode.refused.connect(self._mode_refused)
        self._system_button = FoldButton(self._theme)
        self._system_button.setToolTip("Shows and edits the system prompt of this chat")
        self._system_button.toggled.connect(self._toggle_system)
        self.thinking = ThinkingChoice(self._theme)
        self.thinking.picked.connect(self.options_changed)
        self.thinking.left.connect(self._to_prompt)
        self._hint = QLabel()
        self._hint.setProperty("role", "caption")
        self._button = IconButton(self._theme, "send", "Send")
        set_role(self._button, kind="primary")
        self._button.clicked.connect(self._press)
        self._foot = row = QHBoxLayout()
        row.setSpacing(SPACING)
        row.addWidget(self._mode)
        self._folds = QWidget()
        folds = QHBoxLayout(self._folds)
        folds.setContentsMargins(0, 0, 0, 0)
        folds.setSpacing(CLOSE)
        folds.addWidget(self._system_button)
        folds.addWidget(self.try_this)
        row.addWidget(self._folds)
        row.addWidget(self.thinking)
        row.addStretch()
        row.addWidget(self._hint)
        row.addWidget(self._button)
        self._below = QHBoxLayout()
        self._below.addStretch()
        rows = QVBoxLayout()
        rows.setSpacing(CLOSE)
        rows.addLayout(row)
        rows.addLayout(self._below)
        return rows

    # ------------------------------------------------------------------ what the user does

    @Slot()
    def _press(self) -> None:
        if self._busy:
            self.stop()
        else:
            self._send()

    @Slot()
    def _send(self) -> None:
        if self._busy:
            return
        question = self._typed()
        if question.is_blank:
            return
        self._system.tell()
        self.notices.clear_passing()
        self._last = question
        self._edit.clear()
        if question.suffix is not None:
            self._suffix.edit.clear()
            self._edit.setFocus(Qt.FocusReason.OtherFocusReason)
        self.submitted.emit(question)

    def _typed(self) -> Question:
        """What is to be sent now; an empty field sends the suggestion."""
        text = self._edit.text()
        if self._mode.choice() == INFILL:
            return Question(text, self._suffix.edit.text())
        return Question(text if text.strip() else self.suggestion)

    @Slot()
    def stop(self) -> None:
        """Ask to stop the answer in progress, if there is one; asking twice sends one signal."""
        if self._busy and self._button.isEnabled():
            self._button.setEnabled(False)
            self._hint.setText(STOPPING_HINT)
            self.stop_requested.emit()

    @Slot()
    def _recall(self) -> None:
        if self._last is None:
            return
        self._edit.set_text(self._last.text)
        if self._last.suffix is not None and self._suffix.edit.is_empty():
            self._suffix.edit.set_text(self._last.suffix)

    @Slot(str)
    def _mode_chosen(self, mode: str) -> None:
        self._refresh()
        if by_mouse(self._mode):  # the user types the next prompt
            self._edit.setFocus(Qt.FocusReason.OtherFocusReason)
        self.mode_changed.emit(mode)

    @Slot()
    def _mode_refused(self) -> None:
        if by_mouse(self._mode):
            self._to_prompt()
        self.notices.tell(self._why_not, INFILL_NEEDS)

    @Slot(bool)
    def _toggle_system(self, opened: bool) -> None:
        self._refresh()
        (self._system if opened else self._edit).setFocus(Qt.FocusReason.OtherFocusReason)

    @Slot(str)
    def _system_edited(self, text: str) -> None:
        self._refresh()
        self.system_changed.emit(text)

    @Slot()
    def _to_prompt(self) -> None:
        self._edit.setFocus(Qt.FocusReason.OtherFocusReason)

    # ------------------------------------------------------------------ showing

    def _refresh(self) -> None:
        chat, infill = self._mode.choice() == "chat", self._mode.choice() == INFILL
        opened = chat and self._system_button.isChecked()
        self._system_button.setVisible(chat)
        self._system.setVisible(opened)
        self.thinking.setVisible(chat and self.thinking.offered)
        self._hint.setText(BUSY_HINT if self._busy else IDLE_HINT)
        self._button.set_icon("stop" if self._busy else "send")
        self._button.set_tooltip("Stop" if self._busy else "Send")
        what = "Ask" if chat else "Begin a text (only this is sent)"
        demo = ", or press Enter for a demo prompt" if self.suggestion else ""
        name = "Text before the gap" if infill else "Prompt"
        self._edit.setPlaceholderText(name if infill else what + demo)
        self._edit.setAccessibleName(name)
        self._edit.viewport().update()  # Qt shows a changed placeholder only after a repaint
        self._suffix.setVisible(infill)
        self._edit.most_lines = GAP_LINES if infill else MOST_LINES
        set_role(self._edit, kind="mono" if infill else "")
        self._edit.use_font(self._theme.mono(0) if infill else self._theme.sans(0.5))
        self._fit()

    def _fit(self) -> None:
        """Fit the row to its width: first the hint goes, then the words of the buttons; thinking moves below,
        and at last the buttons do."""
        given = " · set" if self._system.told.strip() else ""
        folds = [button for button in (self._system_button, self.try_this) if not button.isHidden()]
        room = self.width() - FRAME - self._mode.sizeHint().width() - self._button.sizeHint().width()
        room -= SPACING + (SPACING - CLOSE) * bool(folds) + CLOSE * len(folds)
        thinking = not self.thinking.isHidden()
        style = Qt.ToolButtonStyle
        self._system_button.setAccessibleName(f"System prompt{given}")
        for words, tool, beside in (
            ("System prompt", style.ToolButtonTextBesideIcon, thinking),
            ("System", style.ToolButtonTextBesideIcon, thinking),
            ("System", style.ToolButtonIconOnly, thinking),
            ("System prompt", style.ToolButtonTextBesideIcon, False),
            ("System", style.ToolButtonTextBesideIcon, False),
            ("System", style.ToolButtonIconOnly, False),
            ("", style.ToolButtonIconOnly, False),
        ):
            self._system_button.setText(f"{words}{given}".removeprefix(" · "))
            self.try_this.setToolButtonStyle(tool)
            left = room - sum(button.sizeHint().width() for button in folds)
            if beside:
                left -= SPACING + self.thinking.sizeHint().width()
            if left >= 0:
                break
        below = self.width() < self._least_width() + self._least_width_of_folds()
        if below:  # they have a row for their words
            self.try_this.setToolButtonStyle(style.ToolButtonTextBesideIcon)
            for words in ("System prompt", "System"):
                self._system_button.setText(f"{words}{given}")
                if self._folds.sizeHint().width() <= self.width() - FRAME:
                    break
        self._place(folds=not below, thinking=beside)
        self._hint.setVisible(self._hint.sizeHint().width() + SPACING <= left)

    def _place(self, *, folds: bool, thinking: bool) -> None:
        """Put the buttons and the thinking choice beside the mode, or below it."""
        places = [(self._folds, folds), (self.thinking, thinking)]
        if all((self._foot.indexOf(part) >= 0) == beside for part, beside in places):
            return
        for row, at in ((self._foot, 1), (self._below, 0)):
            for part, _beside in places:
                row.removeWidget(part)
            for part in reversed([part for part, beside in places if beside == (row is self._foot)]):
                row.insertWidget(at, part)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def minimumSizeHint(self) -> QSize:
        return QSize(self._least_width(), super().minimumSizeHint().height())

    def _least_width(self) -> int:
        """What the mode and Send need beside each other."""
        return FRAME + self._mode.minimumSizeHint().width() + SPACING + self._button.sizeHint().width()

    def _least_width_of_folds(self) -> int:
        """What the other buttons need between those, at their shortest."""
        metrics = self._system_button.fontMetrics()
        width = SPACING + self._system_button.iconSize().width() + metrics.horizontalAdvance("set") + 24
        if not self.try_this.isHidden():
            width += CLOSE + self.try_this.iconSize().width() + 12  # with the padding of the style sheet
        return width

    @Slot()
    def _restyle(self) -> None:
        self._system.edit.use_font(self._theme.sans(0.5))
        self._suffix.edit.use_font(self._theme.mono(0))
        self._refresh()
