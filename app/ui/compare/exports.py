"""The Export menu: files of the results, and texts for the clipboard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from PySide6.QtCore import QObject, QThread, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from app.base.files import reason
from app.engine.errors import UserError
from app.lab.facts import Digest, sha256
from app.lab.files import WRITERS, AnyReport
from app.lab.load.report import BurstReport
from app.lab.report.report import Report
from app.lab.runs.compare import TraceStore
from app.lab.tune.tuned import TuneReport
from app.ui.theme import Theme
from app.ui.widgets.plot import ChooseFile, choose_file, png_picture, write_export

if TYPE_CHECKING:
    from app.ui.compare.outcome import MeasurementPages
    from app.ui.compare.works import Measurements

R = TypeVar("R", bound=AnyReport)

_NAMES: dict[type[AnyReport], str] = {Report: "comparison", TuneReport: "search", BurstReport: "load"}
"""The suggested name of the files of each kind of report."""
_WORDS = {
    ".html": "Report as one HTML page…",
    ".md": "Markdown for an issue…",
    ".json": "Everything as JSON…",
    ".csv": "Table as CSV…",
}
_PATTERNS = {
    ".html": "HTML page (*.html)",
    ".md": "Markdown (*.md)",
    ".json": "JSON (*.json)",
    ".csv": "CSV table (*.csv)",
    ".zip": "Archive (*.zip)",
    ".png": "PNG picture (*.png)",
}


class Saving(QThread):
    """Writes a file on its own thread, because digests read whole models."""

    done = Signal(str)  # the file's name
    failed = Signal(object)  # UserError

    def __init__(self, write: Callable[[Callable[[], bool]], None], name: str) -> None:
        """`write` is called with a function that says whether to stop."""
        super().__init__()
        self._write = write
        self._name = name
        self._stopped = False

    def run(self) -> None:
        try:
            self._write(lambda: self._stopped)
        except UserError as error:
            self.failed.emit(error)
        except OSError as error:
            self.failed.emit(
                UserError(f"{self._name} was not saved: {reason(error)}.", "Choose a different folder.")
            )
        else:
            self.done.emit(self._name)

    def end(self) -> None:
        """Stop, and wait for the thread; called before the window closes."""
        self._stopped = True
        self.wait()


def save_report(
    report: Callable[[Digest], R], made: Callable[[R], bytes], path: Path, measuring: Callable[[], bool]
) -> Saving:
    """Write a report with the digests of its model files. No digests while `measuring`, because reading whole
    models would slow the measurement down."""

    def write(stopped: Callable[[], bool]) -> None:
        digest = partial(sha256, stopped=lambda: stopped() or measuring())
        write_export(path, made(report(digest)))

    return Saving(write, path.name)


def save_traces(traces: TraceStore, path: Path) -> Saving:
    """Write all traces into an archive."""
    return Saving(lambda stopped: traces.archive(path, stopped), path.name)


class ExportMenu(QObject):
    """Fills the menu for the work on the screen; each file is written on its own thread."""

    failed = Signal(object)  # UserError
    saved = Signal(str)  # the file's name

    def __init__(self, theme: Theme, menu: QMenu, works: Measurements, pages: MeasurementPages) -> None:
        """`pages` show the works, with their charts and tables."""
        super().__init__(menu)
        self._theme = theme
        self._menu = menu
        self._works = works
        self._pages = pages
        self.choose: ChooseFile = choose_file
        self.saving: list[Saving] = []
        self._commands = QMenu("Copy the llama.cpp command for", menu)
        menu.aboutToShow.connect(self._fill)

    def copy_command(self, lane: int) -> None:
        """Put the llama.cpp command of a lane on the clipboard, with notes on what llama.cpp does
        differently."""
        if (report := self._works.measured.report) is not None:
            facts = report.lanes[lane]
            notes = [f"# {difference}" for difference in facts.differences]
            QGuiApplication.clipboard().setText("\n".join([*notes, facts.command]))

    def close(self) -> None:
        """End the exports in progress; called before the window closes."""
        for saving in list(self.saving):
            saving.end()

    # ------------------------------------------------------------------ inside

    def _fill(self) -> None:
        """Fill the menu with the entries that apply to the work on the screen."""
        menu, works = self._menu, self._works
        kind = works.shown.reports
        menu.clear()
        for end, words in _WORDS.items():
            if end in WRITERS[kind]:
                runs = kind is Report and end == ".csv"
                name = f"runs{end}" if runs else f"{_NAMES[kind]}{end}"
                menu.addAction("Runs as CSV…" if runs else words, partial(self._save_report, name))
        if kind is Report:
            menu.addAction("Traces of all runs…", self._save_traces)
        if kind is TuneReport:
            return
        menu.addAction("Picture of the chart as PNG…", self._save_chart)
        menu.addSeparator()
        menu.addAction("Copy the table", self._pages.copy_table)
        if kind is Report:
            menu.addMenu(self._commands)
            self._commands.clear()
            for lane, facts in enumerate(works.measured.report.lanes if works.measured.report else ()):
                self._commands.addAction(facts.name, partial(self.copy_command, lane))

    def _ask(self, name: str) -> Path | None:
        chosen = self.choose(self._pages.window(), name, _PATTERNS[Path(name).suffix])
        return Path(chosen) if chosen else None

    def _save_report(self, name: str) -> None:
        work = self._works.shown
        report = work.report_made()  # copied before the user chooses
        path = self._ask(name) if report is not None else None
        if report is not None and path is not None:
            made = WRITERS[work.reports][Path(name).suffix]
            self._save(save_report(report, made, path, lambda: self._works.at_work))

    def _save_traces(self) -> None:
        traces = self._works.measured.traces
        path = self._ask("traces.zip") if traces is not None else None
        if traces is not None and path is not None:
            self._save(save_traces(traces, path))

    def _save_chart(self) -> None:
        path = self._ask("chart.png")
        if path is not None:
            picture = png_picture(self._pages.chart(), self._theme.palette.ground)
            self._save(Saving(lambda _stopped: write_export(path, picture), path.name))

    def _save(self, saving: Saving) -> None:
        self.saving.append(saving)
        saving.failed.connect(self.failed)
        saving.done.connect(self.saved)
        saving.finished.connect(lambda: self.saving.remove(saving))
        saving.start()
