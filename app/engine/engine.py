"""The engine: a loaded pair that answers requests. Five lines of Python run a generation."""

from __future__ import annotations

import datetime
import os
import secrets
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace as replace_struct

from app import __version__
from app.engine.chat import ChatTemplate
from app.engine.compat import FitKind, VocabularyFit, check_vocabularies
from app.engine.drafters.base import Drafter, Resources, Surroundings
from app.engine.drafters.lookup_caches import LookupCaches
from app.engine.drafters.registry import KINDS, StrategyKind
from app.engine.draws import Draws
from app.engine.errors import ModelFileError, PairError, PromptError, SettingError, UserError
from app.engine.generate import Generation, TokenBuffer, rounds
from app.engine.lengths.base import DraftLength, Outset, StrategyLimits
from app.engine.lengths.registry import make_length
from app.engine.memory import ModelMemory
from app.engine.messages import Event, Finished, PromptProgress, RoundFinished, Started
from app.engine.native import SNAPSHOTS, AbortFlag, Cancelled, Context, Model
from app.engine.params import check_params
from app.engine.placement import share_workers
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


@dataclass(slots=True)
class _Kept:
    """A drafter that outlives the answer, and the settings that it was used with last."""

    drafter: Drafter
    params: Any


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
        on_test: Callable[[str], None] = lambda _file: None,
    ) -> None:
        """Load the pair. Raises ModelFileError, PairError, SettingError or WorkerError.

        `on_test` is told of each file before its first passes: kernels that fault end the process there.
        A `previous` engine gives the parts that are loaded in the same way already, and is closed; where
        loading fails it stays as it was.
        """
        self._abort: AbortFlag = previous._abort if previous else AbortFlag()
        self._abort.clear()  # of a Stop long ago
        self._on_test = on_test
        self._drafters: dict[tuple[StrategyKind, Hashable], _Kept] = {}
        self._lookup_caches = LookupCaches()
        self._lengths: dict[LengthRule, DraftLength] = {}
        old: list[_Part] = previous._parts if previous else []
        self._asked = _options(target), None if draft is None else _options(draft)
        options, beside = share_workers(*self._asked)
        with ExitStack() as new:
            first = self._open(options, on_progress, old, new)
            self._parts: list[_Part] = [first]
            self._target, self._draft = first.context, None
            self._fit: VocabularyFit | None = None
            if beside is not None:
                if not beside.ctx_size:  # as far as the target goes
                    beside = replace(beside, ctx_size=self._target.n_ctx)
                second = self._open(beside, on_progress, old[1:], new, snapshots=0)
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
        self.pair = PairInfo(
            target=_describe(self._target),
            draft=_describe(self._draft) if self._draft else None,
            vocabulary=str(self._fit or ""),
            devices=_devices_in_use(self._target),
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
            half.callback(part.context.close)
            self._on_test(name)
            try:
                part.context.self_test()
            except Cancelled:
                raise ModelFileError(f"Loading {name} was stopped.") from None
            half.pop_all()
        new.callback(part.close)
        return part

    @property
    def options(self) -> tuple[ModelOptions, ModelOptions | None]:
        """What was asked for, so that the same pair can be loaded again."""
        return self._asked

    def memory_beside(self, target: ModelOptions) -> tuple[ModelMemory, ...]:
        """What this pair holds on the devices of another one, by the names that they have there."""
        held = [part.context.memory for part in self._parts]
        if self._parts and self._parts[0].options.rpc == target.rpc:
            return tuple(held)
        # Other workers: RPC0 is another device there.
        return tuple(
            replace_struct(one, memory=tuple(on for on in one.memory if not on.device.startswith("RPC")))
            for one in held
        )

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
        """Answer a request: Started, PromptProgress, RoundFinished for every round, Finished.

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
        begun: list[Drafter] = []
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
            self._begin_drafters(answer, begun)
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
        finally:  # also where an error ends the answer, or nobody wants the rest of it
            ended = time.perf_counter()
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
        # A cold run has drafters and a length rule of its own: what the others learned outlives it.
        if request.cold:
            drafters = [(part.name, self._new_drafter(part)) for part in spec.parts]
            length = make_length(spec.length)
            self._clear_caches()
        else:
            drafters = self._warm_drafters(spec)
            length = self._lengths.setdefault(spec.length, make_length(spec.length))
        vocabulary = self._target.model.vocabulary
        seed = secrets.randbits(63) if sampling.seed < 0 else sampling.seed
        ends = vocabulary.end_ids
        answer = Generation(
            target=self._target,
            drafters=drafters,
            draft_contexts=[self._draft] if self._draft else [],
            verification=verification,
            length=length,
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

    def _warm_drafters(self, spec: StrategySpec) -> list[tuple[str, Drafter]]:
        """Drafters of those names, each with what it learned in earlier answers, under whatever settings do
        not shape its memory."""
        # A plug-in that was read again is another kind.
        self._drafters = {key: one for key, one in self._drafters.items() if KINDS.get(key[0].name) is key[0]}
        return [(part.name, self._drafter(part)) for part in spec.parts]

    def _drafter(self, part: StrategyPart) -> Drafter:
        kind = KINDS[part.name]
        shape = kind.memory
        key = kind, str(part) if shape is None else tuple(getattr(part.params, name) for name in shape)
        kept = self._drafters.get(key)
        if kept is None:
            kept = self._drafters[key] = _Kept(self._new_drafter(part), part.params)
        elif kept.params != part.params:
            kept.drafter.adjust(part.params)
            kept.params = part.params
        return kept.drafter

    def _new_drafter(self, part: StrategyPart) -> Drafter:
        """One that has learned nothing yet."""
        resources = Resources(self._target.model.vocabulary, self._draft, self._fit, self._lookup_caches)
        return KINDS[part.name].make(part.params, resources)

    def _clear_caches(self) -> None:
        self._target.clear()
        if self._draft is not None:
            self._draft.clear()

    def reset(self) -> None:
        """Empty both caches and all drafters: what comes next is cold."""
        self._clear_caches()
        for kept in self._drafters.values():
            kept.drafter.reset()
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

    def _begin_drafters(self, answer: Generation, begun: list[Drafter]) -> None:
        """`begun` gets each of them that has begun: what is to be finished."""
        around = Surroundings(answer.sampler, answer.draws, answer.prompt_length, answer.end_ids)
        for _name, drafter in answer.drafters:
            drafter.begin(answer.truth.ids, around)
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


def _finish_drafters(begun: Sequence[Drafter], answer: Generation) -> str:
    """Let them keep what should outlive the answer; returns what went wrong: the answer stands either way."""
    errors = []
    for drafter in begun:
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
        n_gpu_layers=context.memory.n_gpu_layers,
        memory=context.memory.memory,
    )


def _devices_in_use(context: Context) -> str:
    """The devices that hold layers, such as "CUDA0, CPU"."""
    return ", ".join(one.device for one in context.memory.memory if one.layers)
