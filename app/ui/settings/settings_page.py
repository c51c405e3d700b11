"""The Settings place: the look, the network, and where things are."""

from __future__ import annotations

import dataclasses
import platform
import sys

import PySide6
from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFormLayout, QHBoxLayout, QLabel, QScrollArea, QWidget

from app import __version__
from app.base.paths import Paths
from app.engine.params import params_of
from app.saved.settings import Settings
from app.ui.settings.drafter_files import DrafterFiles
from app.ui.settings.sections import CareSettings, NetworkSettings, settings_form
from app.ui.state.settings_in_use import SettingsInUse
from app.ui.theme import PALETTES, Theme
from app.ui.theme.theme import MODES, MOTIONS
from app.ui.widgets import kit
from app.ui.widgets.field import NumberBox
from app.ui.widgets.segmented import Segmented

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
