"""Which of the drafts: every file that can draft for a target, judged by teacher forcing in seconds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, variance

import msgspec

from app.base.files import reason
from app.engine.errors import UserError
from app.engine.explain.cost import LONGEST, CostModel
from app.engine.process.messages import Finished, Forced, ForcedText, RoundFinished
from app.engine.shards import size_of
from app.engine.strategy import NONE
from app.engine.types import ModelOptions, Sampling
from app.lab.experiment import Experiment, Pair
from app.lab.report.interval import student_t
from app.lab.runs.lab_engine import EngineGone, LabEngine

FORMAT = "1.0"
_FEWEST_TEXTS = 3  # for an interval


class DraftScore(msgspec.Struct, frozen=True):
    """A draft file, judged. Where it could not be, `problem` says why and its numbers are None."""

    file: str  # without its folder
    size: int  # bytes
    share: float  # its size / the target's
    problem: str = ""
    places: int = 0  # tokens that were compared
    alpha: float | None = None  # of teacher forcing: the mean of Σ min(p, q)
    alpha_low: float | None = None  # 95 % interval over the texts
    alpha_high: float | None = None
    agreement: float | None = None  # share of places with the same most probable token
    c: float | None = None  # time of a draft token / of a single-token target pass
    n_max: int | None = None  # the draft length with the largest predicted factor
    factor: float | None = None  # predicted at that length
    factor_low: float | None = None  # at alpha_low
    factor_high: float | None = None


class DraftsReport(msgspec.Struct, frozen=True):
    """All drafts of a target, the largest predicted factor first."""

    format: str
    target: str
    sampling: Sampling
    texts: int
    tokens: int  # of the target's answers
    drafts: tuple[DraftScore, ...]

    def to_json(self) -> bytes:
        return msgspec.json.encode(self) + b"\n"


def answers_of(engine: LabEngine, experiment: Experiment) -> Iterator[ForcedText]:
    """The target's own answers to the experiment's prompts, without a draft. Raises UserError, EngineGone,
    Interrupted."""
    for _ in engine.load(Pair(experiment.pair.target)):
        pass
    for index in range(len(experiment.prompts)):
        request = experiment.request(index, NONE)
        ids: list[int] = []
        for event in engine.generate(request):
            if isinstance(event, RoundFinished):
                ids += [token.id for token in event.round.emitted]
            elif isinstance(event, Finished) and event.totals.error:
                raise UserError(event.totals.error)
        if ids:
            yield ForcedText(request, tuple(ids))


def judged(
    engine: LabEngine, target: ModelOptions, draft: ModelOptions, texts: Sequence[ForcedText]
) -> DraftScore:
    """One draft, over the target's answers. Raises Interrupted."""
    unjudged = DraftScore(Path(draft.path).name, 0, 0.0)
    try:
        size = size_of(Path(draft.path))
        unjudged = msgspec.structs.replace(unjudged, size=size, share=size / size_of(Path(target.path)))
        for _ in engine.load(Pair(target, draft)):
            pass
        *_, forced = engine.force(tuple(texts))
        assert isinstance(forced, Forced)
        return score(unjudged, forced)
    except OSError as error:  # it was deleted since it was listed
        return msgspec.structs.replace(unjudged, problem=f"It cannot be read: {reason(error)}.")
    except (UserError, EngineGone) as error:
        return msgspec.structs.replace(unjudged, problem=str(error))


def score(draft: DraftScore, forced: Forced) -> DraftScore:
    """The draft with the numbers of a comparison."""
    costs = CostModel()
    for width, seconds in forced.seconds.target.items():
        costs.passes.add(width, seconds)
    costs.draft_times.add(forced.seconds.draft)
    texts = forced.agreements
    places = sum(text.places for text in texts)
    alpha = math.fsum(text.overlap for text in texts) / places
    reach = _reach([text.overlap / text.places for text in texts])
    low, high = (None, None) if reach is None else (max(0.0, alpha - reach), min(1.0, alpha + reach))
    factors = {k: costs.predicted(alpha, k) or 0.0 for k in range(1, LONGEST + 1)}
    best = max(factors, key=lambda k: factors[k])
    return msgspec.structs.replace(
        draft,
        places=places,
        alpha=alpha,
        alpha_low=low,
        alpha_high=high,
        agreement=sum(text.same_best for text in texts) / places,
        c=costs.c,
        n_max=best,
        factor=factors[best],
        factor_low=None if low is None else costs.predicted(low, best),
        factor_high=None if high is None else costs.predicted(high, best),
    )


def drafts_report(
    target: ModelOptions, sampling: Sampling, texts: Sequence[ForcedText], scores: Sequence[DraftScore]
) -> DraftsReport:
    """The report: those that could not be judged come last."""
    order = sorted(scores, key=lambda draft: (draft.factor is None, -(draft.factor or 0.0), draft.file))
    tokens = sum(len(text.answer) for text in texts)
    return DraftsReport(FORMAT, Path(target.path).name, sampling, len(texts), tokens, tuple(order))


def _reach(alphas: Sequence[float]) -> float | None:
    """Half the width of the 95 % interval of the mean over texts; None for fewer than three."""
    if len(alphas) < _FEWEST_TEXTS:
        return None
    return student_t(len(alphas) - 1) * math.sqrt(variance(alphas, fmean(alphas)) / len(alphas))
