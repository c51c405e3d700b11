"""The prompts to try: applies the settings of the chosen prompt, asks it, and says what to look for."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from PySide6.QtCore import QObject, Qt, Slot

from app.base.paths import BUNDLED_TARGET
from app.demo import DemoPrompt
from app.engine.errors import UserError
from app.engine.strategy import undrafted
from app.engine.types import ModelOptions, Sampling
from app.saved.presets import Preset
from app.saved.settings import Settings
from app.ui.chat.chat_controller import ChatController
from app.ui.chat.prompt.prompt_box import PromptBox
from app.ui.chat.try_panel import manner_words
from app.ui.setup.sampling_panel import chip_words
from app.ui.state.engine.engine_session import BUSY, Activity, EngineSession
from app.ui.state.settings_in_use import SettingsInUse
from app.ui.transcript import TranscriptView
from app.ui.widgets.notice import WayOut
from app.ui.widgets.words.model_words import file_name

PUT_BACK = "Put back"


class TryController(QObject):
    """Connects the panel beside the prompt box, the empty chat, which offers the first prompts, and the
    settings.

    The remark depends only on the last message on the screen and on the settings: it also appears for a
    prompt that was typed, or in a chat that was opened again, and disappears with the chat.
    """

    def __init__(
        self,
        box: PromptBox,
        transcript: TranscriptView,
        chat: ChatController,
        session: EngineSession,
        prompts: Sequence[DemoPrompt],
        settings: SettingsInUse,
        apply: Callable[[Preset], None],
    ) -> None:
        """`apply` puts a preset into use, or raises UserError."""
        super().__init__(box)
        self._box = box
        self._chat = chat
        self._session = session
        self._prompts = {demo.title: demo for demo in prompts}
        self._settings = settings
        self._apply = apply
        self._before: Preset | None = None  # what was in use before a prompt changed it
        self._set: Preset | None = None  # what that prompt put into use
        self._dismissed = ""
        box.try_panel.set_prompts(prompts)
        box.try_panel.chosen.connect(lambda title: self._choose(title, box.try_panel.notice.tell))
        transcript.suggestion_chosen.connect(lambda title: self._choose(title, box.notices.tell))
        box.remark.dismissed.connect(self._dismiss)
        chat.shown.answer_shown.connect(self.refresh)
        offered = {title: demo.prompt for title, demo in self._prompts.items()}
        box.set_try_offered(bool(offered))
        box.set_suggestion(next(iter(offered.values()), ""))
        transcript.set_suggestions(offered)
        chat.shown.say_empty()
        self.refresh()

    def open(self) -> None:
        """Open the menu; without the bundled pair's file there is none."""
        if self._prompts:
            self._box.open_try_panel()

    # ------------------------------------------------------------------ choosing

    def _choose(self, title: str, tell: Callable[[str, str], None]) -> None:
        """Ask a prompt in a new chat, with its own settings; `tell` says why not."""
        demo = self._prompts[title]
        self._box.try_panel.notice.clear()
        if self._session.activity in BUSY or self._session.activity is Activity.LENT:
            tell("The engine is at work.", "Stop it, or wait until it is done.")
            return
        settings = self._settings.now
        before = Preset.of("", settings)
        try:
            self._apply(self._wanted(demo, settings))
        except UserError as error:
            tell(error.message, error.hint)
            return
        if self._set is None or not self._set.in_use(settings):
            self._before = before  # and not the settings of the demo prompt before
        self._set = Preset.of(demo.title, self._settings.now)
        self._dismissed = ""
        self._box.try_this.close_panel()
        pair = self._session.pair
        speaks = pair is None or pair.target.has_chat_template
        self._chat.ask_in_new_chat(demo.prompt, demo.mode if speaks else "completion")
        self._box.setFocus(Qt.FocusReason.OtherFocusReason)
        self.refresh()

    def _wanted(self, demo: DemoPrompt, settings: Settings) -> Preset:
        """The settings in use, with those that the prompt names replaced: the drafts that it names belong to
        the bundled target."""
        draft, strategy = settings.draft, str(demo.spec)
        if demo.spec.needs_draft and _is_bundled(settings):
            if draft is None or draft.path != demo.draft_path:
                draft = ModelOptions(demo.draft_path)
        elif draft is None:
            strategy = undrafted(strategy)
        return dataclasses.replace(
            Preset.of(demo.title, settings),
            strategy=strategy,
            sampling=demo.sampling(settings.sampling),
            draft=draft,
        )

    @Slot()
    def _put_back(self) -> None:
        """Restore the settings from before the prompt, from the next answer on."""
        if self._before is None:
            return
        try:
            self._apply(self._before)
        except UserError as error:
            self._box.notices.tell(error)
            return
        self._before = self._set = None
        self.refresh()

    # ------------------------------------------------------------------ showing

    @Slot()
    def _dismiss(self) -> None:
        self._dismissed = self._chat.question

    def _asked(self) -> DemoPrompt | None:
        """The prompt that the chat on the screen asks. Where two ask the same, the one whose settings are in
        use, or else the first."""
        asked = [
            demo
            for demo in self._prompts.values()
            if (demo.prompt, demo.mode) == (self._chat.question, self._chat.shown.chat.head.mode)
        ]
        settings = self._settings.now
        in_use = (demo for demo in asked if self._wanted(demo, settings).in_use(settings))
        return next(in_use, asked[0] if asked else None)

    @Slot()
    def refresh(self) -> None:
        """Update the remark after the chat or the settings changed."""
        box, settings = self._box, self._settings.now
        demo = self._asked()
        box.try_panel.set_current(demo.title if demo is not None else "")
        if demo is None or demo.prompt == self._dismissed:
            box.remark.clear()
            return
        hint, offers = "", list[WayOut]()
        if (
            self._before is not None
            and self._set is not None
            and self._set == Preset.of(demo.title, settings)
        ):
            hint = change_words(self._before, self._set)
            offers = [WayOut(PUT_BACK, self._put_back)] if hint else []
        elif _is_bundled(settings) and not (wanted := self._wanted(demo, settings)).in_use(settings):
            draft = f", with the draft {_file(wanted.draft)}" if wanted.draft != settings.draft else ""
            hint = f"Made for {manner_words(demo)}{draft}. Choose it in “Try this” to use these settings."
        if _is_bundled(settings):
            box.remark.tell(f"What to look for: {demo.look}", hint, *offers)
        elif hint:  # what to look for is known of the bundled pair only
            box.remark.tell(hint, "", *offers)
        else:
            box.remark.clear()


def _is_bundled(settings: Settings) -> bool:
    """Whether the target is the one that the prompts were made for."""
    return settings.target.path == BUNDLED_TARGET


def change_words(before: Preset, after: Preset) -> str:
    """What a prompt changed: "Set for it: strategy none (was suffix)."; "" where nothing did."""
    pairs = {
        "strategy": (before.strategy, after.strategy),
        "sampling": (chip_words(before.sampling)[0], chip_words(after.sampling)[0]),
        "seed": (_seed(before.sampling), _seed(after.sampling)),
        "draft": (_file(before.draft), _file(after.draft)),
    }
    changed = [f"{name} {new} (was {old})" for name, (old, new) in pairs.items() if old != new]
    return f"Set for it: {', '.join(changed)}." if changed else ""


def _seed(sampling: Sampling) -> str:
    return "new each time" if sampling.seed < 0 else str(sampling.seed)


def _file(options: ModelOptions | None) -> str:
    return file_name(options.path) if options is not None else "none"
