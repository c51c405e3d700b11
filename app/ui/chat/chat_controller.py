"""The actions of the Chat place: sending, stopping, editing, regenerating, choosing among chats."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from PySide6.QtCore import QObject, Signal

from app.engine.errors import UserError
from app.engine.record.trace import Trace
from app.engine.strategy import SERVER
from app.engine.templates.options import TemplateOptions
from app.engine.types import GenerationRequest
from app.saved.chats.conversation import INFILL, MODES, Answer, Conversation, Question
from app.saved.chats.store import ChatStore
from app.ui.chat.answers import CONTINUE, Answering, AnswersController
from app.ui.chat.asking import asked_in, loaded_alike, request_for, request_to_go_on, why_not
from app.ui.chat.chat_list import ChatListController
from app.ui.chat.chat_page import ChatPage
from app.ui.chat.prompt_box import UnsentWords
from app.ui.chat.shown_chat import ShownChat
from app.ui.state.chat_side import SettingsInUse
from app.ui.state.engine_session import BUSY, Activity, EngineSession, EngineState
from app.ui.state.folds import RoundFolds
from app.ui.transcript import AnswerTurn, UserTurn
from app.ui.widgets.notice import WayOut

STOP = "stop"  # the reason shown in a notice


class ChatController(QObject):
    """Carries out the user's actions in the chat, with its page, its store, the engine and the shown chat."""

    actions_changed = Signal()  # the actions possible with the chat on the screen

    def __init__(
        self, page: ChatPage, store: ChatStore, session: EngineSession, settings: SettingsInUse
    ) -> None:
        super().__init__()
        self.page, self.store, self.session, self.settings = page, store, session, settings
        self._before_recording = ""  # the id of the chat that an opened trace took the place of
        self._cold = ""  # the id of a chat whose first answer starts cold
        self._waiting: Question | None = None  # typed while the pair was loading; sent once it is ready
        self.shown = ShownChat(page, store, self._new())
        self.answers = AnswersController(self)
        self.chats = ChatListController(self)
        self.unsent = UnsentWords(page.prompt, store.unsent, self._saved_id, self._unsent_words)
        self._connect()
        self.chats.refresh()
        self._show(self.shown.chat)

    def _connect(self) -> None:
        page = self.page
        page.prompt.submitted.connect(self.send)
        page.prompt.refused.connect(self._say_why_not)
        page.prompt.stop_requested.connect(self.stop)
        page.prompt.mode_changed.connect(self._change_mode)
        page.prompt.system_changed.connect(self._change_system)
        page.prompt.options_changed.connect(self._change_options)
        page.transcript.edit_submitted.connect(self._edit)
        page.transcript.regenerate_requested.connect(self._regenerate_turn)
        page.transcript.note_action.connect(self._note_acted)
        page.chats.chat_chosen.connect(self.open_chat)
        page.chats.new_requested.connect(self.new_chat)
        page.recording.close_requested.connect(self._close_recording)
        self.chats.deleted.connect(self._deleted)
        self.chats.restored.connect(self.open_chat)
        self.session.changed.connect(self._engine_changed)
        self.session.stop_overdue.connect(self._stop_overdue)
        self.shown.answer_shown.connect(self.actions_changed)
        for signal in (self.shown.answer_shown, self.settings.changed):
            signal.connect(self._explain_fates)

    @property
    def question(self) -> str:
        """The last shown message, or the one that waits for the models; "" if there is none."""
        return self._waiting.whole if self._waiting is not None else self.shown.question

    @property
    def can_regenerate(self) -> bool:
        return bool(self.shown.chat.turns) and self.session.activity is Activity.READY

    def _explain_fates(self) -> None:
        """Let the legend explain the settings in use, or those of the recording on the screen."""
        recording = self.shown.recording
        sampling = recording.header.sampling if recording is not None else self.settings.now.sampling
        self.page.legend.set_undrawn(sampling.temperature == 0)

    # ------------------------------------------------------------------ asking

    def send(self, question: Question) -> None:
        """Send a question to the pair; one that cannot be sent now goes back to the prompt box."""
        if self.session.pair is not None:  # without a pair, the notice shown before still gives the reason
            self.page.prompt.notices.clear()
            self.answers.remind()
        if self.session.activity is Activity.LOADING:
            self._take_back()
            self._waiting = question
            self.page.prompt.set_busy(True)
            self.page.transcript.set_empty_words(
                "Loading the models", "Your message is sent as soon as they are loaded."
            )
            return
        self._ask(len(self.shown.chat.turns), question)

    def ask_in_new_chat(self, text: str, mode: str = "chat") -> None:
        """Ask in a new chat of this mode, from a cold state: without a system prompt, with empty caches and
        drafters."""
        self._leave()
        self._show(self.store.new(mode))
        self._cold = self.shown.chat.id
        self.send(Question(text))

    def _edit(self, turn: UserTurn, question: Question) -> None:
        """Send a changed message and continue from there."""
        self.page.prompt.setFocus()
        self._ask(turn.at or 0, question)

    def _regenerate_turn(self, turn: AnswerTurn) -> None:
        turns = self.shown.chat.turns
        if turn.at is None:
            self.page.prompt.notices.tell("This answer was read from a trace file.", "Ask in a chat instead.")
        elif 0 < turn.at < len(turns) and isinstance(turns[turn.at], Answer):
            self._ask(turn.at, None)

    def _note_acted(self, turn: AnswerTurn) -> None:
        """Carry out a note's button: continue the answer, or answer again."""
        self.page.prompt.setFocus()  # the note goes; Qt would move the focus anywhere
        note = turn.answer.note
        if turn.at is not None and note is not None and note.action == CONTINUE:
            self._go_on(turn.at)
        else:
            self._regenerate_turn(turn)

    def _go_on(self, at: int) -> None:
        """Continue an answer that ended at its length limit."""
        answer, pair = self.shown.answer_at(at), self.session.pair
        trace = answer.trace if answer is not None else None
        tell = self.page.prompt.notices.tell
        if self.session.activity is not Activity.READY:
            tell(*why_not(self.session.activity))
        elif at != len(self.shown.chat.turns) - 1:
            tell("Only the last answer of a chat can be continued.", "Ask for more in a message.")
        elif trace is None or not _can_go_on(asked_in(self.shown.chat, pair), trace):
            tell("Not all tokens of this answer are known.", "Ask for more in a message.")
        elif pair is None or not loaded_alike(pair, trace.header.pair):
            tell(
                "This answer was made with different models or load options.",
                "Load those models with those options, or ask for more in a message.",
            )
        else:
            self.answers.save_unsaved()
            request = request_to_go_on(trace, self.settings.now)
            self.answers.begin(self.shown.chat, at, None, request, trace)

    def regenerate(self) -> None:
        """Answer the last question once more."""
        turns = self.shown.chat.turns
        if turns and isinstance(turns[-1], Answer):
            self._ask(len(turns) - 1, None)
        elif turns:
            self._ask(len(turns), None)

    def _ask(self, at: int, question: Question | None) -> None:
        """Generate an answer to `question` as turn `at` (None: to the question before it)."""
        if self.session.activity is not Activity.READY:
            self.page.prompt.give_back(question, *why_not(self.session.activity))
            return
        self.answers.save_unsaved()
        seen = self.shown.chat.head.revision
        self.page.prompt.tell_system()
        chat = self.shown.chat
        if chat.head.revision != seen:  # `at` is a place in what was on the screen
            self.page.prompt.give_back(
                question,
                "This chat was changed in another window.",
                "The new version is shown. Send your message again.",
            )
        else:
            settings = self.settings.now
            strategy = settings.strategy if self.session.server is None else SERVER
            asked = asked_in(chat, self.session.pair)
            cold = chat.id == self._cold and not chat.turns
            request = request_for(asked, at, question, settings, strategy, cold)
            self.answers.begin(chat, at, question, request)
        self.unsent.keep()

    def request_of_answer(self) -> GenerationRequest | None:
        """The request of the answer in the instruments, for measuring it again."""
        at, answer = self.shown.turn, self.shown.answer
        if at is None or answer is None or answer.header is None:
            return None
        header, asked = answer.header, asked_in(self.shown.chat, self.session.pair)
        return dataclasses.replace(
            request_for(asked, at, None, self.settings.now, header.strategy),
            sampling=header.sampling,
            max_tokens=header.max_tokens,
            stop=header.stop,
            template_options=header.template_options,
        )

    def _say_why_not(self) -> None:
        self.page.prompt.notices.tell(*why_not(self.session.activity))

    def stop(self) -> None:
        """Stop the answer, or the waiting for the models."""
        if self._waiting is not None:
            self._take_back()
        else:
            self.session.stop()

    def _stop_overdue(self) -> None:
        self.page.prompt.notices.tell(
            "The engine has not stopped yet.",
            "Ending it keeps the answer so far. A new engine then loads the same models.",
            WayOut("End the engine now", self.session.end_engine),
            cause=STOP,
        )

    # ------------------------------------------------------------------ waiting for the models

    def _take_back(self) -> None:
        """Return the text that waits for the models to the prompt box."""
        if self._waiting is not None:
            question, self._waiting = self._waiting, None
            self.page.prompt.set_busy(False)
            self.page.prompt.put_back(question)
            self.shown.say_empty()

    def _engine_changed(self, now: EngineState, before: EngineState) -> None:
        activity = now.activity
        if activity is before.activity:
            return
        self.page.prompt.set_busy(activity in BUSY or self._waiting is not None)
        if activity is not Activity.STOPPING:
            self.page.prompt.notices.withdraw(STOP)
        self.actions_changed.emit()
        if activity is Activity.READY:  # these reasons no longer hold
            for message, _hint in map(why_not, Activity):
                self.page.prompt.notices.withdraw(message)
        if activity is Activity.READY and self._waiting is not None:
            question, self._waiting = self._waiting, None
            self.shown.say_empty()
            self._ask(len(self.shown.chat.turns), question)
        elif activity is Activity.EMPTY and self._waiting is not None:
            self._take_back()
            self.page.prompt.notices.tell(*why_not(activity))

    # ------------------------------------------------------------------ which chat

    def _leave(self) -> None:
        """Save the unsent text of this chat before a different one is shown."""
        self._take_back()
        self.page.prompt.tell_system()
        self.unsent.keep()

    def _show(self, chat: Conversation, live: Answering | None = None) -> None:
        """Show a chat and its unsent text."""
        self.shown.show(chat, live)
        self.unsent.show()

    def _saved_id(self) -> str:
        chat = self.shown.chat
        return chat.id if chat.head.revision else ""

    def _unsent_words(self) -> Question:
        """The unsent text, which may be waiting for the models."""
        typed, waiting = self.page.prompt.unsent, self._waiting
        if waiting is None:
            return typed
        text = "\n\n".join(filter(str.strip, (waiting.text, typed.text)))
        return Question(text, waiting.suffix or typed.suffix)

    def _new(self) -> Conversation:
        """An empty chat in the mode chosen last, if the loaded target can be asked in it."""
        settings, pair = self.settings.now, self.session.pair
        last = settings.mode if settings.mode != INFILL or pair is None or pair.fills_middle else MODES[0]
        return self.store.new(last, settings.system_prompt)

    def new_chat(self) -> None:
        """Start an empty chat."""
        self._leave()
        self._show(self._new())
        self.page.prompt.setFocus()

    def open_chat(self, chat_id: str) -> None:
        """Show a saved chat; an answer that is being written for it continues on the screen."""
        if chat_id == self.shown.chat.id and not self._is_stale():
            return
        self._leave()
        live = self.answers.of(chat_id)
        try:
            here = live.chat if live is not None else self.answers.unsaved(chat_id)
            chat = here if here is not None else self.store.load(chat_id)
        except UserError as error:
            self.page.prompt.notices.tell(error)
            self.page.chats.set_current(self.shown.chat.id)
            return
        self._show(chat, live)
        if chat.head.damaged:
            kept = "The next change saves the chat to a new file and keeps a copy of the damaged one."
            hint = "" if chat.head.newer else kept
            self.page.prompt.notices.tell(chat.head.damaged, hint)

    def _is_stale(self) -> bool:
        """Whether a different window has changed the shown chat."""
        shown = self.shown.chat.head
        return self.shown.live is None and any(
            head.id == shown.id and head.revision > shown.revision for head in self.chats.heads()
        )

    def open_last(self, chat_id: str) -> None:
        """Show an earlier chat, if it still exists."""
        if any(head.id == chat_id for head in self.chats.heads()):
            self.open_chat(chat_id)

    def show_trace(self, trace: Trace, file: str, folds: RoundFolds | None = None) -> None:
        """Show a recorded trace as a chat of its own; asking something starts a new chat."""
        self._leave()
        if self.shown.recording is None:
            self._before_recording = self.shown.id
        self.shown.open_trace(trace, file, self._new(), folds)
        self.unsent.show()

    def _close_recording(self) -> None:
        """Return to the previous chat, if there is one; its answer may be running."""
        self.new_chat()
        self.open_last(self._before_recording)

    def clear(self) -> None:
        """Move the chat on the screen to the trash, where Undo finds it, and begin a new one."""
        if self.shown.chat.turns:
            self.page.prompt.tell_system()
            self.chats.delete(self.shown.chat.id)
        else:
            self.new_chat()

    def _deleted(self, chat_id: str) -> None:
        if chat_id == self.shown.chat.id:
            self.new_chat()

    def _change_mode(self, mode: str) -> None:
        self._change(lambda: self.store.set_mode(self.shown.chat, mode))
        if self._waiting is None:
            self.shown.say_empty()

    def _change_system(self, text: str) -> None:
        self._change(lambda: self.store.set_system_prompt(self.shown.chat, text))
        self.shown.show_system()

    def _change_options(self, options: TemplateOptions) -> None:
        self._change(lambda: self.store.set_template_options(self.shown.chat, options))

    def _change(self, change: Callable[[], Conversation]) -> None:
        """Change the settings of the shown chat."""
        before, live = self.shown.chat, self.shown.live
        try:
            self.shown.chat = change()
        except UserError as error:
            self.page.prompt.notices.tell(error)
            return
        if live is not None:
            live.chat = self.shown.chat
        if self.shown.chat.head.revision != before.head.revision:  # another window changed the chat meanwhile
            self.shown.show(self.shown.chat, live)


def _can_go_on(chat: Conversation, trace: Trace) -> bool:
    """Whether the answer can be continued. Traces before format 1.4 lack the messages of a chat."""
    header = trace.header
    whole = bool(header.messages) or header.suffix is not None or chat.head.mode == "completion"
    return trace.totals is not None and whole
