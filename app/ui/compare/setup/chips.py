"""The set-up and its chips: what will be measured, shown on top and changed by the panels behind it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal, Slot

from app.base import numbers
from app.engine.errors import SettingError, UserError
from app.engine.types import ModelOptions
from app.lab.experiment import Experiment, Lane
from app.lab.suites import Suite
from app.ui.compare.setup.head import CompareHead
from app.ui.compare.setup.kept_setup import KeptSetup
from app.ui.compare.setup.lanes_panel import LanesPanel
from app.ui.compare.setup.prompts_panel import ChoosePrompts, PromptsPanel
from app.ui.compare.setup.setup import CompareSetup, changes, first_setup
from app.ui.compare.setup.sweep_panel import SweepPanel
from app.ui.compare.words import amount_words
from app.ui.pair.model_panel import FileChooser
from app.ui.setup.sampling_panel import AnswerOptions
from app.ui.setup.sampling_panel import chip_words as sampling_words
from app.ui.state.chat_side import ChatSide
from app.ui.state.engine_session import Activity, EngineState
from app.ui.theme import Theme
from app.ui.widgets.words.model_words import chip_words as model_words
from app.ui.widgets.words.model_words import file_name

log = logging.getLogger("draftscope")
_SAVE_MILLISECONDS = 800  # behind the last change: a prompt is typed letter by letter


class SetupBar(QObject):
    """Fills the head. What it says of the pair follows the chat's."""

    changed = Signal()
    """The set-up or the pair is another one, and is shown."""

    def __init__(
        self,
        theme: Theme,
        chat: ChatSide,
        suites: Sequence[Suite],
        choose_model: FileChooser,
        choose_prompts: ChoosePrompts,
        kept: Path,
    ) -> None:
        """The first of `suites` is for the bundled pair; the set-up is remembered in `kept`."""
        super().__init__()
        self._chat = chat
        self._suites = tuple(suites)
        self._names: dict[str, str] = {}  # of models that were loaded, by path
        self._contexts: dict[ModelOptions, int] = {}  # of targets that were loaded, tokens
        self._kept = KeptSetup(kept, suites)
        before, self.problem = self._kept.load()
        """What was wrong with the set-up of the last time, in a sentence."""
        self._touched = before is not None  # the set-up was made by a person
        self.setup = before or self._first()
        self.amount = ""  # how much Run measures
        lanes = LanesPanel(theme, choose_model, chat.pair, self._context_of)
        prompts = PromptsPanel(theme, suites, choose_prompts)
        sweep = SweepPanel(self.base, "draft-simple" if chat.pair().draft else "prompt-lookup")
        self.head = head = CompareHead(theme, lanes, prompts, sweep)
        self.setParent(head)
        self._saving = QTimer(self, singleShot=True, interval=_SAVE_MILLISECONDS)
        self._saving.timeout.connect(self._save)
        lanes.changed.connect(self.set_setup)
        prompts.changed.connect(self.set_setup)
        head.sampling_panel.options_changed.connect(self._options_changed)
        chat.engine.changed.connect(self._engine_changed)

    def experiment(self) -> Experiment:
        """What Run measures; raises SettingError."""
        return self.setup.experiment(self._chat.pair(), self._chat.drafters())

    def base(self) -> Experiment:
        """Pair, prompts and sampling of what is set up; raises SettingError."""
        setup = dataclasses.replace(self.setup, lanes=(Lane("prompt-lookup"),))  # any one: it is replaced
        return setup.experiment(self._chat.pair(), self._chat.drafters())

    def changed_since(self, measured: Experiment, *, of_lanes: bool) -> list[str]:
        """What is set up otherwise than it was measured, each in a word; the lanes only where asked for."""
        try:
            now = self.experiment() if of_lanes else self.base()
        except SettingError:
            return ["the set-up"]
        return changes(measured, now, of_lanes=of_lanes)

    @Slot(object)
    def set_setup(self, setup: CompareSetup) -> None:
        """This is what is wanted; it stays, whatever pair the chat takes."""
        self._touched = True
        self.setup = setup
        self._saving.start()
        self.show_setup()

    def suggest(self) -> None:
        """Begin with what suits the pair that the chat has by now, where nobody has chosen yet."""
        if not self._touched:
            self.setup = self._first()
        self.show_setup()

    def close(self) -> None:
        """Before the window goes: nothing that was just changed is lost."""
        if self._saving.isActive():
            self._saving.stop()
            self._save()

    @Slot()
    def _save(self) -> None:
        try:
            self._kept.save(self.setup)
        except (UserError, OSError):
            log.warning("What is set up in Compare could not be kept", exc_info=True)

    def _first(self) -> CompareSetup:
        named = {suite.name: suite for suite in self._suites}
        suite = named.get("bundled" if self._chat.is_bundled() else "general", self._suites[0])
        return first_setup(suite, self._chat.pair().draft is not None)

    @Slot(object)
    def _options_changed(self, options: AnswerOptions) -> None:
        self.set_setup(dataclasses.replace(self.setup, options=options))

    # ------------------------------------------------------------------ showing

    def show_setup(self) -> None:
        """Fill the chips and their panels."""
        head, setup = self.head, self.setup
        head.prompts_panel.set_setup(setup)
        if head.sampling_panel.options() != setup.options:
            head.sampling_panel.set_options(setup.options)
        head.lanes.set_text(str(len(setup.lanes) + 1), "", f"{len(setup.lanes) + 1} with the baseline")
        repeats = numbers.count(setup.amount.repeats, "repeat")
        limit = numbers.count(setup.max_tokens, "token")
        count = numbers.count(len(setup.prompts), "prompt")
        head.prompts.set_text(setup.title, f"{count} · {repeats}", f"{count} · {repeats} · {limit} at most")
        head.sampling.set_text(*sampling_words(setup.options.sampling))
        self.show_pair()

    @Slot(object, object)
    def _engine_changed(self, now: EngineState, before: EngineState) -> None:
        if now.activity is not before.activity:
            self.show_pair()

    def show_pair(self) -> None:
        """Name the chat's pair, and mark what does not run with it."""
        pair = self._chat.pair()
        loaded = self._chat.engine.pair
        # While another pair is loaded, the engine still has the one from before.
        if loaded is not None and self._chat.engine.activity is not Activity.LOADING:
            self._contexts[pair.target] = loaded.target.n_ctx
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
        self.changed.emit()

    def _context_of(self, target: ModelOptions) -> int:
        """Tokens of the context that a target was loaded with; 0 where it was not."""
        return self._contexts.get(target, 0)

    def _name_of(self, options: ModelOptions) -> str:
        """What a model calls itself, where it was loaded; else its file's name."""
        return self._names.get(options.path, file_name(options.path))

    def _check(self) -> None:
        """Mark what will not run; pressing Run says why."""
        head, setup = self.head, self.setup
        head.prompts.set_alert(not setup.prompts)
        try:
            lanes = len(self.experiment().lanes)
            head.lanes.set_alert(False)
        except SettingError:
            lanes = len(setup.lanes) + 1
            head.lanes.set_alert(bool(setup.prompts))
        self.amount = amount_words(lanes, len(setup.prompts), setup.amount.repeats)
        head.run.setToolTip(f"{self.amount} (Ctrl+Return)")
