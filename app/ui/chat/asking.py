"""Requests to the engine for an answer, why none is possible now, and repeated requests."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import msgspec

from app.engine.errors import UserError
from app.engine.process.messages import Failed, PromptProgress
from app.engine.record.trace import Trace
from app.engine.types import GenerationRequest, Message, ModelInfo, PairInfo, Round, Totals, TraceHeader
from app.saved.chats.conversation import Conversation, Question
from app.saved.settings import Settings
from app.ui.state.engine_session import BUSY, Activity, EngineSession


def request_for(
    chat: Conversation,
    at: int,
    question: Question | None,
    settings: Settings,
    strategy: str,
    cold: bool = False,
) -> GenerationRequest:
    """The request for an answer to `question` in place of turn `at` and all later turns. None asks for an
    answer to the turns before `at`. A completion contains only its text, infill only its two texts."""
    prompt: str | None = None
    messages: tuple[Message, ...] = ()
    asked = question or chat.question_before(at) or Question("")
    if asked.suffix is not None or chat.head.mode == "completion":
        prompt = asked.text
    else:
        turns = chat.turns[:at] + ((question,) if question is not None else ())
        messages = Conversation(chat.head, chat.system_prompt, turns).messages()
    return GenerationRequest(
        prompt=prompt,
        messages=messages,
        suffix=asked.suffix,
        strategy=strategy,
        sampling=settings.sampling,
        max_tokens=settings.max_tokens,
        stop=settings.stop,
        template_options=chat.template_options,
        cold=cold,
    )


def asked_in(chat: Conversation, pair: PairInfo | None) -> Conversation:
    """The chat in a mode that this pair supports: a target without a chat template continues texts."""
    if chat.head.mode != "chat" or pair is None or pair.target.has_chat_template:
        return chat
    return msgspec.structs.replace(chat, head=msgspec.structs.replace(chat.head, mode="completion"))


def request_to_go_on(trace: Trace, settings: Settings) -> GenerationRequest:
    """The request to continue an answer: unchanged, for as many further tokens as the length limit allows."""
    header = trace.header
    return GenerationRequest(
        prompt=None if header.messages or header.prompt_ids else header.prompt,
        messages=header.messages,
        prompt_ids=header.prompt_ids,
        suffix=header.suffix,
        strategy=header.strategy,
        sampling=dataclasses.replace(header.sampling, seed=header.seed),
        max_tokens=len(trace.token_ids) + settings.max_tokens,
        stop=header.stop,
        template_options=header.template_options,
        continues=trace.token_ids,
    )


def loaded_alike(loaded: PairInfo, recorded: PairInfo) -> bool:
    """Whether both pairs are the same unchanged files, loaded with the same options: only then can their
    speeds be compared and an answer be continued."""

    def facts(model: ModelInfo | None) -> tuple[object, ...]:
        if model is None:
            return ()
        return model.path, model.size, model.n_ctx, model.threads, model.n_gpu_layers

    return (facts(loaded.target), facts(loaded.draft)) == (facts(recorded.target), facts(recorded.draft))


def why_not(activity: Activity) -> tuple[str, str]:
    """Why an engine that is not READY cannot be asked, and what to do about it."""
    if activity in BUSY:
        return "The engine is busy.", "Stop the answer, or wait until it ends."
    if activity is Activity.LOADING:
        return "The models are still loading.", "Send it again when they are loaded."
    if activity is Activity.LENT:
        return (
            "A measurement is running, so nothing else can run.",
            "Wait until it ends, or cancel it in Compare or Models. The models are then loaded again.",
        )
    return "No model is loaded.", "Choose models at the top of the window."


class Rerun:
    """Answers the prompt of an answer once more, for its trace; a RunSink."""

    def __init__(
        self,
        session: EngineSession,
        prompt: str,
        answered: Callable[[Trace], None],
        failed: Callable[[UserError], None],
        grew: Callable[[], None] = lambda: None,
    ) -> None:
        """Either `answered` (even if stopped) or `failed` (also if the request now reads a different prompt)
        is called once. `grew` is called with the header and with every batch of rounds."""
        self._session, self._prompt = session, prompt
        self._answered, self._failed, self._grew = answered, failed, grew
        self.trace: Trace | None = None

    def run_progress(self, progress: PromptProgress) -> None:
        """Ignored: the status bar shows it."""

    def run_started(self, header: TraceHeader) -> None:
        self.trace = Trace(header)
        if header.prompt != self._prompt:
            self._session.stop()
        else:
            self._grew()

    def run_rounds(self, rounds: list[Round]) -> None:
        if self.trace is not None and self.trace.header.prompt == self._prompt:
            self.trace.rounds.extend(rounds)
            self._grew()

    def run_finished(self, totals: Totals) -> None:
        assert self.trace is not None
        self.trace.totals = totals
        if self.trace.header.prompt != self._prompt:
            self._failed(
                UserError("The chat's system prompt, mode or messages have changed since this answer.")
            )
        else:
            self._answered(self.trace)

    def run_failed(self, failed: Failed) -> None:
        self._failed(UserError(failed.message, failed.hint))
