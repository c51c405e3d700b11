"""Which files can draft for a target, and how well: each with its reason, the best first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from app.engine.compat import FitKind, VocabularyFit
from app.engine.explain.draft_size import IDEAL_SHARE, LARGEST_THAT_PAYS, size_verdict
from app.hub.library.model import LocalModel


class DraftVerdict(StrEnum):
    """Whether a file can draft for the target."""

    GOOD = "good"
    WORKS = "works"
    CANNOT = "cannot"
    UNREAD = "not read yet"


_ORDER = tuple(DraftVerdict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file, judged as a draft for the target."""

    model: LocalModel
    verdict: DraftVerdict
    reason: str = ""  # follows "because"; empty until the file is read
    share: float = 0.0  # its size / the target's
    related: bool = True  # of the target's architecture, as far as both are known
    through_text: bool = False  # it has another vocabulary, so its drafts go through text

    @property
    def shares_vocabulary(self) -> bool:
        """Whether it can draft for the target in the target's own tokens."""
        return self.verdict in (DraftVerdict.GOOD, DraftVerdict.WORKS) and not self.through_text

    @property
    def line(self) -> str:
        """The verdict and its reason, as a line of its own."""
        if self.verdict is DraftVerdict.GOOD and self.reason:
            return f"Good: {self.reason}"
        if self.verdict is DraftVerdict.CANNOT:
            return f"It cannot draft, because {self.reason}"
        said = str(self)
        return said[:1].upper() + said[1:]

    def __str__(self) -> str:
        """ "good", "works, because …" or "cannot, because …"."""
        if self.verdict in (DraftVerdict.WORKS, DraftVerdict.CANNOT):
            return f"{self.verdict}, because {self.reason}"
        return self.verdict


def judge_draft(target: LocalModel, draft: LocalModel, fit: VocabularyFit | None) -> Candidate:
    """The verdict on `draft`; `fit` is that of the vocabularies, None where they could not be compared."""
    share = draft.size / max(target.size, 1)
    architectures = {model.facts.architecture for model in (target, draft) if model.facts is not None}

    def verdict(kind: DraftVerdict, reason: str) -> Candidate:
        through_text = fit is not None and fit.kind is FitKind.THROUGH_TEXT
        return Candidate(draft, kind, reason, share, len(architectures) < 2, through_text)

    if draft.problem:
        return verdict(DraftVerdict.CANNOT, _clause(draft.problem))
    if draft.facts is not None and draft.facts.refusal:
        return verdict(DraftVerdict.CANNOT, draft.facts.refusal)
    if draft.facts is None or fit is None:
        return verdict(DraftVerdict.UNREAD, "")
    if draft.facts.strategy:
        return _judge_head(target, draft, fit, verdict)
    if fit.kind is FitKind.CANNOT:
        return verdict(DraftVerdict.CANNOT, fit.detail)
    if fit.kind is FitKind.THROUGH_TEXT:
        return verdict(DraftVerdict.WORKS, f"its drafts can go through text; {fit.detail}")
    size = size_verdict(
        share, *(model.facts.architecture for model in (target, draft) if model.facts is not None)
    )
    if share > LARGEST_THAT_PAYS:
        return verdict(DraftVerdict.WORKS, f"the vocabulary fits; {size}")
    if draft.facts.recurrent:
        return verdict(
            DraftVerdict.WORKS,
            "the vocabulary fits; its state cannot be rolled back, so a rejected draft costs more",
        )
    vocabulary = "the same vocabulary" if fit.kind is FitKind.SAME else f"the same vocabulary ({fit.detail})"
    return verdict(DraftVerdict.GOOD, f"it has {vocabulary}; {size}")


def _judge_head(
    target: LocalModel,
    draft: LocalModel,
    fit: VocabularyFit,
    verdict: Callable[[DraftVerdict, str], Candidate],
) -> Candidate:
    assert target.facts is not None and draft.facts is not None
    if fit.kind not in (FitKind.SAME, FitKind.PADDED):
        return verdict(DraftVerdict.CANNOT, f"it was made for another target: {fit.detail}")
    ours, theirs = target.facts.width, draft.facts.width
    if ours and theirs and ours != theirs:
        return verdict(
            DraftVerdict.CANNOT,
            f"it was made for another target: it reads rows of {theirs:,} numbers, not of {ours:,}",
        )
    return verdict(
        DraftVerdict.GOOD, f"it reads what such a target computes; {draft.facts.strategy} drafts with it"
    )


def best_first(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """By verdict, then those that share the target's vocabulary, then those of its own architecture, then by
    size: nearest to a tenth of the target's, where a draft costs little and still agrees often."""

    def key(candidate: Candidate) -> tuple[int, bool, bool, float, str]:
        distance = abs(math.log(max(candidate.share, 1e-9) / IDEAL_SHARE))
        of_another = candidate.through_text, not candidate.related
        return _ORDER.index(candidate.verdict), *of_another, distance, str(candidate.model.path)

    return tuple(sorted(candidates, key=key))


def _clause(sentence: str) -> str:
    """A sentence turned into a clause after "because"; file names keep their case."""
    return sentence.removesuffix(".")
