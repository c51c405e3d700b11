"""Traces opened and saved from the Inspector."""

from __future__ import annotations

import re
from pathlib import Path

from PySide6.QtCore import QObject, Slot
from PySide6.QtWidgets import QFileDialog, QPushButton, QWidget

from app.base.files import reason
from app.engine.record.trace import write_trace
from app.ui.state.chat_side import OpenTrace
from app.ui.state.inspection import Inspection
from app.ui.theme import Theme
from app.ui.widgets.data.export import ChooseFile, choose_file
from app.ui.widgets.notice import Notice

PATTERN = "Traces (*.jsonl)"


def choose_trace(window: QWidget, _name: str, pattern: str) -> str:
    """Let the user choose a trace to open, with the system's dialog."""
    path, _ = QFileDialog.getOpenFileName(window, "Open trace", "", pattern)
    return path


def file_name(answer: str) -> str:
    """The name of a trace file for an answer, without what some systems refuse in names."""
    words = re.sub(r'[\\/:*?"<>|\x00-\x1f]+', " ", answer.removesuffix(".jsonl"))
    return f"{' '.join(words.split()).strip(' .…') or 'answer'}.jsonl"


class TraceFiles(QObject):
    """The two buttons of the head, and the message where one of them fails."""

    def __init__(
        self,
        theme: Theme,
        inspection: Inspection,
        open_trace: OpenTrace,
        parent: QWidget,
        choose: ChooseFile = choose_trace,
        choose_new: ChooseFile = choose_file,
    ) -> None:
        super().__init__(parent)
        self._inspection = inspection
        self._open_trace = open_trace
        self._window, self._choose, self._choose_new = parent, choose, choose_new
        self.message = Notice(theme)
        self.open = QPushButton("Open trace…")
        self.open.setToolTip("Replay an answer from a file. A file that is dropped on the window opens too.")
        self.save = QPushButton("Save trace…")
        self.save.setToolTip("Write this answer to a file, with everything that was recorded")
        self.open.clicked.connect(self._ask_to_open)
        self.save.clicked.connect(self._ask_to_save)

    def show_answer(self) -> None:
        """Show whether there is something to save."""
        answer = self._inspection.answer
        self.save.setEnabled(answer is not None and bool(answer.rounds) and not answer.live)

    @Slot()
    def _ask_to_open(self) -> None:
        path = self._choose(self._window, "", PATTERN)
        if path:
            self.open_file(Path(path))

    def open_file(self, file: Path) -> None:
        """Show a trace file, and say what is wrong with it."""
        self.message.hide()
        self._open_trace(file, self.message.tell)

    @Slot()
    def _ask_to_save(self) -> None:
        answer = self._inspection.answer
        assert answer is not None and answer.trace is not None
        path = self._choose_new(self._window, file_name(self._inspection.name), PATTERN)
        if not path:
            return
        self.message.hide()
        try:
            write_trace(Path(path), answer.trace)
        except OSError as error:
            name = Path(path).name
            self.message.tell(f"{name} was not saved: {reason(error)}.", "Choose another folder.")
