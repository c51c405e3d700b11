"""Which backends this build of llama.cpp has, and the command that makes another build."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.engine.devices.builds import SOURCE_FOLDER, gpu_backends, other_builds
from app.ui.theme import Theme
from app.ui.widgets.fields.segmented import Segmented
from app.ui.widgets.icons import IconButton
from app.ui.widgets.text.mono_text import MonoText


class BuildText(QWidget):
    """One command at a time: that of the backend chosen."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._commands: dict[str, str] = {}
        self._choice: Segmented | None = None
        title = QLabel("This build of llama.cpp")
        title.setProperty("role", "strong")
        self._has = QLabel()
        self._has.setProperty("role", "caption")
        self._has.setWordWrap(True)
        self._command = MonoText(theme)
        self._copy_button = IconButton(theme, "copy", "Copy the command")
        self._copy_button.clicked.connect(self._copy)
        self._row = QHBoxLayout()
        self._row.addWidget(self._command, 1)
        self._row.addWidget(self._copy_button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(6)
        layout.addWidget(title)
        layout.addWidget(self._has)
        layout.addLayout(self._row)
        self.hide()

    def set_backends(self, backends: Sequence[str]) -> None:
        """The backends of this build, in llama.cpp's words."""
        self._has.setText(describe_backends(backends))
        self._commands = other_builds(backends)
        if self._choice is not None:
            self._choice.deleteLater()
            self._choice = None
        self.show()
        for widget in (self._command, self._copy_button):
            widget.setVisible(bool(self._commands))
        if not self._commands:
            return
        self._choice = Segmented(self._theme, "Build for", tuple(self._commands))
        self._choice.picked.connect(self._picked)
        self._row.insertWidget(0, self._choice)
        self._picked(self._choice.choice())

    @Slot(str)
    def _picked(self, choice: str) -> None:
        self._command.set_text(self._commands[choice])

    @Slot()
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._command.text())


def describe_backends(backends: Sequence[str]) -> str:
    """What it computes on, and what the command is for."""
    gpus = gpu_backends(backends)
    has = f"It computes on {', '.join((*gpus, 'the CPU'))}" if gpus else "It computes on the CPU alone"
    workers = "and on workers" if "RPC" in backends else "and cannot use workers"
    return f"{has}, {workers}. To make another build, run this in {SOURCE_FOLDER}:"
