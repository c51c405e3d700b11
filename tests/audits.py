# ruff: noqa: SLF001 - a fault is planted where nobody is to reach
"""Faults planted in the real engine, as the audit must find them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import llama_cpp
import numpy as np

from app.engine import Engine
from app.engine.fates import Origin
from app.engine.native.context import Context
from app.engine.process.messages import Judge, trace_of
from app.engine.rules import speculative
from app.engine.rules.base import Drafted, Judgement, Outcome, Rows, Rule
from app.engine.rules.greedy import GreedyRule
from app.engine.rules.match import MatchRule
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Purpose
from app.engine.sampling.logits import TOP, softmax
from app.engine.sampling.rows import TargetRows
from app.engine.sampling.sampler import Sampler
from app.engine.strategy import NONE
from app.engine.types import Alternatives, GenerationRequest, Race
from app.lab.audit import audit
from app.lab.audit_finding import Audit
from tests.answers import events_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


Acted = list[str]
"""Grows each time the fault acts: a fault that had nothing to act on is no fault of that answer."""


@contextmanager
def stale_token(engine: Engine, acted: Acted, at: int = 0) -> Iterator[None]:
    """When drafts are taken back for the `at`-th time, the cache keeps the rejected token in the place of the
    last accepted one."""

    def spoil(context: Context, keep: int, rejected: int) -> None:
        right = int(context._ids[keep - 1])
        _ROLL_BACK(context, keep - 1)
        context.decode(np.array([rejected], np.int32))
        context._ids[keep - 1] = right

    with _spoiled(engine, acted, at, spoil):
        yield


@contextmanager
def lost_token(engine: Engine, acted: Acted, at: int = 0) -> Iterator[None]:
    """When drafts are taken back for the `at`-th time, the cache loses the token before the last, too."""

    def spoil(context: Context, keep: int, _rejected: int) -> None:
        assert llama_cpp.llama_memory_seq_rm(context._memory, 0, keep - 2, keep - 1)

    with _spoiled(engine, acted, at, spoil):
        yield


_ROLL_BACK, _ALIKE = Context._roll_back, Context.alike


@contextmanager
def _spoiled(
    engine: Engine, acted: Acted, at: int, spoil: Callable[[Context, int, int], None]
) -> Iterator[None]:
    times, on_trial = 0, False

    def alike(context: Context, *asked: Any) -> int:
        """A trial takes back tokens of its own: a fault among them would not last."""
        nonlocal on_trial
        on_trial = True
        try:
            return _ALIKE(context, *asked)
        finally:
            on_trial = False

    def roll_back(context: Context, keep: int) -> None:
        nonlocal times
        rejected, of_draft = int(context._ids[keep]), context is engine.target and 1 < keep < context.n_cached
        _ROLL_BACK(context, keep)
        if of_draft and not on_trial:
            if times >= at and not acted and rejected != context._ids[keep - 1]:
                spoil(context, keep, rejected)
                acted.append("cache")
            times += 1

    with patch.object(Context, "_roll_back", roll_back), patch.object(Context, "alike", alike):
        yield


LENIENT = 0.1
Own = Callable[[Drafted, int], tuple[int, Race | None]]
"""Gives the target's own token at a place."""


@contextmanager
def lenient_rule(_engine: Engine | None = None, acted: Acted | None = None, _at: int = 0) -> Iterator[None]:
    """Drafted tokens with a p above 0.1 are accepted, too (not by block verification)."""
    done: Acted = [] if acted is None else acted

    def judged_by(
        own: Callable[[Drafted, int], tuple[int, Race | None]],
    ) -> Callable[[Rule, Drafted], Outcome]:
        def judge(_rule: Rule, draft: Drafted) -> Outcome:
            judged: list[Judgement] = []
            best, race = own(draft, 0)
            for place, token in enumerate(draft.ids):
                lenient = best != token and _p(draft.rows, place, token) > LENIENT
                done.extend(["rule"] * lenient)
                judged.append(Judgement(lenient or best == token, target_id=best, race=race))
                if not judged[-1].accepted:
                    return Outcome(tuple(judged), best, Origin.RESAMPLED, race)
                best, race = own(draft, place + 1)
            return Outcome(tuple(judged), best, draft.origin_behind, race)

        return judge

    def passes(u: float, p: float, q: float) -> bool:
        lenient = not _PASSES(u, p, q) and p > LENIENT
        done.extend(["rule"] * lenient)
        return lenient or _PASSES(u, p, q)

    with (
        patch.object(GreedyRule, "judge", judged_by(lambda draft, place: (draft.rows.argmax(place), None))),
        patch.object(MatchRule, "judge", judged_by(_drawn)),
        patch.object(speculative, "passes", passes),
    ):
        yield


_PASSES = speculative.passes


def _drawn(draft: Drafted, place: int) -> tuple[int, Race]:
    """The target's own token at a place."""
    return draft.p(place).draw(draft.draws.key(draft.position + place, Purpose.TOKEN))


def _p(rows: Rows, place: int, token: int) -> float:
    assert isinstance(rows, TargetRows)
    logits = rows.adjusted(place).astype(np.float64)
    return float(np.exp(logits[token] - logits.max()) / np.exp(logits - logits.max()).sum())


@contextmanager
def penalty_twice(_engine: Engine, acted: Acted, _at: int = 0) -> Iterator[None]:
    """In all rows of a draft but the first, penalties are applied once too often."""
    right, record = TargetRows.adjusted, TargetRows.record

    def adjusted(rows: TargetRows, row: int) -> NDArray[np.float32]:
        known = row in rows._adjusted
        found = right(rows, row)
        sampler: Sampler = rows._sampler
        if row and not known and sampler._penalises:
            before = np.concatenate([rows._context, np.array(rows._draft[:row], np.int32)])
            twice = sampler.adjust(found.copy(), before)
            if _tells(sampler, found, twice):
                told.add((rows, row))
            found = rows._adjusted[row] = twice
        return found

    def recorded(rows: TargetRows, count: int) -> list[Alternatives]:
        top = record(rows, count)
        acted.extend("penalty" for row in range(count) if (rows, row) in told)
        return top

    told: set[tuple[TargetRows, int]] = set()
    with patch.object(TargetRows, "adjusted", adjusted), patch.object(TargetRows, "record", recorded):
        yield


def _tells(sampler: Sampler, right: NDArray[np.float32], wrong: NDArray[np.float32]) -> bool:
    """Whether a record of these logits differs: the probability of a token that it lists."""
    rows = []
    for logits in (right, wrong):
        made = Distribution(softmax(logits, 1.0)) if sampler.is_greedy else sampler.distribution(logits)
        row = np.zeros_like(right)
        row[slice(None) if made.ids is None else made.ids] = made.p
        rows.append(row)
    listed = np.union1d(*(np.argsort(row)[-TOP:] for row in rows))
    return bool(np.abs(rows[0][listed] - rows[1][listed]).max() > TOLD)


TOLD = 0.01  # of a probability: rounding moves it less


@contextmanager
def rounding(_engine: Engine, acted: Acted, _at: int = 0) -> Iterator[None]:
    """At the first near-tie the second token is put before the first: no fault, but what rounding may do."""
    right = TargetRows.adjusted

    def adjusted(rows: TargetRows, row: int) -> NDArray[np.float32]:
        found = right(rows, row)
        second, first = np.argsort(found)[-2:]
        if not acted and NEAR / 10 < found[first] - found[second] < NEAR:
            acted.append("rounding")
            found = found.copy()
            found[second] = found[first] + NEAR / 10
            rows._adjusted[row] = found
        return found

    def argmax(rows: TargetRows, row: int) -> int:
        return int(rows.adjusted(row).argmax())

    # Recorded as they were drawn from.
    with (
        patch.object(TargetRows, "adjusted", adjusted),
        patch.object(TargetRows, "argmax", argmax),
        patch.object(Sampler, "adjusts", True, create=True),
    ):
        yield


NEAR = 0.1

Plant = Callable[[Engine, Acted, int], AbstractContextManager[None]]
PLANTS: dict[str, Plant] = {
    "a stale token in the cache": stale_token,
    "a lost token in the cache": lost_token,
    "a rule that accepts all above p 0.1": lenient_rule,
    "a penalty applied twice": penalty_twice,
}


def audited(engine: Engine, request: GenerationRequest, plant: str = "", at: int = 0) -> tuple[Audit, Acted]:
    """An audit on this engine, with a fault in the answer with drafting; what the fault did."""
    steps, acted = audit(request), Acted()
    step = next(steps)
    while True:
        if isinstance(step, Judge):
            reply: object = engine.judge(step)
        else:
            fault = {"": None, "rounding": rounding, **PLANTS}[plant] if step.strategy != NONE else None
            with fault(engine, acted, at) if fault is not None else nullcontext():
                reply = trace_of(events_of(engine, step))
        try:
            step = steps.send(reply)  # type: ignore[arg-type]
        except StopIteration as end:
            return end.value, acted
