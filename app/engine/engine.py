"""The engine: a loaded pair that answers requests. Five lines of Python run a generation."""

from __future__ import annotations

import datetime
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from app import __version__
from app.engine.chat import ChatTemplate
from app.engine.compat import FitKind, VocabularyFit, check_vocabularies
from app.engine.drafters.base import Drafter, Resources, Surroundings
from app.engine.drafters.registry import KINDS, StrategyKind
from app.engine.draws import Draws
from app.engine.errors import ModelFileError, PairError, PromptError, SettingError, UserError
from app.engine.generate import Generation, TokenBuffer, rounds
from app.engine.lengths.base import DraftLength, Outset, StrategyLimits
from app.engine.lengths.registry import make_length
from app.engine.messages import Event, Finished, PromptProgress, RoundFinished, Started
from app.engine.native import SNAPSHOTS, AbortFlag, Cancelled, Context, Model, devices
from app.engine.params import check_params
from app.engine.sampling import Sampler
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.text import TextStream
from app.engine.trace import FORMAT
from app.engine.types import (
    FinishReason,
    GenerationRequest,
    LengthRule,
    ModelInfo,
    ModelOptions,
    PairInfo,
    Totals,
    TraceHeader,
)

LoadReport = Callable[[str, float], bool]
"""(file name, fraction read) -> go on."""

_PROMPT_CHUNK = 512  # tokens between two progress reports


@dataclass(frozen=True, slots=True)
class _Part:
    """One loaded model file and its context."""

    options: ModelOptions
    model: Model
    context: Context

    def close(self) -> None:
        self.context.close()
        self.model.close()


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
    ) -> None:
        """Load the pair. Raises ModelFileError, PairError or SettingError.

        A `previous` engine gives the parts that are loaded in the same way already, and is closed; where
        loading fails it stays as it was.
        """
        self._abort: AbortFlag = previous._abort if previous else AbortFlag()
        self._drafters: dict[tuple[StrategyKind, str], Drafter] = {}
        self._lengths: dict[LengthRule, DraftLength] = {}
        old: list[_Part] = previous._parts if previous else []
        with ExitStack() as new:
            first = self._open(_options(target), on_progress, old, new)
            self._parts: list[_Part] = [first]
            self._target, self._draft = first.context, None
            self._fit: VocabularyFit | None = None
            if draft is not None:
                options = _options(draft)
                if not options.ctx_size:  # as far as the target goes
                    options = replace(options, ctx_size=self._target.n_ctx)
                second = self._open(options, on_progress, old[1:], new, snapshots=0)
                self._fit = check_vocabularies(first.model.vocabulary, second.model.vocabulary)
                if self._fit.kind is FitKind.CANNOT:
                    raise PairError(
                        f"The draft cannot serve this target: {self._fit.detail}.", "Choose another draft."
                    )
                self._parts.append(second)
                self._draft = second.context
            new.pop_all()
        if previous is not None:
            previous._parts = [part for part in old if part not in self._parts]
            previous.close()
        self._template = ChatTemplate(first.model.chat_template, first.model.vocabulary)
        offloaded = devices() if first.options.n_gpu_layers else []
        self.pair = PairInfo(
            target=_describe(self._target),
            draft=_describe(self._draft) if self._draft else None,
            vocabulary=str(self._fit or ""),
            devices=", ".join(offloaded) or "CPU",
        )

    def _open(
        self,
        options: ModelOptions,
        on_progress: LoadReport | None,
        old: Sequence[_Part],
        new: ExitStack,
        snapshots: int = SNAPSHOTS,
    ) -> _Part:
        check_params(options)
        for part in old[:1]:
            if part.options == options:
                return part
        name = Path(options.path).name
        with ExitStack() as half:
            model = Model(options, on_progress and partial(on_progress, name))
            half.callback(model.close)
            if not model.can_decode:
                raise ModelFileError(
                    f"{name} does not write text token by token.", "Choose a language model."
                )
            part = _Part(options, model, Context(model, options, self._abort, snapshots))
            half.pop_all()
        new.callback(part.close)
        return part

    def close(self) -> None:
        """Free the models."""
        for part in self._parts:
            part.close()
        self._parts = []

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stop(self) -> None:
        """Stop the running generation; safe from any thread. Its Finished follows."""
        self._abort.set()

    def generate(self, request: GenerationRequest, run: int = 0) -> Iterator[Event]:
        """Answer a request: PromptProgress, Started, RoundFinished for every round, Finished.

        Raises UserError where the request cannot be met, before anything is decoded.
        """
        self._abort.clear()
        asked = time.perf_counter()
        answer, header, spec = self._prepare(request)
        yield Started(run, header)
        prompt_seconds = draft_seconds = 0.0
        first_token: float | None = None
        zero = asked
        native = self._target.seconds
        try:
            for done in self._read_prompt(answer):
                yield PromptProgress(run, "target", done, answer.prompt_length)
            prompt_seconds = time.perf_counter() - asked
            read = answer.prompt_length - 1 - header.cached_tokens
            answer.length.begin(
                Outset(self._limits(spec), request.max_tokens, read, self._target.seconds - native)
            )
            if spec.needs_draft and not answer.length.lazy:
                yield PromptProgress(run, "draft", 0, answer.prompt_length)
            self._begin_drafters(answer)
            zero = time.perf_counter()
            draft_seconds = zero - asked - prompt_seconds
            for one, text in rounds(answer):
                # A round comes when the next one is under way already: neither the clock nor the cache are
                # asked about it now.
                if first_token is None:
                    first_token = zero - asked + one.offset + one.seconds
                cached = answer.prompt_length + one.position + len(one.emitted) - 1
                yield RoundFinished(run, one, text, cached)
                if self._abort.is_set() and answer.finish is None:
                    raise Cancelled
        except Cancelled:
            answer.finish = FinishReason.CANCELLED
            prompt_seconds = prompt_seconds or time.perf_counter() - asked
        seconds = time.perf_counter() - zero if first_token is not None else 0.0
        answer.text.finish()
        totals = Totals(
            finish_reason=answer.finish or FinishReason.FAILED,
            text=answer.text.text,
            seconds=seconds,
            prompt_seconds=prompt_seconds,
            draft_prompt_seconds=draft_seconds,
            first_token_seconds=first_token,
            error=_finish_drafters(answer),
        )
        yield Finished(run, totals)

    def _prepare(self, request: GenerationRequest) -> tuple[Generation, TraceHeader, StrategySpec]:
        """Check everything that was asked for; nothing is decoded yet."""
        if not self._parts:
            raise RuntimeError("This engine is closed.")
        sampling = request.sampling
        check_params(sampling)
        if request.max_tokens < 1:
            raise SettingError("max_tokens cannot be below 1.", "Ask for at least one token.")
        spec = StrategySpec.parse(request.strategy)
        verification = spec.verification_at(sampling.temperature)
        if spec.needs_draft and self._draft is None:
            raise SettingError(
                f"{spec} needs a draft model and none is loaded.",
                "Choose a draft, or a strategy that needs none.",
            )
        text, ids = self._tokenize(request)
        n_ctx = self._target.n_ctx
        if len(ids) > n_ctx:
            raise PromptError(
                f"The prompt has {len(ids):,} tokens and the context holds {n_ctx:,}.",
                "Shorten it, start a new chat, or raise the context size.",
            )
        drafters = [(part.name, self._drafter(part)) for part in spec.parts]
        if request.cold:
            self.reset()
        vocabulary = self._target.model.vocabulary
        seed = secrets.randbits(63) if sampling.seed < 0 else sampling.seed
        ends = vocabulary.end_ids
        answer = Generation(
            target=self._target,
            drafters=drafters,
            draft_contexts=[self._draft] if self._draft else [],
            verification=verification,
            length=self._lengths.setdefault(spec.length, make_length(spec.length)),
            sampler=Sampler(sampling, ends if request.ignore_eos else ()),
            draws=Draws(seed),
            truth=TokenBuffer(ids, n_ctx + 1),
            prompt_length=len(ids),
            max_tokens=request.max_tokens,
            end_ids=frozenset() if request.ignore_eos else ends,
            text=TextStream(request.stop),
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
            prompt_tokens=len(ids),
            cached_tokens=self._target.sync(ids[:-1]),
            cold=request.cold,
            started_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            stop=request.stop,
        )
        return answer, header, spec

    def _tokenize(self, request: GenerationRequest) -> tuple[str, np.ndarray]:
        if (request.prompt is None) == (not request.messages):
            raise PromptError("There is no prompt.", "Give a prompt or messages, not both.")
        if request.prompt is None:
            text, ids = self._template.tokenize(request.messages)
        else:
            text = request.prompt
            ids = self._target.model.vocabulary.tokenize(text, special=True, parse_special=False)
        if not len(ids):
            raise PromptError("The prompt is empty.", "Type something first.")
        return text, ids

    def _drafter(self, part: StrategyPart) -> Drafter:
        """The drafter of that name and those settings; it keeps what it learned between answers."""
        kind = KINDS[part.name]
        key = kind, str(part)  # a plug-in that was read again is another kind
        if key not in self._drafters:
            resources = Resources(self._target.model.vocabulary, self._draft, self._fit)
            self._drafters[key] = kind.make(part.params, resources)
        return self._drafters[key]

    def reset(self) -> None:
        """Empty both caches and all drafters: what comes next is cold."""
        self._target.clear()
        if self._draft is not None:
            self._draft.clear()
        for drafter in self._drafters.values():
            drafter.reset()
        for length in self._lengths.values():
            length.reset()

    def _read_prompt(self, answer: Generation) -> Iterator[int]:
        """Decode the prompt but for its last token, which belongs to round 0; yields tokens done."""
        prompt = answer.truth.ids[:-1]
        done = self._target.sync(prompt)
        while done < len(prompt):
            chunk = prompt[done : done + _PROMPT_CHUNK]
            self._target.decode(chunk)
            done += len(chunk)
            yield done
            if self._abort.is_set():
                raise Cancelled

    def _begin_drafters(self, answer: Generation) -> None:
        around = Surroundings(answer.sampler, answer.draws, answer.prompt_length, answer.end_ids)
        for _name, drafter in answer.drafters:
            drafter.begin(answer.truth.ids, around)
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


def _finish_drafters(answer: Generation) -> str:
    """Let them keep what should outlive the answer; returns what went wrong: the answer stands either way."""
    errors = []
    for _name, drafter in answer.drafters:
        try:
            drafter.finish(answer.truth.ids)
        except UserError as error:
            errors.append(str(error))
    return " ".join(errors)


def _options(source: str | Path | ModelOptions) -> ModelOptions:
    return source if isinstance(source, ModelOptions) else ModelOptions(os.fspath(source))


def _describe(context: Context) -> ModelInfo:
    model = context.model
    return ModelInfo(
        path=str(model.path),
        name=model.metadata("general.name") or model.path.stem,
        architecture=model.metadata("general.architecture"),
        quantisation=model.quantisation,
        size=model.path.stat().st_size,
        n_params=model.n_params,
        n_layers=model.n_layers,
        n_vocab=model.vocabulary.size,
        n_ctx_train=model.n_ctx_train,
        n_ctx=context.n_ctx,
        threads=context.threads,
        has_chat_template=bool(model.chat_template),
    )
