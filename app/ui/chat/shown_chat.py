"""The shown chat: its turns with their traces, and the answer whose numbers are shown."""

from __future__ import annotations

from PySide6.QtCore import QObject, Signal, SignalInstance

from app.engine.record.trace import Salvaged, Trace
from app.engine.types import FinishReason, TraceHeader
from app.saved.chats.conversation import INFILL, Answer, Conversation, Question
from app.saved.chats.recorder import NOTES
from app.saved.chats.store import ChatStore
from app.ui.chat.answers import Answering, continuing
from app.ui.chat.chat_page import ChatPage
from app.ui.state.answer import AnswerModel, Note, reconnect
from app.ui.state.folds import RoundFolds
from app.ui.transcript import AnswerTurn, SystemTurn, Turn, UserTurn
from app.ui.transcript.access import answer_summary
from app.ui.widgets.access import announce


class ShownChat(QObject):
    """The shown chat, the models of its answers, and the answer whose numbers are shown."""

    chat_changed = Signal(str)  # id of the chat on the screen; "" while it is new
    answer_shown = Signal()  # the numbers are about another answer, or none
    inspect_requested = Signal(object, int)  # an answer, a round: they are to be shown in the Inspector
    context_changed = Signal()  # the tokens of context that the chat takes changed

    def __init__(self, page: ChatPage, store: ChatStore, chat: Conversation) -> None:
        super().__init__()
        self._page = page
        self._store = store
        self.chat = chat
        self.live: Answering | None = None  # the answer that is being written for this chat
        self.answer: AnswerModel | None = None  # the answer that the numbers are about
        self._turns: list[AnswerTurn] = []  # the answers on the screen
        self.recording: Trace | None = None  # read from a file: on the screen, but no chat
        self._file = ""  # of the recording
        page.transcript.token_clicked.connect(self._clicked)
        page.transcript.inspects = True
        page.transcript.inspect_requested.connect(self._inspect)
        page.instruments.inspect_requested.connect(
            lambda index: self.inspect_requested.emit(self.answer, index)
        )

    @property
    def id(self) -> str:
        """The id of the chat on the screen; "" while it is new."""
        return self.chat.id if self.chat.turns else ""

    @property
    def name(self) -> str:
        """The name of the shown content: the chat's title, or a recording's file."""
        if self.recording is not None:
            return self._file
        # A new chat has its title from the question whose answer is being written.
        return (self.live or self).chat.head.title

    @property
    def question(self) -> str:
        """The last message on the screen; "" if there is none."""
        asked = self.live.question if self.live is not None else None
        asked = asked or self._last_question
        return asked.whole if asked is not None else ""

    @property
    def turn(self) -> int | None:
        """The turn of this chat whose numbers are shown, or None."""
        return next((turn.at for turn in self._turns if turn.answer is self.answer), None)

    @property
    def stored(self) -> Answer | None:
        """The stored answer whose numbers are shown."""
        if self.turn is None or self.answer is None or self.answer.live:
            return None
        turn = self.chat.turns[self.turn]
        return turn if isinstance(turn, Answer) else None

    @property
    def context_used(self) -> int:
        """The tokens of the chat on the screen, up to the shown round of its last answer."""
        known = [turn.answer for turn in self._turns if turn.answer.trace is not None]
        return known[-1].context_used if known else 0

    def answer_at(self, turn: int) -> AnswerModel | None:
        """The model of the answer at a turn of the chat; None if it is no answer."""
        return next((shown.answer for shown in self._turns if shown.at == turn), None)

    @property
    def _last_question(self) -> Question | None:
        return self.chat.question_before(len(self.chat.turns))

    @property
    def answers(self) -> list[AnswerModel]:
        """The answers on the screen, in order."""
        return [turn.answer for turn in self._turns]

    # ------------------------------------------------------------------ another chat

    def show(self, chat: Conversation, live: Answering | None = None) -> None:
        """Show a chat, with colours; `live` is its running answer."""
        page = self._page
        self.chat, self.recording = chat, None
        self._set_live(live)
        page.recording.hide()
        page.transcript.regenerates = True
        self._put(self._stored_turns(len(chat.turns) if live is None else live.at))
        if live is not None:
            self._add(live)
        page.prompt.notices.clear_passing()
        page.prompt.set_mode(chat.head.mode)
        page.prompt.set_system(chat.system_prompt)
        page.prompt.set_template_options(chat.template_options)
        page.prompt.set_last_prompt(self._last_question)
        page.chats.set_current(chat.id)
        self.say_empty()
        self.chat_changed.emit(self.id)
        self._choose_last()

    def open_trace(
        self, trace: Trace, file: str, chat: Conversation, folds: RoundFolds | None = None
    ) -> None:
        """Show a trace read from a file, with `folds` if already made. The next question begins `chat`, a new
        chat."""
        self.show(chat)
        self.recording, self._file = trace, file
        name = trace.header.pair.target.name
        header = trace.header
        before = header.prompt if header.suffix is not None else ""
        model = AnswerModel(trace, folds=folds)
        answer = AnswerTurn(model, name, goes_on_from=before, suffix=header.suffix)
        self._put([*_said_before(header), answer])
        self._page.transcript.regenerates = False
        self._page.recording.show_recording(trace, file)
        self._choose_last()

    def _put(self, turns: list[Turn]) -> None:
        self._turns = [turn for turn in turns if isinstance(turn, AnswerTurn)]
        self._page.transcript.set_turns(turns)

    def _choose_last(self) -> None:
        known = [turn.answer for turn in self._turns if turn.answer.live or turn.answer.trace is not None]
        self._choose(known[-1] if known else None)
        self.context_changed.emit()

    def show_system(self) -> None:
        """Show a changed system prompt, if nothing has been asked yet."""
        if not self.chat.turns:
            self._put(self._stored_turns())

    def say_empty(self) -> None:
        """Set the words of an empty chat."""
        demo = ", or press Enter for a demo prompt" if self._page.prompt.suggestion else ""
        infill = self.chat.head.mode == INFILL
        line = "Write the text before and after a gap." if infill else f"Ask something{demo}."
        self._page.transcript.set_empty_words("Watch every token's fate", line)

    def _stored_turns(self, end: int | None = None) -> list[Turn]:
        """The chat's turns for the transcript; reads the traces of its answers."""
        chat = self.chat
        turns: list[Turn] = []
        if chat.system_prompt.strip() and chat.head.mode == "chat":
            turns.append(SystemTurn(chat.system_prompt))
        for at, turn in enumerate(chat.turns[:end]):
            turns.append(self._asked(at, turn) if isinstance(turn, Question) else self._stored(at, turn))
        return turns

    def _asked(self, at: int, question: Question) -> UserTurn:
        """A stored question; the answer to it shows the texts around a gap."""
        answered = any(isinstance(turn, Answer) for turn in self.chat.turns[at + 1 : at + 2])
        return UserTurn(question.text, at, question.suffix, answered)

    def _stored(self, at: int, turn: Answer) -> AnswerTurn:
        """A stored answer: its text from the chat, its tokens from the trace if that can be read."""
        found = self._store.load_trace(self.chat.id, turn) if turn.trace else Salvaged()
        last = at == len(self.chat.turns) - 1
        header = found.trace.header if found.trace is not None else None
        is_cut = last and turn.note == NOTES[FinishReason.LENGTH]
        action = continuing(FinishReason.LENGTH, header) if is_cut else ""
        note = Note(turn.error or turn.note, turn.hint, action) if turn.error or turn.note else None
        lost = _what_is_lost(turn, found)
        if lost is not None:
            told = note or Note("")
            note = Note(f"{told.message} {lost.message}".strip(), f"{told.hint} {lost.hint}".strip())
        name = found.trace.header.pair.target.name if found.trace is not None else "Answer"
        before, suffix = _around(self.chat, self.chat.question_before(at))
        model, versions = AnswerModel(found.trace, note), len(turn.versions)
        return AnswerTurn(model, name, at, turn.text, before, suffix, turn.version, versions)

    # ------------------------------------------------------------------ the answer as it comes

    def begin(self, live: Answering) -> None:
        """Show an answer that is being asked for."""
        if self.recording is not None:
            self.show(self.chat)
        self._set_live(live)
        behind = [turn for turn in self._page.transcript.turns if _at(turn) >= live.at]
        if behind:
            self._page.transcript.remove_from(behind[0])
        self._turns = [turn for turn in self._turns if _at(turn) < live.at]
        if live.question is not None:
            self._page.prompt.set_last_prompt(live.question)
        self._add(live)
        self._choose(live.answer)

    def _add(self, live: Answering) -> None:
        """Add the question, if it is new, and the answer, whose rounds are still to come."""
        if live.question is not None:
            asked = UserTurn(live.question.text, live.at, live.question.suffix, answered=True)
            self._page.transcript.add_turn(asked)
        before, suffix = _around(live.chat, live.question or live.chat.question_before(live.turn))
        name, (version, versions) = live.target_name, live.version
        turn = AnswerTurn(live.answer, name, live.turn, None, before, suffix, version, versions)
        self._turns.append(turn)
        self._page.transcript.add_turn(turn)

    def _set_live(self, live: Answering | None) -> None:
        def slots(heard: Answering) -> tuple[tuple[SignalInstance, object], ...]:
            answer = heard.answer
            return (answer.began, self._began), (answer.grew, self.context_changed), (heard.over, self._ended)

        reconnect(slots, self.live, live)
        self.live = live

    def asked(self) -> None:
        """Show the chat, which now contains the question."""
        if self.live is not None:
            self.chat = self.live.chat
            self.chat_changed.emit(self.id)

    def _began(self) -> None:
        self.asked()
        announce(self._page.transcript, "The answer begins.")
        self.context_changed.emit()

    def _ended(self) -> None:
        """Take over the finished answer."""
        live = self.live
        assert live is not None
        self._set_live(None)
        self.chat = live.chat
        note = live.answer.note
        told = f"Answered: {answer_summary(live.answer)}."
        announce(self._page.transcript, f"{told} {note.message} {note.hint}" if note is not None else told)
        self.answer_shown.emit()

    # ------------------------------------------------------------------ the answer with the numbers

    def _choose(self, answer: AnswerModel | None) -> None:
        """Show the numbers of a different answer of this chat, or of none."""
        if self.answer is not None:
            self.answer.pinned.disconnect(self._pinned)
            self.answer.pin(None)
        self.answer = answer
        if answer is not None:
            answer.pinned.connect(self._pinned)
        self._page.instruments.set_answer(answer)
        self.answer_shown.emit()

    def _clicked(self, turn: AnswerTurn, index: int, place: int) -> None:
        """A token was clicked: pin its round, or inspect the round that is pinned."""
        again = turn.answer is self.answer and turn.answer.pinned_at == index
        self._choose_answer_of(turn)
        turn.answer.pin(index, place)
        if again:
            self.inspect_requested.emit(turn.answer, index)

    def _inspect(self, turn: AnswerTurn, index: int) -> None:
        self._choose_answer_of(turn)
        self.inspect_requested.emit(turn.answer, index)

    def _choose_answer_of(self, turn: AnswerTurn) -> None:
        if turn.answer is not self.answer:
            self._choose(turn.answer)

    def _pinned(self) -> None:
        """Show the tokens of the round that was pinned here. While a different place pins rounds, the text
        does not move."""
        answer = self.answer
        if answer is not None and answer.pinned_at is not None and self._page.isVisible():
            turn = next(turn for turn in self._turns if turn.answer is answer)
            self._page.transcript.show_round(turn, answer.pinned_at)


def _at(turn: Turn) -> int:
    """The index of a turn in the chat; -1 for the system prompt, which is before all turns."""
    return -1 if isinstance(turn, SystemTurn) or turn.at is None else turn.at


def _said_before(header: TraceHeader) -> list[Turn]:
    """The turns before a recorded answer: the messages, or the text that was continued or has the gap."""
    if not header.messages:
        return [UserTurn(header.prompt, suffix=header.suffix, answered=True)]
    turns: list[Turn] = []
    for message in header.messages:
        if message.role == "system":
            turns.append(SystemTurn(message.content))
        elif message.role == "assistant":
            turns.append(AnswerTurn(AnswerModel(), "Answer", text=message.content))
        else:
            turns.append(UserTurn(message.content))
    return turns


def _around(chat: Conversation, question: Question | None) -> tuple[str, str | None]:
    """(prefix, suffix) around the answer to a question; ("", None) in a chat."""
    if question is None:
        return "", None
    continues = question.suffix is not None or chat.head.mode == "completion"
    return question.text if continues else "", question.suffix


def _what_is_lost(turn: Answer, found: Salvaged) -> Note | None:
    """The note below an answer with missing tokens; None if all are known."""
    if not turn.trace:
        return Note("The tokens of this answer were not saved.", "Its text is part of the chat.")
    why = found.damage.message if found.damage is not None else ""
    if found.trace is None:
        return Note("The tokens of this answer are lost, but its text is complete.", why)
    if why or _letters(found.text) < _letters(turn.text or ""):
        return Note("Only the first tokens of this answer are known; its text is complete.", why)
    return None


def _letters(text: str) -> int:
    """The number of characters, without bytes that are not text (U+FFFD), because these may be missing."""
    return len(text) - text.count("\ufffd")
