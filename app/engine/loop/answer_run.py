"""The run of an answer: the prompt, the rounds, the totals."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from queue import SimpleQueue
from statistics import median

import msgspec

from app.base.processes import join, start
from app.engine.devices.memory import CPU, cores
from app.engine.drafters.base import Drafter, Rehearsal, RunContext
from app.engine.errors import UserError
from app.engine.lengths.base import FixedLength, Outset
from app.engine.loop.generate import Generation, Rounds, TokenBuffer, rounds
from app.engine.loop.handover import Pace
from app.engine.loop.text import TextStream
from app.engine.native import Cancelled, Context
from app.engine.process.messages import Event, Finished, PromptProgress, RoundFinished
from app.engine.strategy import StrategySpec
from app.engine.types import FinishReason, Role, Totals, TraceHeader

_WIDEST = 17  # tokens of a pass that is tried
_TIMED = 8  # tokens of a prompt from which on the time of reading one of them is known


class AnswerRun:
    """Reads the prompt, begins the drafters, runs the rounds, and keeps the times of the totals."""

    def __init__(self, answer: Generation, header: TraceHeader, spec: StrategySpec, asked: float) -> None:
        """`asked` is when the request was made."""
        self._answer = answer
        self._header = header
        self._spec = spec
        self._asked = asked
        self._zero = asked  # when round 0 began
        self._prompt_seconds = 0.0
        self._draft_seconds = 0.0
        self._first_token: float | None = None
        self._begun: list[Drafter] = []
        self._closed = False
        self._rounds: Rounds | None = None
        self._beside: _Beside | None = None  # the draft's reading, while the target reads
        self._readings: list[Generator[PromptProgress, None, None]] = []  # those on the thread of passes

    def events(self, run: int) -> Iterator[Event]:
        """Yield PromptProgress, RoundFinished for every round, Finished. Drafters are also finished after an
        error, or if the caller stops iterating."""
        answer = self._answer
        try:
            if self._spec.is_synthetic:
                answer.rehearsal = self._rehearse()
                self._asked = self._zero = time.perf_counter()
            elif answer.rule.keeps_text and answer.rule.draws and self._spec.parts:
                longest = max(part.longest for part in self._spec.parts)
                answer.widest = min(_WIDEST, longest + 1)
            yield from self._before_rounds(run)
            if self._closed:
                raise Cancelled
            self._rounds = rounds(answer)
            for round, text in self._rounds:
                # The next round is already running when this one arrives: its times come from its record,
                # not from the clock.
                if self._first_token is None:
                    self._first_token = self._zero - self._asked + round.offset + round.seconds
                yield RoundFinished(run, round, text)
                if answer.is_stopped() and answer.finish is None:
                    raise Cancelled
            if answer.finish is None:  # `close` ended it
                raise Cancelled
        except Cancelled:
            answer.finish = FinishReason.CANCELLED
            self._prompt_seconds = self._prompt_seconds or time.perf_counter() - self._asked
        finally:
            ended = time.perf_counter()
            self.close()  # the thread of passes uses the drafters
            error = self._finish_drafters()
        answer.text.finish()
        yield Finished(run, self._totals(ended, error))

    def close(self) -> None:
        """End the loop, whose next pass is already running, and all reading."""
        self._closed = True
        if self._beside is not None:
            self._beside.close()
        for reading in self._readings:
            reading.close()
        if self._rounds is not None:
            self._rounds.close()

    def _before_rounds(self, run: int) -> Iterator[Event]:
        """Read the prompt and begin the drafters. Raises Cancelled."""
        answer, native = self._answer, self._answer.target.seconds
        heads = [(head, head.n_cached, head.seconds) for head in self._heads()]
        parts = ((done, answer.prompt_length) for done in self._read_target())
        target = self._on_thread(_told(run, Role.TARGET, parts))
        draft = _told(run, Role.DRAFT, self._begin_drafters())
        if self._spec.needs_draft and not answer.length.lazy and _can_read_at_once(answer):
            self._beside = _Beside(draft)
            target, draft = self._beside.behind(target), self._beside.rest()
        else:
            draft = self._on_thread(draft)
        yield from target
        seconds = answer.target.seconds - native
        self._prompt_seconds = time.perf_counter() - self._asked
        read = answer.truth.length - 1 - self._header.cached_tokens
        pair = self._header.pair
        limits = self._spec.limits(
            pair.draft.size / pair.target.size if pair.draft else 1 / max(1, pair.target.n_layers)
        )
        head_token = 0.0
        for head, held, began in heads:
            if head.n_cached - held >= _TIMED:
                head_token = (head.seconds - began) / (head.n_cached - held)
        answer.length.begin(Outset(limits, answer.max_tokens, read, seconds, answer.passes, head_token))
        yield from draft
        self._zero = time.perf_counter()
        self._draft_seconds = self._zero - self._asked - self._prompt_seconds

    def _on_thread(self, reading: Iterator[PromptProgress]) -> Iterator[PromptProgress]:
        self._readings.append(self._answer.thread.items(reading))
        return self._readings[-1]

    def _heads(self) -> list[Context]:
        return [context for context in self._answer.draft_contexts if context.reads_target]

    def _read_target(self) -> Iterator[int]:
        """Read the prompt. A head reads each part right after the target, so only that part's rows are
        kept."""
        answer, heads = self._answer, self._heads()
        for done in answer.target.read(answer.truth.ids[:-1]):
            for head in heads:
                for _ in () if done <= head.n_cached else head.read(answer.truth.ids[:done]):
                    pass
            yield done

    def _rehearse(self) -> Rehearsal:
        """The answer without speculation; the target's cache is then as before."""
        answer, target = self._answer, self._answer.target
        begin = answer.truth.ids.copy()
        alone = replace(
            answer,
            drafters=[],
            length=FixedLength(),
            truth=TokenBuffer(begin, target.n_ctx + 1),
            text=TextStream(self._header.stop),
            begin_seconds={},
            pace=Pace(),  # nobody watches it: it waits for no step and takes none
        )
        for _ in answer.thread.items(target.read(begin[:-1])):
            pass
        passes = [round.verify_seconds for round, _ in rounds(alone)]
        target.sync(begin[: self._header.cached_tokens])
        ids = alone.truth.ids[answer.prompt_length :].tolist()
        return Rehearsal(ids, median(passes[1:] or passes), answer.repeat)

    def _begin_drafters(self) -> Iterator[tuple[int, int]]:
        """Begin the drafters; yields how many tokens a draft model has read, and how many its prompt has."""
        answer = self._answer
        around = RunContext(
            answer.sampler,
            answer.draws,
            answer.prompt_length,
            answer.end_ids,
            answer.rehearsal,
            answer.is_stopped,
            answer.rule.shares_luck,
        )
        for name, drafter in answer.drafters:
            start = time.perf_counter()
            drafter.begin(answer.truth.ids, around)
            answer.begin_seconds[name] = time.perf_counter() - start
            self._begun.append(drafter)
            if not answer.length.lazy:
                yield from drafter.read(answer.truth.ids)

    def _finish_drafters(self) -> str:
        """Finish the drafters that have begun; returns errors as text, because the answer is valid either
        way."""
        errors = []
        for drafter in self._begun:
            try:
                drafter.finish(self._answer.truth.ids)
            except UserError as error:
                errors.append(str(error))
        return " ".join(errors)

    def _totals(self, ended: float, error: str) -> Totals:
        answer = self._answer
        return Totals(
            finish_reason=answer.finish or FinishReason.FAILED,
            text=answer.text.text,
            seconds=ended - self._zero - answer.waited if self._first_token is not None else 0.0,
            prompt_seconds=self._prompt_seconds,
            draft_prompt_seconds=self._draft_seconds + answer.draft_reading,
            first_token_seconds=self._first_token,
            error=error,
            draft_prompt_in_rounds=answer.draft_reading,
        )


class _Beside:
    """A reading that runs on its own thread from the start; `rest` waits for its end."""

    def __init__(self, reading: Iterator[PromptProgress]) -> None:
        self._reading = reading
        self._left = False
        self._latest: PromptProgress | None = None
        self._told: SimpleQueue[PromptProgress | BaseException | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="reading beside", daemon=True)
        start(self._thread)

    def _run(self) -> None:
        try:
            for progress in self._reading:
                self._latest = progress
                self._told.put(progress)
                if self._left:
                    break
            self._told.put(None)
        except BaseException as error:
            self._told.put(error)

    def behind(self, other: Iterable[PromptProgress]) -> Iterator[PromptProgress]:
        """The progress of `other`, or of this reading if that is further behind."""
        for progress in other:
            mine = self._latest
            if mine is None or mine.at_end or progress.at_end:
                yield progress
            else:
                last = min(progress, mine, key=lambda each: each.done / each.total)
                yield msgspec.structs.replace(last, at_once=True)

    def rest(self) -> Iterator[PromptProgress]:
        """Yield its progress from now to its end; raises the reading's errors."""
        while (told := self._told.get()) is not None:
            if isinstance(told, BaseException):
                raise told
            if told is self._latest:
                yield told

    def close(self) -> None:
        """Wait until the thread has ended: it uses the draft model."""
        self._left = True
        join(self._thread)


def _told(run: int, role: Role, parts: Iterator[tuple[int, int]]) -> Iterator[PromptProgress]:
    """Turn (tokens done, tokens in all) of a model's reading into its progress."""
    cached: int | None = None
    began = 0.0
    for done, total in parts:
        now = time.perf_counter()
        if cached is None:
            cached, began = done, now
        yield PromptProgress(run, role, done, total, cached, now - began)


def _can_read_at_once(answer: Generation) -> bool:
    """Whether there are enough cores for target and draft to read at once. (In turn, each would leave some
    idle.)"""
    contexts = [answer.target, *answer.draft_contexts]
    if any(context.reads_target for context in contexts):
        return False
    here = all(memory.device == CPU for context in contexts for memory in context.memory.memory)
    return here and sum(context.reading_threads for context in contexts) <= cores()
