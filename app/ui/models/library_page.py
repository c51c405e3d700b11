"""The library: the models on this machine, a way to add more, and details of the selected one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from heapq import nlargest
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor, QFontMetrics, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QAbstractItemView, QFileDialog, QHeaderView, QTableWidgetItem, QWidget

from app.engine.errors import UserError
from app.hub.library.model import LocalModel, names_apart
from app.ui.models.entry_rows import ORIGINS
from app.ui.models.hub_session import HubSession
from app.ui.models.model_details import ModelDetails, ModelsInUse
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.background import Query
from app.ui.widgets.icons import IconButton
from app.ui.widgets.labels import GivingLabel, as_text
from app.ui.widgets.notice import Notices, Placeholder
from app.ui.widgets.tables import TextTable, selected_rows
from app.ui.widgets.words import NONE, count, file_size

COLUMNS = (
    ("Name", "The model's name in its file"),
    ("Architecture", "The model architecture, as llama.cpp names it"),
    ("Parameters", "Number of parameters"),
    ("Quantisation", "Number format of the weights"),
    ("Context", "Context size it was trained for, in tokens"),
    ("Size", "Size on disk, all files"),
    (
        "Source",
        "Hub: in the Hugging Face cache. Added: from your files or folders. Bundled: part of Draftscope. "
        "Set-up: downloaded by set-up. Made here: a quantisation made by Draftscope",
    ),
)
NAME, ARCHITECTURE, PARAMETERS, QUANTISATION, CONTEXT, SIZE, ORIGIN = range(len(COLUMNS))
RIGHT = (PARAMETERS, CONTEXT, SIZE)
# Hidden first if there is no room; the details beside the table show all of them.
GIVING_WAY = (ORIGIN, ARCHITECTURE, CONTEXT, QUANTISATION)
MEASURED = 50  # the longest texts of a column, whose width is measured
NAME_WIDTH = 180  # pixels at text scale 1, at least


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A model, under a name that no other model has."""

    name: str
    model: LocalModel


class LibraryTable(TextTable[ModelRow]):
    """One row per model; columns are hidden if there is no room for all."""

    def __init__(self, theme: Theme) -> None:
        left = [column for column in range(len(COLUMNS)) if column not in RIGHT]
        titles, definitions = zip(*COLUMNS, strict=True)
        super().__init__(theme, "Models on this machine", titles, left=left, mono=())
        self.explain(definitions)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.let_sort(clearable=False)
        head = self.horizontalHeader()
        head.setMinimumSectionSize(24)
        # Not by their contents: Qt would measure a thousand rows whenever the window is resized.
        head.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        head.setSectionResizeMode(NAME, QHeaderView.ResizeMode.Stretch)
        self.restyle()

    def set_models(self, models: Sequence[LocalModel]) -> None:
        """Show these models, and keep the selection."""
        self.set_rows(map(ModelRow, names_apart(models), models))

    def cells(self, row: ModelRow) -> Sequence[str]:
        return [row.name, *(cell(row.model, column) for column in range(1, len(COLUMNS)))]

    def identity(self, row: ModelRow) -> object:
        return row.model.path

    def sort_key(self, row: ModelRow, column: int) -> Any:
        facts = row.model.facts
        match column:
            case 2:
                return facts.parameters if facts else 0
            case 4:
                return (facts.context or 0) if facts else 0
            case 5:
                return row.model.size
        return cell(row.model, column).lower()

    def dress(self, item: QTableWidgetItem, row: ModelRow, column: int) -> None:
        super().dress(item, row, column)
        refusal = row.model.refusal
        item.setToolTip(as_text(f"{row.model.path}\n{refusal}".strip()))
        if refusal or column != NAME:
            item.setForeground(QColor(self._theme.palette.secondary))
        font = item.font()
        font.setItalic(bool(refusal))
        item.setFont(font)

    def fill(self) -> None:
        """Measure how wide each column wants to be: once for all models, however often the table is
        resized."""
        super().fill()
        self._widths = [self._wanted(column) for column in range(len(COLUMNS))]
        for column in range(1, len(COLUMNS)):
            self.setColumnWidth(column, self._widths[column])
        self._fit()

    @property
    def current(self) -> LocalModel | None:
        """The selected model."""
        rows = selected_rows(self)
        return self.rows[rows[0]].model if rows else None

    def select(self, path: Path) -> bool:
        """Select the model that has this file; False if there is none."""
        for at, row in enumerate(self.rows):
            if path in row.model.files:
                self.selectRow(at)
                return True
        return False

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        scale = self._theme.scale
        room = self.viewport().width() - round(NAME_WIDTH * scale)
        hidden = set(GIVING_WAY)
        others = [column for column in range(1, len(COLUMNS)) if column not in hidden]
        room -= sum(self._widths[column] for column in others)
        for column in reversed(GIVING_WAY):
            room -= self._widths[column]
            if room < 0:
                break
            hidden.discard(column)
        for column in GIVING_WAY:
            self.setColumnHidden(column, column in hidden)

    def _wanted(self, column: int) -> int:
        metrics = QFontMetrics(self._theme.sans())
        longest = nlargest(MEASURED, {cell(row.model, column) for row in self.rows}, key=len)
        widest = max(map(metrics.horizontalAdvance, longest), default=0)
        return max(widest, metrics.horizontalAdvance(COLUMNS[column][0]) + 16) + 24


def cell(model: LocalModel, column: int) -> str:
    """The text in a column."""
    facts = model.facts
    match column:
        case 0:
            return model.name
        case 1:
            return facts.architecture if facts else NONE
        case 2:
            return model.parameters or NONE
        case 3:
            return model.quantisation if model.quantisation != "?" else NONE
        case 4:
            return count(facts.context) if facts and facts.context else NONE
        case 5:
            return file_size(model.size)
        case _:
            return ORIGINS[model.origin]


def ask_for_files(parent: QWidget) -> Sequence[str]:
    """Let the user choose model files with the system's dialog; empty if none was chosen."""
    kinds = "GGUF models (*.gguf);;All files (*)"
    return QFileDialog.getOpenFileNames(parent, "Add models", str(Path.home()), kinds)[0]


def ask_for_folder(parent: QWidget) -> Sequence[str]:
    """Let the user choose a folder with the system's dialog."""
    chosen = QFileDialog.getExistingDirectory(parent, "Add a folder of models", str(Path.home()))
    return [chosen] if chosen else []


class LibraryPage(QWidget):
    """A table, and at the right the details of the selected model."""

    catalogue_wanted = Signal()

    def __init__(self, theme: Theme, session: HubSession, in_use: ModelsInUse) -> None:
        super().__init__()
        self._session = session
        self._in_use = in_use
        self._wanted: Path | None = None  # to be selected when it is listed
        self._noticed = ""  # the library's last notice, shown once
        self._adding: Query[None] = Query(session.askers, self._added, self._not_added)
        self.add_files = kit.button("Add files…", lambda: self._add(ask_for_files(self)))
        self.add_folder = kit.button(
            "Add folder…",
            lambda: self._add(ask_for_folder(self)),
            tip="Lists every model in it and its subfolders, including models added later",
        )
        refresh = IconButton(theme, "refresh", "Scan for models again", act=session.library.refresh)
        self.state = GivingLabel()
        self.state.setProperty("role", "caption")
        self.notice = Notices(theme)
        parts = self.add_files, self.add_folder, refresh, kit.Spring(1), self.state
        bar = kit.row(*parts, margins=(8, 16, 8, 12), spacing=8)
        told = kit.row(self.notice, margins=(8, 0, 8, 0))
        self.table = LibraryTable(theme)
        self.table.itemSelectionChanged.connect(self._chosen)
        self.placeholder = Placeholder()
        self.placeholder.say("Scanning for models…")
        self._catalogue = self.placeholder.add_button("Open the catalogue", self.catalogue_wanted)
        self._catalogue.hide()
        self._stack = kit.stack(self.placeholder, self.table)
        left = kit.holder(kit.column(bar, told, (self._stack, 1), margins=(16, 0, 8, 8), spacing=0))
        self.details = ModelDetails(theme, session, in_use)
        splitter = kit.splitter((left, 3), (self.details, 2))
        kit.column(splitter, on=self)
        self.details.setMinimumWidth(260)
        left.setMinimumWidth(300)
        splitter.setSizes([600, 420])
        session.library_changed.connect(self._show)
        session.library_problem.connect(self.details.notice.tell)
        self._show()

    def show_model(self, path: Path) -> None:
        """Select a model, as soon as it is listed."""
        self._wanted = path
        if self.table.select(path):
            self._wanted = None
        else:
            self._session.library.refresh()

    def _show(self) -> None:
        models = self._session.models
        if (notice := self._session.library.notice) != self._noticed:
            self._noticed = notice
            self.notice.withdraw("library")
            if notice:
                self.notice.tell(notice, cause="library")
        self.table.set_models(models)
        self._stack.setCurrentIndex(1 if models else 0)
        if not models and not self._session.reading:
            self.placeholder.say(
                "No models here yet", "Download a pair from the catalogue, or add your own files."
            )
            self._catalogue.show()
        read = sum(model.is_read for model in models)
        if self._session.reading:
            self.state.set_text(f"Reading {read} of {len(models)}" if models else "Scanning for models…")
        else:
            many = f"{len(models)} model{'s' if len(models) != 1 else ''}"
            size = file_size(sum(model.size for model in models))
            self.state.set_text(f"{many}, {size}" if models else "", many)
        if self._wanted is not None and self.table.select(self._wanted):
            self._wanted = None
        if self.table.current is None and models and not self.table.select(Path(self._in_use()[0])):
            self.table.selectRow(0)
        self._chosen()

    def _chosen(self) -> None:
        self.details.show_model(self.table.current)

    def _add(self, chosen: Sequence[str]) -> None:
        if chosen:
            self.notice.clear()
            self.state.set_text("Scanning…")
            paths = [Path(path) for path in chosen]
            self._wanted = paths[0] if paths[0].suffix.lower() == ".gguf" else None
            self._adding.ask(partial(self._session.library.add, paths))

    def _added(self, _nothing: None) -> None:
        """Do nothing: the library reports new models itself."""

    def _not_added(self, error: UserError) -> None:
        self._wanted = None
        self.notice.tell(error)
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._chosen()  # the chat may use other models now
