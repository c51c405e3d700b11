"""The Settings place: the look, the network, where things are, and drafter files from outside."""

from __future__ import annotations

import dataclasses
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import PySide6
from PySide6.QtCore import QObject, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFileDialog, QFormLayout, QHBoxLayout, QLabel, QScrollArea, QWidget

from app import __version__
from app.base.paths import Paths
from app.engine.drafters.foreign import foreign_kinds
from app.engine.errors import SettingError, UserError
from app.engine.params import params_of
from app.engine.plugins import TriedDrafters
from app.engine.strategy import StrategySpec
from app.saved.settings import Settings
from app.ui.settings.sections import CareSettings, NetworkSettings, settings_form
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
        self._labels: list[QLabel] = []
        self.setWidgetResizable(True)
        self.setFrameShape(QScrollArea.Shape.NoFrame)
        self._inner = QWidget()
        self._column = kit.column(margins=(MARGIN, MARGIN, MARGIN, MARGIN), spacing=8, on=self._inner)
        self._add_appearance()
        self._add_network()
        self._add_drafters()
        self._add_folders(paths)
        self._add_care()
        self._add_about(engine)
        self._column.addStretch(1)
        self.setWidget(self._inner)
        self._show_theme()
        theme.changed.connect(self._show_theme)

    def _title(self, words: str) -> None:
        if self._column.count():
            self._column.addSpacing(24)
        self._column.addWidget(kit.label(words, "title"))

    def _form(self) -> QFormLayout:
        holder = QWidget()
        form = settings_form(holder)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self._column.addWidget(holder)
        return form

    def _add_appearance(self) -> None:
        self._title("Appearance")
        form = self._form()
        self._mode = Segmented(self._theme, "Colours", MODES)
        self._mode.picked.connect(lambda mode: self._settings.change(theme=mode))
        self._palette = Segmented(self._theme, "Palette", tuple(PALETTES))
        self._palette.picked.connect(lambda palette: self._settings.change(palette=palette))
        self._palette.setToolTip(next(param.doc for param in params_of(Settings) if param.name == "palette"))
        self._motion = Segmented(self._theme, "Motion", MOTIONS)
        self._motion.picked.connect(lambda motion: self._settings.change(motion=motion))
        self._motion.setToolTip(next(param.doc for param in params_of(Settings) if param.name == "motion"))
        low, high = SCALES
        scale = next(param for param in params_of(Settings) if param.name == "text_scale")
        self._scale = NumberBox(dataclasses.replace(scale, low=low, high=high))
        self._scale.setAccessibleName("Text size")
        self._scale.setToolTip("Ctrl + and Ctrl −; Ctrl 0 restores the system size")
        self._scale.edited.connect(self._scale_edited)
        self._scale_error = kit.label("", "error")
        form.addRow(self._label("Colours"), _left(self._mode))
        form.addRow(self._label("Palette"), _left(self._palette))
        form.addRow(self._label("Motion"), _left(self._motion))
        row = _left(self._scale, QLabel("× system size"), self._scale_error)
        row.setSpacing(8)
        form.addRow(self._label("Text size"), row)

    def _add_network(self) -> None:
        self._title("Network")
        self.network = NetworkSettings(self._theme, self._settings)
        self._labels += self.network.labels
        self._column.addWidget(self.network)

    def _add_drafters(self) -> None:
        self._title("Your drafters")
        self.drafters = DrafterFiles(self._theme)
        self._column.addWidget(self.drafters)

    def _add_folders(self, paths: Paths) -> None:
        self._title("Folders")
        form = self._form()
        for words, folder in (("Chats", paths.chats), ("Settings", paths.config), ("Logs", paths.logs)):
            text = kit.label(str(folder), wrap=True, plain=True, selectable=True)
            button = kit.button("Open", name=f"Open the folder of {words.lower()}")
            url = QUrl.fromLocalFile(str(folder))
            button.clicked.connect(lambda _checked=False, url=url: QDesktopServices.openUrl(url))
            form.addRow(self._label(words), kit.row((text, 1), button))
        trash = kit.button(
            "Empty the trash",
            self.empty_trash_requested,
            tip="Deleted chats are kept for 7 days. This deletes them now, permanently.",
        )
        form.addRow(self._label("Deleted chats"), _left(trash))

    def _add_care(self) -> None:
        self._title("When something goes wrong")
        self.care = CareSettings(self._theme)
        self._labels += self.care.labels
        self._column.addWidget(self.care)

    def _add_about(self, engine: str) -> None:
        self._title("About")
        form = self._form()
        versions = (
            ("Draftscope", __version__),
            ("Engine", engine),
            ("Python", platform.python_version()),
            ("PySide6", PySide6.__version__),
            ("System", f"{platform.system()} {platform.release()}, {sys.platform}"),
        )
        for words, value in versions:
            text = kit.label(value, selectable=True)
            form.addRow(self._label(words), text)

    def _label(self, words: str) -> QLabel:
        label = kit.label(words, "secondary")
        self._labels.append(label)
        return label

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


def _left(*widgets: QWidget) -> QHBoxLayout:
    return kit.row(*widgets, kit.Spring(1))
