"""The part below the head: the shown work, its progress and its results; and the page of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QStackedWidget, QTableWidgetItem, QWidget

from app.base import numbers
from app.engine.strategy import NONE
from app.lab.depths import DEFINITION, HEAD, depth_rows, depths_left_out
from app.lab.load.export import ABOUT as LOAD_ABOUT
from app.lab.load.export import LOAD_COLUMNS, load_cells, load_notes
from app.lab.report.columns import COLUMNS, lane_cells, lane_rows
from app.lab.report.verdict import fastest
from app.lab.tune.tuned import FINALISTS, TRIED, Tuned, tried
from app.ui.compare.chips import SetupBar
from app.ui.compare.lab_session import LabSession
from app.ui.compare.line_table import LineTable
from app.ui.compare.pages import CurvesPage, SweepPage
from app.ui.compare.race_view import RaceView
from app.ui.compare.results import Results
from app.ui.compare.works import AnyWork, Measurements, TuneSession
from app.ui.state.lab_work import Stage
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.ask_first import RunStrip
from app.ui.widgets.plot import Plot
from app.ui.widgets.tables import alignment, copy_texts

MORE_SECONDS = 120
_UNKNOWN = ("", numbers.NONE)  # speed-ups

DEFINITIONS = (
    "The strategy and its parameters",
    "tokens/s divided by tokens/s of none on the same prompts. The interval estimates it for similar "
    "prompts; with one prompt, for repeats of that prompt",
    "Speed-up including the time to read the prompt: from the request to the last token",
    "Accepted / drafted tokens",
    "Answers measured in its last stage, counting every repeat",
    "The last stage that included it. Each stage drops the slower settings and gives the rest longer answers "
    "to different prompts: compare speed-ups within a stage",
    "Outcome for this setting",
)


class TriedTable(LineTable):
    """The settings of a search, its winner in green, those that are out in grey."""

    def __init__(self, theme: Theme, session: TuneSession) -> None:
        self._session = session
        super().__init__(theme, "Settings that were tried", TRIED, left=(0, len(TRIED) - 1))
        self.explain(DEFINITIONS)
        self.horizontalHeader().setStretchLastSection(True)

    def shown(self, at: int, column: int) -> str:
        """Beside a setting without numbers, the reason why it has none."""
        row = self.rows[at]
        if row[1] not in _UNKNOWN or not column:
            return super().shown(at, column)
        return row[-1] if column == 1 else ""

    def fill(self) -> None:
        self.clearSpans()
        self.setRowCount(len(self.rows))
        for at, row in enumerate(self.rows):
            if row[1] in _UNKNOWN:
                self.setSpan(at, 1, 1, len(TRIED) - 1)
        super().fill()
        for at in range(self.rowCount()):
            item = self.item(at, 1)
            assert item is not None
            item.setTextAlignment(alignment(right=self.columnSpan(at, 1) == 1))

    def dress(self, item: QTableWidgetItem, row: Sequence[str], column: int) -> None:
        super().dress(item, row, column)
        result, colours = self._session.result, self._theme.palette
        if result is not None and row[0] == result.winner:
            item.setForeground(QColor(colours.good))
        elif row[-1].startswith("out:") or not row[-2]:
            item.setForeground(QColor(colours.secondary))


class TunePage(QWidget):
    """The recommendation, and below it the settings, the best first."""

    use_wanted = Signal(str)
    compare_wanted = Signal(object)
    """Compare these strategies side by side (a tuple of specs)."""
    more_wanted = Signal()
    """Continue the search for MORE_SECONDS."""

    def __init__(self, theme: Theme, session: TuneSession) -> None:
        super().__init__()
        self._theme = theme
        self._session = session
        self.title = kit.label("", "title", wrap=True)
        self.reason = kit.label(wrap=True, selectable=True)
        self.use = kit.button("", self._use, kind="primary")
        self.more = kit.button(
            f"Search {MORE_SECONDS // 60} more minutes",
            self.more_wanted,
            tip="Continues with the remaining settings and new measurements",
        )
        self.compare = kit.button(
            "Compare the best side by side", lambda: self.compare_wanted.emit(self._finalists())
        )
        self.table = TriedTable(theme, session)
        buttons = QWidget()
        row = kit.WrapLayout(buttons, 8)  # with large text their words take two lines
        for button in (self.use, self.more, self.compare):
            row.addWidget(button)
        kit.column(
            self.title, self.reason, buttons, (self.table, 1), margins=(24, 16, 24, 8), spacing=10, on=self
        )
        session.progressed.connect(self._show)
        session.stage_changed.connect(self._show)
        self._show()

    # ------------------------------------------------------------------ showing

    def rows(self) -> list[list[str]]:
        """A row per setting, with the numbers of its last stage; those that got furthest come first."""
        session = self._session
        over = session.result
        so_far = over or Tuned(NONE, None, NONE, "", tuple(session.rungs), 0, 0, 0.0, complete=False)
        found = []
        for score, row in tried(so_far):
            row[1] += " one prompt" if score.over_repeats else ""
            if over is None and score.kept:
                row[-1] = "still in"
            found.append(row)
        known = {row[0] for row in found}
        fate = "waiting" if session.at_work else "not tried yet"
        others = [(strategy, fate) for strategy in session.rung.strategies if strategy not in known]
        others += [(left_out.what, f"not tried: {left_out.reason}") for left_out in so_far.left_out]
        rows = [*found, *([what, *[""] * (len(TRIED) - 2), why] for what, why in others)]
        return [[*row[:-1], "running"] if row[0] == session.running else row for row in rows]

    def _show(self) -> None:
        session, result = self._session, self._session.result
        over = not session.at_work
        if result is None:
            self.title.setText("Tune for me")
            self.reason.setText(
                "The search was interrupted before anything could be compared."
                if over
                else session.plan or "A few answers show which settings may win on these prompts."
            )
        else:
            self.title.setText(result.headline)
            self.reason.setText("\n".join(filter(None, (result.reason, result.by_kind))))
            self.use.setText(f"Use {result.winner} in the chat")
        # A difference that may be chance is no reason to change a setting.
        self.use.setVisible(result is not None and over and (result.winner != NONE or result.refuted))
        self.more.setVisible(result is not None and over)
        self.compare.setVisible(over and len(self._finalists()) > 0)
        self.table.set_rows(self.rows())

    # ------------------------------------------------------------------ what the user does

    def _finalists(self) -> tuple[str, ...]:
        """The best strategies of the last stage."""
        rungs = self._session.rungs
        return (
            tuple(score.strategy for score in rungs[-1].scores[:FINALISTS] if score.speedup) if rungs else ()
        )

    def _use(self) -> None:
        if self._session.result is not None:
            self.use_wanted.emit(self._session.result.winner)


LOAD_HEAD = ("lane", *(column.title for column in LOAD_COLUMNS))


class WorkView(NamedTuple):
    """The page of a work, with the functions that fill it and copy its table, and its chart."""

    page: QWidget
    show: Callable[[], None]
    chart: Plot
    copy: Callable[[], None]


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
        self._split = kit.splitter((self.stage, 1), (self.results, 0), upright=True)
        self.lanes = kit.scroll("Lanes and results", self._split)  # with large text in a low window
        self.lanes.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.lanes.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.sweep_page = SweepPage(theme)
        self.tune_page = TunePage(theme, works.tune)
        self.depth_page = CurvesPage(theme, "By depth", "depth", HEAD, DEFINITION)
        self.load_page = CurvesPage(theme, "Under load", "load", LOAD_HEAD, LOAD_ABOUT)
        self.load_page.table.explain(["", *(column.definition for column in LOAD_COLUMNS)])
        scatter, depths, loads = self.results.scatter, self.depth_page, self.load_page
        self._views: dict[AnyWork, WorkView] = {
            works.session: WorkView(self.lanes, self._show_results, scatter, self._copy_lanes),
            works.sweep: WorkView(self.sweep_page, self._show_cells, self.sweep_page.heat, self._copy_lanes),
            works.depth: WorkView(depths, self._show_depths, depths.view, depths.table.copy_all),
            works.load: WorkView(loads, self._show_load, loads.view, loads.table.copy_all),
            works.tune: WorkView(self.tune_page, lambda: None, scatter, lambda: None),
        }
        for view in self._views.values():
            self.addWidget(view.page)
        self.stage.lanes.failed.connect(self.not_saved)
        for chart in {view.chart for view in self._views.values()}:
            chart.failed.connect(self.not_saved)
        chips.changed.connect(self._show_setup)
        strip.follow.clicked.connect(self.stage.follow)
        strip.back.clicked.connect(lambda: self.show_work(works.session))
        self.stage.following_changed.connect(self._show_progress)
        self.results.job_chosen.connect(self.stage.show_parting)
        works.stage_changed.connect(self.show_stage)
        works.progressed.connect(self._show_progress)
        works.reported.connect(self._show_report)

    def chart(self) -> Plot:
        """The chart of the shown work, even while it is hidden."""
        return self._views[self._works.shown].chart

    def copy_table(self) -> None:
        """Copy the table of the shown work, for spreadsheets."""
        self._views[self._works.shown].copy()

    def _copy_lanes(self) -> None:
        if (report := self._works.measured.report) is not None:
            titles = ["lane", *(column.title for column in COLUMNS)]
            copy_texts([titles, *lane_cells(COLUMNS, lane_rows(report))])

    def show_work(self, work: AnyWork) -> None:
        """Show the page of this work."""
        self._works.shown = work
        self.setCurrentWidget(self._views[work].page)
        self._show_report()
        self.show_stage()

    # ------------------------------------------------------------------ how it stands

    def _show_setup(self) -> None:
        """Say what Run would measure, as long as nothing was measured, on as many lines as that takes."""
        session = self._works.session
        if session.experiment is None:
            self.stage.set_lanes(self._chips.lanes)
        if self._works.shown is session and session.stage is Stage.NONE:
            self._strip.conclude(f"{self._chips.amount}, one at a time.")
            self._strip.set_share(None)
        elif not self._works.shown.at_work:
            self._show_progress()  # the set-up may differ now from what was measured

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
        strip.back.setVisible(work is not self._works.session and not work.at_work)
        if held and not strip.pause.hasFocus():
            self.setFocus()  # so that a key pressed twice neither stops nor starts anything
        if work.at_work:
            self._head.export.setEnabled(work.report_made() is not None)  # the results before it are gone
        else:
            self._show_report()
        self._show_progress()

    def _show_progress(self) -> None:
        works, strip, work = self._works, self._strip, self._works.shown
        strip.follow.setVisible(work is works.session and work.at_work and not self.stage.following)
        if work is works.session and work.stage is Stage.NONE:
            self._show_setup()
            return
        strip.set_share(work.share if work.at_work else None)
        if work.at_work:
            strip.say(*work.now())
        elif said := work.outcome():
            strip.conclude(said, self._remarks(work))
        else:
            strip.say("Nothing was measured.")

    def _remarks(self, work: AnyWork) -> list[str]:
        """A sentence that lists what changed in the set-up since runs were measured, and their doubts."""
        if not isinstance(work, LabSession) or work.experiment is None:
            return []
        what = self._chips.changed_since(work.experiment, of_lanes=work.sweep is None)
        text = f"{numbers.listed(what)} changed after this was measured.".capitalize()
        return [*([f"{text} Press Run to measure the current set-up."] if what else []), *work.doubts]

    # ------------------------------------------------------------------ what came out of it

    def _show_report(self) -> None:
        work, report = self._works.shown, self._works.session.report
        self.stage.set_best(fastest(report) if report is not None else None)
        self._head.export.setEnabled(work.report_made() is not None)
        self._views[work].show()
        if not work.at_work:
            self._show_progress()

    def _show_cells(self) -> None:
        session = self._works.sweep
        if session.sweep is not None:
            self.sweep_page.set_cells(session.sweep, session.cells, session.at_work)

    def _show_depths(self) -> None:
        session, report = self._works.depth, self._works.depth.report
        lines = list(depth_rows(report)) if report is not None else []
        left_out = depths_left_out(report) if report is not None else []
        self.depth_page.set_content(session.curves, lines, left_out)

    def _show_load(self) -> None:
        work, report = self._works.load, self._works.load.report
        lines = load_cells(report)[1] if report is not None else []
        notes = load_notes(report) if report is not None else []
        self.load_page.set_content(work.curves, lines, notes)

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
        room = self._split.height()
        below = min(wanted, round(room * 0.45))
        self._split.setSizes([room - below, below])
