"""The Settings place: the look, the network, folders, and the user's drafter files."""

from __future__ import annotations

import dataclasses
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import PySide6
from PySide6.QtCore import QObject, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QLabel, QScrollArea, QWidget

from app import __version__
from app.base.paths import Paths
from app.engine.drafters.foreign import foreign_kinds
from app.engine.errors import SettingError, UserError
from app.engine.params import Param, params_of
from app.engine.plugins import TriedDrafters
from app.engine.strategy import StrategySpec
from app.saved.settings import Settings
from app.ui.settings.sections import CareSettings, NetworkSettings, SettingsSection
from app.ui.state.chat_side import SettingsInUse
from app.ui.state.engine_session import BUSY, EngineSession
from app.ui.theme import PALETTES, Theme
from app.ui.theme.style import set_role
from app.ui.theme.theme import MODES, MOTIONS
from app.ui.widgets import kit
from app.ui.widgets.field import NumberBox
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import ElidedLabel, as_text
from app.ui.widgets.notice import Notice
from app.ui.widgets.segmented import Segmented
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
    """The user wants exactly these files (a tuple of paths) in use, read again if they changed."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._files: tuple[str, ...] = ()
        self._rows = kit.column(spacing=12)
        self.notice = Notice(theme)
        add = kit.button("Add file…", self._add, name="Add a drafter file")
        self._reload = kit.button(
            "Reload",
            lambda: self.files_changed.emit(self._files),
            tip="Reload changed files",
            name="Reload the drafter files",
        )
        upper = kit.label(WARNING, "secondary", wrap=True), self._rows
        lower = self.notice, kit.row(add, self._reload, kit.Spring(1), spacing=8)
        kit.column(*upper, *lower, margins=(0, 8, 0, 0), spacing=12, on=self)
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


WIDTH, LABELS = 640, 128  # pixels at text scale 1
MARGIN = 32
SCALES = (0.7, 2.5)


class SettingsPage(QScrollArea):
    """Appearance, network, own drafters, folders, report and repair, versions. Changes act at once."""

    empty_trash_requested = Signal()

    def __init__(self, theme: Theme, paths: Paths, settings: SettingsInUse, engine: str) -> None:
        """`engine` describes where the engine runs."""
        super().__init__()
        self._theme = theme
        self._settings = settings
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self.network = NetworkSettings(theme, settings)
        self.drafters = DrafterFiles(theme)
        self.care = CareSettings(theme)
        titled = {
            "Appearance": self._appearance(),
            "Network": self.network,
            "Your drafters": self.drafters,
            "Folders": self._folders(paths),
            "When something goes wrong": self.care,
            "About": _about(engine),
        }
        sections = [section for section in titled.values() if isinstance(section, SettingsSection)]
        self._labels = [label for section in sections for label in section.labels]
        self._inner = QWidget()
        column = kit.column(margins=(MARGIN, MARGIN, MARGIN, MARGIN), spacing=8, on=self._inner)
        for title, section in titled.items():
            kit.fill(column, *([24] if column.count() else []), kit.label(title, "title"), section)
        column.addStretch(1)
        self.setWidget(self._inner)
        self._show_theme()
        theme.changed.connect(self._show_theme)

    def _appearance(self) -> SettingsSection:
        self._mode = self._choice("Colours", MODES, "theme")
        self._palette = self._choice("Palette", tuple(PALETTES), "palette")
        self._motion = self._choice("Motion", MOTIONS, "motion")
        for choice, name in ((self._palette, "palette"), (self._motion, "motion")):
            choice.setToolTip(_param(name).doc)
        low, high = SCALES
        self._scale = NumberBox(dataclasses.replace(_param("text_scale"), low=low, high=high))
        self._scale.setAccessibleName("Text size")
        self._scale.setToolTip("Ctrl + and Ctrl −; Ctrl 0 restores the system size")
        self._scale.edited.connect(self._scale_edited)
        self._scale_error = kit.label("", "error")
        section = SettingsSection()
        section.add_line("Colours", self._mode)
        section.add_line("Palette", self._palette)
        section.add_line("Motion", self._motion)
        section.add_line("Text size", self._scale, QLabel("× system size"), self._scale_error)
        return section

    def _choice(self, name: str, choices: Sequence[str], setting: str) -> Segmented:
        """The choices of a setting."""
        made = Segmented(self._theme, name, choices)
        made.picked.connect(lambda choice: self._settings.change(**{setting: choice}))
        return made

    def _folders(self, paths: Paths) -> SettingsSection:
        section = SettingsSection()
        for words, folder in (("Chats", paths.chats), ("Settings", paths.config), ("Logs", paths.logs)):
            text = kit.label(str(folder), wrap=True, plain=True, selectable=True)
            button = kit.button("Open", name=f"Open the folder of {words.lower()}")
            url = QUrl.fromLocalFile(str(folder))
            button.clicked.connect(lambda _checked=False, url=url: QDesktopServices.openUrl(url))
            section.add_row(words, kit.row((text, 1), button), top=False)
        trash = kit.button(
            "Empty the trash",
            self.empty_trash_requested,
            tip="Deleted chats are kept for 7 days. This deletes them now, permanently.",
        )
        section.add_line("Deleted chats", trash)
        return section

    def _show_theme(self) -> None:
        for label in self._labels:  # one column width in all the forms
            # Fixed, because a label keeps asking for the minimum width that it had when it was styled.
            words = label.fontMetrics().horizontalAdvance(label.text())
            label.setFixedWidth(max(round(LABELS * self._theme.scale), words))
        # The limit is on the whole page, because its parts compute their heights from the page's width.
        self._inner.setMaximumWidth(round(WIDTH * self._theme.scale) + 2 * MARGIN)
        self._mode.set_choice(self._theme.mode)
        self._palette.set_choice(self._theme.palette.name)
        self._motion.set_choice(self._theme.motion)
        self._scale.set_value(self._theme.scale)
        self._scale_error.clear()

    def _scale_edited(self) -> None:
        self._scale_error.setText(self._scale.problem())
        if self._scale.error() is None:
            self._settings.change(text_scale=float(self._scale.value()))


def _about(engine: str) -> SettingsSection:
    """The versions, as a report has them."""
    section = SettingsSection()
    for words, value in (
        ("Draftscope", __version__),
        ("Engine", engine),
        ("Python", platform.python_version()),
        ("PySide6", PySide6.__version__),
        ("System", f"{platform.system()} {platform.release()}, {sys.platform}"),
    ):
        section.add_line(words, kit.label(value, selectable=True))
    return section


def _param(name: str) -> Param:
    """A setting, with its limits and its help."""
    return next(param for param in params_of(Settings) if param.name == name)
