"""Makes lookup caches in the engine, and puts them into use."""

from __future__ import annotations

import dataclasses
from functools import partial

from PySide6.QtCore import QObject, Slot

from app.engine.drafters.ngram.ngram_cache import NgramCacheParams
from app.engine.process.messages import Failed, TextsCounted
from app.engine.strategy import StrategySpec
from app.ui.setup.strategy.strategy_panel import StrategyPanel
from app.ui.state.engine.engine_questions import Reply
from app.ui.state.engine.engine_session import Activity, EngineSession
from app.ui.state.settings_in_use import SettingsInUse


class LookupCacheController(QObject):
    """The loaded target's vocabulary counts: a lookup cache is valid for one vocabulary only."""

    def __init__(self, panel: StrategyPanel, session: EngineSession, settings: SettingsInUse) -> None:
        super().__init__(panel)
        self._maker = panel.offer_lookup_caches()
        self._session = session
        self._settings = settings
        self._maker.wanted.connect(self._make)

    @Slot(object, str)
    def _make(self, texts: tuple[str, ...], output: str) -> None:
        if self._session.activity is not Activity.READY or self._session.server is not None:
            self._maker.show_failure("It needs a model that is loaded here and writes nothing at the moment.")
            return
        self._session.questions.count_texts(texts, output, partial(self._told, output))

    def _told(self, output: str, answer: Reply) -> None:
        if isinstance(answer, Failed):
            self._maker.show_failure(f"{answer.message} {answer.hint}".strip())
        elif isinstance(answer, TextsCounted):
            self._settings.change(strategy=str(_with_cache(self._settings.now.strategy, output)))
            self._maker.show_made(answer.tokens, answer.n_grams)


def _with_cache(strategy: str, output: str) -> StrategySpec:
    """The strategy with the file as ngram-cache's static lookup cache."""
    spec = StrategySpec.parse(strategy)
    parts = (
        dataclasses.replace(part, params=dataclasses.replace(part.params, lookup_cache_static=output))
        if isinstance(part.params, NgramCacheParams)
        else part
        for part in spec.parts
    )
    return dataclasses.replace(spec, parts=tuple(parts))
