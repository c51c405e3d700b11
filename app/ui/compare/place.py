"""The Compare place: lanes side by side, measured one after another, then raced."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import Qt, Slot
from PySide6.QtGui import QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import QSplitter, QStackedWidget, QVBoxLayout, QWidget

from app.engine.errors import SettingError, UserError
from app.engine.strategy import NONE
from app.engine.types import ModelOptions
from app.lab import words
from app.lab.experiment import Experiment, Lane
from app.lab.page.page import verdict
from app.lab.report import Report, make_report
from app.lab.runner import MakeHome
from app.lab.suites import Suite
from app.ui.compare.door import ChatSide
from app.ui.compare.export_menu import ExportMenu
from app.ui.compare.head import Head
from app.ui.compare.heat_view import HeatView
from app.ui.compare.journals import Earlier, Journals
from app.ui.compare.lab_session import LabSession
from app.ui.compare.lanes_panel import LanesPanel
from app.ui.compare.offer import Offer
from app.ui.compare.progress import run_words, search_words
from app.ui.compare.prompts_panel import ChoosePrompts, PromptsPanel, ask_for_prompts
from app.ui.compare.results import Results
from app.ui.compare.run_strip import RunStrip
from app.ui.compare.scatter import Scatter
from app.ui.compare.setup import Setup, first_setup, setup_of
from app.ui.compare.stage_view import StageView
from app.ui.compare.sweep_page import SweepPage
from app.ui.compare.sweep_panel import Sweep, SweepPanel
from app.ui.compare.tune_page import TunePage
from app.ui.compare.tune_session import TuneSession
from app.ui.compare.words import amount_words, left_words
from app.ui.compare.work import LabWork, Stage
from app.ui.engine_session import BUSY
from app.ui.instruments.export import ChooseFile, choose_file
from app.ui.instruments.throttle import Throttle
from app.ui.panels.model_panel import FileChooser, ask_for_model
from app.ui.panels.model_words import chip_words as model_words
from app.ui.panels.model_words import file_name
from app.ui.panels.notice import Notice
from app.ui.panels.sampling_panel import AnswerOptions
from app.ui.panels.sampling_panel import chip_words as sampling_words
from app.ui.theme import Theme

REPORT_MILLISECONDS = 500  # the table is folded from all runs: not for every one of them


class ComparePlace(QWidget):
    """Set-up on top, lanes in the middle, results below."""

    def __init__(
        self,
        theme: Theme,
        chat: ChatSide,
        make_home: MakeHome,
        folder: Path,
        suites: Sequence[Suite],
        choose_model: FileChooser = ask_for_model,
        choose_prompts: ChoosePrompts = ask_for_prompts,
        choose_save: ChooseFile = choose_file,
    ) -> None:
        """`folder` keeps the journals; the first of `suites` is for the bundled pair."""
        super().__init__()
        self._chat = chat
        self._suites = tuple(suites)
        self._journals = Journals(folder)
        self._earlier: Earlier | None = None
        self._report: Report | None = None
        self._names: dict[str, str] = {}  # of models that were loaded, by path
        self._touched = False  # the set-up was changed by a person
        self.session = LabSession(chat.engine, make_home)
        self.session.setParent(self)
        self.tuning = TuneSession(chat.engine, make_home)
        self.tuning.setParent(self)
        self.sweeping = LabSession(chat.engine, make_home)
        self.sweeping.setParent(self)
        self._work: LabWork = self.session  # what is shown
        self.setup = self._first_setup()
        lanes_panel = LanesPanel(theme, choose_model, chat.pair)
        prompts_panel = PromptsPanel(theme, suites, choose_prompts)
        sweep_panel = SweepPanel(self._base, "draft-simple" if chat.pair().draft else "prompt-lookup")
        self.head = Head(theme, lanes_panel, prompts_panel, sweep_panel)
        self.notice = Notice(theme)
        self.offer = Offer()
        self.strip = RunStrip()
        self.stage = StageView(theme, self.session)
        self.results = Results(theme, choose_save)
        self.results.hide()
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.addWidget(self.stage)
        self.splitter.addWidget(self.results)
        self.splitter.setStretchFactor(0, 1)
        self.splitter.setStretchFactor(1, 0)
        messages = QVBoxLayout()
        messages.setContentsMargins(24, 8, 24, 0)
        messages.addWidget(self.offer)
        messages.addWidget(self.notice)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.head)
        column.addWidget(self.strip)
        column.addLayout(messages)
        self.tune_page = TunePage(theme, self.tuning)
        self._body = QStackedWidget()
        self._body.addWidget(self.splitter)
        self.sweep_page = SweepPage(theme)
        self._body.addWidget(self.tune_page)
        self._body.addWidget(self.sweep_page)
        column.addWidget(self._body, 1)
        self._seldom = Throttle(self._show_report, self, REPORT_MILLISECONDS)
        menu = self.head.export_menu
        self.exports = ExportMenu(theme, menu, lambda: self._measured, self._chart, choose_save)
        self._connect()
        self._show_setup()
        self._show_stage()
        self._offer_earlier()

    def _connect(self) -> None:
        head, session = self.head, self.session
        for panel in (head.lanes_panel, head.prompts_panel):
            panel.changed.connect(self._set_up)
        head.sampling_panel.options_changed.connect(self._options_changed)
        head.pair_panel.place_wanted.connect(self._go)
        head.run.clicked.connect(self.run)
        head.pause.clicked.connect(self._pause)
        head.cancel.clicked.connect(self._cancel)
        head.tune_panel.wanted.connect(self.tune)
        head.sweep_panel.wanted.connect(self.sweep)
        self.sweeping.stage_changed.connect(self._show_stage)
        self.sweeping.lanes_changed.connect(self._show_progress)
        self.sweeping.run_over.connect(self._seldom.request)
        self.sweeping.replaced.connect(self._engine_replaced)
        self.sweep_page.use_wanted.connect(self._chat.use_strategy)
        self.sweep_page.compare_wanted.connect(self._compare_these)
        self.sweep_page.closed.connect(self._show_lanes)
        self.tuning.stage_changed.connect(self._show_stage)
        self.tuning.changed.connect(self._show_progress)
        self.tuning.replaced.connect(self._engine_replaced)
        self.tune_page.use_wanted.connect(self._chat.use_strategy)
        self.tune_page.compare_wanted.connect(self._compare_these)
        self.tune_page.closed.connect(self._show_lanes)
        session.stage_changed.connect(self._show_stage)
        session.lanes_changed.connect(self._show_progress)
        session.run_over.connect(self._seldom.request)
        session.replaced.connect(self._engine_replaced)
        self.strip.follow.clicked.connect(self.stage.follow)
        self.stage.following_changed.connect(self._show_progress)
        self.offer.accepted.connect(self._accept_offer)
        self.offer.dismissed.connect(self._dismiss_offer)
        self.results.job_chosen.connect(self.stage.show_parting)
        self.results.scatter.failed.connect(self._show_error)
        self.results.table.command_wanted.connect(self.exports.copy_command)
        self.exports.failed.connect(self._show_error)
        self.exports.saved.connect(self._saved)
        self.results.table.use_wanted.connect(self._use)
        run = QShortcut(QKeySequence("Ctrl+Return"), self)
        run.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        run.activated.connect(self.run)
        self._chat.engine.activity_changed.connect(self._show_pair)

    # ------------------------------------------------------------------ the set-up

    def _first_setup(self) -> Setup:
        bundled = self._chat.is_bundled()
        named = {one.name: one for one in self._suites}
        suite = named.get("bundled" if bundled else "general", self._suites[0])
        return first_setup(suite, self._chat.pair().draft is not None)

    @Slot(object)
    def _set_up(self, setup: Setup) -> None:
        self._touched = True
        self.setup = setup
        self._show_setup()

    @Slot(object)
    def _options_changed(self, options: AnswerOptions) -> None:
        self._touched = True
        self.setup = dataclasses.replace(self.setup, options=options)
        self._show_setup()

    def _show_setup(self) -> None:
        head, setup = self.head, self.setup
        head.lanes_panel.set_setup(setup)
        head.prompts_panel.set_setup(setup)
        if head.sampling_panel.options() != setup.options:
            head.sampling_panel.set_options(setup.options)
        head.lanes.set_text(str(len(setup.lanes) + 1), "", f"{len(setup.lanes) + 1} with the baseline")
        repeats = words.count(setup.amount.repeats, "repeat")
        head.prompts.set_text(setup.title, f"{words.count(len(setup.prompts), 'prompt')} · {repeats}")
        value, detail = sampling_words(setup.options.sampling)
        limit = words.count(setup.options.max_tokens, "token")
        head.sampling.set_text(value, " · ".join(part for part in (detail, limit) if part))
        self._show_pair()
        if self.session.experiment is None:
            self.stage.set_lanes((Lane(NONE), *setup.lanes))

    @Slot()
    def _show_pair(self) -> None:
        pair = self._chat.pair()
        loaded = self._chat.engine.pair
        if loaded is not None:
            self._names = {
                options.path: model_words(info)[0]
                for options, info in ((pair.target, loaded.target), (pair.draft, loaded.draft))
                if options is not None and info is not None
            }
        draft = self._name_of(pair.draft) if pair.draft is not None else ""
        self.head.pair.set_text(self._name_of(pair.target), f"← {draft}" if draft else "no draft")
        self.head.pair_panel.set_pair(pair.target.path, pair.draft.path if pair.draft is not None else "")
        self.head.lanes_panel.set_setup(self.setup)
        self._check()

    def _name_of(self, options: ModelOptions) -> str:
        """What a model calls itself, where it was loaded; else its file's name."""
        return self._names.get(options.path, file_name(options.path))

    def _check(self) -> None:
        """Mark what will not run; pressing Run says why."""
        head, setup = self.head, self.setup
        head.prompts.set_alert(not setup.prompts)
        try:
            lanes = len(setup.experiment(self._chat.pair(), self._chat.drafters()).lanes)
            head.lanes.set_alert(False)
        except SettingError:
            lanes = len(setup.lanes) + 1
            head.lanes.set_alert(bool(setup.prompts))
        amount = amount_words(lanes, len(setup.prompts), setup.amount.repeats)
        head.run.setToolTip(f"{amount} (Ctrl+Return)")
        if self._work is self.session and self.session.stage is Stage.NONE:
            self.strip.say(f"{amount}, one after another on the loaded weights.")
            self.strip.set_share(None)

    # ------------------------------------------------------------------ running

    @Slot()
    def run(self) -> None:
        """Measure what is set up."""
        if not self._may_begin():
            return
        self._show_lanes()
        try:
            experiment = self.setup.experiment(self._chat.pair(), self._chat.drafters())
            path = self._journals.new()
        except UserError as error:
            self.notice.show_error(error.message, error.hint)
            return
        self._hide_offer()
        self.head.close_panels()
        self._report = None
        self.session.start(experiment, path)

    @Slot(int)
    def tune(self, seconds: int) -> None:
        """Search for the best setting on these prompts."""
        self.head.close_panels()
        if not self._may_begin():
            return
        try:
            self.tuning.start(self._base(), float(seconds))
        except UserError as error:
            self._show_error(error)
            return
        self._hide_offer()
        self._work = self.tuning
        self._body.setCurrentWidget(self.tune_page)
        self._show_stage()

    @Slot(object)
    def sweep(self, sweep: Sweep) -> None:
        """Measure a grid."""
        self.head.close_panels()
        if not self._may_begin():
            return
        experiment, facts = sweep
        self._hide_offer()
        self._work = self.sweeping
        self._body.setCurrentWidget(self.sweep_page)
        self.sweep_page.set_report(make_report(experiment, {}, {}, sweep=facts), at_work=True)
        self.sweeping.start(experiment, None, facts)

    def _base(self) -> Experiment:
        """Pair, prompts and sampling of what is set up; raises SettingError."""
        setup = dataclasses.replace(self.setup, lanes=(Lane("prompt-lookup"),))  # any one: it is replaced
        return setup.experiment(self._chat.pair(), self._chat.drafters())

    @property
    def _measured(self) -> LabSession:
        """The experiment that is shown, and exported."""
        return self.sweeping if self._work is self.sweeping else self.session

    def _may_begin(self) -> bool:
        """Whether the machine is free; where it is not, that is said."""
        self.notice.clear()
        works = (self.session, self.sweeping, self.tuning)
        if any(one.at_work for one in works):
            return False
        if all(one.may_start for one in works):
            return True
        busy = self._chat.engine.activity in BUSY
        what = "The chat is still being answered." if busy else "The last measurement is still ending."
        self.notice.show_error(what, "Wait a moment, or stop it; then press Run again.")
        return False

    @Slot()
    def _show_lanes(self) -> None:
        self._work = self.session
        self._body.setCurrentWidget(self.splitter)
        self._show_stage()

    @Slot(object)
    def _compare_these(self, strategies: tuple[str, ...]) -> None:
        """Set up what a search found, and measure it."""
        self._touched = True
        self.setup = dataclasses.replace(self.setup, lanes=tuple(Lane(one) for one in strategies))
        self._show_setup()
        self.run()

    @Slot()
    def _cancel(self) -> None:
        self._work.cancel()

    @Slot()
    def _pause(self) -> None:
        if self._work.stage is Stage.PAUSED:
            self._work.resume()
        else:
            self._work.pause()

    @Slot(str)
    def _engine_replaced(self, message: str) -> None:
        self.notice.show_error(message, "Another engine goes on; the run at hand begins anew.")

    @Slot()
    def _show_stage(self) -> None:
        session = self._work
        can_pause = session.stage in (Stage.LOADING, Stage.WARMING, Stage.RUNNING, Stage.PAUSED)
        self.head.set_at_work(session.at_work, can_pause, session.stage is Stage.PAUSED)
        if session.stage is Stage.FAILED:
            self.notice.show_error(session.words, session.hint)
        if not self.session.at_work:
            self._journals.release()
        if not session.at_work:
            self._seldom.now()
        self._show_progress()

    @Slot()
    def _show_progress(self) -> None:
        session = self._measured
        if self._work is self.tuning:
            self._show_search()
            return
        self.strip.follow.setVisible(self.session.at_work and not self.stage.following)
        if session.stage is Stage.NONE:
            self._check()
            return
        if session.at_work:
            self.strip.set_share(session.done / max(session.total, 1))
            left = left_words(session.seconds_left) if session.stage is Stage.RUNNING else ""
            self.strip.say(run_words(session), left)
            return
        self.strip.set_share(None)
        if self._report is None:
            self.strip.say("Nothing was measured.")
            return
        came = "" if self._report.complete else f"{session.done:,} of {session.total:,} runs. "
        self.strip.say(f"{came}{verdict(self._report)}")

    def _show_search(self) -> None:
        """How far a search is."""
        self.strip.follow.hide()
        self.strip.set_share(self.tuning.share if self.tuning.at_work else None)
        self.strip.say(*search_words(self.tuning))

    def _show_report(self) -> None:
        self._report = self._measured.report()
        self.head.export.setEnabled(self._report is not None and self._work is not self.tuning)
        if self._work is self.sweeping:
            self.sweep_page.set_report(self._report, self.sweeping.at_work)
            if not self.sweeping.at_work:
                self._show_progress()
            return
        first = self.results.isHidden() and self._report is not None
        self.results.setVisible(self._report is not None)
        if first:
            self._share_room()
        self.results.set_report(self._report, self.session.experiment)
        if not self.session.at_work:
            self._show_progress()

    def _share_room(self) -> None:
        """The results take what their table needs, the lanes all the rest."""
        wanted = self.results.wanted_height(len(self.stage.lanes.cards))
        room = self.splitter.height()
        below = min(wanted, round(room * 0.45))
        self.splitter.setSizes([room - below, below])

    # ------------------------------------------------------------------ an earlier measurement

    def _offer_earlier(self) -> None:
        self._earlier = self._journals.latest()
        if self._earlier is not None and self._earlier.done:
            self.offer.show_earlier(self._earlier)

    def _hide_offer(self) -> None:
        self._earlier = None
        self.offer.hide()

    @Slot()
    def _accept_offer(self) -> None:
        earlier = self._earlier
        if earlier is None:
            return
        if not self._may_begin():
            return
        try:
            self._journals.take(earlier.path)
        except UserError as error:
            self._show_error(error)
            return
        experiment = earlier.journal.experiment
        self._hide_offer()
        self.setup = setup_of(experiment, self.setup)
        self._show_setup()
        (self.session.show if earlier.complete else self.session.start)(experiment, earlier.path)

    @Slot()
    def _dismiss_offer(self) -> None:
        if self._earlier is not None and not self._earlier.complete:
            self._journals.remove(self._earlier.path)
        self._hide_offer()

    # ------------------------------------------------------------------ what is taken away

    def _chart(self) -> HeatView | Scatter:
        """The one that is on the screen, or would be."""
        return self.sweep_page.heat if self._work is self.sweeping else self.results.scatter

    @Slot(int)
    def _use(self, lane: int) -> None:
        if self._report is not None:
            self._chat.use_strategy(self._report.lanes[lane].strategy)

    @Slot(str)
    def _saved(self, name: str) -> None:
        self.notice.clear()
        if not self.session.at_work:
            self.strip.left.setText(f"{name} is saved")

    @Slot(object)
    def _show_error(self, error: UserError) -> None:
        self.notice.show_error(error.message, error.hint)

    # ------------------------------------------------------------------ the window

    @Slot(str)
    def _go(self, place: str) -> None:
        self.head.close_panels()
        self._chat.go(place)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._touched and self.session.experiment is None:
            self.setup = self._first_setup()  # for the pair that the chat has by now
        self._show_setup()
        self._show_pair()
        (self.head.cancel if self._work.at_work else self.head.run).setFocus(
            Qt.FocusReason.OtherFocusReason  # the keys of this place work from here
        )

    def close_compare(self) -> None:
        """Before the window goes: end what is being measured and written."""
        self.exports.close()
        for work in (self.session, self.sweeping, self.tuning):
            work.close()
        self._journals.release()
