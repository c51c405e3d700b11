"""One answer on its way: from the request, through the store, into the views."""

from __future__ import annotations

from typing import Protocol

import msgspec

from app.engine.errors import UserError
from app.engine.process.messages import Failed, PromptProgress
from app.engine.record.trace import Trace
from app.engine.types import FinishReason, Role, Round, Totals, TraceHeader
from app.saved.chats.conversation import Answer, Conversation, Question
from app.saved.chats.recorder import NOTES, AnswerRecorder
from app.saved.chats.store import ChatStore


class AnswerViews(Protocol):
    """What shows an answer. It shows only what belongs to the chat on the screen."""

    def answer_progress(self, answering: Answering, text: str) -> None: ...

    def answer_started(self, answering: Answering) -> None: ...

    def answer_rounds(self, answering: Answering, rounds: list[Round], context_used: int) -> None: ...

    def answer_finished(self, answering: Answering, totals: Totals) -> None: ...

    def answer_failed(self, answering: Answering, failed: Failed) -> None: ...

    def answer_not_saved(self, error: UserError) -> None: ...


class Answering:
    """Takes the events of one run (a RunSink), saves every round and tells the views.

    The question is in the store before the engine is asked. Where the engine refuses it, it goes back to the
    prompt box and out of the store.
    """

    def __init__(
        self,
        store: ChatStore,
        views: AnswerViews,
        chat: Conversation,
        at: int,
        question: str | None,
        target_name: str,
        begun: Trace | None = None,
    ) -> None:
        """The answer to `question` in place of turn `at` and all behind it; None answers the question that
        stands before `at` already. `target_name` is the model's that answers. `begun` is the answer as far as
        it is there: this one goes on with it."""
        self._store = store
        self._views = views
        self.chat = chat
        self.question = question
        self.at = at
        self.target_name = target_name
        self.trace: Trace | None = None
        self._begun = begun
        self._recorder: AnswerRecorder | None = None
        self._before: Conversation | None = None  # the chat without the question, once that is in the store

    @property
    def turn(self) -> int:
        """The index of the answer in the chat."""
        return self.at if self.question is None else self.at + 1

    def save_question(self) -> None:
        """Before the engine is asked: a crash from now on leaves the question."""
        try:
            self._ask()
        except UserError as error:
            self._views.answer_not_saved(error)

    def run_progress(self, progress: PromptProgress) -> None:
        whose = "the prompt" if progress.role is Role.TARGET else "the prompt (draft)"
        told = f"Reading {whose}, {progress.done:,} of {progress.total:,} tokens"
        self._views.answer_progress(self, told)

    def run_started(self, header: TraceHeader) -> None:
        begun = self._begun
        if begun is not None:
            header = msgspec.structs.replace(begun.header, max_tokens=header.max_tokens)
        self.trace = Trace(header, list(begun.rounds) if begun is not None else [])
        try:
            self._ask()  # the disk may take by now what it refused
            self.chat, self._recorder = self._store.begin_answer(self.chat, header, at=self.turn)
            for one in self.trace.rounds:
                self._recorder.add(one)
        except UserError as error:
            self._remember(Answer(""))
            self._views.answer_not_saved(error)
        self._views.answer_started(self)

    def run_rounds(self, rounds: list[Round], context_used: int) -> None:
        if self.trace is None:
            return
        if self._begun is not None and self._begun.rounds:
            last = self._begun.rounds[-1]
            rounds = [_moved(one, last.index + 1, last.offset + last.seconds) for one in rounds]
        self.trace.rounds.extend(rounds)
        for one in rounds:
            try:
                if self._recorder is not None:
                    self._recorder.add(one)
            except UserError as error:
                self._views.answer_not_saved(error)
        self._views.answer_rounds(self, rounds, context_used)

    def run_finished(self, totals: Totals) -> None:
        if self._begun is not None and self._begun.totals is not None:
            totals = totals_of_both(self._begun.totals, totals)
        if self.trace is not None:
            self.trace.totals = totals
        self._remember(Answer(self._name, totals.text, NOTES.get(totals.finish_reason, ""), totals.error))
        if self._recorder is not None:
            try:
                self.chat = self._recorder.finish(totals)
            except UserError as error:
                self._views.answer_not_saved(error)
        self._views.answer_finished(self, totals)

    def run_failed(self, failed: Failed) -> None:
        if self.trace is not None:
            note = NOTES[FinishReason.FAILED]
            self._remember(Answer(self._name, self.trace.text, note, failed.message, failed.hint))
        if self._recorder is not None:
            try:
                self.chat = self._recorder.fail(failed.message, failed.hint)
            except UserError as error:
                self._views.answer_not_saved(error)
        if self.trace is None and self._before is not None:
            try:
                self.chat = self._store.take_back(self.chat, self._before)
            except UserError as error:
                self._views.answer_not_saved(error)
        self._views.answer_failed(self, failed)

    def close(self) -> None:
        """Before the window goes: what came is on the disk, and nothing more comes."""
        if self._recorder is not None:
            self._recorder.close()

    def _ask(self) -> None:
        if self.question is not None and self._before is None:
            asked = self._store.ask(self.chat, self.question, at=self.at)
            self._before, self.chat = self.chat, asked

    @property
    def _name(self) -> str:
        return self._recorder.trace if self._recorder is not None else ""

    def _remember(self, answer: Answer) -> None:
        """The chat as it stands on the screen, also where the disk refuses it: what is asked next goes on
        from there."""
        kept = self.chat.turns[: self.at]
        question = () if self.question is None else (Question(self.question),)
        self.chat = msgspec.structs.replace(self.chat, turns=(*kept, *question, answer))


def _moved(one: Round, rounds: int, seconds: float) -> Round:
    """A round of what was added to an answer, behind those that were there."""
    return msgspec.structs.replace(one, index=one.index + rounds, offset=one.offset + seconds)


def totals_of_both(begun: Totals, added: Totals) -> Totals:
    """The totals of an answer that went on; its text is in the second's. What came before the first token is
    the first part's, also where a draft read the prompt only in a round of the second."""
    in_rounds = begun.draft_prompt_in_rounds or added.draft_prompt_in_rounds
    return msgspec.structs.replace(
        added,
        seconds=begun.seconds + added.seconds,
        prompt_seconds=begun.prompt_seconds,
        draft_prompt_seconds=begun.draft_prompt_seconds + in_rounds - begun.draft_prompt_in_rounds,
        first_token_seconds=begun.first_token_seconds,
        draft_prompt_in_rounds=in_rounds,
    )
