"""The engine: a loaded pair that answers requests, in five lines of Python."""

from __future__ import annotations

import datetime
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from msgspec.structs import replace as replace_struct

from app import __version__
from app.engine.devices.memory import ModelMemory, cpu_name
from app.engine.drafters.base import Drafter, Resources
from app.engine.drafters.lookup_caches import LookupCaches
from app.engine.drafters.registry import KINDS
from app.engine.errors import PromptError, SettingError
from app.engine.forcing import GivenText, compare, judged, time_passes, unfiltered
from app.engine.loop.answer_run import AnswerRun
from app.engine.loop.generate import Generation, TokenBuffer
from app.engine.loop.handover import Pace, PassThread
from app.engine.loop.text import TextStream
from app.engine.native import AbortFlag, Context, Vocabulary
from app.engine.native.head_context import HeadContext
from app.engine.native.heads import AssistantContext, MtpContext
from app.engine.pair import LoadedPair, LoadReport, TestReport
from app.engine.params import check_params
from app.engine.process import messages
from app.engine.record.trace import FORMAT, Trace
from app.engine.sampling.draws import Draws
from app.engine.sampling.dry import breakers_of
from app.engine.sampling.sampler import Sampler
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.templates.chat import ChatTemplate, TokenizedPrompt, document, filled, tokenized
from app.engine.templates.options import check_options
from app.engine.templates.process import Templates
from app.engine.types import GenerationRequest, ModelOptions, TraceHeader
from app.engine.warm_drafters import WarmDrafters


class Engine:
    """A target, its draft if there is one, and the state of their drafters.

    Not thread-safe: only `stop` may be called from another thread.
    """

    def __init__(
        self,
        target: str | Path | ModelOptions,
        draft: str | Path | ModelOptions | None = None,
        on_progress: LoadReport | None = None,
        previous: Engine | None = None,
        on_test: TestReport = lambda _role, _file, _on_devices: None,
        templates: Templates | None = None,
    ) -> None:
        """Load the pair. Raises ModelFileError, PairError, SettingError or WorkerError.

        `on_test` is called for each file before its first passes, where faulty kernels end the process.
        Models that a `previous` engine loaded with the same options are reused, and that engine is closed; if
        loading fails it is unchanged. `templates` renders chat templates, by default in a separate process.
        """
        self.abort: AbortFlag = previous.abort if previous else AbortFlag()
        self.abort.clear()  # set by an earlier `stop`
        if previous is not None:
            previous.leave()
        before = previous.models if previous else None
        self.models: LoadedPair = LoadedPair(target, draft, self.abort, on_progress, before, on_test)
        self.target, self.draft = self.models.target, self.models.draft
        self.lookup_caches = LookupCaches()
        new = self.models.info.target
        known = before.info.target if before else None
        if previous and known and (known.path, known.n_vocab) == (new.path, new.n_vocab):
            # A lookup cache that answers are added to is drafted from in its state before all of them.
            self.lookup_caches = previous.lookup_caches
        self.warm = WarmDrafters(self.new_drafter)
        self.templates: Templates = templates or (previous.templates if previous else Templates())
        model = self.target.model
        self._template = ChatTemplate(model.chat_template, model.vocabulary, self.templates)
        self.pair = self.models.info
        self._run: AnswerRun | None = None  # of the current answer
        self.thread = PassThread()
        if previous is not None:  # its helpers stay
            self.thread, previous.thread = previous.thread, self.thread
        self.pace = Pace()
        """The pace of rounds; can be changed during an answer, from any thread."""

    @property
    def options(self) -> tuple[ModelOptions, ModelOptions | None]:
        """The load options, with which the same pair can be loaded again."""
        return self.models.asked

    @property
    def vocabulary(self) -> Vocabulary:
        """The target's vocabulary."""
        return self.target.model.vocabulary

    def prompt_ids(self, request: GenerationRequest) -> tuple[int, ...]:
        """The tokens that the target reads for a request; raises PromptError."""
        return tuple(self.tokenize(request).ids.tolist())

    def memory_beside(self, target: ModelOptions) -> tuple[ModelMemory, ...]:
        """The memory that this pair uses on the devices of a pair with target `target`, by that pair's device
        names."""
        return self.models.memory_beside(target)

    def read_template(self) -> None:
        """Find the thinking options of the chat template, for `pair`. Raises PromptError."""
        self.pair = replace_struct(self.pair, thinking=self._template.thinking(self.abort.is_set))

    def close(self) -> None:
        """Free the models and end the current answer."""
        try:
            self.leave()
            self.thread.close()
        finally:
            self.models.close()
            self.templates.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        """Stop the running generation; safe from any thread. Its Finished follows."""
        self.abort.set()

    def generate(
        self, request: GenerationRequest, run: int = 0, passes: messages.PassSeconds | None = None
    ) -> Iterator[messages.Event]:
        """Answer a request: yields Started, PromptProgress, RoundFinished for every round, Finished. `passes`
        are measured times of the pair's passes, for length=auto.

        Raises UserError before anything is decoded if the request cannot be met. Cancels an earlier answer
        whose events were not all consumed.
        """
        self.leave()
        self.abort.clear()
        asked = time.perf_counter()
        answer, header, spec = self._prepare(request)
        answer.passes = passes
        yield messages.Started(run, header)
        made = self._run = AnswerRun(answer, header, spec, asked)
        try:
            yield from made.events(run)
        finally:
            if self._run is made:
                self._run = None

    def answer(self, request: GenerationRequest) -> Trace:
        """Answer a request; returns the whole trace. Raises UserError."""
        return messages.trace_of(self.generate(request))

    def force(
        self,
        texts: Sequence[messages.ForcedText],
        run: int = 0,
        told: Callable[[int], None] = lambda _done: None,
    ) -> messages.Forced:
        """Compare the draft with the target over answers, by teacher forcing. Without a text only passes are
        timed, and the caches stay. `told` is called with the number of finished texts, first with 0, then
        on a different thread; `stop` has an effect after that first call.

        Raises UserError if there is no draft of the target's vocabulary, or a text does not fit.
        """
        self.leave()
        self.abort.clear()
        told(0)
        if not texts:
            times = partial(time_passes, self.models, self.abort.is_set)
            return messages.Forced(run, (), self.thread.call(times, self.stop))
        given = [self._given(text) for text in texts]
        comparison = partial(compare, self.models, given, self.abort.is_set, told)
        return messages.Forced(run, *self.thread.call(comparison, self.stop))

    def _given(self, text: messages.ForcedText) -> GivenText:
        prompt = self.tokenize(text.request).ids
        ids = np.append(prompt, np.array(text.answer, np.int32))
        return GivenText(self._sampler(text.request), ids, len(prompt))

    def judge(self, asked: messages.Judge, told: Callable[[], None] = lambda: None) -> messages.JudgedRows:
        """Let the target judge places of an answer again. Returns no rows if a cache that is not `fresh`
        cannot be continued. `told` is called first; `stop` has an effect after that. Raises UserError."""
        self.leave()
        self.abort.clear()
        told()
        prompt, whole = self.tokenize(asked.request).ids, unfiltered(asked.request)
        ids = np.append(prompt, np.array(asked.answer, np.int32))
        first, samplers = len(prompt) + asked.first - 1, (self._sampler(asked.request), self._sampler(whole))
        if asked.fresh:
            self.models.clear()
        places = partial(judged, self.target, samplers, ids, first, asked.width, asked.candidates)
        try:
            rows = self.thread.call(partial(places, self.abort.is_set), self.stop)
        except RuntimeError:  # llama.cpp refuses the pass
            if asked.fresh:
                raise
            rows = ()
        return messages.JudgedRows(asked.run, rows)

    def leave(self) -> None:
        """End the loop of an answer whose events are no longer consumed: its next pass is already running."""
        if self._run is not None:
            self._run.close()
            self._run = None

    def _prepare(self, request: GenerationRequest) -> tuple[Generation, TraceHeader, StrategySpec]:
        """Check the whole request; nothing is decoded yet."""
        spec, sampling = self._checked(request), request.sampling
        rule = spec.verification_at(sampling.temperature)
        spec.check_lengths()
        if request.depth:
            request = filled(request, document(self.vocabulary, request.filler, request.depth))
        prompt = self.tokenize(request)
        vocabulary, n_ctx = self.vocabulary, self.target.n_ctx
        ids = np.append(prompt.ids, np.array(request.continues, np.int32))
        if len(ids) > n_ctx:
            raise PromptError(
                f"The prompt has {len(ids):,} tokens, but the context has room for {n_ctx:,}.",
                "Shorten it, start a new chat, or raise the context size.",
            )
        written = TextStream(request.stop)
        for token in request.continues:
            written.add(vocabulary.piece(token))
        # A cold run has its own drafters and length rule: the warm ones keep what they learned.
        if request.cold:
            drafters = [(part.name, self.new_drafter(part)) for part in spec.parts]
            length = spec.length.make()
            self.models.clear()
        else:
            drafters, length = self.warm.of(spec), self.warm.length(spec)
        draft_contexts = list(filter(None, (self._draft_of(part.name) for part in spec.parts)))
        for context in (self.draft, self.models.mtp):
            if isinstance(context, HeadContext):
                context.follow(ids[:-1] if context in draft_contexts else None)
        answer = Generation(
            target=self.target,
            drafters=drafters,
            draft_contexts=draft_contexts,
            rule=rule,
            length=length,
            sampler=self._sampler(request),
            draws=Draws(secrets.randbits(63) if sampling.seed < 0 else sampling.seed),
            truth=TokenBuffer(ids, n_ctx + 1),
            prompt_length=len(prompt.ids),
            max_tokens=request.max_tokens,
            end_ids=frozenset() if request.ignore_eos else vocabulary.end_ids,
            text=written,
            thread=self.thread,
            pace=self.pace,
            is_stopped=self.abort.is_set,
            repeat=request.repeat,
        )
        return answer, self._header(request, spec, prompt, answer), spec

    def _checked(self, request: GenerationRequest) -> StrategySpec:
        """The strategy of a request, after checking its settings; raises SettingError."""
        if self.models.closed:
            raise RuntimeError("This engine is closed.")
        check_params(request.sampling)
        check_options(request.template_options)
        if request.max_tokens < 1:
            raise SettingError("max_tokens cannot be below 1.", "Ask for at least one token.")
        spec = StrategySpec.parse(request.strategy)
        if spec.needs_draft and self.draft is None:
            raise SettingError(
                f"{spec} needs a draft model, but none is loaded.",
                "Choose a draft, or a strategy that needs none.",
            )
        spec.check_heads(self.pair, self.has_mtp)
        return spec

    def _header(
        self, request: GenerationRequest, spec: StrategySpec, prompt: TokenizedPrompt, answer: Generation
    ) -> TraceHeader:
        """The head of an answer's trace; the target's cache keeps what it shares with the prompt."""
        return TraceHeader(
            format=FORMAT,
            app_version=__version__,
            strategy=str(spec),
            verification=answer.rule.name,
            sampling=request.sampling,
            seed=answer.draws.seed,
            max_tokens=request.max_tokens,
            pair=self.pair,
            prompt=prompt.text,
            prompt_tokens=len(prompt.ids),
            cached_tokens=self.target.sync(answer.truth.ids[:-1]),
            cold=request.cold,
            started_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            stop=request.stop,
            messages=request.messages,
            machine=cpu_name(),
            template_options=prompt.options,
            suffix=request.suffix,
            prompt_ids=request.prompt_ids,
            context_ids=tuple(prompt.ids.tolist()),
        )

    def _sampler(self, request: GenerationRequest) -> Sampler:
        banned = self.vocabulary.end_ids if request.ignore_eos else ()
        return Sampler(request.sampling, banned, breakers_of(self.vocabulary, request.sampling))

    def tokenize(self, request: GenerationRequest) -> TokenizedPrompt:
        """The prompt of a request; raises PromptError."""
        return tokenized(request, self.vocabulary, self._template, self.abort.is_set)

    def new_drafter(self, part: StrategyPart) -> Drafter:
        """A drafter that has learned nothing yet."""
        vocabulary, fit = self.target.model.vocabulary, self.models.fit
        resources = Resources(vocabulary, self._draft_of(part.name), fit, self.lookup_caches)
        return KINDS[part.name].make(part.params, resources)

    def _draft_of(self, strategy: str) -> Context | None:
        """The context that a strategy drafts with, if it needs one."""
        kind = KINDS[strategy]
        return self._mtp if kind.needs_mtp else self.draft if kind.needs_draft else None

    @property
    def _mtp(self) -> Context | None:
        """The MTP head in use: one in a separate file comes before the target's own."""
        beside = isinstance(self.draft, MtpContext | AssistantContext)
        return self.draft if beside else self.models.mtp

    @property
    def has_mtp(self) -> bool:
        """Whether an MTP head is loaded."""
        return self._mtp is not None

    def reset(self) -> None:
        """Empty both caches and all drafters: the next answer is cold."""
        self.leave()
        self.models.clear()
        self.warm.reset()
