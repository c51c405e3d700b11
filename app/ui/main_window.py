"""The window: rail, header, places, status bar; and what settings and engine say to each of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from PySide6.QtCore import QByteArray, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QMainWindow, QStackedWidget, QVBoxLayout, QWidget

from app.chats.store import ChatStore
from app.demo import DemoPrompt
from app.engine.errors import SettingError, UserError
from app.engine.strategy import StrategySpec
from app.engine.trace import Trace
from app.engine.tried_drafters import TriedDrafters
from app.engine.types import ModelOptions, Totals
from app.lab.experiment import Pair
from app.paths import BUNDLED, Paths
from app.presets import Preset, PresetStore
from app.settings import Settings, SettingsStore
from app.ui.baseline_controller import BaselineController
from app.ui.chat_controller import ChatController, heads_found
from app.ui.chat_page import ChatPage
from app.ui.compare.door import ChatSide, CompareDoor, MakeCompare
from app.ui.drafter_files import ask_for_drafter
from app.ui.engine_session import BUSY, Activity, EngineSession
from app.ui.header import Header
from app.ui.models.door import MakeModels, ModelsDoor
from app.ui.pair_controller import PairController, file_words
from app.ui.panels.model_panel import FileChooser, ask_for_model
from app.ui.panels.model_words import chip_words as model_words
from app.ui.panels.model_words import fit_words
from app.ui.panels.sampling_panel import AnswerOptions
from app.ui.panels.sampling_panel import chip_words as sampling_words
from app.ui.panels.strategy_panel import Surroundings, check_together
from app.ui.presets_controller import PresetsController
from app.ui.rail import Rail
from app.ui.settings_page import SCALES, SettingsPage
from app.ui.status_bar import StatusBar
from app.ui.theme import Theme
from app.ui.try_controller import TryController

SAVE_DELAY = 500  # milliseconds: a slider that moves is saved once
SMALLEST = (760, 480)


class MainWindow(QMainWindow):
    """The one window."""

    shown_first = Signal()  # it is on the screen: loading may begin

    def __init__(
        self,
        theme: Theme,
        paths: Paths,
        settings: Settings,
        settings_store: SettingsStore,
        chat_store: ChatStore,
        session: EngineSession,
        engine_words: str,
        prompts: tuple[DemoPrompt, ...],
        make_models: MakeModels,
        make_compare: MakeCompare,
        drafters: TriedDrafters,
        choose_file: FileChooser = ask_for_model,
        choose_drafter: FileChooser = ask_for_drafter,
    ) -> None:
        """`engine_words` says where the engine lives; `prompts` are those the bundled pair answers well;
        `make_models` and `make_compare` make these places when they are first opened."""
        super().__init__()
        self.setWindowTitle("Draftscope")
        self.setMinimumSize(*SMALLEST)
        self._theme = theme
        self._paths = paths
        self._settings = settings
        self._settings_store = settings_store
        self._session = session
        self._chat_store = chat_store
        self._drafters = drafters
        self._save_timer = QTimer(self)
        self._save_timer.setSingleShot(True)
        self._save_timer.setInterval(SAVE_DELAY)
        self._save_timer.timeout.connect(self.save)

        self.rail = Rail(theme)
        self.header = Header(theme, choose_file)
        self.page = ChatPage(theme, lambda words: heads_found(chat_store, words))
        self.settings_page = SettingsPage(theme, paths, engine_words, choose_drafter)
        self.models = ModelsDoor(
            lambda: make_models(self._use_models, self._models_in_use, self._settings.offline)
        )
        self.compare = CompareDoor(lambda: make_compare(self._chat_side()))
        self.status = StatusBar(theme)
        self._places = QStackedWidget()
        self._build()
        self.controller = ChatController(self.page, chat_store, session, settings)
        self.baseline = BaselineController(self.page, self.status, self.controller, session)
        self.pair = PairController(
            self.header,
            self.status,
            self.page.prompt,
            session,
            self._real,
            lambda: self._settings,
            self._change,
        )
        self._prompts = tuple(one.prompt for one in prompts)
        self.page.prompt.set_suggestion(self._prompts[0] if prompts else "")
        self.page.transcript.set_suggestions(self._prompts)
        self.trying = TryController(
            self.page.prompt, self.controller, session, prompts, lambda: self._settings, self._apply_preset
        )
        store = PresetStore(paths.presets)
        self.presets = PresetsController(
            self.header.presets_panel, store, lambda: self._settings, self._apply_preset
        )
        self._connect()
        self._add_shortcuts()
        self._show_settings()
        self._show_activity()
        self._first = True
        self.controller.open_last(settings.last_chat)

    def _build(self) -> None:
        chat = QWidget()
        column = QVBoxLayout(chat)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.header)
        column.addWidget(self.page, 1)
        self._by_name = {
            "chat": chat,
            "compare": self.compare,
            "models": self.models,
            "settings": self.settings_page,
        }
        for place in self._by_name.values():
            self._places.addWidget(place)
        middle = QHBoxLayout()
        middle.setSpacing(0)
        middle.addWidget(self.rail)
        middle.addWidget(self._places, 1)
        root = QWidget()
        layout = QVBoxLayout(root)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addLayout(middle, 1)
        layout.addWidget(self.status)
        self.setCentralWidget(root)
        self.go("chat")

    def _connect(self) -> None:
        session, header, page, status = self._session, self.header, self.page, self.status
        session.activity_changed.connect(self._show_activity)
        session.load_failed.connect(self._show_activity)
        session.prompt_progress.connect(self._prompt_progress)
        self.pair.changed.connect(self._show_chips)
        self.baseline.ended.connect(self._show_activity)
        self._connect_strategies()
        header.sampling_panel.options_changed.connect(self._sampling_changed)
        self.presets.applied.connect(header.presets.close_panel)
        header.stop.clicked.connect(self._stop)
        header.regenerate.clicked.connect(self.controller.regenerate)
        header.clear.clicked.connect(self.controller.clear)
        header.sidebar.clicked.connect(page.toggle_sidebar)
        header.instruments.clicked.connect(page.toggle_instruments)
        page.chats.fold_requested.connect(page.toggle_sidebar)
        page.sidebar_wanted.connect(lambda wanted: self._change(sidebar_shown=wanted))
        page.instruments_wanted.connect(lambda wanted: self._change(instruments_shown=wanted))
        page.panels_changed.connect(self._show_folded)
        page.instruments.fold_requested.connect(page.toggle_instruments)
        page.instruments.statistics_changed.connect(status.set_statistics)
        page.legend.drafts_shown_changed.connect(self._drafts_shown_changed)
        page.legend.rendered_changed.connect(self._rendered_changed)
        page.prompt.mode_changed.connect(lambda mode: self._change(mode=mode))
        page.splitter.splitterMoved.connect(self._save_timer.start)
        self.rail.place_chosen.connect(self.go)
        self.controller.answer_shown.connect(self._answer_shown)
        self.controller.context_used.connect(self._context_used)
        self.controller.prompt_measured.connect(self._prompt_measured)
        self.controller.chat_changed.connect(lambda chat_id: self._change(last_chat=chat_id))
        self.settings_page.theme_mode_changed.connect(self._theme_mode_changed)
        self.settings_page.text_scale_changed.connect(self._scale_changed)
        self.settings_page.empty_trash_requested.connect(self._empty_trash)
        self.settings_page.drafters.files_changed.connect(self._drafters_changed)
        self.settings_page.network.offline_changed.connect(self.models.set_offline)
        self.settings_page.network.token_removed.connect(self.models.look_for_token)
        self.models.offline_changed.connect(self._offline_changed)

    def _connect_strategies(self) -> None:
        self.header.strategy_panel.spec_changed.connect(self._spec_changed)

    def _add_shortcuts(self) -> None:
        keys: dict[str, Callable[[], object]] = {
            "Ctrl+N": self.controller.new_chat,
            "Ctrl+F": self.page.transcript.open_find,
            "Ctrl+R": self.controller.regenerate,
            "Ctrl+B": self.page.toggle_sidebar,
            "Ctrl+I": self.page.toggle_instruments,
            "Ctrl+L": self.page.prompt.setFocus,
            "Ctrl+T": self._try_this,
            "Ctrl+K": lambda: self.go("compare"),
            "Ctrl+M": lambda: self.go("models"),
            "Ctrl+,": lambda: self.go("settings"),
            "Ctrl++": lambda: self._scale_by(0.1),
            "Ctrl+=": lambda: self._scale_by(0.1),
            "Ctrl+-": lambda: self._scale_by(-0.1),
            "Ctrl+0": lambda: self._scale_changed(1.0),
            "Ctrl+Q": self.close,
        }
        for sequence, action in keys.items():
            QShortcut(QKeySequence(sequence), self).activated.connect(action)

    # ------------------------------------------------------------------ settings

    @Slot(bool)
    def _offline_changed(self, offline: bool) -> None:
        self._change(offline=offline)
        self.settings_page.network.set_offline(offline)

    def _change(self, **changes: object) -> None:
        """Take over changed settings; they are saved a moment later."""
        self._settings = dataclasses.replace(self._settings, **changes)  # type: ignore[arg-type]
        self.controller.settings = self._settings
        self._save_timer.start()

    @Slot()
    def save(self) -> None:
        """Write the settings down."""
        self._save_timer.stop()
        self._settings = dataclasses.replace(
            self._settings,
            geometry=_written(self.saveGeometry()),
            splitters={**self._settings.splitters, "chat": _written(self.page.splitter.saveState())},
        )
        self.controller.settings = self._settings
        try:
            self._settings_store.save(self._settings)
        except UserError as error:
            self.page.prompt.show_error(error.message, error.hint)

    def _show_settings(self) -> None:
        settings, header = self._settings, self.header
        self.restoreGeometry(_read(settings.geometry))
        state = settings.splitters.get("chat", "")
        if state:
            self.page.splitter.restoreState(_read(state))
        self.page.set_sidebar(settings.sidebar_shown)
        self.page.set_instruments(settings.instruments_shown)
        self.page.legend.drafts_shown.setChecked(settings.drafts_shown)
        self.page.legend.rendered.setChecked(settings.rendered)
        for panel, options in ((header.target_panel, settings.target), (header.draft_panel, settings.draft)):
            panel.set_options(options)
            panel.set_recent(settings.recent_models)
        self._use_drafters(settings.drafters)
        self.settings_page.network.set_offline(settings.offline)
        self._show_manner()
        self._show_chips()

    def _show_manner(self) -> None:
        """Show in their panels how answers are made."""
        settings, header = self._settings, self.header
        header.strategy_panel.set_spec(settings.strategy)
        header.sampling_panel.set_options(
            AnswerOptions(settings.sampling, settings.max_tokens, settings.stop)
        )

    def _show_chips(self) -> None:
        settings, header, pair = self._settings, self.header, self._session.pair
        target = pair.target if pair else None
        draft = pair.draft if pair else None
        if target is not None:
            header.target.set_text(*model_words(target))
        else:
            header.target.set_text(file_words(settings.target))
        if settings.draft is None:
            header.draft.set_text("none")
        elif draft is not None and pair is not None:
            header.draft.set_text(model_words(draft)[0], fit_words(pair.vocabulary), pair.vocabulary)
        else:
            header.draft.set_text(file_words(settings.draft))
        header.strategy.set_text(settings.strategy)
        header.sampling.set_text(*sampling_words(settings.sampling))
        around = Surroundings(
            self._real(settings.target),
            self._real(settings.draft) if settings.draft is not None else None,
            settings.sampling,
            settings.max_tokens,
            pair.vocabulary if pair else "",
        )
        header.strategy_panel.set_surroundings(around)
        header.strategy.set_alert(not self._strategy_works(around))
        self.presets.mark()
        self.trying.refresh()

    def _strategy_works(self, around: Surroundings) -> bool:
        try:
            check_together(StrategySpec.parse(self._settings.strategy), around)
        except SettingError:
            return False
        return True

    @Slot(str)
    def _spec_changed(self, spec: str) -> None:
        self._change(strategy=spec)
        self._show_chips()

    def _apply_preset(self, preset: Preset) -> None:
        """Put a preset into use; a pair that is loaded already stays. Raises UserError."""
        pair = (preset.target, preset.draft)
        is_other = pair != (self._settings.target, self._settings.draft)
        if is_other and self._session.activity in BUSY:
            raise UserError("The engine is still at work.", "Stop the answer first.")
        self._change(strategy=preset.strategy, sampling=preset.sampling)
        self._change(max_tokens=preset.max_tokens, stop=preset.stop)
        self._show_manner()
        if is_other or self._session.activity is Activity.EMPTY:
            self.pair.load(*pair)
        self._show_chips()

    @Slot(object)
    def _sampling_changed(self, options: AnswerOptions) -> None:
        self._change(sampling=options.sampling, max_tokens=options.max_tokens, stop=options.stop)
        self._show_chips()

    @Slot(bool)
    def _drafts_shown_changed(self, shown: bool) -> None:
        self.page.transcript.set_drafts_shown(shown)
        self._change(drafts_shown=shown)

    @Slot(bool)
    def _rendered_changed(self, rendered: bool) -> None:
        self.page.transcript.set_rendered(rendered)
        self._change(rendered=rendered)

    @Slot()
    def _show_folded(self) -> None:
        self.header.set_folded(self.page.chats.isHidden(), self.page.instruments.isHidden())

    @Slot(str)
    def _theme_mode_changed(self, mode: str) -> None:
        self._theme.set_mode(mode)
        self._change(theme=mode)

    @Slot(float)
    def _scale_changed(self, scale: float) -> None:
        self._theme.set_scale(scale)
        self._change(text_scale=scale)

    def _scale_by(self, step: float) -> None:
        low, high = SCALES
        self._scale_changed(min(high, max(low, round(self._theme.scale + step, 1))))

    @Slot(object)
    def _drafters_changed(self, files: tuple[str, ...]) -> None:
        """Use exactly these drafter files; what they bring is offered at once."""
        shown = self.settings_page.drafters
        if self._session.activity in BUSY:
            shown.show_error("The engine is still at work.", "Stop the answer first.")
            return
        if files == self._settings.drafters:  # nothing added or removed: to be tried again
            self._drafters.forget()
        self._use_drafters(files)
        self._change(drafters=files)
        self.header.renew_strategy_panel()
        self._connect_strategies()
        before = self._settings.strategy
        try:
            StrategySpec.parse(before)
        except SettingError:
            self._change(strategy=Settings().strategy)
            shown.show_error(f"{before} was in use.", f"The strategy is {self._settings.strategy} now.")
        self._show_manner()
        self._show_chips()

    def _use_drafters(self, files: tuple[str, ...]) -> None:
        problems = self._drafters.use(files)
        self.settings_page.drafters.set_files(files, problems)
        self._session.drafters = tuple(file for file in files if file not in problems)

    @Slot()
    def _empty_trash(self) -> None:
        try:
            self._chat_store.empty_trash()
        except UserError as error:
            self.page.prompt.show_error(error.message, error.hint)
        self.page.chats.hide_deleted()

    def load_pair(self) -> None:
        """Load the pair that the settings name."""
        self.pair.load(self._settings.target, self._settings.draft)

    def _use_models(self, target: str | None, draft: str | None) -> None:
        """Load models that were chosen elsewhere; None keeps what is in use, "" takes the draft away.

        Raises UserError.
        """
        if self._session.activity in BUSY:
            raise UserError("The engine is still at work.", "Stop the answer first.")
        settings = self._settings
        self.pair.load(
            settings.target if target is None else ModelOptions(target),
            settings.draft if draft is None else ModelOptions(draft) if draft else None,
        )
        self._show_chips()
        self.go("chat")
        self.page.prompt.setFocus(Qt.FocusReason.OtherFocusReason)

    def _chat_side(self) -> ChatSide:
        """What Compare may take and give."""
        return ChatSide(
            engine=self._session,
            pair=self._pair_in_use,
            is_bundled=lambda: self._settings.target.path.startswith(BUNDLED),
            drafters=lambda: self._session.drafters,
            use_strategy=self._use_strategy,
            go=self.go,
        )

    def _pair_in_use(self) -> Pair:
        target, draft = self._settings.target, self._settings.draft
        return Pair(self._real(target), self._real(draft) if draft is not None else None)

    def _use_strategy(self, spec: str) -> None:
        """Answer with a strategy that was found elsewhere."""
        self.header.strategy_panel.set_spec(spec)
        self._spec_changed(spec)
        self.go("chat")

    def _models_in_use(self) -> tuple[str, str]:
        target, draft = self._settings.target, self._settings.draft
        return self._real(target).path, self._real(draft).path if draft is not None else ""

    def _real(self, options: ModelOptions) -> ModelOptions:
        return dataclasses.replace(options, path=self._paths.model(options.path))

    # ------------------------------------------------------------------ what the engine is doing

    @Slot(str, int, int)
    def _prompt_progress(self, _model: str, done: int, total: int) -> None:
        share = 100 * done // total if total else 0
        self.status.set_state(f"Reading prompt {share} %", busy=True)

    @Slot()
    def _show_activity(self) -> None:
        # Whoever was told before may have set the engine to work: what holds is what it does now.
        activity = self._session.activity
        words = {
            Activity.EMPTY: "No model loaded",
            Activity.LOADING: "Loading",
            Activity.READY: "Ready",
            Activity.READING: "Reading prompt",
            Activity.GENERATING: "Generating",
            Activity.STOPPING: "Stopping",
            Activity.LENT: "Measuring in Compare",
        }
        shown = (
            "Measuring" if self.baseline.is_measuring and activity is Activity.GENERATING else words[activity]
        )
        self.status.set_state(shown, busy=activity in (*BUSY, Activity.LOADING, Activity.LENT))
        for button in (self.header.stop, self.header.regenerate, self.status.measure):
            if button.hasFocus():  # it may be gone or unusable now, and Qt would go on to just anything
                self.page.prompt.setFocus(Qt.FocusReason.OtherFocusReason)
        self.header.set_busy(activity in BUSY)
        self.header.stop.setEnabled(activity is not Activity.STOPPING)
        self.header.regenerate.setEnabled(self.controller.can_regenerate)

    # ------------------------------------------------------------------ answers and their numbers

    @Slot()
    def _stop(self) -> None:
        self.controller.stop()

    @Slot()
    def _answer_shown(self) -> None:
        self.header.regenerate.setEnabled(self.controller.can_regenerate)

    @Slot(int)
    def _context_used(self, used: int) -> None:
        pair = self._session.pair
        self.status.set_context(used, pair.target.n_ctx if pair else None)

    @Slot(object)
    def _prompt_measured(self, totals: Totals) -> None:
        trace = self.controller.trace
        if trace is None:
            return
        read = trace.header.prompt_tokens - 1 - trace.header.cached_tokens
        speed = read / totals.prompt_seconds if read > 0 and totals.prompt_seconds > 0 else None
        self.status.set_prompt_speed(speed, totals.first_token_seconds)

    # ------------------------------------------------------------------ places, start and end

    @Slot(str)
    def go(self, place: str) -> None:
        """Show a place."""
        self._places.setCurrentWidget(self._by_name[place])
        self.rail.set_place(place)

    def show_trace(self, trace: Trace) -> None:
        """Show a recorded trace instead of a chat."""
        self.controller.show_trace(trace)

    def start_demo(self) -> None:
        """Send the first demo prompt; it waits for the models where they are still loading."""
        if self._prompts:
            self.controller.ask_in_new_chat(self._prompts[0])

    def _try_this(self) -> None:
        self.go("chat")
        self.trying.open()

    def show_notices(self, notices: tuple[str, ...]) -> None:
        """Tell what could not be taken over at the start."""
        if notices:
            self.page.prompt.show_error(" ".join(notices))

    def showEvent(self, event: object) -> None:
        super().showEvent(event)  # type: ignore[arg-type]
        if self._first:
            self._first = False
            self.page.prompt.setFocus(Qt.FocusReason.OtherFocusReason)
            # The window is painted before anything is loaded.
            QTimer.singleShot(0, self, self.shown_first.emit)

    def closeEvent(self, event: QCloseEvent) -> None:
        self.save()
        self.compare.close_compare()
        self.models.close_models()
        self._session.close()
        super().closeEvent(event)


def _written(state: QByteArray) -> str:
    return bytes(state.toBase64().data()).decode("ascii")


def _read(text: str) -> QByteArray:
    return QByteArray.fromBase64(QByteArray(text.encode("ascii")))
