"""What answers are made with, as the chips say it: strategy and sampling from their panels, and presets."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, Slot

from app.engine.errors import SettingError, UserError
from app.engine.explain.llama_command import template_kwargs
from app.engine.strategy import StrategySpec
from app.saved.presets import Preset
from app.ui.chat.prompt.prompt_box import PromptBox
from app.ui.pair.pair_controller import PairController
from app.ui.setup.sampling_panel import AnswerOptions
from app.ui.setup.sampling_panel import chip_words as sampling_words
from app.ui.setup.strategy.strategy_panel import Surroundings, check_together
from app.ui.state.engine_session import BUSY, Activity, EngineSession
from app.ui.state.settings_in_use import SettingsInUse
from app.ui.widgets.words.model_words import chip_words as model_words
from app.ui.widgets.words.model_words import file_name, fit_words, full_words
from app.ui.window.header import Header

SHOWN = {"strategy", "sampling", "max_tokens", "stop", "target", "draft"}  # on chips and in panels


class ChipsController(QObject):
    """Fills the chips and the panels of strategy and sampling. Loading is PairController's."""

    shown = Signal()
    """The chips say what is in use by now."""

    def __init__(
        self,
        header: Header,
        prompt: PromptBox,
        session: EngineSession,
        settings: SettingsInUse,
        pair: PairController,
    ) -> None:
        super().__init__()
        self._header = header
        self._prompt = prompt
        self._session = session
        self._settings = settings
        self._pair = pair
        pair.changed.connect(self.show)
        prompt.thinking.changed.connect(self.show)
        header.sampling_panel.options_changed.connect(self._sampling_changed)
        header.strategy_panel.spec_changed.connect(lambda spec: settings.change(strategy=spec))

        settings.changed.connect(self._settings_changed)

    # ------------------------------------------------------------------ showing

    @Slot(object)
    def _settings_changed(self, names: set[str]) -> None:
        panels, settings = self._header, self._settings.now
        # What comes from a panel stands there already, as it is being typed.
        if "strategy" in names and settings.strategy != panels.strategy_panel.spec():
            panels.strategy_panel.set_spec(settings.strategy)
        options = AnswerOptions(settings.sampling, settings.max_tokens, settings.stop)
        if options != panels.sampling_panel.options():
            panels.sampling_panel.set_options(options)
        if names & SHOWN:
            self.show()

    @Slot()
    def show_panels(self) -> None:
        """Show strategy and sampling in their panels, and on the chips; strategies may have come or gone."""
        settings, header = self._settings.now, self._header
        header.strategy_panel.set_spec(settings.strategy)
        header.sampling_panel.set_options(
            AnswerOptions(settings.sampling, settings.max_tokens, settings.stop)
        )
        self.show()

    @Slot()
    def show(self) -> None:
        """Show what is in use on the chips."""
        settings, header = self._settings.now, self._header
        self._show_pair()
        header.strategy.set_text(settings.strategy)
        header.sampling.set_text(*sampling_words(settings.sampling))
        pair = self._session.pair
        around = Surroundings(
            *self._settings.real_pair(),
            settings.sampling,
            settings.max_tokens,
            pair.vocabulary if pair else "",
            pair.target.n_ctx if pair else 0,
            template_kwargs(self._prompt.thinking.options, pair.thinking if pair else None),
        )
        header.strategy_panel.set_surroundings(around)
        header.strategy.set_alert(not self._strategy_works(around))
        unused = settings.draft is not None and not self._needs_draft()
        why = f"The strategy in use, {settings.strategy}, does not draft with a model." if unused else ""
        header.draft.set_unused(why)
        header.draft_panel.set_unused(why)
        self.shown.emit()

    def _show_pair(self) -> None:
        settings, header, pair = self._settings.now, self._header, self._session.pair
        if pair is not None:
            header.target.set_text(*model_words(pair.target), full_words(pair.target))
        else:
            header.target.set_text(file_name(settings.target.path))
        if settings.draft is None:
            header.draft.set_text("none")
        elif pair is not None and pair.draft is not None:
            name, quantisation = model_words(pair.draft)
            if name == model_words(pair.target)[0]:
                name = f"{name} {quantisation}"
            header.draft.set_text(name, fit_words(pair.vocabulary), full_words(pair.draft, pair.vocabulary))
        else:
            header.draft.set_text(file_name(settings.draft.path))

    def _needs_draft(self) -> bool:
        try:
            return StrategySpec.parse(self._settings.now.strategy).needs_draft
        except SettingError:  # its drafter was taken away
            return True

    def _strategy_works(self, around: Surroundings) -> bool:
        try:
            check_together(StrategySpec.parse(self._settings.now.strategy), around)
        except SettingError:
            return False
        return True

    # ------------------------------------------------------------------ changing

    @Slot(object)
    def _sampling_changed(self, options: AnswerOptions) -> None:
        self._settings.change(sampling=options.sampling, max_tokens=options.max_tokens, stop=options.stop)

    def apply(self, preset: Preset) -> None:
        """Put a preset into use; a pair that is loaded already stays. Raises UserError."""
        settings = self._settings
        pair = (preset.target, preset.draft)
        is_other = pair != (settings.now.target, settings.now.draft)
        if is_other and self._session.activity in BUSY:
            raise UserError("The engine is still at work.", "Stop the answer first.")
        StrategySpec.parse(preset.strategy)  # its drafter may be gone: nothing is changed then
        settings.change(
            strategy=preset.strategy,
            sampling=preset.sampling,
            max_tokens=preset.max_tokens,
            stop=preset.stop,
        )
        if is_other or self._session.activity is Activity.EMPTY:
            self._pair.load(*pair)
