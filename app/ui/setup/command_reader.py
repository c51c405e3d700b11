"""Reads a command or a log of another program, and offers its strategy."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal, Slot
from PySide6.QtWidgets import QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.engine.errors import UserError
from app.engine.explain.explained import explain_text
from app.engine.strategy import NONE
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets.fields.typing import Typing
from app.ui.widgets.fold import Fold
from app.ui.widgets.reveal import reveal

TITLE = "Read a command or a log"
WORDS = (
    "A command of llama-server, llama-cli, llama-speculative or vLLM, Python with LLM(…), or lines of a log. "
    "It is read here and not run."
)
LONGEST = 500_000  # characters that are read here; draftscope explain reads longer files
_LINES = 5  # of the field


class CommandReader(QWidget):
    """Folded away until it is wanted: a field to paste into, what it says, and a button for its strategy."""

    strategy_wanted = Signal(str)
    """The strategy that was read should be used."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._strategy = ""
        self.field = QPlainTextEdit()
        self.field.setProperty("kind", "field")
        self.field.setPlaceholderText("Paste it here")
        self.field.setAccessibleName("Command or log to read")
        self.field.setTabChangesFocus(True)
        self._typing = Typing(self.field, self.field.textChanged)
        self._typing.settled.connect(self.read)
        self.told = QLabel(WORDS)
        self.told.setTextFormat(Qt.TextFormat.PlainText)
        self.told.setWordWrap(True)
        self.told.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
        self.told.setProperty("role", "caption")
        self.told.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.use = QPushButton("Use this strategy")
        self.use.clicked.connect(lambda: self.strategy_wanted.emit(self._strategy))
        self.use.hide()
        inside = QWidget()
        contents = QVBoxLayout(inside)
        contents.setContentsMargins(0, 0, 0, 0)
        contents.setSpacing(8)
        contents.addWidget(self.field)
        contents.addWidget(self.use, 0, Qt.AlignmentFlag.AlignLeft)
        contents.addWidget(self.told)
        self.fold = Fold(theme, TITLE, inside)
        self.fold.toggled.connect(self._opened)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.fold)
        theme.changed.connect(self._refresh)
        self._refresh()

    @Slot()
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

    @Slot()
    def _reveal(self) -> None:
        """Show as much of what was read as there is room for below the button."""
        reveal(self.told)
        reveal(self.use if self._strategy else self.told)

    @Slot(bool)
    def _opened(self, opened: bool) -> None:
        if opened:
            self.field.setFocus()
            QTimer.singleShot(0, self, self._reveal)  # it has its place then

    @Slot()
    def _refresh(self) -> None:
        self.field.setFont(self._theme.mono(-1))
        height = self.field.fontMetrics().lineSpacing() * _LINES
        self.field.setFixedHeight(
            height + 2 * (self.field.frameWidth() + int(self.field.document().documentMargin()))
        )
