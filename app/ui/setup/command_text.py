"""The command of another program for the settings in use, to read and to copy."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.engine.explain.llama_command import CopiedCommand
from app.ui.theme import Theme
from app.ui.widgets.fields.segmented import Segmented
from app.ui.widgets.icons import IconButton
from app.ui.widgets.text.mono_text import NBSP, MonoText

_VALUE = re.compile(r"(?<= )(--\S+) (?!--)")  # an option and its value stay on one line


LLAMA_CPP, VLLM = "llama.cpp", "vLLM"


class CommandText(QWidget):
    """The command, wrapped, and below it what that program does differently."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        heading = QLabel("Command for")
        heading.setProperty("role", "strong")
        self._program = Segmented(theme, "Command for", (LLAMA_CPP, VLLM))
        self._program.picked.connect(self._show)
        self._copy_button = IconButton(theme, "copy", "")
        self._copy_button.clicked.connect(self._copy)
        self._text = MonoText(theme)
        self._differences = QLabel()
        self._differences.setTextFormat(Qt.TextFormat.PlainText)
        self._differences.setProperty("role", "caption")
        self._differences.setWordWrap(True)
        row = QHBoxLayout()
        row.addWidget(heading)
        row.addWidget(self._program)
        row.addStretch()
        row.addWidget(self._copy_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addLayout(row)
        layout.addWidget(self._text)
        layout.addWidget(self._differences)
        self._commands: dict[str, CopiedCommand] = {}
        self.set_commands(CopiedCommand(""), CopiedCommand(""))

    def set_commands(self, llama: CopiedCommand, vllm: CopiedCommand) -> None:
        """Show the commands; where one has no text, its differences say why."""
        commands = {LLAMA_CPP: llama, VLLM: vllm}
        if commands != self._commands:
            self._commands = commands
            self._show()

    @Slot()
    def _show(self) -> None:
        program = self._program.choice()
        command = self._commands[program]
        self._text.set_text(_VALUE.sub(rf"\1{NBSP}", command.text))
        self._text.setVisible(bool(command.text))
        self._copy_button.set_tooltip(f"Copy the {program} command")
        self._copy_button.setEnabled(bool(command.text))
        self._differences.setText("\n".join(command.differences))
        self._differences.setVisible(bool(command.differences))

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._commands[self._program.choice()].text)
