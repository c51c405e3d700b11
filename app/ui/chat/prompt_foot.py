"""Whether, or how much, the model thinks: the options of the chat template for it, chosen beside the prompt
box."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QWidget

from app.engine.templates.options import EFFORT, TemplateOptions, Thinking, switched
from app.saved.chats.conversation import MODES
from app.ui.chat.try_prompts import WIDTH as TRY_WIDTH
from app.ui.chat.try_prompts import TryPanel
from app.ui.theme import Theme
from app.ui.theme.rings import by_mouse
from app.ui.widgets import kit
from app.ui.widgets.buttons import PanelButton
from app.ui.widgets.field import QuietCombo
from app.ui.widgets.form import FoldButton
from app.ui.widgets.icons import IconButton, LateClicks
from app.ui.widgets.popover import Popover
from app.ui.widgets.segmented import Segmented

WORD = "Thinking"
KEPT = "Saved with this chat; applies from the next answer."
SWITCH_HELP = f"Whether the model thinks before it answers.\n{KEPT}"
EFFORT_HELP = f"How much the model thinks before it answers.\n{KEPT}"
_BESIDE = 8  # pixels


class _Efforts(QuietCombo):
    """The list of efforts. If a click opened it, it gives up the focus when it closes, because typing would
    otherwise still choose in it."""

    left = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._clicked = False

    def showPopup(self) -> None:  # noqa: N802
        self._clicked = by_mouse(self)
        super().showPopup()

    def hidePopup(self) -> None:  # noqa: N802
        super().hidePopup()
        if self._clicked:
            self._clicked = False
            self.left.emit()


class ThinkingChoice(QWidget):
    """A switch, or a choice of efforts if the template has no switch. Hidden if it has neither."""

    picked = Signal(dict)
    """The options of the chat template that the user chose."""
    changed = Signal()
    """The options of the chat template changed, by the user or otherwise."""
    left = Signal()
    """The user has clicked a choice; the focus returns to the prompt."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._thinking: Thinking | None = None
        self.options: TemplateOptions = {}
        """The options of the chat template."""
        self.switch = kit.check(WORD, kind="quiet")
        self.switch.setToolTip(SWITCH_HELP)
        self.switch.clicked.connect(self._switched)
        self._words = kit.label(WORD, "caption")
        self.efforts = _Efforts()
        self.efforts.left.connect(self.left)
        self.efforts.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.efforts.setAccessibleName(WORD)
        self.efforts.setToolTip(EFFORT_HELP)
        self.efforts.activated.connect(lambda at: self._pick({EFFORT: self.efforts.itemText(at)}))
        kit.row(self.switch, self._words, self.efforts, spacing=_BESIDE, on=self)
        self._show()

    @property
    def offered(self) -> bool:
        """Whether the template has anything to choose."""
        thinking = self._thinking
        return thinking is not None and (thinking.on is not None or bool(thinking.efforts))

    def set_thinking(self, thinking: Thinking | None) -> None:
        """Set what can be chosen for the template; None: nothing."""
        self._thinking = thinking
        self._show()

    def set_options(self, options: TemplateOptions) -> None:
        """Show the options of the template; `picked` is not emitted."""
        changed = options != self.options
        self.options = options
        self._show()
        if changed:
            self.changed.emit()

    def _show(self) -> None:
        thinking = self._thinking
        has_switch = thinking is not None and thinking.on is not None
        self.switch.setVisible(has_switch)
        self._words.setVisible(not has_switch)
        self.efforts.setVisible(not has_switch)
        if thinking is not None:
            self.switch.setChecked(thinking.is_on(self.options))
            effort = thinking.effort_of(self.options)
            self.efforts.clear()
            self.efforts.addItems(list(dict.fromkeys((*thinking.efforts, effort))))
            self.efforts.setCurrentText(effort)

    def _switched(self, on: bool) -> None:
        if by_mouse(self.switch):
            self.left.emit()
        self._pick(switched(on))

    def _pick(self, told: TemplateOptions) -> None:
        self.set_options(self.options | told)
        self.picked.emit(self.options)


TRY_HELP = "Demo prompts, with what to look for in each (Ctrl+T)"
IDLE_HINT = "Enter to send · Shift+Enter for a new line"
BUSY_HINT = "Esc stops"
STOPPING_HINT = "Stopping"
SPACING, CLOSE = 16, 4


class PromptFoot(QWidget):
    """Buttons that adapt to a narrow window. First the hint disappears, then the buttons' words; then
    thinking moves to a row below, and last the buttons."""

    pressed = Signal()  # Send, or Stop while an answer streams

    def __init__(self, theme: Theme, try_panel: TryPanel) -> None:
        super().__init__()
        self._system_words = ""  # behind those of its button
        self.mode = Segmented(theme, "Mode", MODES)
        self.system = FoldButton(theme)
        self.system.setToolTip("Edit the system prompt of this chat")
        self.try_this = PanelButton(theme, "demos", TRY_HELP, Popover(theme, try_panel, TRY_WIDTH))
        self.try_this.setText("Try this")
        self.try_this.hide()
        self.thinking = ThinkingChoice(theme)
        self._hint = kit.label("", "caption")
        self._button = IconButton(theme, "send", "Send", kind="primary", act=self.pressed)
        self._busy = False
        self._late = LateClicks(self._button)
        self._folds = QWidget()
        kit.row(self.system, self.try_this, spacing=CLOSE, on=self._folds)
        parts = self.mode, self._folds, self.thinking, kit.Spring(), self._hint, self._button
        self._beside, self._below = kit.row(*parts, spacing=SPACING), kit.row(kit.Spring())
        kit.column(self._beside, self._below, spacing=CLOSE, on=self)
        self.set_busy(False)

    @property
    def is_stopping(self) -> bool:
        """Whether Stop was pressed and the answer has not ended."""
        return not self._button.isEnabled()

    def set_busy(self, busy: bool) -> None:
        """Show Stop while an answer streams, else Send."""
        if self._busy and not busy:
            self._late.expect()
        self._busy = busy
        self._button.setEnabled(True)
        self._button.set_icon("stop" if busy else "send")
        self._button.set_tooltip("Stop" if busy else "Send")
        self._hint.setText(BUSY_HINT if busy else IDLE_HINT)
        self.fit()

    def show_stopping(self) -> None:
        """Say that the answer is being stopped, and take no second Stop."""
        self._button.setEnabled(False)
        self._hint.setText(STOPPING_HINT)

    def set_try_offered(self, offered: bool) -> None:
        """Show the button for demo prompts, if the pair has any."""
        if offered == self.try_this.isHidden():
            self.try_this.popover.close_panel()
            self.try_this.setVisible(offered)
            self.fit()

    def show_for(self, *, chat: bool, told: bool) -> None:
        """Show a chat's choices, or hide them in other modes. `told`: whether it has a system prompt."""
        self._system_words = " · set" if told else ""
        self.system.setVisible(chat)
        self.thinking.setVisible(chat and self.thinking.offered)
        self.fit()

    def fit(self) -> None:
        """Shorten the words, or move buttons to the row below, until both rows fit the width."""
        given = self._system_words
        folds = [button for button in (self.system, self.try_this) if not button.isHidden()]
        room = self.width() - self.mode.sizeHint().width() - self._button.sizeHint().width()
        room -= SPACING + (SPACING - CLOSE) * bool(folds) + CLOSE * len(folds)
        thinking = not self.thinking.isHidden()
        style = Qt.ToolButtonStyle
        self.system.setAccessibleName(f"System prompt{given}")
        for words, tool, beside in (
            ("System prompt", style.ToolButtonTextBesideIcon, thinking),
            ("System", style.ToolButtonTextBesideIcon, thinking),
            ("System", style.ToolButtonIconOnly, thinking),
            ("System prompt", style.ToolButtonTextBesideIcon, False),
            ("System", style.ToolButtonTextBesideIcon, False),
            ("System", style.ToolButtonIconOnly, False),
            ("", style.ToolButtonIconOnly, False),
        ):
            self.system.setText(f"{words}{given}".removeprefix(" · "))
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
                self.system.setText(f"{words}{given}")
                if self._folds.sizeHint().width() <= self.width():
                    break
        self._place(folds=not below, thinking=beside)
        self._hint.setVisible(self._hint.sizeHint().width() + SPACING <= left)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.fit()

    def minimumSizeHint(self) -> QSize:
        return QSize(self._least_width(), super().minimumSizeHint().height())

    def _place(self, *, folds: bool, thinking: bool) -> None:
        """Put the buttons and the thinking choice beside the mode, or below it."""
        places = [(self._folds, folds), (self.thinking, thinking)]
        if all((self._beside.indexOf(part) >= 0) == beside for part, beside in places):
            return
        for row, at in ((self._beside, 1), (self._below, 0)):
            for part, _beside in places:
                row.removeWidget(part)
            for part in reversed([part for part, beside in places if beside == (row is self._beside)]):
                row.insertWidget(at, part)

    def _least_width(self) -> int:
        """The width of the mode and Send beside each other."""
        return self.mode.minimumSizeHint().width() + SPACING + self._button.sizeHint().width()

    def _least_width_of_folds(self) -> int:
        """The least width of the other buttons between those."""
        metrics = self.system.fontMetrics()
        width = SPACING + self.system.iconSize().width() + metrics.horizontalAdvance("set") + 24
        if not self.try_this.isHidden():
            width += CLOSE + self.try_this.iconSize().width() + 12  # with the padding of the style sheet
        return width
