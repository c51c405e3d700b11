"""Remedies: changes to try, ready to be applied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from app.engine.drafters.base import DRAFT_FULL, TARGET_FULL
from app.engine.explain.draft_size import IDEAL_SHARE, size_words
from app.engine.explain.facts import AdviceFacts, DraftFile, Factor
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions

_CLEARLY_SMALLER = 0.7  # size of another draft relative to the current one's


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change to try, ready to be applied; fields that are None stay unchanged."""

    text: str  # in a few words, such as "p_min=0.5"
    spec: StrategySpec | None = None
    target: ModelOptions | None = None
    draft: ModelOptions | None = None
    expected: Factor | None = None  # its speed-up; None where that is not known


def faster_devices(facts: AdviceFacts) -> str:
    """The devices of the target, where the draft is on the CPU and the target is not; "" elsewhere."""
    pair = facts.pair
    if pair is None or pair.draft is None or pair.draft.n_gpu_layers:
        return ""
    return " and ".join(name for name in pair.devices.split(", ") if name != "CPU")


def moved_draft(facts: AdviceFacts) -> Remedy | None:
    """The draft on the target's devices, where it is on the CPU."""
    devices = faster_devices(facts)
    if not devices or facts.draft is None:
        return None
    device = facts.target.device if facts.target is not None else ""
    return Remedy(f"the draft on {devices}", draft=replace(facts.draft, n_gpu_layers=-1, device=device))


def smaller_draft(facts: AdviceFacts) -> Remedy | None:
    """A file clearly smaller than the draft."""
    pair, draft = facts.pair, facts.draft
    if pair is None or pair.draft is None or draft is None:
        return None
    size = pair.target.size
    best = smaller_file(facts.drafts, size, pair.draft.size)
    if best is None:
        return None
    return Remedy(f"{best.name} ({size_words(best.size / size)})", draft=replace(draft, path=best.path))


def smaller_file(files: Sequence[DraftFile], target: int, draft: int) -> DraftFile | None:
    """Of the files clearly smaller than the draft, the one whose size is nearest to a tenth of the target's;
    sizes in bytes."""
    smaller = [file for file in files if file.size <= _CLEARLY_SMALLER * draft]
    return min(smaller, key=lambda file: abs(file.size / target - IDEAL_SHARE), default=None)


def another_draft(facts: AdviceFacts) -> Remedy | None:
    """The best of the other files as the draft: one that is larger than the draft in use, which agrees more
    often, if there is one."""
    pair, draft = facts.pair, facts.draft
    if pair is None or pair.draft is None or draft is None:
        return None
    others = [file for file in facts.drafts if file.path != draft.path]
    size = pair.draft.size
    best = next((file for file in others if file.size > size), next(iter(others), None))
    if best is None:
        return None
    words = f"{best.name} as the draft ({size_words(best.size / pair.target.size)})"
    return Remedy(words, draft=replace(draft, path=best.path))


def larger_contexts(facts: AdviceFacts) -> Iterator[Remedy]:
    """Larger contexts, where drafts or the answer ended because a context was full and the file was trained
    with more."""
    pair = facts.pair
    if pair is None:
        return
    if facts.target is not None and _ended(facts.statistics, TARGET_FULL):
        size = min(2 * pair.target.n_ctx, pair.target.n_ctx_train)
        if size > pair.target.n_ctx:
            target = replace(facts.target, ctx_size=size)
            yield Remedy(f"a context of {size:,} tokens", target=target)
    if facts.draft is not None and pair.draft is not None and _ended(facts.statistics, DRAFT_FULL):
        size = min(pair.target.n_ctx, pair.draft.n_ctx_train)
        if size > pair.draft.n_ctx:
            draft = replace(facts.draft, ctx_size=size)
            yield Remedy(f"a context of {size:,} tokens for the draft", draft=draft)


def _ended(statistics: Statistics, why: str) -> bool:
    return any(why in end.split("; ") for end in statistics.ends)
