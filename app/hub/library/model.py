"""A model on this machine: a file, or the parts of a sharded one; and its verdict as a draft for a target."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app.engine.compat import CHAINED, MTP, FitKind, VocabularyFit, why_unread
from app.engine.explain.facts import IDEAL_SHARE, LARGEST_THAT_PAYS, size_verdict
from app.hub.library.probe import Facts, short_number
from app.hub.names import quantisation_of

_FINER = re.compile(r"(?:UD-(?=.)|(?=Q[24568]_K_X?L|Q3_K_XL))(?P<format>[A-Z]+\d+(?:_[0-9K])?)\w*")
"""Names of mixtures that llama.cpp's file types lack."""


class FileOrigin(StrEnum):
    """The origin of a model, which decides what can be done with it."""

    HUB = "Hub"  # in the Hugging Face cache
    ADDED = "added"  # a file, or in a folder, that the user added
    BUNDLED = "bundled"  # part of Draftscope: cannot be deleted
    MADE = "made here"  # another quantisation of a model
    SET_UP = "set-up"  # brought by set-up, or by a package: cannot be deleted


@dataclass(frozen=True, slots=True)
class LocalModel:
    """An immutable snapshot. `facts` are None until the probe has read the file, and if it cannot be
    read."""

    path: Path  # the file to load: the first part
    files: tuple[Path, ...]
    size: int  # bytes of all parts
    changed: int  # nanoseconds: when the newest part was written
    origin: FileOrigin
    repo: str = ""  # on the Hub
    facts: Facts | None = None
    problem: str = ""  # why it cannot be used, for people
    hint: str = ""

    @property
    def name(self) -> str:
        """The name in the file, else the file name without its ending."""
        return (self.facts.name if self.facts else "") or self.path.stem

    @property
    def quantisation(self) -> str:
        """For example "Q4_K_M": from the file, or from its name if the file has none or a coarser one; "?" if
        neither has one."""
        named = quantisation_of(self.path.name)
        said = self.facts.quantisation if self.facts else ""
        finer = _FINER.fullmatch(named)
        return named if not said or (finer and said.startswith(finer["format"])) else said

    @property
    def parameters(self) -> str:
        """For example "1.7B"; empty while unknown."""
        return short_number(self.facts.parameters) if self.facts else ""

    @property
    def is_read(self) -> bool:
        """Whether the file was read, or is known to be unreadable."""
        return self.facts is not None or bool(self.problem)

    @property
    def refusal(self) -> str:
        """Why it cannot be a target, in a sentence; empty if it can be, or is not read yet."""
        if self.is_head:
            return f"{self.path.name} drafts for the model that it was made for and cannot answer by itself."
        if self.facts is not None and self.facts.refusal:
            return f"{self.path.name} is not a language model: {self.facts.refusal}."
        return self.problem

    @property
    def is_head(self) -> bool:
        """Whether it only drafts, for one target."""
        return self.facts is not None and bool(self.facts.strategy)

    @property
    def made_from(self) -> str:
        """The name of its source file if it was quantised here, else empty."""
        return self.path.parent.name.rpartition("-")[0] if self.origin is FileOrigin.MADE else ""

    @property
    def can_delete(self) -> bool:
        return self.origin not in (FileOrigin.BUNDLED, FileOrigin.SET_UP)


def names_apart(models: Sequence[LocalModel]) -> tuple[str, ...]:
    """A unique name for each model: its own, if shared with the quantisation, else with the file name, else
    with the repository or folder."""
    names = [model.name for model in models]
    kinds = Counter((model.name, model.quantisation) for model in models)
    known = [
        model.quantisation
        if model.quantisation != "?" and kinds[model.name, model.quantisation] == 1
        else model.name
        for model in models
    ]
    files = [model.path.stem for model in models]
    places = [model.repo or str(model.path.parent) for model in models]
    for details in (known, files, places):
        many = Counter(names)
        names = [
            f"{name} · {detail}" if many[name] > 1 and detail != name else name
            for name, detail in zip(names, details, strict=True)
        ]
    return tuple(names)


class DraftVerdict(StrEnum):
    """Whether a file can draft for the target."""

    GOOD = "good"
    WORKS = "works"
    CANNOT = "cannot"
    UNREAD = "not read yet"


_ORDER = tuple(DraftVerdict)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file's verdict as a draft for the target."""

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
        """The verdict and its reason, as a separate line."""
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
    """The verdict on `draft`; `fit` is that of the vocabularies, None if they could not be compared."""
    share = draft.size / max(target.size, 1)
    architectures = {model.facts.architecture for model in (target, draft) if model.facts is not None}

    def verdict(kind: DraftVerdict, reason: str) -> Candidate:
        through_text = kind is DraftVerdict.WORKS and fit is not None and fit.kind is FitKind.THROUGH_TEXT
        return Candidate(draft, kind, reason, share, len(architectures) < 2, through_text)

    if draft.problem:
        return verdict(DraftVerdict.CANNOT, draft.problem.removesuffix("."))
    if draft.facts is not None and draft.facts.refusal:
        return verdict(DraftVerdict.CANNOT, draft.facts.refusal)
    if draft.facts is None or fit is None:
        return verdict(DraftVerdict.UNREAD, "")
    if draft.facts.strategy:
        return _judge_head(target, draft, fit, verdict)
    if fit.kind is FitKind.CANNOT:
        return verdict(DraftVerdict.CANNOT, fit.detail)
    if fit.kind is FitKind.THROUGH_TEXT:
        return verdict(DraftVerdict.WORKS, f"it can draft through text; {fit.detail}")
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
    """What the two files say of each other. No file names the very weights that a head was trained with: one
    for a target of equal shape and vocabulary, such as a fine-tuned one, is judged good, and only its failed
    drafts show it (`Finding.MISFIT`)."""
    assert target.facts is not None and draft.facts is not None
    ours, theirs = target.facts, draft.facts
    if fit.kind not in (FitKind.SAME, FitKind.PADDED):
        return verdict(DraftVerdict.CANNOT, f"it was made for a different target: {fit.detail}")
    depth = ours.layers - ours.mtp
    if theirs.made_for and theirs.made_for != ours.architecture:
        kinds = f"one of architecture {theirs.made_for}, not {ours.architecture}"
        return verdict(DraftVerdict.CANNOT, f"it was made for a different target: {kinds}")
    if theirs.mtp > 1 and theirs.architecture == MTP and theirs.made_for not in CHAINED:
        return verdict(DraftVerdict.CANNOT, f"it has {theirs.mtp} MTP heads, and this llama.cpp uses one")
    reads = (depth,) if theirs.made_for else theirs.reads
    if unread := why_unread(reads, theirs.width, ours.architecture, depth, ours.width):
        return verdict(DraftVerdict.CANNOT, unread)
    if doubt := _doubt(ours, theirs):
        return verdict(DraftVerdict.WORKS, f"it may be for a different target: {doubt}")
    return verdict(
        DraftVerdict.GOOD, f"it fits the target's vocabulary and layers; its strategy is {theirs.strategy}"
    )


def _doubt(target: Facts, head: Facts) -> str:
    """What a head's file says that does not go with the target, though a draft is possible; empty if nothing
    is known to differ."""
    names = (target.name, *target.bases)
    if head.bases and not any(_same_name(base, name) for base in head.bases for name in names):
        return f"its file names {' and '.join(head.bases)}, and the target is {target.name}"
    if head.splits and target.splits and head.splits != target.splits:
        return f"its tokenizer is of type {head.splits}, and the target's of type {target.splits}"
    first, middle, last = head.reads if len(head.reads) == _USUAL else (0, 0, 0)
    depth, usual = target.layers - target.mtp, last + 3
    if (first, middle) == (2, usual // 2) and depth != usual:  # of a head that names no layers of its own
        return f"layers {first}, {middle} and {last} are usual for {usual} layers, but the target has {depth}"
    return ""


_USUAL = 3  # layers that an EAGLE-3 head reads: by default 2, n // 2 and n - 3 of n


def _same_name(base: str, name: str) -> bool:
    """Whether one name has all the words of the other: "Qwen3 8B" and "Qwen3-8B-Instruct"."""
    ours, theirs = (set(re.findall(r"[a-z]+|\d+(?:\.\d+)?", each.lower())) for each in (base, name))
    return ours <= theirs or theirs <= ours


def best_first(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Sort by verdict, then shared vocabulary, then the target's architecture, then size. Best is a tenth of
    the target's: such a draft costs little and still agrees often."""

    def key(candidate: Candidate) -> tuple[int, bool, bool, float, str]:
        distance = abs(math.log(max(candidate.share, 1e-9) / IDEAL_SHARE))
        of_another = candidate.through_text, not candidate.related
        return _ORDER.index(candidate.verdict), *of_another, distance, str(candidate.model.path)

    return tuple(sorted(candidates, key=key))
