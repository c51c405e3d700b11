"""The Export menu: files of the results, and texts for the clipboard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu

from app.lab.facts import Digest
from app.lab.load.report import BurstReport
from app.lab.report.report import Report, make_report
from app.lab.tune.tuned import TuneReport
from app.ui.compare.exports import (
    KINDS,
    LOAD_KINDS,
    TRACES,
    TUNE_KINDS,
    Made,
    Saving,
    save_report,
    save_traces,
)
from app.ui.compare.lab_session import LabSession
from app.ui.compare.outcome import MeasurementPages
from app.ui.compare.works import Measurements
from app.ui.theme import Theme
from app.ui.widgets.plot import ChooseFile, choose_file, png_picture, write_export


class ExportMenu(QObject):
    """Fills the menu; each file is written on its own thread."""

    failed = Signal(object)  # UserError
    saved = Signal(str)  # the file's name

    def __init__(
        self,
        theme: Theme,
        menu: QMenu,
        works: Measurements,
        pages: MeasurementPages,
    ) -> None:
        """`pages` show the works, with their charts and tables."""
        super().__init__(menu)
        self._theme = theme
        self._works = works
        self._pages = pages
        self.choose: ChooseFile = choose_file
        self.saving: list[Saving] = []
        self._of_search = [
            menu.addAction(title, partial(self._save_search, name, pattern, made))
            for title, name, pattern, made in TUNE_KINDS
        ]
        self._of_load = [
            menu.addAction(title, partial(self._save_load, name, pattern, made))
            for title, name, pattern, made in LOAD_KINDS
        ]
        self._of_runs = [
            menu.addAction(title, partial(self._save_report, name, pattern, made))
            for title, name, pattern, made in KINDS
        ]
        self._of_runs.append(menu.addAction(TRACES[0], self._save_traces))
        chart = menu.addAction("Picture of the chart as PNG…", self._save_chart)
        line = menu.addSeparator()
        table = menu.addAction("Copy the table", pages.copy_table)
        self._of_pages = [chart, line, table]
        commands = QMenu("Copy the llama.cpp command of", menu)
        commands.aboutToShow.connect(lambda: self._list_commands(commands))
        self._of_runs.append(menu.addMenu(commands))
        menu.aboutToShow.connect(self._fit)

    def copy_command(self, lane: int) -> None:
        """Put the llama.cpp command of a lane on the clipboard, with notes on what llama.cpp does
        differently."""
        report = self._session().report
        if report is not None:
            facts = report.lanes[lane]
            notes = [f"# {difference}" for difference in facts.differences]
            QGuiApplication.clipboard().setText("\n".join([*notes, facts.command]))

    def close(self) -> None:
        """End the exports in progress; called before the window closes."""
        for saving in list(self.saving):
            saving.end()

    # ------------------------------------------------------------------ inside

    @Slot()
    def _fit(self) -> None:
        """Show the entries that apply to the work on the screen."""
        works = self._works
        searched, loaded = works.shown is works.tune, works.shown is works.load
        for group, fits in (
            (self._of_search, searched),
            (self._of_load, loaded),
            (self._of_runs, not searched and not loaded),
            (self._of_pages, not searched),
        ):
            for action in group:
                action.setVisible(fits)

    def _session(self) -> LabSession:
        return self._works.measured

    def _measuring(self) -> bool:
        return self._works.at_work

    def _save_search(self, name: str, pattern: str, made: Callable[[TuneReport], bytes]) -> None:
        tune = self._works.tune
        result, experiment, pair = tune.result, tune.experiment, tune.pair
        path = self._ask(name, pattern) if result is not None else None
        if path is None or result is None or experiment is None:
            return
        report = partial(TuneReport.of, result, experiment, pair)
        self._save(save_report(report, made, path, self._measuring))

    def _ask(self, name: str, pattern: str) -> Path | None:
        chosen = self.choose(self._pages.window(), name, pattern)
        return Path(chosen) if chosen else None

    def _save_load(self, name: str, pattern: str, made: Callable[[BurstReport], bytes]) -> None:
        report = self._works.load.report
        path = self._ask(name, pattern) if report is not None else None
        if path is not None and report is not None:
            self._save(Saving(lambda _stopped: write_export(path, made(report)), path.name))

    def _save_report(self, name: str, pattern: str, made: Made) -> None:
        session = self._session()
        experiment, sweep = session.experiment, session.sweep
        records, pairs = dict(session.records), dict(session.pairs)  # copied before the user chooses
        path = self._ask(name, pattern) if records else None
        if path is None or experiment is None:
            return

        def report(digest: Digest) -> Report:
            return make_report(experiment, records, pairs, digest, sweep)

        self._save(save_report(report, made, path, self._measuring))

    def _save_traces(self) -> None:
        traces = self._session().traces
        path = self._ask(*TRACES[1:]) if traces is not None else None
        if traces is not None and path is not None:
            self._save(save_traces(traces, path))

    def _save_chart(self) -> None:
        path = self._ask("chart.png", "PNG picture (*.png)")
        if path is not None:
            picture = png_picture(self._pages.chart(), self._theme.palette.ground)
            self._save(Saving(lambda _stopped: write_export(path, picture), path.name))

    def _list_commands(self, menu: QMenu) -> None:
        menu.clear()
        report = self._session().report
        for lane, facts in enumerate(report.lanes if report is not None else ()):
            menu.addAction(facts.name, partial(self.copy_command, lane))

    def _save(self, saving: Saving) -> None:
        self.saving.append(saving)
        saving.failed.connect(self.failed)
        saving.done.connect(self.saved)
        saving.finished.connect(lambda: self.saving.remove(saving))
        saving.start()
