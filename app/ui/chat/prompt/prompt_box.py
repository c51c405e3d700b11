"""The prompt box: what to ask, in which mode, under which system prompt, thinking or not; Send and Stop."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal, Slot
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.engine.templates.options import TemplateOptions
from app.engine.templates.thinking import Thinking
from app.ui.chat.prompt.prompt_edit import PromptEdit
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

MODES = ("chat", "completion")
MODE_HELP = (
    "chat: your text is one message, wrapped by the model's template.\n"
    "completion: the model continues exactly the text in this box.\n"
    "Earlier texts and the system prompt are not sent with it."
)
TRY_HELP = "Prompts to try, and what to look for in each (Ctrl+T)"
IDLE_HINT = "Enter sends · Shift+Enter starts a line"
BUSY_HINT = "Esc stops"
STOPPING_HINT = "Stopping"
SPACING, CLOSE = 16, 4
SIDES = (16, 12, 8, 8)  # between the frame and what is inside
FRAME = SIDES[0] + SIDES[2]


class PromptBox(QWidget):
    """The prompt box. Sending clears the field; Up in the empty field brings the text back."""

    submitted = Signal(str)
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
        self._last = ""
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
        self._frame = PromptFrame(theme, (self._edit, self._system.edit))
        inside = QVBoxLayout(self._frame)
        inside.setContentsMargins(*SIDES)
        inside.setSpacing(8)
        inside.addWidget(self._system)
        inside.addWidget(self._edit)
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
        self._restyle()
        self._refresh()

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

    def put_back(self, text: str) -> None:
        """Put a text that could not be sent before what was typed since."""
        typed = self.text()
        self.set_text(f"{text}\n\n{typed}" if typed.strip() else text)

    def set_suggestion(self, text: str) -> None:
        """What Enter sends from an empty field; "" for nothing."""
        self.suggestion = text
        self._refresh()

    def set_last_prompt(self, text: str) -> None:
        """What Up brings back into the empty field."""
        self._last = text

    def set_busy(self, busy: bool) -> None:
        """While an answer streams, Send is Stop, and Enter keeps the text."""
        if busy == self._busy:
            return  # the engine may still be stopping: the button says so
        self._busy = busy
        self._button.setEnabled(True)
        self._refresh()

    def set_mode(self, mode: str) -> None:
        """Show "chat" or "completion", without a signal."""
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

    def tell_system(self) -> None:
        """Report an edited system prompt now instead of after a pause in typing."""
        self._system.tell()

    def give_back(self, text: str | None, message: str, hint: str) -> None:
        """Put a text that could not be sent, if there is one, back into the field, and say why."""
        if text is not None:
            self.put_back(text)
        self.show_error(message, hint)

    def show_error(self, message: str, hint: str = "") -> None:
        """Say above the box what is wrong, until it is dismissed or the next prompt is sent."""
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
        self._mode.setToolTip(MODE_HELP)
        self._mode.picked.connect(self._mode_chosen)
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
        folds = QHBoxLayout()
        folds.setSpacing(CLOSE)
        folds.addWidget(self._system_button)
        folds.addWidget(self.try_this)
        row.addLayout(folds)
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
        typed = self._edit.text()
        prompt = typed if typed.strip() else self.suggestion
        if not prompt:
            return
        self._system.tell()
        self.notices.clear_passing()
        self._last = prompt
        self._edit.clear()
        self.submitted.emit(prompt)

    @Slot()
    def stop(self) -> None:
        """Ask to stop the answer in progress, if there is one; asking twice sends one signal."""
        if self._busy and self._button.isEnabled():
            self._button.setEnabled(False)
            self._hint.setText(STOPPING_HINT)
            self.stop_requested.emit()

    @Slot()
    def _recall(self) -> None:
        self._edit.set_text(self._last)

    @Slot(str)
    def _mode_chosen(self, mode: str) -> None:
        self._refresh()
        if by_mouse(self._mode):  # the user types the next prompt
            self._edit.setFocus(Qt.FocusReason.OtherFocusReason)
        self.mode_changed.emit(mode)

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
        chat = self._mode.choice() == "chat"
        opened = chat and self._system_button.isChecked()
        self._system_button.setVisible(chat)
        self._system.setVisible(opened)
        self.thinking.setVisible(chat and self.thinking.offered)
        self._hint.setText(BUSY_HINT if self._busy else IDLE_HINT)
        self._button.set_icon("stop" if self._busy else "send")
        self._button.set_tooltip("Stop" if self._busy else "Send")
        what = "Ask" if chat else "Begin a text (only this is sent)"
        demo = ", or press Enter for a demo prompt" if self.suggestion else ""
        self._edit.setPlaceholderText(what + demo)
        self._edit.viewport().update()  # Qt shows a changed placeholder only after a repaint
        self._fit()

    def _fit(self) -> None:
        """Fit the row to its width: first the hint goes, then the words of the buttons; thinking moves
        below."""
        given = " · set" if self._system.told.strip() else ""
        folds = [button for button in (self._system_button, self.try_this) if button.isVisibleTo(self)]
        room = self.width() - FRAME - self._mode.sizeHint().width() - self._button.sizeHint().width()
        room -= SPACING + (SPACING - CLOSE) * bool(folds) + CLOSE * len(folds)
        thinking = self.thinking.isVisibleTo(self)
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
        self._place_thinking(beside)
        self._hint.setVisible(self._hint.sizeHint().width() + SPACING <= left)

    def _place_thinking(self, beside: bool) -> None:
        """Put the thinking choice into the row of the other controls, or below them."""
        row, place = (self._foot, 2) if beside else (self._below, 0)
        if row.indexOf(self.thinking) < 0:
            for layout in (self._foot, self._below):
                layout.removeWidget(self.thinking)
            row.insertWidget(place, self.thinking)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def minimumSizeHint(self) -> QSize:
        """Wide enough for the row below the text at its shortest."""
        width = FRAME + self._mode.sizeHint().width() + self._button.sizeHint().width() + 2 * SPACING
        metrics = self._system_button.fontMetrics()
        width += self._system_button.iconSize().width() + metrics.horizontalAdvance("set") + 24
        if not self.try_this.isHidden():
            width += CLOSE + self.try_this.iconSize().width() + 12  # with the padding of the style sheet
        return QSize(width, super().minimumSizeHint().height())

    @Slot()
    def _restyle(self) -> None:
        for edit in (self._edit, self._system.edit):
            edit.use_font(self._theme.sans(0.5))
        self._fit()
