"""The window: rail, header, places and status bar, and their controllers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QByteArray, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import QMainWindow, QMenuBar, QWidget

from app.base.paths import Paths
from app.demo import DemoPrompt
from app.engine.errors import UserError
from app.engine.plugins import TriedDrafters
from app.engine.record.trace import Trace
from app.engine.types import ModelOptions
from app.saved.chats.store import ChatStore
from app.saved.measured import Calibrations
from app.saved.presets import PresetStore
from app.servers.address import is_address
from app.ui.chat.audit import AuditController
from app.ui.chat.baseline import AdviceController, BaselineController
from app.ui.chat.chat_controller import ChatController
from app.ui.chat.chat_page import ChatPage
from app.ui.chat.prompt_edit import KEYS as PROMPT_KEYS
from app.ui.chat.try_prompts import TryController
from app.ui.chat.versions import SumsController, VersionsController
from app.ui.help import HelpPanel, HelpSection, help_sections
from app.ui.pair.library_drafts import DraftJudge, LibraryDrafts
from app.ui.pair.pair_controller import PairController
from app.ui.settings.sections import CareController
from app.ui.settings.settings_page import DraftersController, SettingsPage
from app.ui.setup.chips_controller import ChipsController
from app.ui.setup.lookup_caches import LookupCacheController
from app.ui.setup.presets import PresetsController
from app.ui.state.answer import reconnect
from app.ui.state.chat_side import ChatSide, Inspection, SettingsInUse, Tell, dropped_trace
from app.ui.state.engine_session import BUSY, Activity, EngineSession
from app.ui.state.folds import RoundFolds
from app.ui.state.servers import Servers
from app.ui.theme import Theme
from app.ui.transcript.pointer import KEYS as TRANSCRIPT_KEYS
from app.ui.widgets import kit
from app.ui.widgets.keys import KeyTable, settle_typing
from app.ui.widgets.lazy_place import PlaceWidget
from app.ui.widgets.words import where_words
from app.ui.window.actions import WindowActions, commands
from app.ui.window.header import AppearanceController, Header
from app.ui.window.rail import Place, PlaceStack, Rail
from app.ui.window.status_bar import StatusBar
from app.ui.window.trace_opener import TraceOpener

MakePlaces = Callable[[ChatSide], Sequence[Place]]
SMALLEST = (760, 480)
_NOT_SAVED = "settings not saved"  # the cause of a notice
_MODIFIERS = Qt.KeyboardModifier
_COMMANDS = _MODIFIERS.ControlModifier | _MODIFIERS.AltModifier | _MODIFIERS.MetaModifier


class MainWindow(QMainWindow):
    """The main window."""

    shown_first = Signal()  # the window is on the screen: loading may begin

    def __init__(
        self,
        theme: Theme,
        paths: Paths,
        settings: SettingsInUse,
        chat_store: ChatStore,
        session: EngineSession,
        servers: Servers,
        engine_words: str,
        prompts: tuple[DemoPrompt, ...],
        make_places: MakePlaces,
        drafters: TriedDrafters,
    ) -> None:
        """`engine_words` says where the engine runs; `prompts` are those to try;
        `make_places` makes the places between the chat and the settings."""
        super().__init__()
        self.setWindowTitle("Draftscope")
        self.setMinimumSize(*SMALLEST)
        self.setAcceptDrops(True)
        self._theme, self._paths, self._engine_words = theme, paths, engine_words
        self.settings, self.session, self.servers = settings, session, servers
        self.inspection = Inspection()
        self.opener = TraceOpener(self.show_trace)
        self._first = True

        self.header = Header(theme, servers)
        self.page = ChatPage(theme, chat_store.search)
        self.settings_page = SettingsPage(theme, paths, settings, engine_words)
        self.status = StatusBar(theme)
        self.chat_side = ChatSide(
            session, settings, self.inspection, self.servers, self._load_elsewhere, self.go, self.open_trace
        )
        chat = kit.holder(kit.column(self.header, (self.page, 1), spacing=0))
        self.places = (
            Place("chat", "Chat", "", chat, chat_keys),
            *make_places(self.chat_side),
            Place("settings", "Settings", "Ctrl+,", self.settings_page),
        )
        self._stack = PlaceStack(self.places)
        self.rail = Rail(theme, self.places)
        self._build()
        self._control(prompts, chat_store, drafters)
        self._connect()
        self.commands = self._add_actions()
        self.go("chat")
        self._show_settings()
        self._show_answer()
        self._show_actions()
        self.controller.open_last(settings.now.last_chat)

    def _control(self, prompts: Sequence[DemoPrompt], chat_store: ChatStore, drafters: TriedDrafters) -> None:
        """Make the controllers of the window's parts."""
        theme, paths, session, settings = self._theme, self._paths, self.session, self.settings
        header, page, prompt = self.header, self.page, self.page.prompt
        self.pair = PairController(  # hears of a loaded pair before a question that waits for it is sent
            header.target, header.draft, header.server_form, prompt.notices, session, settings
        )
        self.controller = ChatController(page, chat_store, session, settings)
        self.versions = VersionsController(theme, self.controller)
        self.sums = SumsController(theme, self.controller)
        self.baseline = BaselineController(self.controller)
        self.audit = AuditController(theme, self.controller, self.status.audit)
        calibrations = Calibrations(paths.calibrations)
        session.passes_of = calibrations.of
        chips, thinking = (header.strategy, header.sampling), prompt.thinking
        self.chips = ChipsController(
            *chips, session, settings, lambda: thinking.options, self.pair.load, calibrations.of_files
        )
        apply = self.chips.apply
        self.lookup_caches = LookupCacheController(header.strategy_panel, session, settings)
        self.trying = TryController(self.controller, prompts, apply, self.load_pair)
        self.library_drafts = LibraryDrafts(paths)
        self.pair.offload.look_for_drafts(self.library_drafts)
        self.advice = AdviceController(self.baseline, self.library_drafts, apply, calibrations)
        self.draft_judge = DraftJudge(
            header.target_panel, header.draft_panel, session, settings, self.library_drafts
        )
        self.presets = PresetsController(header.presets_panel, PresetStore(paths.presets), settings, apply)
        self.drafters = DraftersController(self.settings_page.drafters, drafters, session, settings)
        self.care = CareController(self.settings_page.care, prompt.notices, paths, session)
        self.appearance = AppearanceController(theme, page, header, settings)

    def _build(self) -> None:
        shown = kit.column(self.opener.strip, (self._stack, 1), spacing=0)
        root = QWidget()
        self.help = HelpPanel(self._theme, root, self.rail.help, self._help_sections)
        kit.column((kit.row(self.rail, (shown, 1), self.help, spacing=0), 1), self.status, spacing=0, on=root)
        self.setCentralWidget(root)

    def _help_sections(self) -> list[HelpSection]:
        """What Help says, when it is first opened."""
        keys = self.commands.listed()
        for place in self.places:
            keys[place.title] = [*keys.get(place.title, ()), *place.keys()]
        return help_sections(keys, self._paths, self._engine_words)

    def _connect(self) -> None:
        header, page, settings = self.header, self.page, self.settings
        settings.due.connect(self.save)
        self.rail.place_chosen.connect(self.go)
        self.drafters.used.connect(self.chips.show_panels)
        settings.changed.connect(self.trying.refresh)
        self.pair.changed.connect(self._pair_changed)
        self.pair.changed.connect(self.chips.show)
        page.prompt.thinking.changed.connect(self.chips.show)
        self.presets.applied.connect(header.presets.popover.close_panel)
        header.strategy_panel.purpose.offer_compare()
        header.strategy_panel.compare_wanted.connect(self.chat_side.compare)
        header.stop.clicked.connect(self.controller.stop)
        header.regenerate.clicked.connect(self.controller.regenerate)
        header.clear.clicked.connect(self.controller.clear)
        page.transcript.offer_tour()
        page.transcript.tour_asked.connect(self.chat_side.tour)
        session, shown = self.session, self.controller.shown
        session.changed.connect(self.status.show_engine)
        session.changed.connect(self._show_context)  # another pair may have another context size
        session.stop_overdue.connect(lambda: header.stop.setEnabled(True))  # a second Stop repeats the offer
        shown.answer_shown.connect(self._show_answer)
        shown.context_changed.connect(self._show_context)
        self.controller.answers.saved.connect(self._inspect_answer)  # a new chat has its title now
        self.controller.actions_changed.connect(self._show_actions)
        shown.inspect_requested.connect(self.inspection.open)
        self.versions.inspect_requested.connect(self.inspection.open)
        self.versions.changed.connect(self.controller.chats.refresh)
        self.inspection.opened.connect(lambda: self.go("inspector"))
        self.opener.reading.connect(self.inspection.reading)
        for changed in (self.inspection.changed, self.inspection.watched):
            changed.connect(self._show_status)
        self.inspection.left.connect(lambda: self.go(self._stack.before))
        self.status.measure_baseline_requested.connect(self._measure)
        self.baseline.progressed.connect(self.status.set_measuring)
        self.status.audit.clicked.connect(self.audit.audit)
        self.audit.progressed.connect(self.status.set_auditing)
        page.prompt.mode_changed.connect(lambda mode: settings.change(mode=mode))
        page.splitter.splitterMoved.connect(lambda _position, _index: settings.save_soon())
        self.controller.shown.chat_changed.connect(lambda chat_id: settings.change(last_chat=chat_id))
        self.settings_page.empty_trash_requested.connect(self.controller.chats.empty_trash)

    def _add_actions(self) -> WindowActions:
        """The actions, and a menu bar if the system shows it outside the window."""
        actions = WindowActions(self, commands(self))
        bar = QMenuBar()
        if bar.isNativeMenuBar():
            actions.fill(bar)
            self.setMenuBar(bar)
        self.rail.help.set_tooltip(actions.named("help"))
        self.rail.help.clicked.connect(actions["help"].trigger)
        return actions

    # ------------------------------------------------------------------ settings

    def _show_settings(self) -> None:
        settings = self.settings.now
        # Whether it has the size that it was closed with.
        self.restored = self.restoreGeometry(QByteArray.fromBase64(settings.geometry.encode()))
        if state := settings.splitters.get("chat", ""):
            self.page.splitter.restoreState(QByteArray.fromBase64(state.encode()))
        self.appearance.show()
        self.pair.show()
        self.drafters.use(settings.drafters)
        self.chips.show_panels()

    def _pair_changed(self) -> None:
        pair = self.session.pair
        self.status.set_device(" · ".join(where_words(pair)) if pair is not None else "")
        self.status.set_server(self.session.server)
        self.page.prompt.set_pair(pair)

    def save(self) -> None:
        """Save the settings, with the geometry of the window."""
        chat, geometry = self.page.splitter.saveState(), self.saveGeometry().toBase64().toStdString()
        splitters = {**self.settings.now.splitters, "chat": chat.toBase64().toStdString()}
        try:
            self.settings.save(geometry=geometry, splitters=splitters)
        except UserError as error:
            self.page.prompt.notices.tell(error, cause=_NOT_SAVED)
        else:
            self.page.prompt.notices.withdraw(_NOT_SAVED)

    # ------------------------------------------------------------------ around the chat

    def _show_answer(self) -> None:
        """Show the numbers of the chosen answer."""
        self._inspect_answer()
        self.header.set_recorded(self.controller.shown.recording is not None)
        self._show_status()

    def _show_status(self) -> None:
        """Show the numbers of the answer on the screen: that of a lesson, of the Inspector, or the chat's."""
        shown = self.controller.shown
        inspected = self.inspection.answer if self._stack.place == "inspector" else None
        answer = self.inspection.lesson or inspected or shown.answer
        reconnect(lambda each: ((each.moved, self._show_context),), self.status.answer, answer)
        self.status.set_answer(answer)
        self.status.set_recorded(answer is not shown.answer or shown.recording is not None)
        self._show_context()

    def _inspect_answer(self) -> None:
        """Let the Inspector follow the chosen answer, under its present name."""
        shown = self.controller.shown
        self.inspection.follow_chat(shown.answer, shown.name)

    def _show_context(self) -> None:
        shown, answer = self.controller.shown, self.status.answer
        header = shown.recording.header if shown.recording is not None else None
        used = shown.context_used
        if answer is not None and answer is not shown.answer:
            header, used = answer.header, answer.context_used
        pair = header.pair if header is not None else self.session.pair
        size = pair.target.n_ctx if pair is not None else 0
        self.status.set_context(used, size or None)

    def _measure(self) -> None:
        self.page.prompt.setFocus(Qt.FocusReason.OtherFocusReason)  # the button is disabled meanwhile
        self.baseline.measure()

    def _show_actions(self) -> None:
        """Show which actions are possible now."""
        activity, header = self.session.activity, self.header
        for button in (header.stop, header.regenerate, self.status.measure, self.status.audit):
            if button.hasFocus():  # it may be disabled now: Qt would move the focus anywhere
                self.page.prompt.setFocus(Qt.FocusReason.OtherFocusReason)
        header.set_busy(activity in BUSY)
        header.stop.setEnabled(activity is not Activity.STOPPING)
        header.regenerate.setEnabled(self.controller.can_regenerate)
        self.commands.set_possible("regenerate", self.controller.can_regenerate)
        self.commands.set_possible("stop", activity in BUSY)

    # ------------------------------------------------------------------ places

    def go(self, place: str) -> None:
        """Show a place."""
        if place == "chat":
            self.inspection.show_chat()
        self._stack.show_place(place)
        self.rail.set_place(place)
        self._show_status()
        self.commands.set_place(place)

    def show_trace(self, trace: Trace, file: Path, folds: RoundFolds | None = None) -> None:
        """Show a trace that was read from a file instead of a chat; its `folds` may be made already."""
        self.controller.show_trace(trace, file.name, folds)
        self.inspection.show_chat()

    def open_trace(self, file: Path, tell: Tell | None = None) -> None:
        """Show a trace file instead of a chat, as soon as it is read and as far as it can be. `tell` receives
        what is damaged in it; None says it in the chat."""
        self.opener.open(file, tell or self.page.prompt.notices.tell)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if dropped_trace(event) is not None:
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open a trace file that was dropped on the window."""
        if (file := dropped_trace(event)) is not None:
            event.acceptProposedAction()
            self.go("chat")  # where words about the file are shown; the Inspector takes drops itself
            self.open_trace(file)

    def _load_elsewhere(self, target: ModelOptions, draft: ModelOptions | None, carried: bool) -> None:
        """Load a pair that was chosen elsewhere, and go to the chat."""
        self.pair.load(target, draft, carried)
        self.to_chat(self.page.prompt.setFocus)

    def to_chat(self, act: Callable[[], object]) -> None:
        """Go to the chat, then call `act`."""
        self.go("chat")
        act()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Handle keys that no other widget used. In the Chat place Esc stops the answer, and typed text goes
        into the prompt box, wherever the focus is. So does Enter, which sends the text, or an empty chat's
        demo prompt."""
        shown = self.page.isVisible()
        if shown and (self._sends(event) or _is_text(event)):
            self.page.prompt.take_key(event)
        elif not shown or not _KEYS.act(self, event):
            super().keyPressEvent(event)

    def _sends(self, event: QKeyEvent) -> bool:
        """Whether this is Enter, and there is something that the prompt box said it would send."""
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and not event.isAutoRepeat()
        alone = not event.modifiers() & ~_MODIFIERS.KeypadModifier
        offered = bool(self.page.prompt.text().strip()) or not self.controller.question
        return enter and alone and offered

    # ------------------------------------------------------------------ start and end

    def load_pair(self) -> None:
        """Load the pair that the settings name, or ask the server that they name."""
        settings = self.settings.now
        if is_address(settings.server):
            self.pair.use_server(settings.server)
        else:
            self.pair.load(settings.target, settings.draft)

    def start_demo(self) -> None:
        """Send the prompt that Enter would send; it waits while the models are loading."""
        if suggestion := self.page.prompt.suggestion:
            self.controller.ask_in_new_chat(suggestion)

    def showEvent(self, event: object) -> None:
        super().showEvent(event)  # type: ignore[arg-type]
        if self._first:
            self._first = False
            self.page.prompt.setFocus(Qt.FocusReason.OtherFocusReason)
            # Paint the window before anything is loaded.
            QTimer.singleShot(0, self, self.shown_first.emit)

    def closeEvent(self, event: QCloseEvent) -> None:
        settle_typing()
        self.controller.unsent.keep()
        self.save()
        for place in self.places:
            if isinstance(place.widget, PlaceWidget):
                place.widget.close_place()
        parts = self.library_drafts, self.servers, self.care, self.audit, self.opener, self.session
        for part in (*parts, self.controller.answers):
            part.close()
        super().closeEvent(event)


def _is_text(event: QKeyEvent) -> bool:
    return event.text() > " " and event.text().isprintable() and not event.modifiers() & _COMMANDS


_KEYS: KeyTable[MainWindow] = KeyTable(
    ("Escape", "Stop the answer", lambda window: window.page.prompt.stop())
)
"""Keys in the Chat place that no other widget used."""


def chat_keys() -> list[tuple[str, str]]:
    """The keys of the Chat place for Help: what they do, and the keys."""
    return [*PROMPT_KEYS, *_KEYS, *TRANSCRIPT_KEYS]
