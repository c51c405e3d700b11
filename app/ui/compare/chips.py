"""The set-up and its chips, shown on top and changed in the chips' panels."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QTimer, Signal
from PySide6.QtWidgets import QMenu, QPushButton, QWidget

from app.base import numbers
from app.engine.compat import HEAD_STRATEGIES
from app.engine.errors import SettingError, UserError
from app.engine.strategy import NONE, StrategySpec
from app.engine.types import ModelOptions
from app.lab.experiment import Experiment, Lane
from app.lab.quants import quant_lanes, usual_strategy
from app.lab.runs.record import RunRecord
from app.lab.suites import LONG, Suite
from app.ui.compare.lanes_panel import LanesPanel
from app.ui.compare.prompts_panel import PairPanel, PromptsPanel, QuantsPanel
from app.ui.compare.setup import CompareSetup, KeptSetup, changes, first_setup
from app.ui.compare.start_panels import DepthPanel, LoadPanel, StartPanel, SweepPanel, TunePanel
from app.ui.compare.words import amount_words
from app.ui.setup.sampling_panel import SamplingPanel
from app.ui.setup.sampling_panel import chip_words as sampling_words
from app.ui.state.chat_side import ChatSide
from app.ui.state.engine_session import Activity, EngineState
from app.ui.theme import Theme
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.chip import GAP, Chip, ChipRow
from app.ui.widgets.kit import WrapLayout
from app.ui.widgets.popover import Popover
from app.ui.widgets.words import chip_words as model_words
from app.ui.widgets.words import file_name

TUNE = "Tune for me"
PANEL_WIDTH = 880  # of the lanes' popover: the strategy panel needs two columns


class CompareHead(ChipRow):
    """Chips with their panels, and buttons; the place fills and connects them."""

    def __init__(
        self,
        theme: Theme,
        lanes: LanesPanel,
        prompts: PromptsPanel,
        sweep: SweepPanel,
        depth: DepthPanel,
        load: LoadPanel,
        tune: TunePanel,
    ) -> None:
        super().__init__(theme)
        self._tight = False
        self._widths: dict[bool, int] = {}  # of all buttons, by whether they are tight
        self.pair_panel = PairPanel()
        self.lanes_panel = lanes
        self.prompts_panel = prompts
        self.sampling_panel = SamplingPanel(theme)
        self.sampling_panel.hide_limit()  # the prompts panel has the length of answers
        self.pair = Chip(theme, "pair", self.pair_panel)
        self.lanes = Chip(theme, "lanes", lanes, PANEL_WIDTH)
        self.prompts = Chip(theme, "prompts", prompts)
        self.sampling = Chip(theme, "sampling", self.sampling_panel)
        self.sweep_panel, self.depth_panel, self.load_panel, self.tune_panel = sweep, depth, load, tune
        self._popovers = [chip.popover for chip in (self.pair, self.lanes, self.prompts, self.sampling)]
        self.sweep = self._starter("Sweep", sweep, "Measure a grid of two parameters")
        self.depths = self._starter("Depth", depth, "Measure the lanes at several context lengths")
        self.loads = self._starter("Load", load, "Measure servers with several requests at once")
        self.tune = self._starter(TUNE, tune, "Search for the fastest setting on these prompts")
        self.export_menu = QMenu(self)
        self.export = kit.button("Export", lambda: kit.open_below(self.export, self.export_menu))
        self.export.setEnabled(False)
        self.run = kit.button("Run", kind="primary")
        # In the order in which they give way: a bare number of lanes says least.
        self.chips = (self.pair, self.sampling, self.prompts, self.lanes)
        self.starting = (self.sweep, self.depths, self.loads, self.tune, self.run)
        self.buttons = (self.sweep, self.depths, self.loads, self.tune, self.export, self.run)
        self._buttons = QWidget()
        row = WrapLayout(self._buttons, GAP)
        for button in self.buttons:
            row.addWidget(button)
        for chip in (self.pair, self.lanes, self.prompts, self.sampling):
            self.row.addWidget(chip)
        self.row.addStretch(1)
        self.row.addWidget(self._buttons)
        self.restyle()

    def share_room(self) -> None:
        """Fit the row. Before names are cut, buttons lose the room beside their words, and Tune loses two
        words. If that is not enough, as with large text, they move below the chips."""
        self.others = self.buttons
        beside = self.room() + self._buttons_width(self._tight)
        widths = [chip.widths() for chip in self.chips]
        below = beside - self._buttons_width(tight=True) < sum(least for *_, least in widths)
        named = sum(bare for _, _, bare, _ in widths)
        self._set_tight(not below and beside - self._buttons_width(tight=False) < named)
        if below:
            self.others = ()
        if below is not (self.rows.indexOf(self._buttons) >= 0):
            (self.rows if below else self.row).addWidget(self._buttons)
        super().share_room()

    def _buttons_width(self, tight: bool) -> int:
        """The width of all buttons. Measured once: trying the other form lays out the whole row again."""
        if tight not in self._widths:
            before = self._tight
            self._set_tight(tight)
            self._widths[tight] = sum(button.sizeHint().width() for button in self.buttons)
            self._set_tight(before)
        return self._widths[tight]

    def _set_tight(self, tight: bool) -> None:
        if tight != self._tight:
            self._tight = tight
            for button in self.buttons:
                set_role(button, shape="icon" if tight else "")  # the padding of a button without words
                button.updateGeometry()
            self.tune.setText("Tune" if tight else TUNE)

    def changeEvent(self, event: QEvent) -> None:
        if event.type() == QEvent.Type.StyleChange:
            self._widths.clear()
        super().changeEvent(event)

    def close_panels(self) -> None:
        """Close the panels once a measurement has started, which they no longer change."""
        for popover in self._popovers:
            popover.close_panel()

    def set_at_work(self, at_work: bool) -> None:
        """Disable the chips and start buttons while work runs; all keep their places."""
        for widget in (*self.starting, self.lanes, self.prompts, self.sampling):
            widget.setEnabled(not at_work)

    def _starter(self, words: str, panel: StartPanel, tip: str) -> QPushButton:
        """A button that opens a panel."""
        button, popover = kit.button(words, tip=tip, name=words), Popover(self._theme, panel)
        popover.open_by(button)
        popover.opened.connect(panel.open)
        self._popovers.append(popover)
        return button


log = logging.getLogger("draftscope")
_SAVE_MILLISECONDS = 800  # after the last change, since a prompt is typed letter by letter


class SetupBar(QObject):
    """Contains the set-up and fills the head. The shown pair is the chat's."""

    changed = Signal()
    """The set-up or the pair changed, and is shown."""

    def __init__(
        self, theme: Theme, chat: ChatSide, suites: Sequence[Suite], kept: Path, quantised: Path
    ) -> None:
        """The first of `suites` is for the bundled pair; the one named LONG fills contexts. The set-up is
        saved in the file `kept`; quantisations are made in the folder `quantised`."""
        super().__init__()
        self._chat = chat
        self.servers = chat.servers
        self._suites = tuple(suites)
        self._names: dict[str, str] = {}  # names of models that were loaded, by path
        self._contexts: dict[ModelOptions, int] = {}  # context sizes of targets that were loaded, in tokens
        self._kept = KeptSetup(kept, suites)
        before, self.problem = self._kept.load()
        """A sentence on what was wrong with the saved set-up, or ""."""
        self._touched = before is not None  # whether the user made the set-up
        self.setup = before or self._first()
        self.lanes: tuple[Lane, ...] = ()  # that Run measures, with the baseline of each pair
        self.amount = ""  # how much Run measures, and how long it takes where that is known
        self._measured: dict[ModelOptions, tuple[int, float, float]] = {}
        """For measured targets: the token limit, seconds per answer and per token."""
        self.quants = QuantsPanel(chat.pair, quantised)
        self.quants.made.connect(self._set_quants)
        lanes = LanesPanel(theme, chat.pair, self._context_of, chat.servers, self.quants)
        prompts = PromptsPanel(theme, suites)
        sweep = SweepPanel(self.base, "draft-simple" if chat.pair().draft else "prompt-lookup")
        long = next(suite for suite in suites if suite.name == LONG)
        depth = DepthPanel(self.experiment, long, self._context_of)
        load, tune = LoadPanel(self.experiment), TunePanel(self.base)
        self.head = head = CompareHead(theme, lanes, prompts, sweep, depth, load, tune)
        self.setParent(head)
        self._saving = QTimer(self, singleShot=True, interval=_SAVE_MILLISECONDS)
        self._saving.timeout.connect(self._save)
        lanes.changed.connect(self.set_setup)
        prompts.changed.connect(self.set_setup)
        head.sampling_panel.options_changed.connect(
            lambda options: self.set_setup(dataclasses.replace(self.setup, options=options))
        )
        chat.engine.changed.connect(self._engine_changed)

    def experiment(self) -> Experiment:
        """The experiment that Run measures; raises SettingError."""
        return self.setup.experiment(self._chat.pair(), self._chat.drafters())

    def base(self) -> Experiment:
        """The pair, prompts and sampling of the set-up; raises SettingError."""
        setup = dataclasses.replace(self.setup, lanes=(Lane("prompt-lookup"),))  # any lane: it is replaced
        return setup.experiment(self._chat.pair(), self._chat.drafters())

    def changed_since(self, measured: Experiment, *, of_lanes: bool) -> list[str]:
        """The parts of the set-up that changed since it was measured, each in a few words; the lanes only
        with `of_lanes`."""
        try:
            now = self.experiment() if of_lanes else self.base()
        except SettingError:
            return ["the set-up"]
        return changes(measured, now, of_lanes=of_lanes)

    def set_setup(self, setup: CompareSetup) -> None:
        """Set the user's choice, which stays even if the chat's pair changes."""
        self._touched = True
        self.setup = setup
        self._saving.start()
        self.show_setup()

    def suggest(self) -> None:
        """Suggest a set-up for the chat's current pair, unless the user has chosen one."""
        if not self._touched:
            self.setup = self._first()
        self.show_setup()

    def learn(self, experiment: Experiment, runs: Iterable[RunRecord]) -> None:
        """Learn from measured runs how long Run would take."""
        known = [(run.whole_seconds, run.n_tokens) for run in runs if run.n_tokens]
        if known:
            seconds, tokens = map(sum, zip(*known, strict=True))
            times = experiment.max_tokens, seconds / len(known), seconds / tokens
            self._measured[experiment.pair.target] = times
            self._check()

    def close(self) -> None:
        """Save a pending change before the window closes, and stop making files."""
        self.quants.close_work()
        if self._saving.isActive():
            self._saving.stop()
            self._save()

    def _set_quants(self, files: list[tuple[str, str]]) -> None:
        """Set up a lane for each (kind, path), with the chat's strategy."""
        pair, strategy = self._chat.pair(), self._chat.settings.now.strategy
        if not StrategySpec.parse(strategy).parts:
            strategy = usual_strategy(None if pair.draft is None else self._draft_architecture())
        self.set_setup(dataclasses.replace(self.setup, lanes=quant_lanes(pair, files, strategy)))
        self.head.lanes_panel.add_quants.setChecked(False)

    def _save(self) -> None:
        try:
            self._kept.save(self.setup)
        except (UserError, OSError):
            log.warning("Compare's set-up could not be saved", exc_info=True)

    def _first(self) -> CompareSetup:
        named = {suite.name: suite for suite in self._suites}
        suite = named.get("bundled" if self._chat.is_bundled() else "general", self._suites[0])
        if self._chat.pair().draft is None:
            return first_setup(suite, None)
        return first_setup(suite, HEAD_STRATEGIES.get(self._draft_architecture(), "draft-simple"))

    def _draft_architecture(self) -> str:
        """The architecture of the loaded draft; "" if none is loaded."""
        loaded = self._chat.engine.pair
        return loaded.draft.architecture if loaded is not None and loaded.draft is not None else ""

    # ------------------------------------------------------------------ showing

    def show_setup(self) -> None:
        """Fill the chips and their panels."""
        head, setup = self.head, self.setup
        head.prompts_panel.set_setup(setup)
        if head.sampling_panel.options() != setup.options:
            head.sampling_panel.set_options(setup.options)
        repeats = numbers.count(setup.amount.repeats, "repeat")
        limit = numbers.count(setup.max_tokens, "token")
        count = numbers.count(len(setup.prompts), "prompt")
        head.prompts.set_text(setup.title, f"{count} · {repeats}", f"{count} · {repeats} · {limit} at most")
        head.sampling.set_text(*sampling_words(setup.options.sampling))
        self.show_pair()

    def _engine_changed(self, now: EngineState, before: EngineState) -> None:
        if now.activity is not before.activity:
            self.show_pair()

    def show_pair(self) -> None:
        """Show the names of the chat's pair, and mark what does not run with it."""
        pair = self._chat.pair()
        loaded = self._chat.engine.pair
        # While another pair is loaded, the engine still has the one from before.
        there = loaded is not None and loaded.server is None
        if loaded is not None and there and self._chat.engine.activity is not Activity.LOADING:
            self._contexts[pair.target] = loaded.target.n_ctx
            self._names = {
                options.path: " ".join(filter(None, model_words(info)))
                for options, info in ((pair.target, loaded.target), (pair.draft, loaded.draft))
                if options is not None and info is not None
            }
        draft = self._name_of(pair.draft) if pair.draft is not None else ""
        self.head.pair.set_text(self._name_of(pair.target), f"← {draft}" if draft else "no draft")
        self.head.pair_panel.set_pair(pair.target.path, pair.draft.path if pair.draft is not None else "")
        self.head.lanes_panel.set_setup(self.setup)
        self._check()
        self.changed.emit()

    def _context_of(self, target: ModelOptions) -> int:
        """The context size in tokens that a target was loaded with, or that its server reports; 0 if it is
        not known."""
        info = self.servers.known(target.path).info
        return info.target.n_ctx if info is not None else self._contexts.get(target, 0)

    def _name_of(self, options: ModelOptions) -> str:
        """The name in a model's metadata if it was loaded, otherwise its file name."""
        return self._names.get(options.path, file_name(options.path))

    def _check(self) -> None:
        """Mark what will not run; pressing Run says why."""
        head, setup = self.head, self.setup
        head.prompts.set_alert(not setup.prompts)
        try:
            self.lanes = self.experiment().lanes
            head.lanes.set_alert(False)
        except SettingError:
            self.lanes = Lane(NONE), *setup.lanes
            head.lanes.set_alert(bool(setup.prompts))
        lanes = len(self.lanes)
        baselines = lanes - len(setup.lanes)
        head.lanes.set_text(str(lanes), "", f"{lanes} with {numbers.count(baselines, 'baseline')}")
        amount = amount_words(lanes, len(setup.prompts), setup.amount.repeats)
        self.amount = f"{amount} of up to {numbers.count(setup.max_tokens, 'token')}"
        runs = lanes * len(setup.prompts) * setup.amount.repeats
        self.amount += self._time_words(runs, setup.max_tokens)
        head.run.setToolTip(f"{self.amount} (Ctrl+Return)")

    def _time_words(self, runs: int, limit: int) -> str:
        """The time of the runs, from earlier runs with the same limit, or an upper bound from the length
        limit; "" if nothing was answered yet."""
        measured_limit, of_one, pace = self._measured.get(self._chat.pair().target, (0, 0.0, 0.0))
        if limit == measured_limit:
            return f", about {numbers.duration(max(1.0, runs * of_one))}"
        if pace := pace or self._chat.engine.pace or 0.0:
            return f", at most about {numbers.duration(max(1.0, runs * limit * pace))}"
        return ""
