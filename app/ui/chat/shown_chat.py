"""The chat on the screen: its turns with their traces, and the answer that the numbers are about."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal

from app.engine.record.trace import Salvaged, Trace
from app.engine.types import FinishReason, Round, Totals, TraceHeader, Verification
from app.saved.chats.conversation import Answer, Conversation, Question
from app.saved.chats.recorder import NOTES
from app.saved.chats.store import ChatStore
from app.ui.chat.answering import Answering
from app.ui.chat.chat_page import ChatPage
from app.ui.transcript import AnswerTurn, Note, SystemTurn, Turn, UserTurn
from app.ui.widgets.announce import announce

CONTINUE = "Continue"
_OPENED = "-1"  # turn id of an answer that was read from a trace file
_OPENED_PROMPT = "-2"


class ShownChat(QObject):
    """Turn ids are indices into the chat's turns, but for those of an opened trace."""

    chat_changed = Signal(str)  # id of the chat on the screen; "" while it is new
    answer_shown = Signal()  # another answer, or none, is the one that numbers are about
    context_changed = Signal()  # the chat on the screen takes more or less of the context

    def __init__(self, page: ChatPage, store: ChatStore, chat: Conversation) -> None:
        super().__init__()
        self._page = page
        self._store = store
        self.chat = chat
        self.live: Answering | None = None  # the answer that is being written for this chat
        self.trace: Trace | None = None  # the answer that the instruments show
        self._traces: dict[int, Trace] = {}  # by turn
        self._opened: Trace | None = None  # read from a file: on the screen, but no chat

    @property
    def id(self) -> str:
        return self.chat.id if self.chat.turns else ""

    @property
    def question(self) -> str:
        """The last message on the screen; "" where there is none."""
        if self.live is not None and self.live.question is not None:
            return self.live.question
        return self._questions()[-1] if self._questions() else ""

    @property
    def turn(self) -> int | None:
        """The turn of the answer that the instruments show; None where it is no answer of this chat."""
        return next((turn for turn, trace in self._traces.items() if trace is self.trace), None)

    @property
    def context_used(self) -> int:
        """Tokens that the chat on the screen takes, up to the end of its last answer."""
        if self.live is not None and self.live.trace is not None:
            last = self.live.trace
        elif self._opened is not None:
            last = self._opened
        elif self._traces:
            last = self._traces[max(self._traces)]
        else:
            return 0
        written = last.rounds[-1].position + len(last.rounds[-1].emitted) if last.rounds else 0
        return last.header.prompt_tokens + written

    @property
    def answer(self) -> Answer | None:
        """The answer of this chat that the instruments show."""
        turn = self.chat.turns[self.turn] if self.turn is not None else None
        return turn if isinstance(turn, Answer) else None

    def _questions(self) -> list[str]:
        return [turn.text for turn in self.chat.turns if isinstance(turn, Question)]

    # ------------------------------------------------------------------ another chat

    def show(self, chat: Conversation, live: Answering | None = None) -> None:
        """Put a chat on the screen, colours included; `live` is an answer that is being written for it."""
        page = self._page
        self.chat, self.live = chat, live
        self.trace = self._opened = None
        page.recording.hide()
        page.transcript.regenerates = True
        page.transcript.set_turns(self._turns(len(chat.turns) if live is None else live.at))
        page.instruments.clear()
        if live is not None:
            self._begin_live(live)
            if live.trace is not None:
                self._show_live(live.trace)
                self.add_rounds(live, live.trace.rounds)
        elif self._traces:
            self._show_numbers(self._traces[max(self._traces)])
        page.prompt.notices.clear_passing()
        page.prompt.set_mode(chat.head.mode)
        page.prompt.set_system(chat.system_prompt)
        page.prompt.set_template_options(chat.template_options)
        page.prompt.set_last_prompt(self._questions()[-1] if self._questions() else "")
        page.chats.set_current(chat.id)
        self.say_empty()
        self.chat_changed.emit(self.id)
        self.answer_shown.emit()
        self.context_changed.emit()

    @property
    def recording(self) -> Trace | None:
        """The trace on the screen that was read from a file; None where a chat is shown."""
        return self._opened

    def open_trace(self, trace: Trace, file: str, chat: Conversation) -> None:
        """Show a trace read from a file; what is asked then begins `chat`, which is new."""
        self.show(chat)
        name = trace.header.pair.target.name
        self._page.transcript.set_turns([*_said_before(trace.header), AnswerTurn(_OPENED, name, trace)])
        self._page.transcript.regenerates = False
        self._page.recording.show_recording(trace, file)
        self._opened = trace
        self._show_numbers(trace)
        self.answer_shown.emit()
        self.context_changed.emit()

    def show_system(self) -> None:
        """The system prompt was changed: show it where nothing has been asked yet."""
        if not self.chat.turns:
            self._page.transcript.set_turns(self._turns())

    def say_empty(self) -> None:
        """What an empty chat says of itself."""
        demo = ", or press Enter for a demo prompt" if self._page.prompt.suggestion else ""
        self._page.transcript.set_empty_words("Watch every token's fate", f"Ask something{demo}.")

    def _turns(self, end: int | None = None) -> list[Turn]:
        """The chat's turns for the transcript; reads the traces of its answers."""
        chat = self.chat
        shown: list[Turn] = []
        self._traces = {}
        if chat.system_prompt.strip() and chat.head.mode == "chat":
            shown.append(SystemTurn("system", chat.system_prompt))
        for at, turn in enumerate(chat.turns[:end]):
            if isinstance(turn, Question):
                shown.append(UserTurn(str(at), turn.text))
            else:
                shown.append(self._answer(at, turn))
        return shown

    def _answer(self, at: int, turn: Answer) -> AnswerTurn:
        """The words are the chat's; the trace says which token is whose, as far as it can be read."""
        found = self._store.load_trace(self.chat.id, turn) if turn.trace else Salvaged()
        last = at == len(self.chat.turns) - 1
        action = CONTINUE if last and turn.note == NOTES[FinishReason.LENGTH] else ""
        note = Note(turn.error or turn.note, turn.hint, action) if turn.error or turn.note else None
        lost = _what_is_lost(turn, found)
        if lost is not None:
            told = note or Note("")
            note = Note(f"{told.message} {lost.message}".strip(), f"{told.hint} {lost.hint}".strip())
        if found.trace is None:
            return AnswerTurn(
                str(at), "Answer", None, note, text=turn.text, goes_on_from=_continued(self.chat, at)
            )
        trace = self._traces[at] = found.trace
        name = trace.header.pair.target.name
        return AnswerTurn(str(at), name, trace, note, text=turn.text, goes_on_from=_continued(self.chat, at))

    # ------------------------------------------------------------------ the answer as it comes

    def begin(self, live: Answering) -> None:
        """An answer is being asked for."""
        if self._opened is not None:
            self.show(self.chat)
        self.live = live
        self._traces = {turn: trace for turn, trace in self._traces.items() if turn < live.at}
        self.trace = None
        if live.at < len(live.chat.turns):
            self._page.transcript.remove_from(str(live.at))
        if live.question is not None:
            self._page.prompt.set_last_prompt(live.question)
        self._begin_live(live)
        self._page.instruments.clear()
        self.answer_shown.emit()

    def _begin_live(self, live: Answering) -> None:
        """The question, where it is a new one, and an answer that rounds will come for."""
        if live.question is not None:
            self._page.transcript.add_turn(UserTurn(str(live.at), live.question))
        before = live.question if live.question is not None else live.chat.question_before(live.turn)
        goes_on_from = before if live.chat.head.mode == "completion" else ""
        self._page.transcript.begin_answer(
            AnswerTurn(str(live.turn), live.target_name, goes_on_from=goes_on_from)
        )

    def asked(self, live: Answering) -> None:
        """The question is in the chat."""
        self.chat = live.chat
        self.chat_changed.emit(self.id)

    def start(self, live: Answering) -> None:
        """The engine has understood the request."""
        self.asked(live)
        if live.trace is not None:
            self._show_live(live.trace)
            self.add_rounds(live, live.trace.rounds)  # of an answer that goes on
        self.context_changed.emit()

    def add_rounds(self, live: Answering, rounds: list[Round]) -> None:
        self._page.transcript.append_rounds(rounds)
        if self.trace is live.trace:  # and not an earlier answer, chosen meanwhile
            self._page.instruments.add_rounds(rounds)
        self.context_changed.emit()

    def end(self, live: Answering, totals: Totals | None, note: Note | None) -> None:
        """The answer is as it stays; None where the engine gave no totals."""
        self.live = None
        self.chat = live.chat
        if live.trace is not None:
            self._traces[live.turn] = live.trace
        transcript = self._page.transcript
        transcript.finish(totals)
        told = [transcript.text_of(str(live.turn))]
        if note is not None:
            transcript.set_note(str(live.turn), note)
            told.append(f"{note.message} {note.hint}")
        announce(transcript, "\n".join(told))
        if totals is not None and self.trace is live.trace:
            self._page.instruments.finish(totals)
        self.answer_shown.emit()

    def _show_live(self, trace: Trace) -> None:
        self.trace = trace
        self._name_fates(trace)
        self._page.transcript.set_header(trace.header)
        self._page.instruments.start_answer(trace.header)

    # ------------------------------------------------------------------ the answer with the numbers

    def choose(self, trace: Trace) -> None:
        """Show the numbers of another answer of this chat."""
        if trace is not self.trace:
            self._show_numbers(trace)
            self.answer_shown.emit()

    def trace_of(self, turn_id: str) -> Trace | None:
        """What is known of an answer on the screen."""
        if self.live is not None and turn_id == str(self.live.turn):
            return self.live.trace
        if turn_id == _OPENED:
            return self._opened
        return self._traces.get(int(turn_id)) if turn_id.isdigit() else None

    def turn_ids(self) -> list[str]:
        """Of everything that may be an answer on the screen."""
        return [_OPENED, *map(str, range(len(self.chat.turns) + 1))]

    def _show_numbers(self, trace: Trace) -> None:
        self.trace = trace
        self._name_fates(trace)
        self._page.instruments.show_trace(trace)

    def _name_fates(self, trace: Trace) -> None:
        self._page.legend.set_greedy(trace.header.verification is Verification.GREEDY)


def _said_before(header: TraceHeader) -> list[Turn]:
    """What was asked: the messages, or the bare text that was continued."""
    if not header.messages:
        return [UserTurn(_OPENED_PROMPT, header.prompt)]
    turns: list[Turn] = []
    for place, message in enumerate(header.messages):
        id = str(int(_OPENED_PROMPT) - (len(header.messages) - 1 - place))  # the last message has the first
        if message.role == "system":
            turns.append(SystemTurn(id, message.content))
        elif message.role == "assistant":
            turns.append(AnswerTurn(id, "Answer", text=message.content))
        else:
            turns.append(UserTurn(id, message.content))
    return turns


def _continued(chat: Conversation, at: int) -> str:
    """The text that a completion at turn `at` goes on from; "" in a chat."""
    return chat.question_before(at) if chat.head.mode == "completion" else ""


def _what_is_lost(turn: Answer, found: Salvaged) -> Note | None:
    """What to say of an answer whose tokens are not all known; None where they are."""
    if not turn.trace:
        return Note("The tokens of this answer were not saved.", "Its text is part of the chat.")
    why = found.damage.message if found.damage is not None else ""
    if found.trace is None:
        return Note("The tokens of this answer are lost; its text is not.", why)
    if why or _letters(found.text) < _letters(turn.text or ""):
        return Note("Only the first tokens of this answer are known; its text is whole.", why)
    return None


def _letters(text: str) -> int:
    """How many; bytes that are no text may have been left out."""
    return len(text) - text.count("\ufffd")
