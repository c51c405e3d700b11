"""The part below the head: the shown work, its progress and its results."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal, Slot
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QSplitter, QStackedWidget

from app.base import numbers
from app.lab.depths import DEFINITION, HEAD, depth_rows, depths_left_out
from app.lab.load.export import ABOUT as LOAD_ABOUT
from app.lab.load.export import LOAD_COLUMNS, load_cells, load_findings, load_notes
from app.lab.report.columns import lane_rows
from app.lab.report.verdict import fastest, verdict
from app.ui.compare.chips import SetupBar
from app.ui.compare.curves import CurvesPage
from app.ui.compare.lab_session import LabSession
from app.ui.compare.race_view import RaceView
from app.ui.compare.results import Results
from app.ui.compare.summary_table import table_text
from app.ui.compare.sweep_page import SweepPage
from app.ui.compare.tune_page import TunePage
from app.ui.compare.words import left_words
from app.ui.compare.works import LoadWork, Measurements, load_words, run_words, search_words
from app.ui.state.lab_work import LabWork, Stage
from app.ui.theme import Theme
from app.ui.widgets.ask_first import RunStrip
from app.ui.widgets.plot import Plot

LOAD_HEAD = ("lane", *(column.title for column in LOAD_COLUMNS))


class MeasurementPages(QStackedWidget):
    """A page for each kind of work; the strip above shows its progress in one line."""

    not_saved = Signal(object)
    """The UserError of a plot that could not be saved."""

    def __init__(self, theme: Theme, works: Measurements, chips: SetupBar, strip: RunStrip) -> None:
        super().__init__()
        self._works = works
        self._chips = chips
        self._head = chips.head
        self._strip = strip
        self.stage = RaceView(theme, works.session, chips.servers)
        self.results = Results(theme)
        self.results.hide()
        self.lanes = QSplitter(Qt.Orientation.Vertical)
        self.lanes.setChildrenCollapsible(False)
        self.lanes.addWidget(self.stage)
        self.lanes.addWidget(self.results)
        self.lanes.setStretchFactor(0, 1)
        self.lanes.setStretchFactor(1, 0)
        self.sweep_page = SweepPage(theme)
        self.tune_page = TunePage(theme, works.tune)
        self.depth_page = CurvesPage(theme, "Over the depth", "depth", HEAD, DEFINITION)
        self.load_page = CurvesPage(theme, "Under load", "load", LOAD_HEAD, LOAD_ABOUT)
        self.load_page.table.explain(["", *(column.definition for column in LOAD_COLUMNS)])
        self._pages = {
            works.session: self.lanes,
            works.sweep: self.sweep_page,
            works.depth: self.depth_page,
            works.load: self.load_page,
            works.tune: self.tune_page,
        }
        for page in self._pages.values():
            self.addWidget(page)
        for plots in (
            self.stage.lanes,
            self.results.scatter,
            self.sweep_page.heat,
            self.depth_page.view,
            self.load_page.view,
        ):
            plots.failed.connect(self.not_saved)
        chips.changed.connect(self._show_setup)
        strip.follow.clicked.connect(self.stage.follow)
        self.stage.following_changed.connect(self._show_progress)
        self.results.job_chosen.connect(self.stage.show_parting)
        works.stage_changed.connect(self.show_stage)
        works.progressed.connect(self._show_progress)
        works.reported.connect(self._show_report)

    def chart(self) -> Plot:
        """The chart of the shown work, even while it is hidden."""
        works = self._works
        charts: dict[LabWork, Plot] = {
            works.sweep: self.sweep_page.heat,
            works.depth: self.depth_page.view,
            works.load: self.load_page.view,
        }
        return charts.get(works.shown, self.results.scatter)

    @Slot()
    def copy_table(self) -> None:
        """Copy the table of the shown work, for spreadsheets."""
        page, report = self._pages[self._works.shown], self._works.measured.report
        if isinstance(page, CurvesPage):
            page.table.copy_all()
        elif report is not None:
            QGuiApplication.clipboard().setText(table_text(lane_rows(report)))

    def show_work(self, work: LabWork) -> None:
        """Show the page of this work."""
        self._works.shown = work
        self.setCurrentWidget(self._pages[work])
        self._show_report()
        self.show_stage()

    # ------------------------------------------------------------------ how it stands

    @Slot()
    def _show_setup(self) -> None:
        """Say what Run would measure, as long as nothing was measured."""
        session = self._works.session
        if session.experiment is None:
            self.stage.set_lanes(self._chips.lanes)
        if self._works.shown is session and session.stage is Stage.NONE:
            self._strip.say(f"{self._chips.amount}; one after another on the loaded weights.")
            self._strip.set_share(None)
        elif not self._works.shown.at_work:
            self._show_progress()  # the set-up may differ now from what was measured

    @Slot()
    def show_stage(self) -> None:
        """Update buttons, page and words to the stage of the shown work."""
        work = self._works.shown
        can_pause = work.pausable and work.stage in (
            Stage.LOADING,
            Stage.WARMING,
            Stage.RUNNING,
            Stage.PAUSED,
        )
        head, strip = self._head, self._strip
        held = any(button.hasFocus() for button in (*head.starting, strip.pause, strip.cancel))
        head.set_at_work(self._works.at_work)
        strip.set_at_work(work.at_work, may_pause=can_pause, paused=work.stage is Stage.PAUSED)
        if held and not strip.pause.hasFocus():
            self.setFocus()  # so that a key pressed twice neither stops nor starts anything
        if work.at_work:
            self._head.export.setEnabled(self._may_export())  # the results before it are gone
        else:
            self._show_report()
        self._show_progress()

    def _may_export(self) -> bool:
        works = self._works
        if works.shown is works.tune:
            return works.tune.result is not None
        if works.shown is works.load:
            return works.load.report is not None
        return bool(works.measured.records)

    @Slot()
    def _show_progress(self) -> None:
        works, strip = self._works, self._strip
        session = works.measured
        strip.follow.setVisible(
            works.shown is works.session and works.session.at_work and not self.stage.following
        )
        if works.shown is works.tune:
            strip.set_share(works.tune.share if works.tune.at_work else None)
            strip.say(*search_words(works.tune))
        elif works.shown is works.load:
            self._show_load_progress(works.load)
        elif session.stage is Stage.NONE:
            self._show_setup()
        elif session.at_work:
            strip.set_share(session.done / max(session.total, 1))
            left = left_words(session.seconds_left) if session.stage is Stage.RUNNING else ""
            strip.say(run_words(session), left, session.doubts)
        elif session.report is None:
            strip.set_share(None)
            strip.say("Nothing was measured.")
        else:
            strip.set_share(None)
            came = "All runs" if session.report.complete else f"{session.done:,} of {session.total:,} runs"
            strip.conclude(f"{came}: {verdict(session.report)}", [*self._changed(session), *session.doubts])

    def _changed(self, session: LabSession) -> list[str]:
        """A sentence that lists what changed in the set-up since the measurement; empty where nothing did."""
        if session.experiment is None:
            return []
        what = self._chips.changed_since(session.experiment, of_lanes=session.sweep is None)
        if not what:
            return []
        text = f"{numbers.listed(what)} changed since this was measured."
        return [f"{text.capitalize()} Run measures what is set up now."]

    # ------------------------------------------------------------------ what came out of it

    def _show_report(self) -> None:
        works, session = self._works, self._works.measured
        self.stage.set_best(fastest(session.report) if session.report is not None else None)
        self._head.export.setEnabled(self._may_export())
        if works.shown is works.sweep:
            if session.sweep is not None:
                self.sweep_page.set_cells(session.sweep, session.cells, session.at_work)
        elif works.shown is works.depth:
            self._show_depths()
        elif works.shown is works.load:
            self._show_load()
        else:
            self._show_results()
        if not session.at_work:
            self._show_progress()

    def _show_depths(self) -> None:
        session, report = self._works.depth, self._works.depth.report
        lines = list(depth_rows(report)) if report is not None else []
        left_out = depths_left_out(report) if report is not None else []
        self.depth_page.set_content(session.curves, lines, left_out, at_work=session.at_work)

    def _show_load(self) -> None:
        work, report = self._works.load, self._works.load.report
        lines = load_cells(report)[1] if report is not None else []
        notes = load_notes(report) if report is not None else []
        self.load_page.set_content(work.curves, lines, notes, at_work=work.at_work)

    def _show_load_progress(self, work: LoadWork) -> None:
        strip, latest, report = self._strip, work.latest, work.report
        if work.at_work:
            strip.set_share((latest.done if latest is not None else 0) / max(work.total, 1))
            strip.say(load_words(work))
            return
        strip.set_share(None)
        if report is None:
            strip.say("Nothing was measured.")
        else:
            done = (
                "" if report.complete else f"{len(report.bursts):,} of {numbers.count(work.total, 'burst')}: "
            )
            strip.conclude(done + (" ".join(load_findings(report)) or "Measured without a baseline."))

    def _show_results(self) -> None:
        session = self._works.session
        first = self.results.isHidden() and session.report is not None
        self.results.setVisible(session.report is not None)
        if first:
            self._share_room()
        self.results.set_report(session.report, session.experiment)

    def _share_room(self) -> None:
        """Give the results the height that their table needs, and the lanes the rest."""
        wanted = self.results.wanted_height(len(self.stage.lanes.cards))
        room = self.lanes.height()
        below = min(wanted, round(room * 0.45))
        self.lanes.setSizes([room - below, below])
