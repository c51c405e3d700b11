"""A strategy for a kind of work, and as text: to read, to type, to copy; from and to the commands of other
programs."""

from __future__ import annotations

import re
from collections.abc import Callable

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QComboBox, QWidget

from app.engine.errors import UserError
from app.engine.explain.explained import explain_text
from app.engine.explain.llama_command import CopiedCommand
from app.engine.explain.purposes import PURPOSES, FirstStrategy, first_strategy
from app.engine.process.messages import PassSeconds
from app.engine.strategy import NONE, StrategySpec
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.form import FoldedPart
from app.ui.widgets.icons import IconButton
from app.ui.widgets.keys import Typing
from app.ui.widgets.kit import reveal
from app.ui.widgets.labels import NBSP, MonoText
from app.ui.widgets.segmented import Segmented

ASK = "Choose a kind of work…"


class PurposeChoice(QWidget):
    """A list of purposes; below the chosen one its reason, and buttons for its strategy."""

    taken = Signal(object)  # StrategySpec
    compared = Signal(object)  # StrategySpec

    def __init__(self) -> None:
        super().__init__()
        self._in_use = ""
        self._files = "", ""  # of target and draft
        self._passes: Callable[[str, str], PassSeconds | None] = lambda target, draft: None
        self._times: PassSeconds | None = None  # what the proposal is based on
        self._first: FirstStrategy | None = None  # what is proposed
        self.choice = QComboBox()
        self.choice.setAccessibleName("What are you doing?")
        self.choice.addItems([ASK, *(purpose.name for purpose in PURPOSES)])
        self.choice.currentIndexChanged.connect(self._show)
        self.reason = kit.label("", "caption", wrap=True, plain=True)
        self.use = kit.button("", self._use)
        self.compare = kit.button(
            "Compare it",
            lambda: self.compared.emit(self._spec),
            tip="Set up Compare with no drafting, the current strategy and this one",
        )
        self._comparable = False
        upper = kit.label("What are you doing?", "strong"), (self.choice, 0, Qt.AlignmentFlag.AlignLeft)
        lower = self.reason, kit.row(self.use, self.compare, kit.Spring(), spacing=8)
        kit.column(*upper, *lower, spacing=6, on=self)
        self._show()

    def set_context(
        self, in_use: str, target: str, draft: str, passes: Callable[[str, str], PassSeconds | None]
    ) -> None:
        """Set the strategy in use, the files of the pair ("" for no draft), and the function that returns the
        times of their passes."""
        before = self._in_use, self._files, self._times
        self._in_use, self._files, self._passes = in_use, (target, draft), passes
        if (self._in_use, self._files, self._known_times()) != before:
            self._show()

    def offer_compare(self) -> None:
        """Offer to compare from now on, because `compared` is connected."""
        self._comparable = True
        self._show()

    def _known_times(self) -> PassSeconds | None:
        """The times of the pair's passes, if a kind of work is chosen."""
        return self._passes(*self._files) if self.choice.currentIndex() > 0 else None

    @property
    def _spec(self) -> StrategySpec | None:
        return self._first.spec if self._first is not None else None

    def _show(self) -> None:
        at = self.choice.currentIndex() - 1
        self._first, self._times = None, self._known_times()
        if at >= 0:
            self._first = first_strategy(PURPOSES[at], *self._files, self._times)
        first, spec = self._first, self._spec
        self.reason.setText(first.reason if first is not None else "")
        self.reason.setVisible(first is not None)
        taken = str(spec) == self._in_use
        self.use.setVisible(spec is not None)
        self.compare.setVisible(bool(spec is not None and spec.parts) and self._comparable)
        self.use.setText("In use" if taken else f"Use {spec}")
        self.use.setEnabled(not taken)

    def _use(self) -> None:
        self.choice.setFocus()  # the button can no longer be pressed, and Qt would focus just anything
        self.taken.emit(self._spec)


class SpecText(QWidget):
    """One line in the font for code; an error is shown below."""

    typed = Signal(str)
    """The text that was entered, valid or not."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._spec = ""
        self.line = kit.field("Strategy as text")
        self.line.setProperty("kind", "mono")
        self.line.setToolTip("name:key=value, joined by + in the order they are asked")
        self._typing = Typing(self.line, self.line.textEdited)
        self._typing.settled.connect(lambda: self.typed.emit(self.line.text()))
        copy = IconButton(theme, "copy", "Copy the strategy", act=self._copy)
        self.error = kit.label("", "error", wrap=True, plain=True)
        self.error.hide()
        row = kit.row((self.line, 1), copy, spacing=8)
        kit.column(kit.label("As text", "strong"), row, self.error, spacing=6, on=self)

    def set_spec(self, text: str) -> None:
        """Show a valid spec."""
        self._spec = text
        self._typing.forget()
        self.line.setText(text)
        self.line.setCursorPosition(0)
        self.show_error("")

    def accept(self, text: str) -> None:
        """Keep the typed text as it is, because it means this spec."""
        self._spec = text
        self.show_error("")

    def show_error(self, text: str) -> None:
        """Say what is wrong with the typed text; "" if nothing is wrong with it."""
        self.error.setText(text)
        self.error.setVisible(bool(text))
        set_role(self.line, state="wrong" if text else "")

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._spec)


TITLE = "Import from a command or a log"
WORDS = (
    "Paste a command for llama-server, llama-cli, llama-speculative or vLLM, Python with LLM(…), or log "
    "lines. It is only read, never run."
)
LONGEST = 500_000  # characters that are read here; draftscope explain reads longer files
_LINES = 5  # of the field


class CommandReader(QWidget):
    """Folded away at first: a field to paste a command into, what the command says, and a button for its
    strategy."""

    strategy_wanted = Signal(str)
    """The strategy that was read should be used."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._strategy = ""
        self.field = kit.text_box("Command or log to read", "Paste it here")
        self._typing = Typing(self.field, self.field.textChanged)
        self._typing.settled.connect(self.read)
        self.told = kit.label(WORDS, "caption", wrap=True, plain=True)
        self.told.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.told.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.use = kit.button("Use this strategy", lambda: self.strategy_wanted.emit(self._strategy))
        self.use.hide()
        inside = kit.column(self.field, (self.use, 0, Qt.AlignmentFlag.AlignLeft), self.told, spacing=8)
        self.fold = FoldedPart(theme, TITLE, kit.holder(inside))
        self.fold.toggled.connect(self._opened)
        kit.column(self.fold, on=self)
        theme.follow(self._refresh)

    def read(self) -> None:
        """Say what the text in the field is about."""
        text = self.field.toPlainText()
        self._strategy = ""
        if not text.strip():
            self._tell(WORDS, "caption")
            return
        cut = len(text) > LONGEST
        try:
            explained = explain_text(text[:LONGEST])
        except UserError as error:
            self._tell(str(error), "error")
            return
        self._strategy = explained.strategy if explained.strategy != NONE else ""
        more = [f"Only the first {LONGEST:,} characters were read."] if cut else []
        self._tell("\n".join([*explained.lines, *more]), "")

    def _tell(self, words: str, role: str) -> None:
        self.told.setText(words)
        set_role(self.told, role=role)
        self.use.setVisible(bool(self._strategy))
        QTimer.singleShot(0, self, self._reveal)
        self.use.setToolTip(f"Draft with {self._strategy} from the next answer on" if self._strategy else "")

    def _reveal(self) -> None:
        """Show as much of what was read as there is room for below the button."""
        reveal(self.told)
        reveal(self.use if self._strategy else self.told)

    def _opened(self, opened: bool) -> None:
        if opened:
            self.field.setFocus()
            QTimer.singleShot(0, self, self._reveal)  # it has its place then

    def _refresh(self) -> None:
        self.field.setFont(self._theme.mono(-1))
        height = self.field.fontMetrics().lineSpacing() * _LINES
        self.field.setFixedHeight(
            height + 2 * (self.field.frameWidth() + int(self.field.document().documentMargin()))
        )


_VALUE = re.compile(r"(?<= )(--\S+) (?!--)")  # an option and its value stay on one line


LLAMA_CPP, VLLM = "llama.cpp", "vLLM"


class CommandText(QWidget):
    """The command, wrapped, and below it what that program does differently."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._program = Segmented(theme, "Command for", (LLAMA_CPP, VLLM))
        self._program.picked.connect(self._show)
        self._copy_button = IconButton(theme, "copy", "", act=self._copy)
        self._text = MonoText(theme)
        self._differences = kit.label("", "caption", wrap=True, plain=True)
        row = kit.row(kit.label("Command for", "strong"), self._program, kit.Spring(), self._copy_button)
        kit.column(row, self._text, self._differences, spacing=6, on=self)
        self._commands: dict[str, CopiedCommand] = {}
        self.set_commands(CopiedCommand(""), CopiedCommand(""))

    def set_commands(self, llama: CopiedCommand, vllm: CopiedCommand) -> None:
        """Show the commands; if one has no text, its differences say why."""
        commands = {LLAMA_CPP: llama, VLLM: vllm}
        if commands != self._commands:
            self._commands = commands
            self._show()

    def _show(self) -> None:
        program = self._program.choice()
        command = self._commands[program]
        self._text.set_text(_VALUE.sub(rf"\1{NBSP}", command.text))
        self._text.setVisible(bool(command.text))
        self._copy_button.set_tooltip(f"Copy the {program} command")
        self._copy_button.setEnabled(bool(command.text))
        self._differences.setText("\n".join(command.differences))
        self._differences.setVisible(bool(command.differences))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._commands[self._program.choice()].text)
