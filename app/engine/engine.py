"""The engine: a loaded pair that answers requests. Five lines of Python run a generation."""

from __future__ import annotations

import datetime
import secrets
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from msgspec.structs import replace as replace_struct

from app import __version__
from app.engine.devices.cores import cpu_name
from app.engine.devices.memory import ModelMemory
from app.engine.drafters.base import Drafter, Resources, RunContext
from app.engine.drafters.ngram.lookup_caches import LookupCaches
from app.engine.drafters.registry import KINDS
from app.engine.errors import PromptError, SettingError, UserError
from app.engine.lengths.base import Outset, StrategyLimits
from app.engine.lengths.registry import make_length
from app.engine.loop.generate import Generation, Rounds, TokenBuffer, rounds
from app.engine.loop.text import TextStream
from app.engine.native import AbortFlag, Cancelled, Vocabulary, exponentials
from app.engine.pair import LoadedPair, LoadReport, TestReport
from app.engine.params import check_params
from app.engine.process.messages import Event, Finished, PromptProgress, RoundFinished, Started
from app.engine.record.trace import FORMAT
from app.engine.sampling.draws import Draws
from app.engine.sampling.dry import breakers_of
from app.engine.sampling.sampler import Sampler
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.templates.chat import ChatTemplate, TokenizedPrompt
from app.engine.templates.completion import fill_in_the_middle, from_ids
from app.engine.templates.options import check_options
from app.engine.templates.process import Templates
from app.engine.types import (
    FinishReason,
    GenerationRequest,
    ModelInfo,
    ModelOptions,
    Role,
    Totals,
    TraceHeader,
)
from app.engine.warm_drafters import WarmDrafters

_PROMPT_CHUNK = 512  # tokens between two progress reports


class Engine:
    """A target, where there is one its draft, and the state of their drafters.

    Not for two threads at once; only `stop` may come from another.
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

        `on_test` is told of each file before its first passes: kernels that fault end the process there.
        A `previous` engine gives the parts that are loaded in the same way already, and is closed; where
        loading fails it stays as it was. `templates` is where chat templates are rendered, with a process of
        its own by default.
        """
        self._abort: AbortFlag = previous._abort if previous else AbortFlag()
        self._abort.clear()  # of a Stop long ago
        if previous is not None:
            previous._leave()
        before = previous.models if previous else None
        self.models: LoadedPair = LoadedPair(target, draft, self._abort, on_progress, before, on_test)
        self.target, self.draft = self.models.target, self.models.draft
        self._lookup_caches = LookupCaches()
        if previous is not None and _same_file(previous.models.info.target, self.models.info.target):
            # A file that answers are added to is drafted from as it was before all of them.
            self._lookup_caches = previous._lookup_caches
        self.warm = WarmDrafters(self.new_drafter)
        self._templates: Templates = templates or (previous._templates if previous else Templates())
        model = self.target.model
        self._template = ChatTemplate(model.chat_template, model.vocabulary, self._templates)
        self.pair = self.models.info
        self._rounds: Rounds | None = None  # of the answer that is being written

    @property
    def options(self) -> tuple[ModelOptions, ModelOptions | None]:
        """What was asked for, so that the same pair can be loaded again."""
        return self.models.asked

    @property
    def vocabulary(self) -> Vocabulary:
        """The target's."""
        return self.target.model.vocabulary

    def prompt_ids(self, request: GenerationRequest) -> tuple[int, ...]:
        """The tokens that the target reads for a request; raises PromptError."""
        return tuple(self.tokenize(request).ids.tolist())

    def memory_beside(self, target: ModelOptions) -> tuple[ModelMemory, ...]:
        """What this pair holds on the devices of another one, by the names that they have there."""
        return self.models.memory_beside(target)

    def read_template(self) -> None:
        """Learn what the chat template can be told about thinking, for `pair`. Raises PromptError."""
        self.pair = replace_struct(self.pair, thinking=self._template.thinking(self._abort.is_set))

    def close(self) -> None:
        """Free the models; an answer that is being written ends here."""
        self._leave()
        self.models.close()
        self._templates.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        """Stop the running generation; safe from any thread. Its Finished follows."""
        self._abort.set()

    def generate(self, request: GenerationRequest, run: int = 0) -> Iterator[Event]:
        """Answer a request: Started, PromptProgress, RoundFinished for every round, Finished.

        Raises UserError where the request cannot be met, before anything is decoded. An answer before it
        whose events were not all taken is cancelled.
        """
        self._leave()
        self._abort.clear()
        asked = time.perf_counter()
        answer, header, spec = self._prepare(request)
        yield Started(run, header)
        prompt_seconds = draft_seconds = 0.0
        first_token: float | None = None
        zero = asked
        native = self.target.seconds
        begun: list[Drafter] = []
        made: Rounds | None = None
        try:
            for done in self._read_prompt(answer):
                yield PromptProgress(run, Role.TARGET, done, answer.prompt_length)
            prompt_seconds = time.perf_counter() - asked
            read = answer.truth.length - 1 - header.cached_tokens
            answer.length.begin(
                Outset(self._limits(spec), request.max_tokens, read, self.target.seconds - native)
            )
            if spec.needs_draft and not answer.length.lazy:
                yield PromptProgress(run, Role.DRAFT, 0, answer.prompt_length)
            self._begin_drafters(answer, begun)
            zero = time.perf_counter()
            draft_seconds = zero - asked - prompt_seconds
            made = self._rounds = rounds(answer)
            for round, text in made:
                # A round comes when the next one is under way already: neither the clock nor the cache are
                # asked about it now.
                if first_token is None:
                    first_token = zero - asked + round.offset + round.seconds
                cached = answer.prompt_length + round.position + len(round.emitted) - 1
                yield RoundFinished(run, round, text, cached)
                if self._abort.is_set() and answer.finish is None:
                    raise Cancelled
            if answer.finish is None:  # `_leave` ended it
                raise Cancelled
        except Cancelled:
            answer.finish = FinishReason.CANCELLED
            prompt_seconds = prompt_seconds or time.perf_counter() - asked
        finally:  # also where an error ends the answer, or nobody wants the rest of it
            ended = time.perf_counter()
            if made is not None:
                made.close()  # the loop's thread uses the drafters
                if self._rounds is made:
                    self._rounds = None
            error = _finish_drafters(begun, answer)
        seconds = ended - zero if first_token is not None else 0.0
        answer.text.finish()
        totals = Totals(
            finish_reason=answer.finish or FinishReason.FAILED,
            text=answer.text.text,
            seconds=seconds,
            prompt_seconds=prompt_seconds,
            draft_prompt_seconds=draft_seconds + answer.draft_reading,
            first_token_seconds=first_token,
            error=error,
            draft_prompt_in_rounds=answer.draft_reading,
        )
        yield Finished(run, totals)

    def _leave(self) -> None:
        """End the loop of an answer whose events nobody takes at present: its next pass is under way."""
        if self._rounds is not None:
            self._rounds.close()
            self._rounds = None

    def _prepare(self, request: GenerationRequest) -> tuple[Generation, TraceHeader, StrategySpec]:
        """Check everything that was asked for; nothing is decoded yet."""
        if self.models.closed:
            raise RuntimeError("This engine is closed.")
        sampling = request.sampling
        check_params(sampling)
        check_options(request.template_options)
        if request.max_tokens < 1:
            raise SettingError("max_tokens cannot be below 1.", "Ask for at least one token.")
        spec = StrategySpec.parse(request.strategy)
        verification = spec.verification_at(sampling.temperature)
        if spec.needs_draft and self.draft is None:
            raise SettingError(
                f"{spec} needs a draft model and none is loaded.",
                "Choose a draft, or a strategy that needs none.",
            )
        text, prompt, told = self.tokenize(request)
        vocabulary = self.vocabulary
        ids = np.append(prompt, np.array(request.continues, np.int32))
        written = TextStream(request.stop)
        for token in request.continues:
            written.add(vocabulary.piece(token))
        n_ctx = self.target.n_ctx
        if len(ids) > n_ctx:
            raise PromptError(
                f"The prompt has {len(ids):,} tokens and the context holds {n_ctx:,}.",
                "Shorten it, start a new chat, or raise the context size.",
            )
        # A cold run has drafters and a length rule of its own: what the others learned outlives it.
        if request.cold:
            drafters = [(part.name, self.new_drafter(part)) for part in spec.parts]
            length = make_length(spec.length, spec.ewma)
            self.models.clear()
        else:
            drafters, length = self.warm.of(spec), self.warm.length(spec)
        seed = secrets.randbits(63) if sampling.seed < 0 else sampling.seed
        ends = vocabulary.end_ids
        answer = Generation(
            target=self.target,
            drafters=drafters,
            draft_contexts=[self.draft] if self.draft else [],
            verification=verification,
            length=length,
            sampler=Sampler(
                sampling,
                ends if request.ignore_eos else (),
                exponentials,
                breakers_of(vocabulary, sampling),
            ),
            draws=Draws(seed),
            truth=TokenBuffer(ids, n_ctx + 1),
            prompt_length=len(prompt),
            max_tokens=request.max_tokens,
            end_ids=frozenset() if request.ignore_eos else ends,
            text=written,
        )
        header = TraceHeader(
            format=FORMAT,
            app_version=__version__,
            strategy=str(spec),
            verification=verification,
            sampling=sampling,
            seed=seed,
            max_tokens=request.max_tokens,
            pair=self.pair,
            prompt=text,
            prompt_tokens=len(prompt),
            cached_tokens=self.target.sync(ids[:-1]),
            cold=request.cold,
            started_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            stop=request.stop,
            messages=request.messages,
            machine=cpu_name(),
            template_options=told,
            suffix=request.suffix,
            prompt_ids=request.prompt_ids,
        )
        return answer, header, spec

    def tokenize(self, request: GenerationRequest) -> TokenizedPrompt:
        given = (request.prompt is not None, bool(request.messages), bool(request.prompt_ids))
        if sum(given) != 1:
            raise PromptError("There is no prompt.", "Give a prompt, messages or token ids: one of them.")
        if request.suffix is not None and request.prompt is None:
            raise PromptError("A suffix needs a prompt.", "Give the text in front of the gap as the prompt.")
        vocabulary = self.vocabulary
        if request.messages:
            made = self._template.tokenize(request.messages, request.template_options, self._abort.is_set)
        elif request.prompt_ids:
            made = TokenizedPrompt(*from_ids(vocabulary, request.prompt_ids), {})
        elif request.suffix is not None:
            ids = fill_in_the_middle(vocabulary, request.prompt or "", request.suffix)
            made = TokenizedPrompt(request.prompt or "", ids, {})
        else:
            ids = vocabulary.tokenize(request.prompt or "", special=True, parse_special=False)
            made = TokenizedPrompt(request.prompt or "", ids, {})
        if not len(made.ids):
            raise PromptError("The prompt is empty.", "Type something first.")
        return made

    def new_drafter(self, part: StrategyPart) -> Drafter:
        """One that has learned nothing yet."""
        vocabulary, fit = self.target.model.vocabulary, self.models.fit
        resources = Resources(vocabulary, self.draft, fit, self._lookup_caches)
        return KINDS[part.name].make(part.params, resources)

    def reset(self) -> None:
        """Empty both caches and all drafters: what comes next is cold."""
        self._leave()
        self.models.clear()
        self.warm.reset()

    def _read_prompt(self, answer: Generation) -> Iterator[int]:
        """Decode the prompt but for its last token, which belongs to round 0; yields tokens done."""
        prompt = answer.truth.ids[:-1]
        done = self.target.sync(prompt)
        while done < len(prompt):
            chunk = prompt[done : done + _PROMPT_CHUNK]
            self.target.decode(chunk)
            done += len(chunk)
            yield done
            if self._abort.is_set():
                raise Cancelled

    def _begin_drafters(self, answer: Generation, begun: list[Drafter]) -> None:
        """`begun` gets each of them that has begun: what is to be finished."""
        around = RunContext(answer.sampler, answer.draws, answer.prompt_length, answer.end_ids)
        for name, drafter in answer.drafters:
            start = time.perf_counter()
            drafter.begin(answer.truth.ids, around)
            answer.begin_seconds[name] = time.perf_counter() - start
            begun.append(drafter)
            if not answer.length.lazy:
                drafter.read(answer.truth.ids)

    def _limits(self, spec: StrategySpec) -> list[StrategyLimits]:
        draft = self.pair.draft.size / self.pair.target.size if self.pair.draft else 0.0
        return [
            StrategyLimits(
                part.name, part.shortest, part.longest, draft if KINDS[part.name].needs_draft else 0.0
            )
            for part in spec.parts
        ]


def _same_file(first: ModelInfo, second: ModelInfo) -> bool:
    return (first.path, first.n_vocab) == (second.path, second.n_vocab)


def _finish_drafters(begun: Sequence[Drafter], answer: Generation) -> str:
    """Let them keep what should outlive the answer; returns what went wrong: the answer stands either way."""
    errors = []
    for drafter in begun:
        try:
            drafter.finish(answer.truth.ids)
        except UserError as error:
            errors.append(str(error))
    return " ".join(errors)
