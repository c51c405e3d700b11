"""Places of an answer, judged again: the target reads the text again, in passes of a chosen width.

What a place's row is depends a little on the tokens that share its pass, and on those that shared the passes
before: kernels sum in another order. Reading one text in several widths shows how much.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from app.engine.errors import PromptError, UserError
from app.engine.native import Cancelled, Context
from app.engine.process.messages import JudgedRow
from app.engine.sampling.logits import log_sum_exp, top_of_row
from app.engine.sampling.sampler import Sampler
from app.engine.types import Alternatives, GenerationRequest, Sampling

if TYPE_CHECKING:
    from numpy.typing import NDArray


def unfiltered(request: GenerationRequest) -> GenerationRequest:
    """The request with penalties and temperature alone."""
    off = {
        field.name: getattr(Sampling(), field.name)
        for field in dataclasses.fields(Sampling)
        if field.name in _FILTERS
    }
    return dataclasses.replace(request, sampling=dataclasses.replace(request.sampling, **off))


_FILTERS = ("top_k", "top_p", "min_p", "top_n_sigma", "typical_p", "xtc_probability")


def judged(
    target: Context,
    samplers: tuple[Sampler, Sampler],
    ids: NDArray[np.int32],
    first: int,
    width: int,
    candidates: tuple[int, ...],
    stopped: Callable[[], bool],
) -> tuple[JudgedRow, ...]:
    """The rows after each token of a text, shape [n], from the one at `first` on: the tokens before are read
    as a prompt is, the others in passes of `width` tokens. `samplers` are that of the answer, and one without
    its filters.

    Raises PromptError if the text does not fit, and UserError where a stop came.
    """
    if len(ids) > target.n_ctx:
        raise PromptError(
            f"The text has {len(ids):,} tokens, but the context has room for {target.n_ctx:,}.",
            "Raise the context size, or shorten the answer.",
        )
    rows = []
    try:
        for _done in target.read(ids[:first]):
            pass
        for start in range(first, len(ids), min(width, target.n_batch)):
            if stopped():
                raise Cancelled
            read = ids[start : start + min(width, target.n_batch)]
            for at, logits in enumerate(target.decode(read, logits=len(read)), start + 1):
                row = samplers[0].adjust(logits, ids[:at])
                if math.isnan(row.max()):
                    raise target.no_numbers()
                (top, p), (whole, _) = (_view(sampler, row, candidates, target) for sampler in samplers)
                rows.append(JudgedRow(top, whole, p))
    except Cancelled:
        raise UserError("It was stopped.") from None
    return tuple(rows)


def _view(
    sampler: Sampler, row: NDArray[np.float32], candidates: tuple[int, ...], target: Context
) -> tuple[Alternatives, tuple[float, ...]]:
    """The best tokens of a row after penalties, as a trace records them, and the p of the candidates."""
    if sampler.is_greedy:  # a trace has the model's own probabilities
        ids, values = top_of_row(row)
        (total,) = log_sum_exp(row[None])
        p = [math.exp(value - total) for value in values]
        asked = tuple(math.exp(row.item(token) - total) for token in candidates)
    else:
        made = sampler.distribution(row)
        ids, p = top_of_row(made.p)
        p = [share for share in p if share > 0]
        ids = ids[: len(p)] if made.ids is None else made.ids[ids[: len(p)]].tolist()
        asked = tuple(map(made.of, candidates))
    pieces = target.model.vocabulary.pieces
    return Alternatives(tuple(ids), tuple(pieces[token] for token in ids), tuple(p)), asked
