"""Advice on an answer: what limits its speed, and the setting to try next or to keep. Remedies are ready to
be applied."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.base.numbers import percent
from app.engine.drafters.base import DRAFT_FULL, TARGET_FULL
from app.engine.drafters.registry import KINDS
from app.engine.explain.cost import expected_tokens
from app.engine.explain.facts import (
    IDEAL_SHARE,
    AdviceFacts,
    DraftFile,
    Factor,
    Finding,
    cause,
    faster_devices,
    size_words,
)
from app.engine.explain.predict import Predictor, factor_words, is_clear
from app.engine.record.stats import Statistics
from app.engine.strategy import SYNTHETIC, StrategySpec
from app.engine.types import ModelOptions

_CLEARLY_SMALLER = 0.7  # size of another draft relative to the current one's
_AGREES, _LENGTHS = 0.9, 8  # how often a good draft agrees, and the longest draft that it is judged by


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change to try, ready to be applied; fields that are None stay unchanged."""

    text: str  # in a few words, such as "p_min=0.5"
    spec: StrategySpec | None = None
    target: ModelOptions | None = None
    draft: ModelOptions | None = None
    expected: Factor | None = None  # its speed-up; None if that is not known


def moved_draft(facts: AdviceFacts) -> Remedy | None:
    """The draft moved to the target's devices, if it is on the CPU."""
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
    best = smaller_file(_paying(facts, listed=False), size, pair.draft.size)
    if best is None:
        return None
    return Remedy(f"{best.name} ({size_words(best.size / size)})", draft=replace(draft, path=best.path))


def smaller_file(files: Sequence[DraftFile], target: int, draft: int) -> DraftFile | None:
    """Of the files clearly smaller than the draft, the one whose size is nearest to a tenth of the target's;
    sizes in bytes."""
    smaller = [file for file in files if file.size <= _CLEARLY_SMALLER * draft]
    return min(smaller, key=lambda file: abs(file.size / target - IDEAL_SHARE), default=None)


def another_draft(facts: AdviceFacts) -> Remedy | None:
    """The best other file as the draft. Files larger than the draft in use come first, because they agree
    more often."""
    pair, draft = facts.pair, facts.draft
    if pair is None or pair.draft is None or draft is None:
        return None
    others = [file for file in _paying(facts, listed=False) if file.path != draft.path]
    size = pair.draft.size
    best = next((file for file in others if file.size > size), next(iter(others), None))
    if best is None:
        return None
    words = f"{best.name} as the draft ({size_words(best.size / pair.target.size)})"
    return Remedy(words, draft=replace(draft, path=best.path))


def _listed_draft(facts: AdviceFacts, smaller: bool) -> str:
    """A sentence about a draft of the catalogue that is not here yet; "" without one."""
    pair = facts.pair
    if pair is None or pair.draft is None:
        return ""
    most = _CLEARLY_SMALLER * pair.draft.size if smaller else pair.target.size
    now = Path(pair.draft.path).stem
    for file in _paying(facts, listed=True):
        if file.size <= most and file.name != now:
            return f"The catalogue in Models has {file.name} ({size_words(file.size / pair.target.size)})."
    return ""


def _paying(facts: AdviceFacts, *, listed: bool) -> list[DraftFile]:
    """The files of the library, or of the catalogue, with which a good draft of that size could pay, by what
    passes over several tokens take."""
    cost = facts.cost.at_best
    lengths = {k: cost.v(k) for k in range(1, _LENGTHS + 1)}

    def may_pay(file: DraftFile) -> bool:
        c = file.size / facts.pair.target.size if facts.pair is not None else 0.0
        return any(v is None or expected_tokens(_AGREES, k) > v + k * c for k, v in lengths.items())

    return [file for file in facts.drafts or () if listed == (not file.path) and may_pay(file)]


def larger_contexts(facts: AdviceFacts) -> Iterator[Remedy]:
    """Larger contexts, if drafts or the answer ended at a full context and the file was trained with more."""
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


GAIN = 1.03  # a smaller gain may be noise
_FEWEST_TOKENS = 16  # of an answer that was not measured
_EQUAL = 0.99  # of the best expected factor: the simplest setting from there on is named
_PROMISING = 1.2  # from this factor on, at best, a setting is worth a try whose gain is not known
_MOST_TRIES = 2  # from then on, only what was measured decides
_LOOKUP = StrategySpec.parse("prompt-lookup")
_IS_COPIED = 0.25  # share of an answer
_NONE = Remedy("strategy none", StrategySpec(), expected=Factor(1.0, 1.0, 1.0))
_USE_NONE = _NONE, "Use strategy none."
OTHER_DRAFTS = frozenset({
    Finding.NOTHING, Finding.MISFIT, Finding.DRAFT_LARGE, Finding.LOW_ACCEPTANCE, Finding.DRAFT_ON_CPU
})  # fmt: skip
"""Findings whose remedies may name other drafts of library and catalogue."""
_FAILED = (Finding.NOTHING, Finding.MISFIT)


@dataclass(frozen=True, slots=True)
class Advice:
    """A cause, the sentences to show, and the changes that they name, the most promising first. If no change
    is a strategy, the setting should be kept."""

    finding: Finding
    text: str
    factor: Factor | None = None  # of the whole answer, measured or predicted
    measured: bool = False
    remedies: tuple[Remedy, ...] = ()
    keeps: bool = False  # its text says that the setting should be kept

    @property
    def next(self) -> StrategySpec | None:
        """The strategy to try; None if the present one is to be kept."""
        return next((remedy.spec for remedy in self.remedies if remedy.spec is not None), None)


def next_advice(facts: AdviceFacts) -> Advice | None:
    """The next advice on an answer. None if too little is known of strategy none for a comparison."""
    if facts.measured is not None and not is_clear(facts.measured):
        advice = next_advice(replace(facts, measured=None))
        low, high = facts.measured.low, facts.measured.high
        text = f"{low:.2f}× to {high:.2f}× was measured, which is too uncertain to act on."
        return replace(advice, text=f"{text} {advice.text}") if advice is not None else None
    measured, statistics = facts.measured is not None, facts.statistics
    if facts.spec.is_synthetic:
        return Advice(Finding.SYNTHETIC, f"oracle is {SYNTHETIC}.", facts.measured, measured)
    if not measured and statistics.emitted < _FEWEST_TOKENS:
        if not facts.spec.parts:
            return None
        return Advice(Finding.TOO_EARLY, "This answer is too short for advice. Ask for a longer one.")
    predictor = Predictor(facts)
    finding, why = cause(facts)
    now, (others, none_other) = predictor.own, _other_drafts(facts, finding)
    if now is None or finding is Finding.DISTURBED:
        if now is None and finding is Finding.FINE:
            finding, why = Finding.NO_BASELINE, "No single-token pass was measured yet."
        ways, action = others, "Measure the baseline to see what drafting saves."
        if finding in _FAILED:
            failed, action = _without_head(facts) if finding is Finding.MISFIT else _USE_NONE
            ways = [failed, *others]
        elif measured and now is not None:
            why, action = f"{_factor(facts, now)} {why}", "Measure the baseline when it is idle."
        text = " ".join(filter(None, [why, action, *_or_try(others), none_other]))
        return Advice(finding, text, facts.measured, measured, tuple(ways))
    if not facts.spec.parts and not facts.cost.known.times and not facts.tried:
        return None
    hoped = replace(facts, cost=facts.cost.at_best)
    remedy, action = _action(hoped, Predictor(hoped), now, finding)
    if remedy is None and finding is Finding.MISFIT:
        without = _without_head(facts)
        if without[0].text not in facts.tried:
            remedy, action = without
    contexts = [*larger_contexts(facts)]
    said = [action]
    if remedy is not None:
        said = [_factor(facts, now), why, action]
    elif others or none_other:
        said = [action, why]
    said += [*_or_try(others), none_other]
    said += [f"The context was full: try {other.text}." for other in contexts]
    remedies = [*((remedy,) if remedy is not None else ()), *others, *contexts]
    return Advice(finding, " ".join(filter(None, said)), now, measured, tuple(remedies), remedy is None)


def _without_head(facts: AdviceFacts) -> tuple[Remedy, str]:
    """The strategy without its head, which does not fit the target."""
    parts = tuple(part for part in facts.spec.parts if not KINDS[part.name].is_head)
    if not parts:
        return _USE_NONE
    spec = replace(facts.spec, parts=parts)
    return Remedy(str(spec), spec), f"Try {spec}: it does without that head."


def _or_try(others: Sequence[Remedy]) -> list[str]:
    return [f"Or try {other.text}." for other in others]


def _factor(facts: AdviceFacts, now: Factor) -> str:
    if facts.measured is not None and facts.spec.parts:
        return f"{now.value:.2f}× was measured."
    if not facts.statistics.drafted:
        return ""
    return f"Predicted for the whole answer: {factor_words(now)}." if is_clear(now) else ""


# ---------------------------------------------------------------------------------- what to try next


def _action(
    facts: AdviceFacts, predictor: Predictor, now: Factor, finding: Finding
) -> tuple[Remedy | None, str]:
    """The setting to try next, with its sentence; None if the present one is to be kept."""
    copied = f" {text}" if finding is Finding.SELDOM and (text := _copied(facts, predictor)) else ""
    none = StrategySpec()
    known = {name: tried.factor for name, tried in facts.tried.items()}
    known[str(none)] = Factor(1.0, 1.0, 1.0)
    known.pop(str(facts.spec), None)
    known[str(facts.spec)] = now
    best = max(filter(lambda name: is_clear(known[name]), known), key=lambda name: known[name].value)
    aim = max(now.value, known[best].value)
    if len(facts.tried) < _MOST_TRIES:
        expected = _expected_of_all(facts, predictor, known)
        told = {spec: factor for spec, factor in expected.items() if predictor.is_told(spec)}
        most = max((factor.value for factor in told.values()), default=0.0)
        equal = [spec for spec, factor in told.items() if factor.value >= _EQUAL * most]
        wins = min(equal, key=lambda spec: (len(spec.parts), -told[spec].value), default=none)
        if wins.parts and told[wins].value >= GAIN * aim:
            name = wins.beside(facts.spec)
            if is_clear(told[wins]):
                words = f"Try {name}: {factor_words(told[wins])} expected."
                return Remedy(name, wins, expected=told[wins]), words
            return Remedy(name, wins), f"Try {name}: it may be faster.{copied}"
        untold = [spec for spec in expected if spec not in told]
        if untold and not any(StrategySpec.parse(name).needs_draft for name in known):
            first = max(untold, key=lambda spec: expected[spec].value)
            if expected[first].high >= _PROMISING * aim and expected[first].value >= aim:
                name = first.beside(facts.spec)
                return Remedy(name, first), f"Try {name}: its effect here is not known yet."
    if known[best].value >= GAIN * now.value:
        spec = StrategySpec.parse(best)
        if not spec.parts:
            words = "Use strategy none: nothing tried or predicted is faster."
            return _NONE, words
        name = spec.beside(facts.spec)
        words = f"Use {name}: {factor_words(known[best])} was measured."
        return Remedy(name, spec, expected=known[best]), words
    if not facts.spec.parts:
        return None, "Keep strategy none: nothing tried or predicted is faster."
    here = f" {now.value:.2f}× expected," if is_clear(now) else ""
    if facts.measured is not None or not facts.statistics.drafted:
        here = f" {now.value:.2f}×,"
    if here and now.value < 0.995:
        here += " about as fast as none,"
    return None, f"Keep this:{here} nothing tried or predicted is better.{copied}"


def _copied(facts: AdviceFacts, predictor: Predictor) -> str:
    """How much of the answer could have been copied, after a strategy that found nothing; "" if little."""
    name, share = "prompt-lookup", predictor.copied(_LOOKUP)
    if share < _IS_COPIED or str(facts.spec) == name:
        return ""
    told = f"{name} would have drafted {percent(share, 0)} of this answer"
    factor = facts.tried[name].factor if name in facts.tried else predictor.as_measured(_LOOKUP)
    return f"{told}, at {factor_words(factor)}." if factor is not None and is_clear(factor) else f"{told}."


def _expected_of_all(
    facts: AdviceFacts, predictor: Predictor, known: Collection[str]
) -> dict[StrategySpec, Factor]:
    """The expected factor of every setting without a known one, as far as it can be predicted."""
    kinds = [kind for kind in KINDS.values() if kind.walks and facts.suits(kind)]
    found: dict[StrategySpec, Factor] = {}

    def look_at(written: str) -> None:
        spec = replace(StrategySpec.parse(written.rstrip(":")), verification=facts.spec.verification)
        if str(spec) not in known and (factor := predictor.as_measured(spec)) is not None:
            found[spec] = factor

    for kind in kinds:
        for setting in kind.settings:
            look_at(f"{kind.name}:{setting}")
    # Mixes: a copying strategy drafts first, the best draft model where that finds nothing. A strategy that
    # seldom drafts may gain little alone and most in a mix.
    best = sorted(found, key=lambda spec: found[spec].value, reverse=True)
    drafting = next((spec for spec in best if spec.needs_draft), None)
    if drafting is not None:
        for copying in [spec for spec in best if not spec.needs_draft]:
            look_at(f"{copying.parts[0]}+{drafting.parts[0]}")
    return found


def _other_drafts(facts: AdviceFacts, finding: Finding) -> tuple[list[Remedy], str]:
    """Other drafts, or a different device for this one, if the draft is the cause. Or, if the library was
    looked through and has none, what the catalogue has."""
    if finding not in OTHER_DRAFTS or not facts.spec.needs_draft:
        return [], ""
    moved = moved_draft(facts) if finding is Finding.DRAFT_ON_CPU else None
    smaller = finding in (Finding.DRAFT_ON_CPU, Finding.DRAFT_LARGE)
    file = smaller_draft(facts) if smaller else another_draft(facts)
    found = [remedy for remedy in (moved, file) if remedy is not None]
    if found or facts.drafts is None:
        return found, ""
    none = f"No {'smaller' if smaller else 'other'} draft in the library could pay off with this target."
    return [], _listed_draft(facts, smaller) or none
