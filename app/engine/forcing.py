"""Teacher forcing: how far a draft's distributions agree with the target's, over texts that are given.

Both models read a text once, which takes a pass each instead of an answer: seconds, where measuring a
strategy takes minutes. α of teacher forcing is the mean over the text's places of Σ min(p, q), the chance
that a sampled draft token passes (Leviathan et al. 2023, corollary 3.6); at temperature 0 it is the share of
places where both models have the same most probable token.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from app.engine.native import Cancelled, Context
from app.engine.process.messages import Agreement, PassSeconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.sampling.sampler import Sampler

    Ids = NDArray[np.int32]

WIDTHS = (1, 2, 3, 5, 9, 17)
"""Tokens of the target passes that are timed: those that verify a draft of 0, 1, 2, 4, 8 and 16."""
_TIMES = 5  # each, in turns


def agreement(target: Context, draft: Context, sampler: Sampler, ids: Ids, start: int) -> Agreement:
    """The agreement over a text, shape [n], from the token at `start` on. Raises Cancelled.

    Rows of another width, as padded vocabularies have them, are compared where both have tokens.
    """
    wanted = len(ids) - start
    size = min(context.model.vocabulary.size for context in (target, draft))
    rows = [_rows(context, ids, wanted) for context in (target, draft)]
    overlap, same = 0.0, 0
    for place in range(wanted):
        p, q = (sampler.distribution(sampler.adjust(row[place, :size], ids[: start + place])) for row in rows)
        overlap += min(p.overlap(q), 1.0)  # both sum to one up to rounding
        same += int(rows[0][place, :size].argmax() == rows[1][place, :size].argmax())
    return Agreement(wanted, overlap, same)


def pass_seconds(target: Context, draft: Context, ids: Ids, stopped: Callable[[], bool]) -> PassSeconds:
    """Time passes behind a text, of shape [n], which both contexts are made to hold. Raises Cancelled."""
    longest = max(WIDTHS)
    ids = ids[: min(context.n_ctx for context in (target, draft)) - longest]
    behind = np.resize(ids, longest)
    for context in (target, draft):
        context.decode(ids[context.sync(ids) :])
    widths = [width for width in WIDTHS if width <= target.n_batch]
    times: dict[int, list[float]] = {width: [] for width in widths}
    single: list[float] = []
    for _ in range(_TIMES):
        for width in widths:
            times[width].append(_timed(target, ids, behind[:width]))
        single.append(_timed(draft, ids, behind[:1]))
        if stopped():
            raise Cancelled
    return PassSeconds(
        {width: float(np.median(each)) for width, each in times.items()}, float(np.median(single))
    )


def _rows(context: Context, ids: Ids, wanted: int) -> NDArray[np.float32]:
    """The logits before each of the last `wanted` tokens, shape [wanted, vocabulary]; a view."""
    context.clear()
    return context.decode(ids[:-1], logits=wanted)


def _timed(context: Context, held: Ids, ids: Ids) -> float:
    began = time.perf_counter()
    context.decode(ids, logits=len(ids)).argmax()
    seconds = time.perf_counter() - began
    context.sync(held)
    return seconds
