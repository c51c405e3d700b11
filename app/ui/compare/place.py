"""The Compare place: lanes side by side, measured one at a time, then raced."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QPushButton

from app.base.paths import QUANTISED
from app.engine.errors import UserError
from app.engine.strategy import StrategySpec
from app.lab.experiment import Lane
from app.lab.runs.runner import MakeHome
from app.lab.suites import Suite
from app.ui.compare.chips import SetupBar
from app.ui.compare.exports import ExportMenu
from app.ui.compare.journals import Earlier, EarlierRuns
from app.ui.compare.outcome import MORE_SECONDS, MeasurementPages
from app.ui.compare.setup import setup_of
from app.ui.compare.start_panels import StartPanel
from app.ui.compare.works import AnyWork, Measurements
from app.ui.state.chat_side import ChatSide
from app.ui.state.engine_session import BUSY
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.ask_first import RunStrip
from app.ui.widgets.lazy_place import PlaceWidget
from app.ui.widgets.notice import Notices

RUN_KEY = "Ctrl+Return"


class ComparePlace(PlaceWidget):
    """Set-up on top, lanes in the middle, results below."""

    def __init__(
        self, theme: Theme, chat: ChatSide, make_home: MakeHome, folder: Path, suites: Sequence[Suite]
    ) -> None:
        """`folder` keeps the journals; the first of `suites` is for the bundled pair."""
        super().__init__()
        self.chat = chat
        self.earlier = EarlierRuns(folder)
        new_journal = self.earlier.journals.new
        self.works = Measurements(chat.engine, make_home, new_journal, chat.servers.key_of, self)
        self.chips = SetupBar(theme, chat, suites, folder / "setup.json", folder.with_name(QUANTISED))
        self.head = self.chips.head
        self.strip = RunStrip()
        self.notice = Notices(theme)
        self.outcome = MeasurementPages(theme, self.works, self.chips, self.strip)
        self.exports = ExportMenu(theme, self.head.export_menu, self.works, self.outcome)
        messages = kit.column(self.earlier, self.notice, margins=(24, 8, 24, 0))
        kit.column(self.head, self.strip, messages, (self.outcome, 1), spacing=0, on=self)
        self._connect()
        self.chips.show_setup()
        self.outcome.show_stage()
        self.earlier.offer_any()
        if (earlier := self.earlier.offered) is not None:
            self.chips.learn(earlier.journal.experiment, earlier.journal.records.values())
            self.outcome.show_stage()
        if self.chips.problem:
            self.notice.tell(self.chips.problem)

    def _connect(self) -> None:
        head, works, outcome = self.head, self.works, self.outcome
        head.run.clicked.connect(self.run)
        self.strip.pause.clicked.connect(works.pause)
        self.strip.cancel.clicked.connect(works.cancel)
        panels: tuple[tuple[StartPanel, AnyWork], ...] = (
            (head.tune_panel, works.tune),
            (head.sweep_panel, works.sweep),
            (head.depth_panel, works.depth),
            (head.load_panel, works.load),
        )
        for panel, work in panels:
            panel.wanted.connect(partial(self._start, work, panel.asked, panel.last))
            panel.last_wanted.connect(partial(self._show, work))
        outcome.tune_page.more_wanted.connect(self._tune_more)
        head.pair_panel.place_wanted.connect(self._go)
        outcome.stage.lanes.inspect_requested.connect(self.chat.inspection.open)
        works.replaced.connect(self._engine_replaced)
        works.failed.connect(self.notice.tell)
        works.over.connect(self.earlier.offer_broken_off)
        works.over.connect(self._learn)
        self.earlier.wanted.connect(self._take_up)
        for page in (outcome.sweep_page, outcome.tune_page):
            page.use_wanted.connect(self.chat.use_strategy)
            page.compare_wanted.connect(self._compare_these)
        outcome.not_saved.connect(self.notice.tell)
        for table in (outcome.results.table, outcome.results.shape):
            table.command_wanted.connect(self.exports.copy_command)
            table.use_wanted.connect(self._use)
        self.exports.failed.connect(self.notice.tell)
        self.exports.saved.connect(self._saved)
        run = QShortcut(QKeySequence(RUN_KEY), self)
        run.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        run.activated.connect(self.run)

    # ------------------------------------------------------------------ running

    def run(self) -> None:
        """Measure the set-up."""
        self._start(self.works.session, lambda: (self.chips.experiment(),))

    def _tune_more(self) -> None:
        """Continue the search with the remaining settings."""
        if self._may_begin():
            self.works.tune.go_on(MORE_SECONDS)
            self._begun()

    def _start(
        self, work: AnyWork, asked: Callable[[], tuple[Any, ...]], last: QPushButton | None = None
    ) -> None:
        """Start the measurement that a panel asks for, on the page of its work; `last` shows that page
        again."""
        if not self._may_begin():
            return
        try:
            what = asked()
            self._show(work)
            work.start(*what)
        except UserError as error:
            self.notice.tell(error)
            return
        self._begun()
        if last is not None:
            last.show()

    def _take_up(self, earlier: Earlier) -> None:
        """Continue an earlier measurement, or show a complete one."""
        if not self._may_begin():
            return
        before, experiment = self.chips.setup, earlier.journal.experiment
        setup = setup_of(experiment, before)
        work = self.works.session
        if earlier.sweep is not None:  # its lanes are cells
            setup, work = dataclasses.replace(setup, lanes=before.lanes), self.works.sweep
            self.head.sweep_panel.last.show()
        elif earlier.depths:
            work = self.works.depth
            self.head.depth_panel.last.show()
        self.chips.set_setup(setup)
        if earlier.complete:
            work.show(earlier.journal, earlier.sweep)
        else:
            work.start(experiment, earlier.sweep, earlier.path)
        self._begun()
        self.outcome.show_work(work)

    def _may_begin(self) -> bool:
        """Whether the machine is free; if it is not, a notice says why."""
        self.notice.clear()
        if self.chips.quants.at_work:
            self.notice.tell("Quantisations are still being made.", "Wait, or cancel it in the Lanes panel.")
            return False
        if self.works.at_work:
            return False
        if self.works.may_start:
            return True
        busy = self.chat.engine.activity in BUSY
        what = "The chat is still being answered." if busy else "A measurement is still running."
        self.notice.tell(what, "Wait a moment, or stop it; then press Run again.")
        return False

    def _begun(self) -> None:
        """Close panels and offers once a measurement has started, which they no longer change."""
        self.earlier.offer(None)
        self.head.close_panels()

    def _show(self, work: AnyWork) -> None:
        self.head.close_panels()
        self.outcome.show_work(work)

    def _compare_these(self, strategies: tuple[str, ...]) -> None:
        """Set up these strategies as lanes, and measure them."""
        lanes = tuple(Lane(strategy) for strategy in strategies)
        self.chips.set_setup(dataclasses.replace(self.chips.setup, lanes=lanes))
        self.run()

    # ------------------------------------------------------------------ what is said, and taken away

    def _engine_replaced(self, message: str) -> None:
        self.notice.tell(message, "A new engine has started; the current run will restart.", cause="engine")

    def _use(self, lane: int) -> None:
        if (report := self.works.measured.report) is None:
            return
        if report.lanes[lane].server is not None:
            self.notice.tell("A server drafts with its own settings.", "Choose a lane that runs here.")
        else:
            self.chat.use_strategy(report.lanes[lane].strategy)

    def _learn(self) -> None:
        if (experiment := self.works.measured.experiment) is not None:
            self.chips.learn(experiment, self.works.measured.records.values())

    def _saved(self, name: str) -> None:
        self.notice.clear()
        if not self.works.at_work:
            self.strip.left.setText(f"{name} is saved")

    # ------------------------------------------------------------------ the window

    def _go(self, place: str) -> None:
        self.head.close_panels()
        self.chat.go(place)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self.works.session.experiment is None:
            self.chips.suggest()
        else:
            self.chips.show_setup()
        self._take_lanes()
        # The place's shortcuts work from this widget, and no key on it stops a measurement.
        (self.outcome if self.works.at_work else self.head.run).setFocus(Qt.FocusReason.OtherFocusReason)

    def _take_lanes(self) -> None:
        """Set up the lanes that the chat asked for, ready to be run."""
        asked = self.chat.take_lanes()
        lanes = tuple(lane for lane in asked.lanes if StrategySpec.parse(lane.strategy).parts)
        if not lanes:
            return
        if self.works.at_work:
            self.notice.tell("Lanes cannot change during a measurement.", "Try again when it has ended.")
            return
        setup = dataclasses.replace(self.chips.setup, lanes=lanes)
        if asked.sampling is not None:
            setup = dataclasses.replace(
                setup, options=dataclasses.replace(setup.options, sampling=asked.sampling)
            )
        self.chips.set_setup(setup)
        self._show(self.works.session)

    def close_place(self) -> None:
        """End measurements and exports before the window closes."""
        self.exports.close()
        self.chips.close()
        self.works.close()
