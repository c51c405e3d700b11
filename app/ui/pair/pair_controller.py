"""Loads the pair in use, and shows the result in the panels and on the chips."""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from app.base.paths import OWN, REAL_TARGET
from app.demo import REAL_PAIR, SMALL_PAIR, OwnPair
from app.engine.devices.placement import share_workers
from app.engine.drafters.registry import KINDS
from app.engine.errors import SettingError
from app.engine.process.messages import Failed, LoadProgress, LoadStage, Offer
from app.engine.strategy import StrategySpec, drafting_with, undrafted
from app.engine.types import ModelOptions, PairInfo, Role, ServerInfo
from app.ui.pair.model_panel import ModelPanel
from app.ui.pair.offload_controller import OffloadController
from app.ui.pair.server_form import ServerForm, told_words
from app.ui.state.chat_side import SettingsInUse
from app.ui.state.engine_session import BUSY, Activity, EngineSession, EngineState
from app.ui.widgets.chip import Chip
from app.ui.widgets.notice import Notices, WayOut
from app.ui.widgets.words import chip_words, fit_words, full_words, unread_name

ModelChip = Chip[ModelPanel]


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

    def _settings_changed(self, names: set[str]) -> None:
        if names & {"target", "draft", "strategy"}:
            self.show()

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
        why = f"The current strategy, {settings.strategy}, does not use a draft model." if unused else ""
        self._draft.set_unused(why)
        self._draft.panel.facts.set_unused(why)

    def _show_server(self, pair: PairInfo, server: ServerInfo) -> None:
        at = server.address.partition("://")[2]
        self._target.set_text(server.model, f"on {server.kind}", told_words(pair))
        self._draft.set_text("the server's")
        why = (
            f"The server at {at} answers and drafts with its own settings. Apply returns to the models here."
        )
        self._draft.set_unused(why)
        self._draft.panel.facts.set_unused(why)


def _uses_draft(strategy: str) -> bool:
    try:
        return any(KINDS[part.name].by_model for part in StrategySpec.parse(strategy).parts)
    except SettingError:  # its drafter was removed
        return True


CAUSE, LEFT_OUT = "pair", "draft left out"  # of notices


class PairController(QObject):
    """Loads what the panels ask for. If a file fails, the previous pair stays in use."""

    changed = Signal()
    """The pair was loaded, or could not be loaded."""

    def __init__(
        self,
        target: ModelChip,
        draft: ModelChip,
        server: ServerForm,
        notices: Notices,
        session: EngineSession,
        settings: SettingsInUse,
    ) -> None:
        """`server` is the form in the target's panel; `notices` show a failure if its panel is closed."""
        super().__init__()
        self._target = target
        self._draft = draft
        self._notices = notices
        self._session = session
        self._settings = settings
        self._in_use: tuple[ModelOptions, ModelOptions | None] | None = None  # what is loaded
        self._fatal: ModelPanel | None = None  # the panel of a file that crashed the engine
        self._carried = False  # the draft that is loaded was there for another target
        self._by_hand = False  # the loaded pair was asked for, and does not replace one that failed
        self._asked: tuple[ModelOptions, ModelOptions | None] | None = None  # symbolic paths, loaded last
        self.offload = OffloadController(target.panel, draft.panel, session, self.wanted, settings.real)
        self.offload.lighter_chosen.connect(self._lighter_chosen)
        self.changed.connect(PairChips(target, draft, session, settings).show)
        session.changed.connect(self._engine_changed)
        session.run_died.connect(self._run_died)
        target.panel.applied.connect(self._target_applied)
        draft.panel.applied.connect(self._draft_applied)
        here = Path(settings.real(REAL_PAIR.target).path).is_file()
        target.panel.set_own((REAL_PAIR, SMALL_PAIR) if here else (SMALL_PAIR,))
        target.panel.own_wanted.connect(self.use_own)
        server.described.connect(self._server_described)
        for panel in (target.panel, draft.panel):
            panel.edited.connect(self._edited)

    def show(self) -> None:
        """Show in the panels which pair the settings name."""
        settings = self._settings.now
        panels = ((self._target.panel, settings.target), (self._draft.panel, settings.draft))
        for panel, options in panels:
            panel.set_options(options)
            panel.set_recent(settings.recent_models)

    def _target_applied(self, options: ModelOptions) -> None:
        if self._may_load(self._target.panel):
            now = self._settings.now
            draft = self._beside(self._draft.panel, now.draft)
            self.load(options, draft, carried=draft == now.draft and options.path != now.target.path)

    def _draft_applied(self, options: ModelOptions | None) -> None:
        if self._may_load(self._draft.panel):
            target = self._beside(self._target.panel, self._settings.now.target)
            assert target is not None  # a target's panel always has one
            self.load(target, options)

    def _may_load(self, panel: ModelPanel) -> bool:
        if self._session.activity in BUSY:
            panel.tell("The engine is busy.", "Stop the answer first.")
            return False
        return True

    def _edited(self) -> None:
        """Say in both panels that each one's Apply loads the other's changes too."""
        panels = (self._target.panel, self._draft.panel)
        for panel, other in (panels, panels[::-1]):
            panel.set_beside(other.can_load() and other.pending() and not other.failed)

    def wanted(self, panel: ModelPanel) -> tuple[ModelOptions, ModelOptions | None]:
        """The pair that a panel's Apply would load; raises SettingError if its form is wrong."""
        options, settings = panel.options(), self._settings.now
        if panel is self._draft.panel:
            target = self._beside(self._target.panel, settings.target)
            return target or settings.target, options
        return options or settings.target, self._beside(self._draft.panel, settings.draft)

    def _beside(self, panel: ModelPanel, in_use: ModelOptions | None) -> ModelOptions | None:
        """What Apply takes from the other panel: what it shows, unless that is wrong or could not be
        loaded."""
        return panel.options() if panel.can_load() and not panel.failed else in_use

    def load(self, target: ModelOptions, draft: ModelOptions | None, carried: bool = False) -> None:
        """Load this pair and save it in the settings; nothing happens while an answer is written. `carried`:
        the draft was not chosen for this target, and is only offered if its vocabulary differs."""
        if self._session.activity in BUSY:
            return
        target, draft = share_workers(target, draft)
        self._asked, self._by_hand, self._fatal = (target, draft), True, None
        settings = self._settings.now
        for options in (draft, target):
            if options is not None and not options.path.startswith(OWN):
                settings = settings.with_recent(options.path)  # our own have buttons
        self._settings.change(target=target, draft=draft, server="", recent_models=settings.recent_models)
        self._target.panel.set_server("")
        self._target.panel.set_options(target)
        self._draft.panel.set_options(draft)
        self._edited()
        self._carried = carried
        self._notices.withdraw(LEFT_OUT)
        self._session.load(
            self._settings.real(target), self._settings.real(draft) if draft is not None else None, carried
        )

    def use_own(self, pair: OwnPair) -> None:
        """Load a pair that comes with Draftscope, with the strategy that suits it."""
        if self._may_load(self._target.panel):
            self._notices.withdraw(CAUSE)
            self._settings.change(strategy=pair.strategy)
            self.load(pair.target, pair.draft)

    def use_server(self, address: str) -> None:
        """Let a server answer instead of local models; nothing happens while an answer is written."""
        if self._session.activity in BUSY:
            return
        self._asked, self._by_hand = None, True
        self._settings.change(server=address)
        self._session.load(ModelOptions(address), None)

    def _server_described(self, info: PairInfo) -> None:
        if self._may_load(self._target.panel):
            self.use_server(info.target.path)

    def _back_here(self) -> None:
        """Load local models instead of a server that does not answer."""
        self._load_instead(self._settings.now.target, self._settings.now.draft)

    def _load_instead(self, target: ModelOptions, draft: ModelOptions | None) -> None:
        """Load what a button beside a failure offers, with paths as the settings name them."""
        if self._session.activity not in BUSY:
            self._notices.withdraw(CAUSE)
            self.load(self._named(target), self._named(draft) if draft is not None else None)

    def _way_to(self, offer: Offer | None) -> tuple[WayOut, ...]:
        if offer is None:
            return ()
        return (WayOut(offer.words, partial(self._load_instead, offer.target, offer.draft)),)

    def _lighter_chosen(self, panel: ModelPanel, target: ModelOptions, draft: ModelOptions | None) -> None:
        """Load a pair that takes less memory, with a strategy that it can be used with."""
        if self._may_load(panel):
            if draft is None:
                self._settings.change(strategy=undrafted(self._settings.now.strategy))
            self.load(target, draft)

    def _named(self, options: ModelOptions) -> ModelOptions:
        """The options under the path that settings and panels use; the engine knows only the real file."""
        known = [model for pair in (self._asked, self._in_use) if pair is not None for model in pair if model]
        path = next(
            (model.path for model in known if self._settings.real(model).path == options.path), options.path
        )
        return dataclasses.replace(options, path=path)

    def _engine_changed(self, now: EngineState, before: EngineState) -> None:
        if now.failed is not None and now.failed is not before.failed:
            self._load_failed(now.failed)
        elif now.activity is Activity.READY and before.activity is Activity.LOADING:
            assert now.pair is not None
            self._loaded(now.pair)
        elif isinstance(now.reading, LoadProgress):
            self._show_progress(now.reading)

    def _show_progress(self, progress: LoadProgress) -> None:
        panel = self._draft.panel if progress.role is Role.DRAFT else self._target.panel
        if panel is self._fatal:
            return  # its panel still says what happened
        if progress.stage is LoadStage.TESTING:
            panel.set_testing(progress.file)
        else:
            panel.set_loading(progress.file, progress.fraction)

    def _loaded(self, pair: PairInfo) -> None:
        settings = self._settings.now
        if pair.server is not None:
            self._server_answers(pair.server)
            return
        if self._carried and settings.draft is not None and pair.draft is None:
            self._left_out(settings.draft, settings.strategy)
        elif pair.draft is not None:
            self._settings.change(strategy=drafting_with(settings.strategy, pair.draft.architecture))
        settings = self._settings.now
        self._in_use = (settings.target, settings.draft)
        fatal, self._fatal = self._fatal, None
        if self._by_hand:  # what was said of the previous pair no longer holds
            self._notices.withdraw(CAUSE)
        for chip, info in ((self._target, pair.target), (self._draft, pair.draft)):
            if chip.panel is fatal:
                continue  # the previous pair is back; its panel still says what happened
            chip.panel.set_info(info)
            chip.panel.set_recent(settings.recent_models)
            chip.set_alert(False)
        self.changed.emit()

    def _left_out(self, draft: ModelOptions, strategy: str) -> None:
        """Answer without a draft that was carried over from a different target, and offer it."""
        self._settings.change(draft=None, strategy=undrafted(strategy))
        self._draft.panel.set_options(None)
        name = unread_name(draft.path)

        def use() -> None:
            if self._session.activity not in BUSY:
                self._settings.change(strategy=strategy)
                self.load(self._settings.now.target, draft)

        message = (
            f"{name[0].upper()}{name[1:]} was removed as the draft: the target has a different vocabulary."
        )
        hint = "It could draft only through text, and few of its tokens would be accepted."
        way_out = WayOut("Use it as the draft", use)
        self._notices.tell(message, hint, way_out, cause=LEFT_OUT)
        self._draft.panel.tell(message, hint, way_out)

    def _server_answers(self, server: ServerInfo) -> None:
        self._notices.withdraw(CAUSE)
        settings = self._settings.now
        for chip, options in ((self._target, settings.target), (self._draft, settings.draft)):
            if chip.panel.failed:
                chip.panel.set_options(options)
            chip.panel.set_info(None)
            chip.set_alert(False)
        self._target.panel.set_server(server.address)
        self._in_use = None
        self._edited()
        self.changed.emit()

    def _server_failed(self, failed: Failed) -> None:
        self._target.panel.set_server(self._settings.now.server)
        self._target.panel.tell(failed.message, failed.hint)
        self._target.set_alert(True)
        self.changed.emit()
        way_out = WayOut("Load the models here", self._back_here)
        self._notices.tell(failed.message, failed.hint, way_out, cause=CAUSE)

    def _load_failed(self, failed: Failed) -> None:
        """Show the error in the panel of the model that failed."""
        self._by_hand = False
        if self._settings.now.server:
            self._server_failed(failed)
            return
        pair = self._session.pair
        about_draft = (failed.role or self._changed_role()) is Role.DRAFT
        chip, other = (self._target, self._draft)[:: -1 if about_draft else 1]
        wrong, right = chip.panel, other.panel
        settings = self._settings.now
        again = WayOut("Load again", partial(self._load_instead, settings.target, settings.draft))
        if self._in_use is not None:
            # What failed stays in its panel, to be corrected; the settings keep what is loaded.
            target, draft = self._in_use
            self._settings.change(target=target, draft=draft)
            right.set_in_use(target if about_draft else draft)
            wrong.set_in_use(draft if about_draft else target)
        self.offload.refused = self._asked if failed.no_room else None
        # The cause may have been another program's, so the same pair is offered first.
        ways_out = ((again,) if failed.gone or failed.no_room else ()) + self._way_to(failed.offer)
        if settings.target.path == REAL_TARGET and not about_draft:  # a set-up may have gone on without it
            ways_out += (WayOut("Load the small pair", partial(self.use_own, SMALL_PAIR)),)
        wrong.set_error(failed.message, failed.hint, *ways_out)
        self._edited()
        self._fatal = wrong if failed.gone and self._in_use is not None else None
        right.set_info((pair.target if about_draft else pair.draft) if pair is not None else None)
        self.changed.emit()
        chip.set_alert(True)
        kept = "No model is loaded." if failed.gone else ""
        kept = f"{pair.target.name} is still loaded." if pair is not None else kept
        self._notices.tell(failed.message, f"{failed.hint} {kept}".strip(), *ways_out, cause=CAUSE)

    def _run_died(self, failed: Failed) -> None:
        """Offer the next safe setting, if there is one; the answer itself says what happened."""
        self._by_hand = False
        if failed.offer is not None:
            self._notices.tell(failed.message, failed.hint, *self._way_to(failed.offer), cause=CAUSE)
            self._target.panel.tell(failed.message, failed.hint, *self._way_to(failed.offer))

    def _changed_role(self) -> Role:
        """The draft if only it was changed, else the target: a failure without a role is shown there."""
        target, draft = self._settings.now.target, self._settings.now.draft
        only_draft = self._in_use is not None and self._in_use[0] == target and self._in_use[1] != draft
        return Role.DRAFT if only_draft and draft is not None else Role.TARGET
