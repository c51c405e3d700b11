"""Strategy, sampling and presets on the chips: shows what answers are made with, and changes it."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QObject

from app.engine.errors import SettingError, UserError
from app.engine.explain.llama_command import template_kwargs
from app.engine.process.messages import PassSeconds
from app.engine.strategy import NONE, StrategySpec, is_synthetic
from app.engine.templates.options import TemplateOptions
from app.engine.types import ModelOptions
from app.saved.presets import Preset
from app.servers.address import fate_words
from app.ui.setup.sampling_panel import AnswerOptions, SamplingPanel, chip_words
from app.ui.setup.strategy_panel import ANY_VOCABULARY, StrategyContext, StrategyPanel, check_together
from app.ui.state.chat_side import SettingsInUse
from app.ui.state.engine_session import BUSY, Activity, EngineSession
from app.ui.widgets.chip import Chip

SHOWN = {"strategy", "sampling", "max_tokens", "stop", "target", "draft"}  # on the chips and in the panels


class ChipsController(QObject):
    """Shows the settings on the chips and in the panels of strategy and sampling, and changes them."""

    def __init__(
        self,
        strategy: Chip[StrategyPanel],
        sampling: Chip[SamplingPanel],
        session: EngineSession,
        settings: SettingsInUse,
        template_options: Callable[[], TemplateOptions],
        load: Callable[[ModelOptions, ModelOptions | None], None],
        passes: Callable[[str, str], PassSeconds | None],
    ) -> None:
        """`template_options` are those of the chat on the screen; `load` loads a pair; `passes` returns the
        times of two files' passes."""
        super().__init__()
        self._strategy = strategy
        self._sampling = sampling
        self._session = session
        self._settings = settings
        self._template_options = template_options
        self._load = load
        self._passes = passes
        sampling.panel.options_changed.connect(self._sampling_changed)
        strategy.panel.spec_changed.connect(lambda spec: settings.change(strategy=spec))
        settings.changed.connect(self._settings_changed)

    # ------------------------------------------------------------------ showing

    def _settings_changed(self, names: set[str]) -> None:
        strategy = self._settings.now.strategy
        # A change from a panel is shown there already, as it was typed.
        if "strategy" in names and strategy != self._strategy.panel.spec():
            self._strategy.panel.set_spec(strategy)
        if self._options() != self._sampling.panel.options():
            self._sampling.panel.set_options(self._options())
        if names & SHOWN:
            self.show()

    def show_panels(self) -> None:
        """Show strategy and sampling in their panels, and on the chips; strategies may have come or gone."""
        self._strategy.panel.set_spec(self._settings.now.strategy)
        self._sampling.panel.set_options(self._options())
        self.show()

    def show(self) -> None:
        """Show the settings in use on the chips, and in the strategy panel what the strategy is used with."""
        settings, pair, server = self._settings.now, self._session.pair, self._session.server
        synthetic = " (synthetic)" if is_synthetic(settings.strategy) else ""
        if server is not None:
            self._strategy.set_text("+".join(server.speculation) or NONE, "the server's", fate_words(server))
            pair = None  # the panel is about the pair here
        else:
            self._strategy.set_text(settings.strategy + synthetic)
        here = "A server answers and drafts with its own settings. This strategy applies to the models here."
        self._strategy.set_unused(here if server is not None else "")
        if self._session.activity is Activity.LOADING:
            pair = None  # that of the settings is not known yet
        self._sampling.set_text(*chip_words(settings.sampling))
        around = StrategyContext(
            *self._settings.real_pair(),
            settings.sampling,
            settings.max_tokens,
            pair.vocabulary if pair else "",
            pair.target.n_ctx if pair else 0,
            pair.target.n_vocab if pair else ANY_VOCABULARY,
            template_kwargs(self._template_options(), pair.thinking if pair else None),
            pair,
            self._session.state.has_mtp,
            self._passes,
        )
        self._strategy.panel.set_surroundings(around)
        self._strategy.set_alert(server is None and not _works(settings.strategy, around))

    def _options(self) -> AnswerOptions:
        settings = self._settings.now
        return AnswerOptions(settings.sampling, settings.max_tokens, settings.stop)

    # ------------------------------------------------------------------ changing

    def _sampling_changed(self, options: AnswerOptions) -> None:
        self._settings.change(sampling=options.sampling, max_tokens=options.max_tokens, stop=options.stop)

    def apply(self, preset: Preset) -> None:
        """Put a preset into use; a pair that is loaded already stays loaded. Raises UserError."""
        settings = self._settings
        pair = (preset.target, preset.draft)
        is_other = pair != (settings.now.target, settings.now.draft) or bool(settings.now.server)
        if is_other and self._session.activity in BUSY:
            raise UserError("The engine is busy.", "Stop the answer first.")
        StrategySpec.parse(preset.strategy)  # its drafter may be gone: nothing is changed then
        settings.change(
            strategy=preset.strategy, sampling=preset.sampling, max_tokens=preset.max_tokens, stop=preset.stop
        )
        if is_other or self._session.activity is Activity.EMPTY:
            self._load(*pair)


def _works(strategy: str, around: StrategyContext) -> bool:
    try:
        check_together(StrategySpec.parse(strategy), around)
    except SettingError:
        return False
    return True
