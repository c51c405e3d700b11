"""Remedies: changes to try, ready to be applied, and the numbers that speak for each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt

from app.engine.drafters.base import DRAFT_FULL, TARGET_FULL
from app.engine.explain.cost import LONGEST, CostModel
from app.engine.explain.draft_size import IDEAL_SHARE, size_words
from app.engine.explain.facts import DraftFile, Factor
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.types import ModelOptions, PairInfo

GAIN = 1.03  # a smaller gain may be noise
SELDOM = 0.15  # share of rounds in which a draft was found
_WORTH_CHANGING = 1.05  # predicted factor relative to the current one
_CLEARLY_SMALLER = 0.7  # size of another draft relative to the current one's
_P_MINS = (0.5, 0.75)
_SURE = 0.3  # suffix's p_min: its estimate is of the whole draft
_SHORT_MATCH, _LONG_MATCH = 16, 24  # ngram-mod: shorter matches mislead, llama.cpp's default does not
_SHORTER = (8, 6, 4, 3)  # tokens to match, for strategies that ask for more
_SURE_MATCH = 4  # ngram-simple and ngram-map-k: after one or two equal tokens anything may follow
_KINDS_TO_TRY = ("suffix", "prompt-lookup")


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change to try, ready to be applied; fields that are None stay unchanged."""

    text: str  # in a few words, such as "p_min=0.5"
    spec: StrategySpec | None = None
    target: ModelOptions | None = None
    draft: ModelOptions | None = None
    expected: Factor | None = None  # its speed-up; None where that is not known


@dataclass(frozen=True, slots=True)
class AnswerSetup:
    """The models of an answer, and other drafts in the library, as far as known."""

    pair: PairInfo | None = None
    target: ModelOptions | None = None
    draft: ModelOptions | None = None
    token_ids: Sequence[int] = ()  # of the answer
    drafts: Sequence[DraftFile] = ()  # others in the library that suit the target


PLAIN = Remedy("strategy none", StrategySpec())
_NGRAM_MOD = StrategySpec.parse("ngram-mod")
UNDRAFTED = Remedy("ngram-mod, which needs no draft model", _NGRAM_MOD)
LONG_DRAFTS = Remedy("ngram-mod, whose drafts are long", _NGRAM_MOD)


def smaller_draft(setup: AnswerSetup) -> Remedy | None:
    """A file clearly smaller than the draft."""
    pair, draft = setup.pair, setup.draft
    if pair is None or pair.draft is None or draft is None:
        return None
    size = pair.target.size
    best = smaller_file(setup.drafts, size, pair.draft.size)
    if best is None:
        return None
    return Remedy(f"{best.name} ({size_words(best.size / size)})", draft=replace(draft, path=best.path))


def smaller_file(files: Sequence[DraftFile], target: int, draft: int) -> DraftFile | None:
    """Of the files clearly smaller than the draft, the one whose size is nearest to a tenth of the target's;
    sizes in bytes."""
    smaller = [file for file in files if file.size <= _CLEARLY_SMALLER * draft]
    return min(smaller, key=lambda file: abs(file.size / target - IDEAL_SHARE), default=None)


def another_draft(setup: AnswerSetup) -> Remedy | None:
    """The best of the other files as the draft: one that is larger than the draft in use, which agrees more
    often, if there is one."""
    pair, draft = setup.pair, setup.draft
    if pair is None or pair.draft is None or draft is None:
        return None
    others = [file for file in setup.drafts if file.path != draft.path]
    size = pair.draft.size
    best = next((file for file in others if file.size > size), next(iter(others), None))
    if best is None:
        return None
    words = f"{best.name} as the draft ({size_words(best.size / pair.target.size)})"
    return Remedy(words, draft=replace(draft, path=best.path))


def larger_contexts(statistics: Statistics, setup: AnswerSetup) -> Iterator[Remedy]:
    """Larger contexts, where drafts or the answer ended because a context was full and the file was trained
    with more."""
    pair = setup.pair
    if pair is None:
        return
    if setup.target is not None and _ended(statistics, TARGET_FULL):
        size = min(2 * pair.target.n_ctx, pair.target.n_ctx_train)
        if size > pair.target.n_ctx:
            target = replace(setup.target, ctx_size=size)
            yield Remedy(f"a context of {size:,} tokens", target=target)
    if setup.draft is not None and pair.draft is not None and _ended(statistics, DRAFT_FULL):
        size = min(pair.target.n_ctx, pair.draft.n_ctx_train)
        if size > pair.draft.n_ctx:
            draft = replace(setup.draft, ctx_size=size)
            yield Remedy(f"a context of {size:,} tokens for the draft", draft=draft)


def _ended(statistics: Statistics, why: str) -> bool:
    return any(why in end.split("; ") for end in statistics.ends)


def surer_drafts(spec: StrategySpec, statistics: Statistics) -> Remedy | None:
    """Settings with which fewer tokens are drafted, and more of them accepted."""
    part = _busiest(spec, statistics)
    params = part.params
    match part.name:
        case "draft-simple":
            ways = [{"p_min": value} for value in _P_MINS if params.p_min < value]
        case "suffix":
            ways = [{"p_min": _SURE}] if params.p_min < _SURE else []
        case "ngram-simple" | "ngram-map-k":
            # Only below what is advised where drafts are rare: the two advices would take turns.
            short = params.size_n < min(_SHORTER) and params.size_m >= _SURE_MATCH
            ways = [{"size_n": _SURE_MATCH}] if short else []
        case "ngram-map-k4v":
            ways = [{"min_hits": 2}] if params.min_hits < 2 else []
        case "ngram-mod":
            ways = [{"n_match": _LONG_MATCH}] if params.n_match < _SHORT_MATCH else []
        case _:
            ways = []
    return _setting(spec, part, ways[0]) if ways else None


def let_through(spec: StrategySpec, part: StrategyPart) -> Remedy | None:
    """Settings with which fewer drafts are discarded; None where none of them discards any."""
    params = part.params
    changes: dict[str, float] = {}
    match part.name:
        case "draft-simple":
            if params.p_min > 0:
                changes["p_min"] = max(value for value in (0, *_P_MINS) if value < params.p_min)
            if params.n_min > 1:
                changes["n_min"] = 0
        case "suffix":
            if params.p_min > _SURE:
                changes["p_min"] = 0.1
            if params.max_spec_factor < 1:
                changes["max_spec_factor"] = 1
        case "ngram-simple":
            if params.size_m < params.size_n:
                changes["size_m"] = 2 * params.size_n
        case "ngram-map-k4v":
            if params.min_hits > 1:
                changes["min_hits"] = 1
        case "ngram-mod":
            if params.n_min > 2:
                changes["n_min"] = 2
    return _setting(spec, part, changes) if changes else None


def discards(part: StrategyPart, ids: Sequence[int]) -> bool:
    """Whether the text repeats in pieces that the strategy would have matched."""
    n = match_length(part) or _SHORTER[-1]
    return _repeated(ids, n, _apart(part, n)) >= SELDOM


def _setting(spec: StrategySpec, part: StrategyPart, changes: dict[str, float]) -> Remedy:
    return Remedy(_written(changes) + _whose(spec, part), _changed(spec, part, **changes))


def _written(changes: Mapping[str, float]) -> str:
    """Settings in words, such as "n_match=8, n_min=2 and n_max=16"."""
    *first, last = (f"{key}={value:g}" for key, value in changes.items())
    return f"{', '.join(first)} and {last}" if first else last


def with_draft(spec: StrategySpec) -> StrategySpec:
    """The spec with a draft model behind its strategies."""
    return replace(spec, parts=(*spec.parts, *StrategySpec.parse("draft-simple").parts))


def another_kind(spec: StrategySpec, statistics: Statistics) -> Remedy | None:
    """Another draftless strategy, which weighs what followed or takes shorter matches."""
    part = _busiest(spec, statistics)
    known = [used.name for used in spec.parts]
    name = next((name for name in _KINDS_TO_TRY if name not in known), None)
    if name is None:
        return None
    replacement = StrategySpec.parse(name).parts[0]
    return Remedy(f"{name} in place of {part.name}", _put(spec, part, replacement))


def shorter_match(
    spec: StrategySpec, part: StrategyPart, ids: Sequence[int]
) -> tuple[Remedy, int, float] | None:
    """Settings with which a strategy would have found more drafts, the tokens that they match, and how often
    the next token was the same after so many."""
    match = match_length(part)
    for n in _SHORTER:
        if match is None or n >= match:
            continue
        share = _repeated(ids, n, _apart(part, n))
        if share >= SELDOM:
            if part.name == "ngram-mod":
                changes = {"n_match": n, "n_min": 2, "n_max": 2 * n}
            else:
                changes = {"size_n": n, "size_m": 2 * n}
                if part.name == "ngram-map-k4v":
                    changes["min_hits"] = 1
            named = {key: value for key, value in changes.items() if key != "min_hits"}
            text = _written(named) + _whose(spec, part)
            return Remedy(text, _changed(spec, part, **changes)), n, share
    return None


def match_length(part: StrategyPart) -> int | None:
    """The number of latest tokens that one of llama.cpp's strategies must find again; None for other
    strategies."""
    return getattr(part.params, "size_n", getattr(part.params, "n_match", None))


def _apart(part: StrategyPart, n: int) -> int:
    """How far apart two occurrences of n tokens must be for a draft: ngram-simple discards copies that are
    shorter than the match, and nothing behind the text can be copied."""
    return n + 1 if part.name == "ngram-simple" else 1


def _repeated(ids: Sequence[int], n: int, apart: int) -> float:
    """The share of tokens that equal the token after the latest earlier occurrence of the n tokens before
    them, where that is at least `apart` tokens back."""
    followers: dict[tuple[int, ...], int] = {}  # -> place of the token behind them
    same = 0
    for at in range(n, len(ids)):
        before = tuple(ids[at - n : at])
        follower = followers.get(before)
        same += follower is not None and at - follower >= apart and ids[follower] == ids[at]
        followers[before] = at
    return same / len(ids) if len(ids) else 0.0


def _changed(spec: StrategySpec, part: StrategyPart, **values: float) -> StrategySpec:
    return _put(spec, part, StrategyPart(part.name, replace(part.params, **values)))


def _put(spec: StrategySpec, part: StrategyPart, replacement: StrategyPart) -> StrategySpec:
    """The spec with `part` replaced."""
    return replace(spec, parts=tuple(replacement if old is part else old for old in spec.parts))


def _whose(spec: StrategySpec, part: StrategyPart) -> str:
    return f" for {part.name}" if len(spec.parts) > 1 else ""


def better_length(spec: StrategySpec, statistics: Statistics, cost: CostModel) -> Remedy | None:
    """The draft length that is predicted to be clearly faster than the current drafts, even if alpha is at
    the low end of its confidence interval."""
    alpha, present = statistics.alpha, cost.over_rounds
    if alpha is None or present is None:
        return None
    part = _busiest(spec, statistics)
    low, high = _interval(statistics.accepted, statistics.accepted + statistics.rejected)
    clearly = max(_WORTH_CHANGING * present, GAIN)
    sure = [
        k for k in range(1, LONGEST + 1) if part.drafts_at(k) and (cost.predicted(low, k) or 0) >= clearly
    ]
    best = max(sure, key=lambda k: cost.predicted(alpha, k) or 0.0, default=None)
    if best is None or part.length_key is None or best == round(cost.mean_length or 0):
        return None
    factor, least, most = (cost.predicted(share, best) or 0.0 for share in (alpha, low, high))
    predicted = f"(predicted {factor:.2f}×, {least:.2f} to {most:.2f})"
    return Remedy(
        f"{part.length_key}={best}{_whose(spec, part)} {predicted}",
        _changed(spec, part, **{part.length_key: best}),
    )


def _interval(passed: int, judged: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    z = 1.96
    share, room = passed / judged, 1 + z * z / judged
    middle = (share + z * z / (2 * judged)) / room
    half = z * sqrt(share * (1 - share) / judged + z * z / (4 * judged * judged)) / room
    return middle - half, middle + half


def _busiest(spec: StrategySpec, statistics: Statistics) -> StrategyPart:
    """The strategy that drafted most tokens, to which the answer's numbers mostly belong."""
    drafted = {name: drafts.drafted for name, drafts in statistics.strategies.items()}
    return max(spec.parts, key=lambda part: drafted.get(part.name, 0))
