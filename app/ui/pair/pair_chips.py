"""What the chips of target and draft show of the pair in use."""

from __future__ import annotations

from PySide6.QtCore import QObject, Slot

from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.strategy import StrategySpec
from app.engine.types import PairInfo, ServerInfo
from app.ui.pair.model_panel import ModelPanel
from app.ui.pair.server_form import told_words
from app.ui.state.engine.engine_session import EngineSession
from app.ui.state.settings_in_use import SettingsInUse
from app.ui.widgets.chip import PanelChip
from app.ui.widgets.words.model_words import chip_words, fit_words, full_words, unread_name

ModelChip = PanelChip[ModelPanel]


class PairChips(QObject):
    """Names the loaded pair, or the files that the settings name, and dims a draft without effect."""

    def __init__(
        self, target: ModelChip, draft: ModelChip, session: EngineSession, settings: SettingsInUse
    ) -> None:
        super().__init__(target)
        self._target = target
        self._draft = draft
        self._session = session
        self._settings = settings
        settings.changed.connect(self._settings_changed)
        self.show()

    @Slot(object)
    def _settings_changed(self, names: set[str]) -> None:
        if names & {"target", "draft", "strategy"}:
            self.show()

    @Slot()
    def show(self) -> None:
        """Show the pair as it is known now."""
        settings, pair = self._settings.now, self._session.pair
        if pair is not None and pair.server is not None:
            self._show_server(pair, pair.server)
            return
        if pair is not None:
            self._target.set_text(*chip_words(pair.target), full_words(pair.target))
        else:
            self._target.set_text(unread_name(settings.target.path))
        if settings.draft is None:
            self._draft.set_text("none")
        elif pair is not None and pair.draft is not None:
            (target, target_in), (name, name_in) = chip_words(pair.target), chip_words(pair.draft)
            if name == target and name_in == target_in:
                name = unread_name(pair.draft.path)
            elif name == target:  # a detail is left out where room is short
                self._target.set_text(f"{target} {target_in}", "", full_words(pair.target))
                name, name_in = f"{name} {name_in}", ""
            detail = " · ".join(filter(None, (name_in, fit_words(pair.vocabulary))))
            self._draft.set_text(name, detail, full_words(pair.draft, pair.vocabulary))
        else:
            self._draft.set_text(unread_name(settings.draft.path))
        unused = settings.draft is not None and not _uses_draft(settings.strategy)
        why = f"The strategy in use, {settings.strategy}, does not draft with a model." if unused else ""
        self._draft.set_unused(why)
        self._draft.panel.facts.set_unused(why)

    def _show_server(self, pair: PairInfo, server: ServerInfo) -> None:
        at = server.address.partition("://")[2]
        self._target.set_text(server.model, f"on {server.kind}", told_words(pair))
        self._draft.set_text("the server's")
        why = (
            f"The server at {at} answers, and drafts by its own settings. Apply goes back to the models here."
        )
        self._draft.set_unused(why)
        self._draft.panel.facts.set_unused(why)


def _uses_draft(strategy: str) -> bool:
    try:
        return any(KINDS[part.name].by_model for part in StrategySpec.parse(strategy).parts)
    except SettingError:  # its drafter was removed
        return True
