"""Drafter files from outside: which are in use, what each brings, and the ways to change the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.engine.drafters.outside.foreign import foreign_kinds
from app.engine.errors import UserError
from app.ui.pair.model_panel import FileChooser
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets.icons import IconButton
from app.ui.widgets.notice import Notice
from app.ui.widgets.text.elided import ElidedLabel
from app.ui.widgets.text.tips import as_text
from app.ui.widgets.words.model_words import file_name

WARNING = (
    "A drafter file is Python code: it runs with all your rights, as soon as it is added and at every start. "
    "Add only files that you trust."
)


def ask_for_drafter(parent: QWidget, folder: str) -> str:
    """Let the user choose a Python file with the system's dialog."""
    return QFileDialog.getOpenFileName(
        parent, "Choose a drafter", folder, "Python files (*.py);;All files (*)"
    )[0]


class DrafterFiles(QWidget):
    """One row per file: what it brings, or what is wrong with it. Nothing is run here."""

    files_changed = Signal(object)
    """The user wants exactly these files (a tuple of paths) in use, read again where they changed."""

    def __init__(self, theme: Theme, choose_file: FileChooser = ask_for_drafter) -> None:
        super().__init__()
        self._theme = theme
        self._choose_file = choose_file
        self._files: tuple[str, ...] = ()
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 8, 0, 0)
        layout.setSpacing(12)
        warning = QLabel(WARNING)
        warning.setProperty("role", "secondary")
        warning.setWordWrap(True)
        layout.addWidget(warning)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(12)
        layout.addLayout(self._rows)
        self.notice = Notice(theme)
        layout.addWidget(self.notice)
        add = QPushButton("Add file…")
        add.setAccessibleName("Add a drafter file")
        add.clicked.connect(self._add)
        self._reload = QPushButton("Reload")
        self._reload.setAccessibleName("Reload the drafter files")
        self._reload.setToolTip("Read changed files again")
        self._reload.clicked.connect(self._read_again)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(add)
        buttons.addWidget(self._reload)
        buttons.addStretch(1)
        layout.addLayout(buttons)
        self.set_files(())

    def set_files(self, files: Sequence[str], problems: Mapping[str, UserError] | None = None) -> None:
        """Show the files in use and, by file, why one cannot be used."""
        self._files = tuple(files)
        self.notice.clear()
        while (item := self._rows.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.hide()
                widget.deleteLater()
        kinds = {kind.source: kind for kind in foreign_kinds()}
        for file in self._files:
            problem = (problems or {}).get(file)
            if problem is not None:
                words = str(problem)
            elif file in kinds:
                words = f"{kinds[file].name}: {kinds[file].summary}"
            else:
                words = "Not read yet."
            self._rows.addWidget(self._row(file, words, wrong=problem is not None))
        self._reload.setVisible(bool(self._files))

    def _row(self, file: str, words: str, wrong: bool) -> QWidget:
        name = ElidedLabel(Qt.TextElideMode.ElideMiddle)
        name.set_text(file_name(file))
        name.setToolTip(as_text(file))
        name.setProperty("role", "strong")
        told = QLabel(words)
        told.setTextFormat(Qt.TextFormat.PlainText)
        told.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        told.setWordWrap(True)
        set_role(told, role="error" if wrong else "caption")
        remove = IconButton(self._theme, "trash", f"Remove {file_name(file)} from the list; the file stays")
        remove.clicked.connect(lambda _checked=False: self._remove(file))
        column = QVBoxLayout()
        column.setSpacing(2)
        column.addWidget(name)
        column.addWidget(told)
        row = QWidget()
        layout = QHBoxLayout(row)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addLayout(column, 1)
        layout.addWidget(remove, 0, Qt.AlignmentFlag.AlignTop)
        return row

    @Slot()
    def _add(self) -> None:
        folder = str(Path(self._files[-1]).parent) if self._files else str(Path.home())
        chosen = self._choose_file(self, folder)
        if chosen:
            file = str(Path(chosen).absolute())
            self.files_changed.emit(tuple(dict.fromkeys((*self._files, file))))

    @Slot()
    def _read_again(self) -> None:
        self.files_changed.emit(self._files)

    def _remove(self, file: str) -> None:
        self.files_changed.emit(tuple(kept for kept in self._files if kept != file))
