"""What happens in the Chat place: sending, stopping, editing, regenerating, choosing among chats."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from PySide6.QtCore import QObject, Signal, Slot

from app.chats.conversation import Answer, ChatHead, Conversation, Question
from app.chats.recorder import NOTES
from app.chats.store import ChatStore
from app.engine.errors import UserError
from app.engine.messages import Failed
from app.engine.trace import Trace
from app.engine.types import FinishReason, GenerationRequest, Message, Round, Totals
from app.settings import Settings
from app.ui.answering import Answering
from app.ui.chat_page import ChatPage
from app.ui.engine_session import BUSY, Activity, EngineSession
from app.ui.transcript import AnswerTurn, Note, SystemTurn, Turn, UserTurn


class ChatController(QObject):
    """Joins the page, the store and the engine session. Turn ids are indices into the chat's turns."""

    chat_changed = Signal(str)  # id of the chat on the screen; "" while it is new
    answer_shown = Signal()  # another answer, or none, is the one that numbers are about
    context_used = Signal(int)
    prompt_measured = Signal(object)  # Totals with prompt and first-token times

    def __init__(self, page: ChatPage, store: ChatStore, session: EngineSession, settings: Settings) -> None:
        super().__init__()
        self._page = page
        self._store = store
        self._session = session
        self.settings = settings
        self._chat = store.new(settings.mode, settings.system_prompt)
        self._answering: Answering | None = None
        self._waiting: str | None = None  # typed while the pair was loading: sent when it is there
        self._deleted: list[str] = []
        self._traces: dict[int, Trace] = {}  # of the chat on the screen, by turn
        self.trace: Trace | None = None  # the answer that the instruments show
        self._opened: Trace | None = None  # read from a file: on the screen, but no chat
        self._connect()
        self.refresh_list()
        self._show_chat()

    def _connect(self) -> None:
        page = self._page
        page.prompt.submitted.connect(self.send)
        page.prompt.stop_requested.connect(self.stop)
        page.prompt.mode_changed.connect(self._change_mode)
        page.prompt.system_changed.connect(self._change_system)
        page.transcript.edit_submitted.connect(self._edit)
        page.transcript.regenerate_requested.connect(self._regenerate_turn)
        page.transcript.suggestion_chosen.connect(self.send)
        page.transcript.note_action.connect(self._regenerate_turn)
        page.transcript.round_hovered.connect(self._preview_round)
        page.transcript.token_clicked.connect(self._pin_round)
        page.instruments.round_pinned.connect(self._find_round)
        page.chats.chat_chosen.connect(self.open_chat)
        page.chats.new_requested.connect(self.new_chat)
        page.chats.renamed.connect(self._rename)
        page.chats.delete_requested.connect(self._delete)
        page.chats.undo_requested.connect(self._undo_delete)
        self._session.activity_changed.connect(self._activity_changed)

    # ------------------------------------------------------------------ asking

    @Slot(str)
    def send(self, text: str) -> None:
        """Ask the pair; what cannot be sent now goes back to the prompt box."""
        self._page.prompt.clear_error()
        if self._session.activity is Activity.LOADING:
            self._waiting = text
            self._page.prompt.set_busy(True)
            self._page.transcript.set_empty_words(
                "Loading the models", "The prompt is sent as soon as they are there."
            )
            return
        self._ask(self._chat, len(self._chat.turns), text)

    def ask_in_new_chat(self, text: str) -> None:
        """Ask in a chat of its own, as a message whatever the mode of new chats is."""
        self._take_back()
        self._chat = self._store.new("chat", self.settings.system_prompt)
        self._show_chat()
        self.send(text)

    @property
    def question(self) -> str:
        """The last message on the screen, or the one that waits for the models; "" where there is none."""
        if self._waiting is not None:
            return self._waiting
        answering = self._answering
        if answering is not None and self._on_screen(answering) and answering.question is not None:
            return answering.question
        return next((turn.text for turn in reversed(self._chat.turns) if isinstance(turn, Question)), "")

    @Slot(str, str)
    def _edit(self, turn_id: str, text: str) -> None:
        """Send a changed message and continue from there."""
        self._page.prompt.setFocus()
        self._ask(self._chat, max(0, int(turn_id)), text)

    @Slot(str)
    def _regenerate_turn(self, turn_id: str) -> None:
        at = int(turn_id)
        if at < 0:
            self._page.prompt.show_error("This answer was read from a trace file.", "Ask in a chat instead.")
        elif 0 < at < len(self._chat.turns) and isinstance(self._chat.turns[at], Answer):
            self._ask(self._chat, at, None)

    def regenerate(self) -> None:
        """Answer the last question once more."""
        turns = self._chat.turns
        if turns and isinstance(turns[-1], Answer):
            self._ask(self._chat, len(turns) - 1, None)
        elif turns:
            self._ask(self._chat, len(turns), None)

    @property
    def can_regenerate(self) -> bool:
        return bool(self._chat.turns) and self._session.activity is Activity.READY

    def _ask(self, chat: Conversation, at: int, question: str | None) -> None:
        """Generate an answer to `question` as turn `at` (None: to the question before it)."""
        if self._session.activity is not Activity.READY:
            self._give_back(question, *self._why_not())
            return
        if self._opened is not None:
            self._show_chat()
        request = self._make_request(chat, at, question)
        self._answering = Answering(self._store, self, chat, at, question)
        self._traces = {turn: trace for turn, trace in self._traces.items() if turn < at}
        self.trace = None
        transcript = self._page.transcript
        if at < len(chat.turns):
            transcript.remove_from(str(at))
        if question is not None:
            transcript.add_turn(UserTurn(str(at), question))
            self._page.prompt.set_last_prompt(question)
        pair = self._session.pair
        name = pair.target.name if pair is not None else ""
        transcript.begin_answer(AnswerTurn(str(self._answering.turn), name))
        self._page.instruments.clear()
        self.answer_shown.emit()
        self._session.generate(request, self._answering)

    def request_of_answer(self) -> GenerationRequest | None:
        """The request behind the answer that the instruments show, to be measured again."""
        at = next((turn for turn, trace in self._traces.items() if trace is self.trace), None)
        if at is None or self.trace is None:
            return None
        header = self.trace.header
        return dataclasses.replace(
            self._make_request(self._chat, at, None),
            strategy=header.strategy,
            sampling=header.sampling,
            max_tokens=header.max_tokens,
            stop=header.stop,
        )

    def _why_not(self) -> tuple[str, str]:
        if self._session.activity in BUSY:
            return "The engine is still at work.", "Stop it, or wait until it is done."
        if self._session.activity is Activity.LOADING:
            return "The models are still loading.", "Send it again when they are there."
        if self._session.activity is Activity.LENT:
            return (
                "Compare is measuring, and nothing else may run beside it.",
                "Wait until it is done, or cancel it there. The models come back by themselves.",
            )
        return "No model is loaded.", "Choose a target with the chip on top."

    def _give_back(self, text: str | None, message: str, hint: str) -> None:
        if text is not None:
            self._page.prompt.set_text(text)
        self._page.prompt.show_error(message, hint)

    def _make_request(self, chat: Conversation, at: int, question: str | None) -> GenerationRequest:
        settings = self.settings
        prompt: str | None = None
        messages: tuple[Message, ...] = ()
        if chat.head.mode == "completion":
            prompt = "".join(turn.text or "" for turn in chat.turns[:at]) + (question or "")
        else:
            turns = chat.turns[:at] + ((Question(question),) if question is not None else ())
            messages = Conversation(chat.head, chat.system_prompt, turns).messages()
        return GenerationRequest(
            prompt=prompt,
            messages=messages,
            strategy=settings.strategy,
            sampling=settings.sampling,
            max_tokens=settings.max_tokens,
            stop=settings.stop,
        )

    @Slot()
    def stop(self) -> None:
        """Stop the answer, or the waiting for the models."""
        if self._waiting is not None:
            self._take_back()
        else:
            self._session.stop()

    def _take_back(self) -> None:
        """What waits for the models goes back to the prompt box."""
        if self._waiting is not None:
            text, self._waiting = self._waiting, None
            self._page.prompt.set_busy(False)
            self._page.prompt.set_text(text)
            self._say_empty()

    @Slot(object)
    def _activity_changed(self, activity: Activity) -> None:
        self._page.prompt.set_busy(activity in BUSY or self._waiting is not None)
        if activity is Activity.READY and self._waiting is not None:
            text, self._waiting = self._waiting, None
            self._say_empty()
            self.send(text)
        elif activity is Activity.EMPTY and self._waiting is not None:
            text, self._waiting = self._waiting, None
            self._page.prompt.set_busy(False)
            self._say_empty()
            self._give_back(text, *self._why_not())

    # ------------------------------------------------------------------ the answer as it comes

    def _on_screen(self, answering: Answering) -> bool:
        return answering.chat.id == self._chat.id

    def answer_progress(self, answering: Answering, text: str) -> None:
        if self._on_screen(answering):
            self._page.transcript.set_progress(text)

    def answer_started(self, answering: Answering) -> None:
        if not self._on_screen(answering):
            return
        self._chat = answering.chat
        self.refresh_list()
        self.chat_changed.emit(self.chat_id)
        self._show_live(answering)

    def _show_live(self, answering: Answering) -> None:
        trace = answering.trace
        if trace is None:
            return
        self.trace = trace
        self._page.transcript.set_header(trace.header)
        self._page.instruments.start_answer(trace.header)

    def answer_rounds(self, answering: Answering, rounds: list[Round], context_used: int) -> None:
        self.context_used.emit(context_used)
        if self._on_screen(answering):
            self._page.transcript.append_rounds(rounds)
            self._page.instruments.add_rounds(rounds)

    def answer_finished(self, answering: Answering, totals: Totals) -> None:
        self._answering = None
        self.refresh_list()
        if not self._on_screen(answering):
            return
        self._chat = answering.chat
        if answering.trace is not None:
            self._traces[answering.turn] = answering.trace
        self._page.transcript.finish(totals)
        note = NOTES.get(totals.finish_reason)
        if note is not None:
            self._page.transcript.set_note(str(answering.turn), _note_of(totals.finish_reason, note))
        self._page.instruments.finish(totals)
        self.prompt_measured.emit(totals)
        self.answer_shown.emit()

    def answer_failed(self, answering: Answering, failed: Failed) -> None:
        self._answering = None
        self.refresh_list()
        if not self._on_screen(answering):
            return
        transcript = self._page.transcript
        transcript.finish(None)
        if answering.trace is None:
            # Refused before anything was decoded: back to where the user acted.
            self._show_chat()
            self._give_back(answering.question, failed.message, failed.hint)
            return
        self._chat = answering.chat
        self._traces[answering.turn] = answering.trace
        action = "Answer again" if failed.gone else ""
        transcript.set_note(str(answering.turn), Note(failed.message, failed.hint, action))
        self.answer_shown.emit()

    def answer_not_saved(self, error: UserError) -> None:
        self._page.prompt.show_error(error.message, error.hint)

    # ------------------------------------------------------------------ chats

    def refresh_list(self) -> None:
        """Read the list of chats again."""
        self._page.chats.set_chats(self._store.heads())
        self._page.chats.set_current(self._chat.id)

    @property
    def chat_id(self) -> str:
        return self._chat.id if self._chat.turns else ""

    @Slot()
    def new_chat(self) -> None:
        """Begin an empty chat."""
        self._take_back()
        self._chat = self._store.new(self.settings.mode, self.settings.system_prompt)
        self._show_chat()
        self._page.prompt.setFocus()

    @Slot(str)
    def open_chat(self, chat_id: str) -> None:
        """Show a saved chat; an answer that is being written for it goes on there."""
        if chat_id == self._chat.id:
            return
        self._take_back()
        answering = self._answering
        try:
            if answering is not None and answering.chat.id == chat_id:
                self._chat = answering.chat
            else:
                self._chat = self._store.load(chat_id)
        except UserError as error:
            self._page.prompt.show_error(error.message, error.hint)
            self._page.chats.set_current(self._chat.id)
            return
        self._show_chat()

    def open_last(self, chat_id: str) -> None:
        """Show the chat that was on the screen when the window was closed, if it is still there."""
        if any(head.id == chat_id and not head.damaged for head in self._store.heads()):
            self.open_chat(chat_id)

    def show_trace(self, trace: Trace) -> None:
        """Show a recorded trace as a chat of its own; asking something starts a new chat."""
        self._chat = self._store.new(self.settings.mode, self.settings.system_prompt)
        self._show_chat()
        self._page.transcript.set_turns(
            [UserTurn("-2", trace.header.prompt), AnswerTurn("-1", trace.header.pair.target.name, trace)]
        )
        self.trace = self._opened = trace
        self._page.instruments.show_trace(trace)

    def clear(self) -> None:
        """Put the chat on the screen into the trash, where Undo finds it, and begin a new one."""
        if self._chat.turns:
            self._delete(self._chat.id)
        else:
            self.new_chat()

    @Slot(str, str)
    def _rename(self, chat_id: str, title: str) -> None:
        self._try(lambda: self._store.rename(chat_id, title))
        self.refresh_list()

    @Slot(str)
    def _delete(self, chat_id: str) -> None:
        head = next((head for head in self._store.heads() if head.id == chat_id), None)
        if self._answering is not None and self._answering.chat.id == chat_id:
            self._session.stop()
        if head is None or not self._try(lambda: self._store.delete(chat_id)):
            return
        self._deleted.append(chat_id)
        self._page.chats.show_deleted(head.title)
        if chat_id == self._chat.id:
            self.new_chat()
        self.refresh_list()

    @Slot()
    def _undo_delete(self) -> None:
        if not self._deleted:
            return
        chat_id = self._deleted.pop()
        if self._try(lambda: self._store.restore(chat_id)):
            self._page.chats.hide_deleted()
            self.refresh_list()
            self.open_chat(chat_id)

    def _try(self, action: object) -> bool:
        try:
            action()  # type: ignore[operator]
        except UserError as error:
            self._page.prompt.show_error(error.message, error.hint)
            return False
        return True

    @Slot(str)
    def _change_mode(self, mode: str) -> None:
        self._try(lambda: self._take(self._store.set_mode(self._chat, mode)))

    @Slot(str)
    def _change_system(self, text: str) -> None:
        self._try(lambda: self._take(self._store.set_system_prompt(self._chat, text)))
        if not self._chat.turns:
            self._page.transcript.set_turns(self._turns())

    def _take(self, chat: Conversation) -> None:
        self._chat = chat

    # ------------------------------------------------------------------ showing

    def _show_chat(self) -> None:
        """Put the chat on the screen, colours included."""
        page, answering = self._page, self._answering
        live = answering if answering is not None and self._on_screen(answering) else None
        self.trace = self._opened = None
        page.transcript.set_turns(self._turns(len(self._chat.turns) if live is None else live.turn))
        page.instruments.clear()
        if live is not None and live.trace is not None:
            page.transcript.begin_answer(AnswerTurn(str(live.turn), live.trace.header.pair.target.name))
            self._show_live(live)
            page.transcript.append_rounds(live.trace.rounds)
            page.instruments.add_rounds(live.trace.rounds)
        elif self._chat.turns:
            self._show_last_trace()
        page.prompt.clear_error()
        page.prompt.set_mode(self._chat.head.mode)
        page.prompt.set_system(self._chat.system_prompt)
        last = [turn.text for turn in self._chat.turns if isinstance(turn, Question)]
        page.prompt.set_last_prompt(last[-1] if last else "")
        page.chats.set_current(self._chat.id)
        self._say_empty()
        self.chat_changed.emit(self.chat_id)
        self.answer_shown.emit()

    def _say_empty(self) -> None:
        self._page.transcript.set_empty_words(
            "Watch every token's fate", "Ask something, or press Enter for a demo prompt."
        )

    def _show_last_trace(self) -> None:
        for at in range(len(self._chat.turns) - 1, -1, -1):
            trace = self._traces.get(at)
            if trace is not None:
                self.trace = trace
                self._page.instruments.show_trace(trace)
                return

    def _turns(self, end: int | None = None) -> list[Turn]:
        """The chat's turns for the transcript; reads the traces of its answers."""
        chat = self._chat
        shown: list[Turn] = []
        self._traces = {}
        if chat.system_prompt.strip() and chat.head.mode == "chat":
            shown.append(SystemTurn("system", chat.system_prompt))
        for at, turn in enumerate(chat.turns[:end]):
            if isinstance(turn, Question):
                shown.append(UserTurn(str(at), turn.text))
                continue
            if not turn.trace:
                unsaved = Note("The tokens of this answer were not saved.", "Its text is part of the chat.")
                shown.append(AnswerTurn(str(at), "", None, unsaved))
                continue
            note = Note(turn.error or turn.note, turn.hint) if turn.error or turn.note else None
            try:
                trace = self._traces[at] = self._store.load_trace(chat.id, turn)
                shown.append(AnswerTurn(str(at), trace.header.pair.target.name, trace, note))
            except UserError as error:
                shown.append(AnswerTurn(str(at), "", None, Note(error.message, error.hint)))
        return shown

    @Slot(str, int)
    def _preview_round(self, turn_id: str, index: int) -> None:
        trace = self._trace_of(turn_id)
        if trace is None:
            return
        if trace is self.trace:
            self._page.instruments.preview_round(index if index >= 0 else None)

    @Slot(str, int)
    def _pin_round(self, turn_id: str, index: int) -> None:
        trace = self._trace_of(turn_id)
        if trace is None:
            return
        if trace is not self.trace:
            self.trace = trace
            self._page.instruments.show_trace(trace)
            self.answer_shown.emit()
        self._page.instruments.pin_round(index)

    def _trace_of(self, turn_id: str) -> Trace | None:
        answering = self._answering
        if answering is not None and self._on_screen(answering) and turn_id == str(answering.turn):
            return answering.trace
        if turn_id == "-1":
            return self._opened
        return self._traces.get(int(turn_id)) if turn_id.isdigit() else None

    @Slot(object)
    def _find_round(self, index: int | None) -> None:
        """A round was chosen in a plot: show its tokens."""
        if index is None:
            return
        for turn_id in ("-1", *map(str, range(len(self._chat.turns) + 1))):
            trace = self._trace_of(turn_id)
            if trace is not None and trace is self.trace:
                self._page.transcript.show_round(turn_id, index)
                return


def _note_of(reason: FinishReason, words: str) -> Note:
    hints = {
        FinishReason.LENGTH: "Raise the length limit in the sampling panel, or send “continue”.",
        FinishReason.CONTEXT: "Start a new chat, or raise the context size of the target.",
    }
    return Note(words, hints.get(reason, ""))


def heads_found(store: ChatStore, words: str) -> Sequence[ChatHead]:
    """The search of the chat list."""
    return store.search(words) if words.strip() else store.heads()
