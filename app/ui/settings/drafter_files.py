"""Drafter files from outside: which are in use, what each brings, and the ways to change the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.engine.drafters.foreign import foreign_kinds
from app.engine.drafters.tried_drafters import TriedDrafters
from app.engine.errors import SettingError, UserError
from app.engine.strategy import StrategySpec
from app.ui.state.engine_session import BUSY, EngineSession
from app.ui.state.settings_in_use import SettingsInUse
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import ElidedLabel, as_text
from app.ui.widgets.notice import Notice
from app.ui.widgets.words import file_name

WARNING = (
    "A drafter file is Python code. It runs with your permissions, as soon as you add it and at every "
    "start. Add only files that you trust."
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

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._files: tuple[str, ...] = ()
        self._rows = kit.column(spacing=12)
        self.notice = Notice(theme)
        add = kit.button("Add file…", self._add, name="Add a drafter file")
        self._reload = kit.button(
            "Reload", self._read_again, tip="Reload changed files", name="Reload the drafter files"
        )
        kit.column(
            kit.label(WARNING, "secondary", wrap=True),
            self._rows,
            self.notice,
            kit.row(add, self._reload, kit.Spring(1), spacing=8),
            margins=(0, 8, 0, 0),
            spacing=12,
            on=self,
        )
        self.set_files(())

    def set_files(self, files: Sequence[str], problems: Mapping[str, UserError] | None = None) -> None:
        """Show the files in use and, by file, why one cannot be used."""
        self._files = tuple(files)
        self.notice.clear()
        kit.empty(self._rows)
        brought: dict[str, list[str]] = {}
        for thing in foreign_kinds():
            brought.setdefault(thing.source, []).append(f"{thing.name}: {thing.summary}")
        for file in self._files:
            problem = (problems or {}).get(file)
            if problem is not None:
                words = str(problem)
            elif file in brought:
                words = " ".join(brought[file])
            else:
                words = "Not read yet."
            self._rows.addWidget(self._row(file, words, wrong=problem is not None))
        self._reload.setVisible(bool(self._files))

    def _row(self, file: str, words: str, wrong: bool) -> QWidget:
        name = ElidedLabel(Qt.TextElideMode.ElideMiddle, text=file_name(file))
        name.setToolTip(as_text(file))
        name.setProperty("role", "strong")
        told = kit.label(words, wrap=True, plain=True, selectable=True)
        set_role(told, role="error" if wrong else "caption")
        remove = IconButton(
            self._theme,
            "trash",
            f"Remove {file_name(file)} from the list; the file stays",
            act=lambda _checked=False: self._remove(file),
        )
        row = QWidget()
        kit.row((kit.column(name, told, spacing=2), 1), (remove, 0, Qt.AlignmentFlag.AlignTop), on=row)
        return row

    def _add(self) -> None:
        folder = str(Path(self._files[-1]).parent) if self._files else str(Path.home())
        chosen = ask_for_drafter(self, folder)
        if chosen:
            file = str(Path(chosen).absolute())
            self.files_changed.emit(tuple(dict.fromkeys((*self._files, file))))

    def _read_again(self) -> None:
        self.files_changed.emit(self._files)

    def _remove(self, file: str) -> None:
        self.files_changed.emit(tuple(kept for kept in self._files if kept != file))


class DraftersController(QObject):
    """Connects the list, the known strategies, and the engine, which is sent the files."""

    used = Signal()
    """Strategies may have come or gone."""

    def __init__(
        self, files: DrafterFiles, drafters: TriedDrafters, session: EngineSession, settings: SettingsInUse
    ) -> None:
        super().__init__()
        self._files = files
        self._drafters = drafters
        self._session = session
        self._settings = settings
        files.files_changed.connect(self._files_changed)

    def use(self, files: tuple[str, ...]) -> None:
        """Register the strategies of exactly these files, and say what is wrong with the others."""
        problems = self._drafters.use(files)
        self._files.set_files(files, problems)
        self._session.drafters = tuple(file for file in files if file not in problems)

    def _files_changed(self, files: tuple[str, ...]) -> None:
        """Use exactly these drafter files; what they bring is offered at once."""
        settings = self._settings
        if self._session.activity in BUSY:
            self._files.notice.tell("The engine is busy.", "Stop the answer first.")
            return
        if files == settings.now.drafters:  # nothing added or removed: to be tried again
            self._drafters.forget()
        self.use(files)
        settings.change(drafters=files)
        before = settings.now.strategy
        try:
            StrategySpec.parse(before)
        except SettingError:
            settings.change(strategy=settings.now.usual_strategy)
            self._files.notice.tell(f"{before} was in use.", f"The strategy is now {settings.now.strategy}.")
        self.used.emit()
