"""The library: the models on this machine, a way to add more, and details of the selected one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFileDialog, QSplitter, QStackedWidget, QWidget

from app.engine.errors import UserError
from app.ui.models.hub_session import HubSession
from app.ui.models.library_table import LibraryTable
from app.ui.models.model_details import ModelDetails, ModelsInUse
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.background import Query
from app.ui.widgets.icons import IconButton
from app.ui.widgets.notice import Notices, Placeholder
from app.ui.widgets.words import file_size


def ask_for_files(parent: QWidget) -> Sequence[str]:
    """Let the user choose model files with the system's dialog; empty where none was chosen."""
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
            tip="Every model in it and its subfolders, also those added later",
        )
        refresh = IconButton(theme, "refresh", "Look for models again", act=session.library.refresh)
        self.state = kit.label("", "caption")
        self.notice = Notices(theme)
        bar = kit.row(
            self.add_files,
            self.add_folder,
            refresh,
            kit.Spring(1),
            self.state,
            margins=(8, 16, 8, 12),
            spacing=8,
        )
        told = kit.row(self.notice, margins=(8, 0, 8, 0))
        self.table = LibraryTable(theme)
        self.table.chosen.connect(self._chosen)
        self.placeholder = Placeholder()
        self.placeholder.say("Looking for models…")
        catalogue = self.placeholder.add_button("Open the catalogue")
        catalogue.clicked.connect(self.catalogue_wanted)
        catalogue.hide()
        self._catalogue = catalogue
        self._stack = QStackedWidget()
        self._stack.addWidget(self.placeholder)
        self._stack.addWidget(self.table)
        left = QWidget()
        kit.column(bar, told, (self._stack, 1), margins=(16, 0, 8, 8), spacing=0, on=left)
        self.details = ModelDetails(theme, session, in_use)
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(left)
        splitter.addWidget(self.details)
        splitter.setStretchFactor(0, 3)
        splitter.setStretchFactor(1, 2)
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
                "No models here yet", "Fetch a pair from the catalogue, or add files that you have."
            )
            self._catalogue.show()
        read = sum(model.is_read for model in models)
        if self._session.reading:
            self.state.setText(f"Reading, {read} of {len(models)}" if models else "Looking for models…")
        else:
            many = f"{len(models)} model{'s' if len(models) != 1 else ''}"
            self.state.setText(f"{many}, {file_size(sum(model.size for model in models))}" if models else "")
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
            self.state.setText("Looking…")
            paths = [Path(path) for path in chosen]
            self._wanted = paths[0] if paths[0].suffix.lower() == ".gguf" else None
            self._adding.ask(partial(self._session.library.add, paths))

    def _added(self, _nothing: None) -> None:
        """Nothing to do: the library reports new models itself."""

    def _not_added(self, error: UserError) -> None:
        self._wanted = None
        self.notice.tell(error)
        self._show()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._chosen()  # the chat may use other models now
