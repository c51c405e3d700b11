"""Lookup caches for ngram-cache: made from text files in the engine, and put into use."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from app.engine.drafters.ngram_cache import NgramCacheParams
from app.engine.process.messages import CountTexts, Failed, TextsCounted
from app.engine.strategy import StrategySpec
from app.ui.state.chat_side import SettingsInUse
from app.ui.state.engine_session import Activity, EngineSession, Reply
from app.ui.theme.style import set_role
from app.ui.widgets import kit
from app.ui.widgets.words import count

if TYPE_CHECKING:
    from app.ui.setup.strategy_panel import StrategyPanel

WORDS = (
    "Choose texts similar to the answers you expect: documents, code, earlier answers. ngram-cache then also "
    "drafts what usually followed the same two tokens there."
)


def ask_for_texts(parent: QWidget) -> tuple[str, ...]:
    """Let the user choose text files with the system's dialog; none if nothing was chosen."""
    return tuple(QFileDialog.getOpenFileNames(parent, "Choose texts in UTF-8", str(Path.home()))[0])


def ask_for_output(parent: QWidget, folder: str) -> str:
    """Let the user name the file to write; "" if nothing was named."""
    proposed = str(Path(folder) / "static.lookup")
    return QFileDialog.getSaveFileName(parent, "Save the lookup cache", proposed)[0]


class LookupMaker(QWidget):
    """A button, and below it what it is for, then what came of it."""

    wanted = Signal(object, str)
    """(text files, the file to write)"""

    def __init__(self) -> None:
        super().__init__()
        self.button = kit.button("Make a lookup cache…", self._ask)
        self.told = kit.label(WORDS, "caption", wrap=True, plain=True)
        kit.column((self.button, 0, Qt.AlignmentFlag.AlignLeft), self.told, spacing=4, on=self)

    def show_made(self, tokens: int, n_grams: int) -> None:
        """Say what was counted; the file is in use."""
        self._say(f"{count(n_grams)} pairs of tokens, from {count(tokens)} tokens. The cache is in use.")

    def show_failure(self, words: str) -> None:
        """Say why there is no lookup cache."""
        self._say(words, "error")

    def _ask(self) -> None:
        texts = ask_for_texts(self)
        output = ask_for_output(self, str(Path(texts[0]).parent)) if texts else ""
        if output:
            self._say("Counting…")
            self.wanted.emit(texts, output)

    def _say(self, words: str, role: str = "caption") -> None:
        self.told.setText(words)
        set_role(self.told, role=role)


class LookupCacheController(QObject):
    """The loaded target's vocabulary counts: a lookup cache is valid for one vocabulary only."""

    def __init__(self, panel: StrategyPanel, session: EngineSession, settings: SettingsInUse) -> None:
        super().__init__(panel)
        self._maker = panel.offer_lookup_caches()
        self._session = session
        self._settings = settings
        self._maker.wanted.connect(self._make)

    def _make(self, texts: tuple[str, ...], output: str) -> None:
        if self._session.activity is not Activity.READY or self._session.server is not None:
            self._maker.show_failure("It needs a loaded model that is not writing an answer.")
            return
        self._session.ask(CountTexts(0, texts, output), partial(self._told, output))

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
