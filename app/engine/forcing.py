"""An engine's work besides answers: force texts, judge places again, draft alone.

In teacher forcing both models read a text in one pass each, instead of answering: seconds instead of the
minutes to measure a strategy. α of teacher forcing is the mean of Σ min(p, q) over the text's places. That is
the chance that a sampled draft token passes (Leviathan et al. 2023, corollary 3.6). At temperature 0 it is
the share of places where both models have the same most probable token.

A row that is judged again depends slightly on the tokens in its pass and earlier passes, because kernels sum
in a different order. Reading a text in several widths shows how much.

A strategy drafts alone after a prompt: only the target's vocabulary is read, not its weights.
"""

from __future__ import annotations

import dataclasses
import math
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median_low
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from app.engine.compat import FitKind
from app.engine.drafters.base import Resources, RunContext
from app.engine.drafters.lookup_caches import LookupCaches
from app.engine.drafters.registry import KINDS
from app.engine.errors import PromptError, SettingError, UserError
from app.engine.explain.cost import checked, is_plausible
from app.engine.native import Cancelled, Context, Vocabulary
from app.engine.native.head_context import HeadContext
from app.engine.native.header import FileHeader
from app.engine.process.messages import Agreement, AloneToken, DraftedAlone, JudgedRow, PassSeconds
from app.engine.sampling.draws import Draws
from app.engine.sampling.dry import breakers_of
from app.engine.sampling.logits import LARGEST_ROUNDING, TOP, log_sum_exp, top_of_row
from app.engine.sampling.sampler import Sampler
from app.engine.strategy import StrategySpec
from app.engine.templates.chat import ChatTemplate, tokenized
from app.engine.templates.process import Templates
from app.engine.types import Alternatives, GenerationRequest, Sampling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from app.engine.pair import LoadedPair

    Ids = NDArray[np.int32]


WIDTHS = (*range(1, 10), 17)
"""Tokens of the target passes that are timed: those that verify drafts of 0 to 8 tokens, and of 16. Kernels
compute in tiles, so a pass over 8 may take longer than one over 9."""
_TIMES = 5  # each, in turns
_SECONDS = 1.5  # that timing passes alone takes, as far as one turn takes no longer
_NOTHING_HELD = np.zeros(8, np.int32)  # the text of empty caches
_ROWS = 64  # of logits at once: whole answers would take gigabytes
_FINE = time.get_clock_info("thread_time").resolution < 1e-4  # Windows counts a thread's time in 16 ms


class GivenText(NamedTuple):
    """A prompt and its answer."""

    sampler: Sampler
    ids: Ids  # of both, shape [n]
    start: int  # the index of the answer's first


def compare(
    models: LoadedPair, texts: Sequence[GivenText], stopped: Callable[[], bool], told: Callable[[int], None]
) -> tuple[tuple[Agreement, ...], PassSeconds]:
    """The agreement of a pair's models over each text, and the times of their passes; empties both caches.
    `told` is called with the number of finished texts. If no text has an answer, only the target's passes are
    timed, and no draft is needed.

    Raises UserError if there is no draft with the target's vocabulary, a text does not fit, or it was
    stopped.
    """
    target = models.target
    draft = _comparable_draft(models) if any(len(text.ids) > text.start for text in texts) else None
    longest = max((text.ids for text in texts), key=len)
    limit = min(target.n_ctx, draft.n_ctx if draft is not None else target.n_ctx)
    if len(longest) > limit:
        raise PromptError(
            f"A text has {len(longest):,} tokens, but the context has room for {limit:,}.",
            "Raise the context size, or shorten the prompts.",
        )
    if draft is not None and any(text.ids.max() >= draft.model.vocabulary.size for text in texts):
        raise SettingError("A text has tokens that the draft lacks.", "Measure the draft with bench.")
    found: list[Agreement] = []
    try:
        for text in texts:
            if draft is not None:
                found.append(agreement(target, draft, *text))
                told(len(found))
        return tuple(found), pass_seconds(target, draft, longest, stopped)
    except Cancelled:
        raise UserError("The comparison was stopped.") from None
    finally:
        models.clear()


def time_passes(models: LoadedPair, stopped: Callable[[], bool]) -> PassSeconds:
    """Time passes for about a second, after the text in the caches, which stays. A draft whose passes cannot
    be timed alone is left out. Raises UserError if stopped."""
    target, draft = models.target, models.draft
    same = models.fit is not None and models.fit.kind in (FitKind.SAME, FitKind.PADDED)
    fits = same and not isinstance(draft, HeadContext)  # a head reads its target
    held = target.cached_ids
    try:
        text = held if len(held) else _NOTHING_HELD
        return pass_seconds(target, draft if fits else None, text, stopped, _SECONDS)
    except Cancelled:
        raise UserError("Timing was stopped.") from None
    finally:
        if not len(held):
            models.clear()


def _comparable_draft(models: LoadedPair) -> Context:
    if models.draft is None or models.fit is None:
        raise SettingError("There is no draft model to compare.", "Load one with the target.")
    if models.draft.reads_target:
        raise SettingError(
            "This draft reads its target and cannot read a text alone.", "Measure it with bench."
        )
    if models.fit.kind not in (FitKind.SAME, FitKind.PADDED):
        raise SettingError(
            f"Its vocabulary differs from the target's: {models.fit.detail}.",
            "Measure it with bench, through text.",
        )
    return models.draft


def agreement(target: Context, draft: Context, sampler: Sampler, ids: Ids, start: int) -> Agreement:
    """The agreement over a text, shape [n], from the token at `start` (above 0). Raises Cancelled, and
    ModelFileError if a logit is NaN.

    The draft's vocabulary may have different padding; it must have all tokens of the text.
    """
    size = target.model.vocabulary.size
    step = min(_ROWS, target.n_batch, draft.n_batch)
    for context in (target, draft):
        context.clear()
        context.decode(ids[: start - 1])
    overlap, same = 0.0, 0
    for first in range(start, len(ids), step):
        read = ids[first - 1 : min(first - 1 + step, len(ids) - 1)]
        rows = [_rows(context, read, size) for context in (target, draft)]
        for place in range(len(read)):
            before = ids[: first + place]
            both = [sampler.adjust(row[place], before) for row in rows]
            best = [int(row.argmax()) for row in both]
            for context, row, token in zip((target, draft), both, best, strict=True):
                if math.isnan(row.item(token)):
                    raise context.no_numbers()
            p, q = map(sampler.distribution, both)
            overlap += min(p.overlap(q), 1.0)  # both sum to one up to rounding
            same += best[0] == best[1]
    return Agreement(len(ids) - start, overlap, same)


def pass_seconds(
    target: Context, draft: Context | None, ids: Ids, stopped: Callable[[], bool], seconds: float = math.inf
) -> PassSeconds:
    """Time passes after a text, shape [n], which all contexts then contain. Slow passes get fewer turns;
    implausible times are measured a second time. Raises Cancelled."""
    longest = max(WIDTHS)
    contexts = [context for context in (target, draft) if context is not None]
    ids = ids[: max(0, min(context.n_ctx for context in contexts) - longest)]
    for context in contexts:
        context.decode(ids[context.sync(ids) :])
    found = _pass_seconds(target, draft, ids, stopped, seconds)
    if is_plausible(found):
        return found
    return checked(found, _pass_seconds(target, draft, ids, stopped, seconds))


def _pass_seconds(
    target: Context, draft: Context | None, ids: Ids, stopped: Callable[[], bool], seconds: float
) -> PassSeconds:
    """One measurement, after the text in the contexts."""
    behind = np.resize(ids, max(WIDTHS))
    times: dict[int, list[float]] = {width: [] for width in WIDTHS if width <= target.n_batch}
    single: list[float] = []
    began = time.perf_counter()
    for _ in range(_TIMES):
        for width, each in times.items():
            if stopped():
                raise Cancelled
            # The first pass of a shape prepares its graph, which the rounds of an answer use again.
            each.append(min(_timed(target, ids, behind[:width]) for _ in range(2)))
        if draft is not None:
            single.append(min(_timed(draft, ids, behind[:1]) for _ in range(2)))
        if time.perf_counter() - began > seconds:
            break
    # Of two turns the faster one: the first may have loaded something. A slow target has one turn.
    usual = {width: median_low(each) for width, each in times.items()}
    return PassSeconds(usual, median_low(single or [0.0]))


def _rows(context: Context, ids: Ids, size: int) -> NDArray[np.float32]:
    """The logits after each of these tokens, shape [n, size]; -inf for tokens that the model lacks."""
    rows = context.decode(ids, logits=len(ids))[:, :size]
    return np.pad(rows, ((0, 0), (0, size - rows.shape[1])), constant_values=-np.inf)


def _timed(context: Context, held: Ids, ids: Ids) -> float:
    """The seconds of a pass. A single thread is timed by its own running time, which stops while a different
    program has the core. With several threads that would be too short, because they also wait for each other:
    there wall time counts."""
    alone = context.threads == context.reading_threads == 1 and not context.memory.n_gpu_layers
    clock = time.thread_time if alone and _FINE else time.perf_counter
    began = clock()
    context.decode(ids, logits=len(ids)).argmax()
    seconds = clock() - began
    context.sync(held)
    return seconds


def unfiltered(request: GenerationRequest) -> GenerationRequest:
    """The request without filters: penalties and temperature only."""
    off = {name: getattr(Sampling(), name) for name in _FILTERS}
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
    """The rows after each token of a text, shape [n], from the one at `first`. Earlier tokens are read as a
    prompt, the others in passes of `width` tokens. `samplers` are the answer's, and one without its filters.

    Raises PromptError if the text does not fit, and UserError if stopped.
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
                rows.append(JudgedRow(top, whole, p, _edge(samplers[0], row, top)))
    except Cancelled:
        raise UserError("It was stopped.") from None
    return tuple(rows)


def _view(
    sampler: Sampler, row: NDArray[np.float32], candidates: tuple[int, ...], target: Context
) -> tuple[Alternatives, tuple[float, ...]]:
    """The best tokens of a row after penalties, in a trace's form, and the p of the candidates."""
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


def _edge(sampler: Sampler, row: NDArray[np.float32], top: Alternatives) -> tuple[int, ...]:
    """The tokens that filters keep or drop depending on rounding. Logits are moved: kept against dropped
    ones, or the best against all others. If the list is full, only its tokens count."""
    if sampler.is_greedy or sampler.keeps_all:
        return ()

    def kept(logits: NDArray[np.float32]) -> NDArray[np.bool_]:
        made = sampler.distribution(logits)
        ids = np.flatnonzero(made.p) if made.ids is None else made.ids[made.p > 0]
        return np.bincount(ids, minlength=len(row)).astype(bool)

    here, best = kept(row), np.arange(len(row)) == row.argmax()
    moves = (np.where(here, -1, 1) * ~best, 1 * best, -1 * best)
    others = [kept(row + LARGEST_ROUNDING * move.astype(np.float32)) for move in moves]
    found = np.flatnonzero(np.any(others != here, axis=0))
    return tuple((found if len(top.ids) < TOP else np.intersect1d(found, top.ids)).tolist())


def draft_alone(
    target: str,
    request: GenerationRequest,
    templates: Templates,
    run: int = 0,
    stopped: Callable[[], bool] = lambda: False,
) -> DraftedAlone:
    """The first draft that a strategy finds after the prompt, in order of precedence; empty if none does.

    Raises UserError if the file, the prompt or the strategy cannot be used.
    """
    spec = StrategySpec.parse(request.strategy)
    if any(part.name.startswith("draft-") for part in spec.parts) or spec.is_synthetic or not spec.parts:
        raise SettingError(
            f"{spec} cannot draft without a target.", "Choose strategies without a draft model."
        )
    header = FileHeader(Path(target))
    try:
        vocabulary = header.vocabulary
        template = ChatTemplate(header.metadata("tokenizer.chat_template"), vocabulary, templates)
        ids = tokenized(request, vocabulary, template, stopped).ids
        resources = Resources(vocabulary, lookup_caches=LookupCaches())
        sampling = request.sampling
        around = RunContext(
            Sampler(sampling, (), breakers_of(vocabulary, sampling)),
            Draws(secrets.randbits(63) if sampling.seed < 0 else sampling.seed),
            len(ids),
            frozenset() if request.ignore_eos else vocabulary.end_ids,
            is_stopped=stopped,
        )
        ends: list[str] = []
        for part in spec.parts:
            drafter = KINDS[part.name].make(part.params, resources)
            drafter.begin(ids, around)
            found = drafter.propose(ids, min(part.longest, request.max_tokens))
            end = found.fault or found.end
            if found.ids:
                tokens = tuple(_token(id, vocabulary) for id in found.ids)
                return DraftedAlone(run, part.name, len(ids), tokens, found.match, end)
            ends.append(f"{part.name}: {end}")
        return DraftedAlone(run, "", len(ids), end="; ".join(ends))
    finally:
        header.close()


def _token(id: int, vocabulary: Vocabulary) -> AloneToken:
    piece = vocabulary.piece(id)
    return AloneToken(id, piece, "" if piece else vocabulary.label(id))
