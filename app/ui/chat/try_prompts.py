"""The demo prompts: each has its own settings, and shows a different trait of its model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QWidget

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET
from app.demo import TARGETS, DemoPrompt
from app.engine.errors import UserError
from app.engine.strategy import undrafted
from app.engine.types import ModelOptions, Sampling
from app.saved.presets import Preset
from app.saved.settings import Settings
from app.ui.setup.sampling_panel import chip_words
from app.ui.state.engine_session import BUSY, Activity, EngineState
from app.ui.theme import Theme
from app.ui.widgets import kit
from app.ui.widgets.buttons import TwoLineButton
from app.ui.widgets.keys import Grid, GridKeys
from app.ui.widgets.labels import as_text
from app.ui.widgets.notice import Notice, WayOut
from app.ui.widgets.segmented import Segmented
from app.ui.widgets.words import file_name, unread_name

if TYPE_CHECKING:
    from app.ui.chat.chat_controller import ChatController

WIDTH = 720  # of the panel's popover
_TWO_COLUMNS = 560  # at text scale 1


def manner_words(demo: DemoPrompt) -> str:
    """A prompt's settings: "draft-simple:n_max=4 · greedy"."""
    words = [str(demo.spec), *filter(None, chip_words(demo.sampling(Sampling())))]
    if demo.spec.needs_draft and demo.target != BUNDLED_TARGET:
        words.append("draft of the small pair")
    elif demo.spec.needs_draft and demo.draft_path != BUNDLED_DRAFT:
        words.append(demo.draft.removesuffix(".gguf"))
    if demo.mode == "completion":
        words.append("completion")
    return " · ".join(words)


def name_in_text(name: str) -> str:
    """A model's name within a sentence: SmolLM2, the small pair."""
    return name if name[0].isupper() else f"the {name}"


class TryPanel(QWidget):
    """Shows the prompts and emits a signal for the chosen one."""

    chosen = Signal(str)
    """The title of the prompt."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.rows: dict[str, TwoLineButton] = {}  # by title
        self._keys = GridKeys(self, self._rows_shown)
        self._targets: dict[str, str] = {}  # title of a prompt -> the path of its target
        self._loaded = ""  # the path of the target in use
        self.model = Segmented(theme, "Prompts for", tuple(TARGETS.values()))
        self.model.picked.connect(self._show_group)
        self._help = kit.label("", "caption", wrap=True)
        self.notice = Notice(theme)
        self._grid = kit.grid((2, 2))
        self._holder = kit.holder(self._grid)
        head = kit.row((kit.label("Try this", "title"), 1), self.model)
        kit.column(head, self._help, self.notice, self._holder, spacing=8, on=self)

    def set_prompts(self, prompts: Sequence[DemoPrompt]) -> None:
        """The prompts to choose from; called once."""
        for demo in prompts:
            row = TwoLineButton(self._theme, demo.title, manner_words(demo))
            row.setParent(self._holder)
            row.setToolTip(as_text(f"Ask:\n{demo.prompt}"))
            row.clicked.connect(lambda _checked=False, title=demo.title: self.chosen.emit(title))
            self._keys.watch(row)
            self.rows[demo.title] = row
            self._targets[demo.title] = demo.target
        self.model.setVisible(len(set(self._targets.values())) > 1)

    def set_loaded(self, target: str) -> None:
        """Show the prompts for the target in use; if it has none, those of the first target."""
        if target != self._loaded:
            self._loaded = target
            known = [path for path in TARGETS if path in self._targets.values()]
            if known:
                self.model.set_choice(TARGETS[target if target in known else known[0]])
        self._show_group()

    def _show_group(self) -> None:
        name = self.model.choice()
        self._help.setText(
            "Each demo opens a new chat with its own settings and says what to look for. Your settings "
            "return when you leave that chat."
            if TARGETS.get(self._loaded) == name
            else f"Written for {name_in_text(name)}, which loads when you choose a demo. Your models and "
            "settings return when you leave that chat."
        )
        self._lay_out()

    def set_current(self, title: str) -> None:
        """Mark the prompt that the chat on the screen asks; "" for none."""
        for key, row in self.rows.items():
            row.set_current(key == title)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._lay_out()

    def _rows_shown(self) -> Grid:
        """The visible rows, beside each other if there is room, ordered row by row."""
        columns = 2 if self.width() >= round(_TWO_COLUMNS * self._theme.scale) else 1
        shown = self.model.choice()
        rows = [row for title, row in self.rows.items() if TARGETS[self._targets[title]] == shown]
        return [rows[at : at + columns] for at in range(0, len(rows), columns)]

    def _lay_out(self) -> None:
        grid = self._rows_shown()
        shown = [button for line in grid for button in line]
        for row in self.rows.values():
            self._grid.removeWidget(row)
            row.setVisible(row in shown)
        for column in range(2):
            self._grid.setColumnStretch(column, int(column < max(map(len, grid), default=0)))
        for y, line in enumerate(grid):
            for x, button in enumerate(line):
                self._grid.addWidget(button, y, x)


GIVE_BACK = "Restore my settings"
_TOKENS = 256  # none of their answers is longer


class TryController(QObject):
    """Connects the panel beside the prompt box, the empty chat, which offers the first prompts, and the
    settings.

    A prompt's settings are temporary: they are undone when its chat is left, and are not saved. The notice
    depends only on the settings and the last message on the screen. So it also appears for a prompt that was
    typed, or in a chat that was reopened, and disappears with the chat."""

    def __init__(
        self,
        chat: ChatController,
        prompts: Sequence[DemoPrompt],
        apply: Callable[[Preset], None],
        load: Callable[[], None],
    ) -> None:
        """`apply` puts a preset into use, or raises UserError; `load` loads the models that the settings
        name."""
        self._box, self._transcript = box, transcript = chat.page.prompt, chat.page.transcript
        super().__init__(box)
        self._chat, self._session, self._settings = chat, chat.session, chat.settings
        self._prompts = {demo.title: demo for demo in prompts}
        self._apply = apply
        self._load = load
        self._lent_to = ""  # the id of the chat that has a prompt's settings
        self._dismissed = ""
        self._offered: dict[str, str] = {}  # title -> prompt, in the empty chat
        box.try_panel.set_prompts(prompts)
        box.try_panel.chosen.connect(lambda title: self._choose(title, box.try_panel.notice.tell))
        transcript.suggestion_chosen.connect(lambda title: self._choose(title, box.notices.tell, stay=True))
        box.remark.dismissed.connect(self._dismiss)
        box.set_try_offered(bool(prompts))
        chat.shown.answer_shown.connect(self.refresh)
        chat.shown.chat_changed.connect(self._leave)
        self._session.changed.connect(self._engine_changed)
        self.refresh()

    def open(self) -> None:
        """Open the menu; without any model's prompts there is none."""
        if self._prompts:
            self._box.try_this.click()

    # ------------------------------------------------------------------ choosing

    def _choose(self, title: str, tell: Callable[[str, str], None], stay: bool = False) -> None:
        """Ask a prompt in a new chat, with its own settings and its own target, or with the present target if
        `stay`; `tell` says why that fails."""
        demo = self._prompts[title]
        self._box.try_panel.notice.clear()
        if self._session.activity in BUSY or self._session.activity is Activity.LENT:
            tell("The engine is busy.", "Stop the answer, or wait until it ends.")
            return
        own = self._settings.own
        if not (stay and own.server):  # a server drafts by its own settings
            try:
                self._apply(_wanted(demo, own, stay))
            except UserError as error:
                tell(error.message, error.hint)
                return
            self._settings.lend(own)
        self._dismissed = self._lent_to = ""
        self._box.try_this.popover.close_panel()
        pair = self._session.pair
        speaks = pair is None or pair.target.has_chat_template
        self._chat.ask_in_new_chat(demo.prompt, demo.mode if speaks else "completion")
        self._lent_to = self._chat.shown.chat.id
        self._box.setFocus(Qt.FocusReason.OtherFocusReason)
        self.refresh()

    def _leave(self) -> None:
        """Restore the user's settings, once the chat of a prompt is left and the engine can load models."""
        if self._lent_to and self._chat.shown.chat.id != self._lent_to:
            self._give_back()

    def _engine_changed(self, now: EngineState, before: EngineState) -> None:
        """If a prompt's models could not be loaded, drop its strategy and sampling too."""
        if self._lent_to and now.failed is not None and now.failed is not before.failed:
            self._give_back()
        self._leave()

    def _give_back(self) -> None:
        """Use the user's settings again, from the next answer."""
        before, now = self._settings.before, self._settings.now
        loads = any(before.get(name, now_value) != now_value for name, now_value in _pair(now).items())
        if loads and (self._session.activity in BUSY or self._session.activity is Activity.LENT):
            if self._chat.shown.chat.id == self._lent_to:
                self._box.notices.tell("The engine is busy.", "Stop the answer, or wait until it ends.")
            return
        self._lent_to = ""
        self._settings.change(**before)
        if loads:
            self._load()
        self.refresh()

    # ------------------------------------------------------------------ showing

    def _dismiss(self) -> None:
        self._dismissed = self._chat.question

    def _asked(self) -> DemoPrompt | None:
        """The prompt of the shown chat. If several have the same text, the one whose settings are in use,
        else one for the target in use."""
        settings = self._settings.now
        mode = self._chat.shown.chat.head.mode
        asked = [
            demo for demo in self._prompts.values() if (demo.prompt, demo.mode) == (self._chat.question, mode)
        ]
        asked.sort(
            key=lambda demo: (not _wanted(demo, settings).in_use(settings), not _is_for(demo, settings))
        )
        return asked[0] if asked else None

    def refresh(self) -> None:
        """Update the offered prompts and the remark after a change of chat or settings."""
        box, settings = self._box, self._settings.now
        self._offer(settings.target.path)
        demo = self._asked()
        box.try_panel.set_current(demo.title if demo is not None else "")
        if demo is None or demo.prompt == self._dismissed:
            box.remark.clear()
            return
        hint, offers = "", list[WayOut]()
        if self._lent_to == self._chat.shown.chat.id:
            hint = change_words(self._settings.own, settings)
            offers = [WayOut(GIVE_BACK, self._give_back)] if hint else []
        if _is_for(demo, settings):
            if not hint and not (wanted := _wanted(demo, settings)).in_use(settings):
                draft = f", with the draft {_file(wanted.draft)}" if wanted.draft != settings.draft else ""
                hint = f"Made for {manner_words(demo)}{draft}. Choose it in “Try this” to use these settings."
            box.remark.tell(f"What to look for: {demo.look}", hint, *offers)
        else:
            name = name_in_text(TARGETS[demo.target])
            ask = WayOut(f"Ask {name}", lambda: self._choose(demo.title, box.notices.tell))
            box.remark.tell(f"This prompt was written for {name}.", hint, ask, *offers)

    def _offer(self, target: str) -> None:
        """Offer the prompts of the target in use, or if it has none, the first model's."""
        self._box.try_panel.set_loaded(target)
        prompts = self._prompts.values()
        targets = {demo.target for demo in prompts}
        best = next((path for path in (target, *TARGETS) if path in targets), "")
        offered = {demo.title: demo.prompt for demo in prompts if demo.target == best}
        if offered != self._offered:
            self._offered = offered
            self._box.set_suggestion(next(iter(offered.values()), ""))
            self._transcript.set_suggestions(offered)
            self._chat.shown.say_empty()


def _wanted(demo: DemoPrompt, settings: Settings, stay: bool = False) -> Preset:
    """A prompt's settings; its draft belongs to its target."""
    target, draft, strategy = settings.target, settings.draft, str(demo.spec)
    if target.path != demo.target and not stay:
        target, draft = ModelOptions(demo.target), None
    if demo.spec.needs_draft and target.path == demo.target:
        if draft is None or draft.path != demo.draft_path:
            draft = ModelOptions(demo.draft_path)
    elif draft is None:
        strategy = undrafted(strategy)
    sampling, tokens = demo.sampling(settings.sampling), max(settings.max_tokens, _TOKENS)
    return Preset(demo.title, target, draft, strategy, sampling, tokens)


def _is_for(demo: DemoPrompt, settings: Settings) -> bool:
    """Whether the target in use is the one that the prompt was written for."""
    return settings.target.path == demo.target and not settings.server


def _pair(settings: Settings) -> dict[str, object]:
    return {"target": settings.target, "draft": settings.draft, "server": settings.server}


def change_words(own: Settings, lent: Settings) -> str:
    """What a prompt changed: "Changed for this demo: strategy none (before: suffix)."; "" if nothing."""
    before, now = _said(own), _said(lent)
    changed = [f"{name} {now[name]} (before: {before[name]})" for name in now if now[name] != before[name]]
    return f"Changed for this demo: {', '.join(changed)}." if changed else ""


def _said(settings: Settings) -> dict[str, str]:
    return {
        "target": settings.server or TARGETS.get(settings.target.path, unread_name(settings.target.path)),
        "draft": _file(settings.draft),
        "strategy": settings.strategy,
        "sampling": " · ".join(filter(None, chip_words(dataclasses.replace(settings.sampling, seed=-1)))),
        "seed": _seed(settings.sampling),
        "limit": f"{settings.max_tokens:,} tokens",
        "stop": ", ".join(settings.stop) or "none",
    }


def _seed(sampling: Sampling) -> str:
    return "random" if sampling.seed < 0 else str(sampling.seed)


def _file(options: ModelOptions | None) -> str:
    return file_name(options.path) if options is not None else "none"
