"""Running answers: each goes from the engine into the store and into its model, one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from PySide6.QtCore import QObject, QTimer, Signal

from app.engine.errors import UserError
from app.engine.process.messages import Failed, PromptProgress
from app.engine.record.trace import Trace
from app.engine.types import FinishReason, GenerationRequest, Round, Totals, TraceHeader
from app.saved.chats.conversation import Answer, Conversation, Question, again, new_trace_name
from app.saved.chats.recorder import NOTES, AnswerRecorder
from app.saved.chats.store import CUT_OFF, ChatStore
from app.ui.state.answer import AnswerModel, Note
from app.ui.widgets.notice import WayOut

if TYPE_CHECKING:
    from app.ui.chat.chat_controller import ChatController

_HINTS = {
    FinishReason.LENGTH: "The limit is set in the sampling panel.",
    FinishReason.CONTEXT: "Start a new chat, or raise the context size of the target.",
}
CONTINUE = "Continue"
HELD = "Paused before the first round. Step or play it in the Inspector."


class Answering(QObject):
    """Receives the events of a run (a RunSink): every round goes into the store and into the answer's model.

    The question is in the store before the engine is asked. If the engine refuses it, it is removed.
    """

    saved = Signal()  # the stored chat changed
    not_saved = Signal(object)  # UserError
    refused = Signal(object)  # Failed: nothing was decoded
    over = Signal()  # the answer ended or was refused

    def __init__(
        self,
        store: ChatStore,
        chat: Conversation,
        at: int,
        question: Question | None,
        target_name: str,
        begun: Trace | None = None,
        owed: Mapping[str, Trace] | None = None,
    ) -> None:
        """Answer `question` in place of turn `at` and all later turns; None answers the question before `at`.
        `target_name` is the answering model's name. `begun` is the existing part of the answer, which the new
        rounds continue. `owed` are traces of this chat's earlier answers, by name, that could not be
        written."""
        super().__init__()
        self._store = store
        self.answer = AnswerModel(live=True)
        self.chat = chat
        self.question = question
        self.at = at
        self.target_name = target_name
        self.unsaved = bool(owed)  # whether something is on the screen that is not on the disk
        self.owed = dict(owed or {})  # traces of this chat that are not whole on the disk, by name
        self.held = False  # the engine will wait for a step before the first round
        self._begun = begun
        self._former = chat.turns[at:] if question is None else ()
        new = again(self._former, Answer(""), begun is not None)
        self.version = new.version, len(new.versions)  # which one it will be, of how many
        self._recorder: AnswerRecorder | None = None
        self._before: Conversation | None = None  # the chat without the question, once that is in the store

    @property
    def turn(self) -> int:
        """The index of the answer in the chat."""
        return self.at if self.question is None else self.at + 1

    def save_question(self) -> None:
        """Save the question before the engine is asked, so a crash does not lose it."""
        with self._saving():
            self._ask()

    def run_progress(self, progress: PromptProgress) -> None:
        waits = self.held and self.answer.header is not None and progress.at_end
        self.answer.tell(HELD if waits else progress.words)

    def run_started(self, header: TraceHeader) -> None:
        begun = self._begun
        rounds: list[Round] = []
        if begun is not None:
            header, rounds = msgspec.structs.replace(begun.header, max_tokens=header.max_tokens), begun.rounds
        kept = False
        with self._saving():
            self._ask()  # the disk may accept now what it refused before
            self.chat, self._recorder = self._store.begin_answer(
                self.chat, header, at=self.turn, goes_on=begun is not None
            )
            for round in rounds:
                self._recorder.add(round)
            kept = True
            self.unsaved = bool(self.owed)
        if not kept:
            self._remember(Answer(""))
        self.answer.begin(header, rounds)
        if self.held:
            self.answer.tell(HELD)
        self.saved.emit()

    def run_rounds(self, rounds: list[Round]) -> None:
        if self.answer.trace is None:
            return
        if self._begun is not None and self._begun.rounds:
            last = self._begun.rounds[-1]
            rounds = [_moved(round, last.index + 1, last.offset + last.seconds) for round in rounds]
        for round in rounds:
            with self._saving():
                if self._recorder is not None:
                    self._recorder.add(round)
        self.answer.add(rounds)

    def run_finished(self, totals: Totals) -> None:
        if self._begun is not None and self._begun.totals is not None:
            totals = totals_of_both(self._begun.totals, totals)
        words = NOTES.get(totals.finish_reason, "")
        self._remember(Answer(self._name, totals.text, words, totals.error))
        with self._saving():
            if self._recorder is not None:
                self.chat = self._recorder.finish(totals)
        action = continuing(totals.finish_reason, self.answer.header)
        note = Note(words, _HINTS.get(totals.finish_reason, ""), action) if words else None
        self._end(totals, note)

    def run_failed(self, failed: Failed) -> None:
        trace = self.answer.trace
        if trace is None:
            with self._saving():
                if self._before is not None:
                    self.chat = self._store.take_back(self.chat, self._before)
            self.unsaved = bool(self.owed)  # the question is in the prompt box again
            self.refused.emit(failed)
        else:
            note = NOTES[FinishReason.FAILED]
            self._remember(Answer(self._name, trace.text, note, failed.message, failed.hint))
            with self._saving():
                if self._recorder is not None:
                    self.chat = self._recorder.fail(failed.message, failed.hint)
        self._end(None, Note(failed.message, failed.hint, "Answer again" if failed.gone else ""))

    def _end(self, totals: Totals | None, note: Note | None) -> None:
        self.answer.end(totals, note)
        self._owe()
        self.saved.emit()
        self.over.emit()

    def close(self) -> None:
        """Write what has arrived to the disk and stop recording; called before the window closes."""
        if self._recorder is not None:
            self._recorder.close()
        if self.unsaved:
            trace = self.answer.trace
            if trace is not None:
                self._remember(Answer(self._name, trace.text, CUT_OFF))
            elif self.question is not None and self._before is None:
                question = (*self.chat.turns[: self.at], self.question)
                self.chat = msgspec.structs.replace(self.chat, turns=question)
            self._owe()
            self.save_again()

    def save_again(self) -> bool:
        """Try again to write what could not be written; returns whether all is on the disk. Not while the
        answer is running."""
        try:
            self.chat = self._store.save(self.chat)
            for name in list(self.owed):
                self._store.save_trace(self.chat.id, name, self.owed[name])
                del self.owed[name]
        except UserError:
            return False
        self.unsaved = False
        return True

    def _owe(self) -> None:
        """Note the trace, if something of the answer was not saved."""
        trace = self.answer.trace
        if not self.unsaved or trace is None:
            return
        *turns, answer = self.chat.turns
        assert isinstance(answer, Answer)
        named = msgspec.structs.replace(answer, trace=answer.trace or new_trace_name())
        self.chat = msgspec.structs.replace(self.chat, turns=(*turns, named))
        self.owed[named.trace] = trace

    @contextmanager
    def _saving(self) -> Iterator[None]:
        """Report a failure to save; the answer continues."""
        try:
            yield
        except UserError as error:
            self.unsaved = True
            self.not_saved.emit(error)

    def _ask(self) -> None:
        if self.question is not None and self._before is None:
            asked = self._store.ask(self.chat, self.question.text, self.at, self.question.suffix)
            self._before, self.chat = self.chat, asked

    @property
    def _name(self) -> str:
        return self._recorder.trace if self._recorder is not None else ""

    def _remember(self, answer: Answer) -> None:
        """Add the answer to the chat even if it could not be saved: the next question continues from
        there."""
        kept = self.chat.turns[: self.at]
        answer = again(self._former, answer, self._begun is not None)
        question = () if self.question is None else (self.question,)
        self.chat = msgspec.structs.replace(self.chat, turns=(*kept, *question, answer))


def continuing(reason: FinishReason, header: TraceHeader | None) -> str:
    """The action that continues an answer that ended for this reason, or "". A server cannot continue
    answers."""
    here = header is not None and header.pair.server is None
    return CONTINUE if reason is FinishReason.LENGTH and here else ""


def _moved(round: Round, rounds: int, seconds: float) -> Round:
    """A round of the added part, renumbered to follow the rounds of the first part."""
    return msgspec.structs.replace(round, index=round.index + rounds, offset=round.offset + seconds)


def totals_of_both(begun: Totals, added: Totals) -> Totals:
    """The totals of a continued answer. The second part's totals contain the whole text. Times before the
    first token are the first part's, plus prompt reading that a draft did only in the second part."""
    in_rounds = begun.draft_prompt_in_rounds or added.draft_prompt_in_rounds
    return msgspec.structs.replace(
        added,
        seconds=begun.seconds + added.seconds,
        prompt_seconds=begun.prompt_seconds,
        draft_prompt_seconds=begun.draft_prompt_seconds + in_rounds - begun.draft_prompt_in_rounds,
        first_token_seconds=begun.first_token_seconds,
        draft_prompt_in_rounds=in_rounds,
    )


_TEMPLATE = "chat template"  # in the words of every error of one
_AGAIN = 2000  # milliseconds between two tries to write what could not be written


class AnswersController(QObject):
    """Runs one answer at a time, even if a different chat is on the screen."""

    saved = Signal()  # the list of chats changed
    asked = Signal(object)  # the AnswerModel of an answer that is being asked for

    def __init__(self, chat: ChatController) -> None:
        super().__init__()
        self._page, self._store, self._session, self._shown = chat.page, chat.store, chat.session, chat.shown
        self._current: Answering | None = None
        self._unsaved: dict[str, Answering] = {}  # answers that could not be written, the last of each chat
        self._told: dict[str, UserError] = {}  # why, by the notices' causes
        self._again = QTimer(self, interval=_AGAIN)
        self._again.timeout.connect(self.save_unsaved)

    def begin(
        self,
        chat: Conversation,
        at: int,
        question: Question | None,
        request: GenerationRequest,
        begun: Trace | None = None,
    ) -> None:
        """Generate an answer to `question` as turn `at` (None: to the question before it), or continue the
        answer `begun`. Requires a READY engine, and `save_unsaved` before."""
        unsaved = self._unsaved.pop(chat.id, None)  # its turns are in `chat`: the new ones bring them along
        owed = unsaved.owed if unsaved is not None else {}
        pair = self._session.pair
        name = pair.target.name if pair is not None else ""
        answering = self._current = Answering(self._store, chat, at, question, name, begun, owed)
        answering.saved.connect(self.saved)
        answering.not_saved.connect(self._not_saved)
        answering.refused.connect(self._refused)
        answering.over.connect(self._over)
        self.asked.emit(answering.answer)
        self._shown.begin(answering)
        answering.save_question()
        self._shown.asked()
        self.saved.emit()
        # A server writes at its own pace.
        answering.held = self._session.holds_next and self._session.server is None
        self._session.holds_next = False
        self._session.generate(request, answering, answering.held)

    def of(self, chat_id: str) -> Answering | None:
        """A chat's running answer, if there is one."""
        current = self._current
        return current if current is not None and current.chat.id == chat_id else None

    def unsaved(self, chat_id: str) -> Conversation | None:
        """A chat's shown state, if not all of it could be saved."""
        unsaved = self._unsaved.get(chat_id)
        return unsaved.chat if unsaved is not None else None

    def save_unsaved(self) -> None:
        """Try again to write what could not be written; notices stay until then."""
        for chat_id, answering in list(self._unsaved.items()):
            on_screen = self._shown.chat.id == chat_id
            if on_screen:
                answering.chat = self._shown.chat  # its system prompt may have changed since
            if answering.save_again():
                del self._unsaved[chat_id]
                self.saved.emit()
            if on_screen:
                self._shown.chat = answering.chat
        if not self._unsaved and self._current is None:
            self._again.stop()
            while self._told:
                self._page.prompt.notices.withdraw(self._told.popitem()[0])

    def remind(self) -> None:
        """Report again what could not be saved, after the notices were cleared."""
        for cause, error in self._told.items():
            self._page.prompt.notices.tell(error, cause=cause)

    def close(self) -> None:
        """Save the unfinished answer, and what could not be written before; called before the window closes
        and after the engine has ended."""
        if self._current is not None:
            self._current.close()
        self.save_unsaved()

    def _over(self) -> None:
        over, self._current = self._current, None
        if over is not None and over.unsaved:
            self._unsaved[over.chat.id] = over
        if self._told:
            self._again.start()

    def _refused(self, failed: Failed) -> None:
        """Nothing was decoded: put the question back into the prompt box and show the error."""
        refused = self._current
        assert refused is not None
        if refused is self._shown.live:
            self._shown.show(refused.chat)
        prompt = self._page.prompt
        # A template may be missing on a server, or fail on these messages.
        offers = [WayOut("Use completion", prompt.use_completion)] if _TEMPLATE in failed.message else []
        prompt.give_back(refused.question, failed.message, failed.hint, *offers)

    def _not_saved(self, error: UserError) -> None:
        cause = f"not saved: {error.message}"
        self._told[cause] = error
        self._page.prompt.notices.tell(error, cause=cause)
