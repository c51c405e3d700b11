"""Advice: what the measured costs of an answer mean, in a sentence, and what to try next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from math import sqrt
from typing import NamedTuple

from app.base.numbers import percent
from app.engine.drafters.base import DRAFT_FULL, TARGET_FULL
from app.engine.explain.cost import LONGEST, CostModel
from app.engine.explain.draft_size import IDEAL_SHARE, size_words
from app.engine.record.stats import Statistics
from app.engine.strategy import SYNTHETIC, StrategyPart, StrategySpec
from app.engine.types import LengthRule, ModelOptions, PairInfo

_ENOUGH_ROUNDS = 12
_GAIN = 1.03  # a smaller gain may be noise
_LOW_ACCEPTANCE = 0.3
_HIGH_ACCEPTANCE = 0.8
_SELDOM = 0.15  # share of rounds in which a draft was found
_DEAR_DRAFT = 0.4  # from this c on a draft model is too large for its target
_NO_BATCHING = 0.8  # from this v(k) / (k + 1) on a pass over several tokens saves nothing
_WORTH_CHANGING = 1.05  # predicted factor relative to the current one
_CLEARLY_SMALLER = 0.7  # size of another draft relative to the current one's
_P_MINS = (0.5, 0.75)
_SURE = 0.3  # suffix's p_min: its estimate is of the whole draft
_SHORT_MATCH, _LONG_MATCH = 16, 24  # ngram-mod: shorter matches mislead, llama.cpp's default does not
_SHORTER = (8, 6, 4, 3)  # tokens to match, for strategies that ask for more
_KINDS_TO_TRY = ("suffix", "prompt-lookup")


class Finding(StrEnum):
    """The subject of an advice."""

    TOO_EARLY = "too early to say"
    NO_BASELINE = "no single-token pass was measured"
    PAYS = "speculation pays"
    LENGTH = "another draft length is better"
    NOTHING = "no drafted token was accepted"
    SELDOM = "drafts are seldom found"
    TARGET_SMALL = "the target is too small"
    DRAFT_LARGE = "the draft is too large"
    LOW_ACCEPTANCE = "too few tokens are accepted"
    DRAFT_ON_CPU = "the draft is on the CPU and the target is not"
    NO_GAIN = "many tokens are accepted, without gain"
    SYNTHETIC = "the draft is synthetic"
    LOSES = "drafting costs more than it saves"


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change to try, ready to be applied; fields that are None stay unchanged."""

    text: str  # in a few words, such as "p_min=0.5"
    spec: StrategySpec | None = None
    target: ModelOptions | None = None
    draft: ModelOptions | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding, the sentences to show, and the changes that they name."""

    finding: Finding
    text: str
    factor: float | None = None  # the speed-up that it is based on
    measured: bool = False  # against a baseline run; False: predicted by the cost model
    remedies: tuple[Remedy, ...] = ()


class DraftFile(NamedTuple):
    """A model file that can draft for the target."""

    path: str
    size: int  # bytes
    name: str


@dataclass(frozen=True, slots=True)
class AnswerSetup:
    """The models of an answer, and other drafts in the library, as far as known."""

    pair: PairInfo | None = None
    target: ModelOptions | None = None
    draft: ModelOptions | None = None
    token_ids: Sequence[int] = ()  # of the answer
    drafts: Sequence[DraftFile] = ()  # others in the library that suit the target


@dataclass(frozen=True, slots=True)
class Balance:
    """What drafting costs and saves, as shares of the time that plain decoding would have taken."""

    costs: float
    saves: float

    @property
    def factor(self) -> float:
        """The resulting speed-up."""
        return 1 / (1 - self.saves + self.costs)


def balance(statistics: Statistics, cost: CostModel) -> Balance | None:
    """Return the balance; None if no pass over a single token was measured or can be inferred."""
    if not cost.single_pass or not statistics.emitted:
        return None
    plain = statistics.emitted * cost.single_pass
    return Balance(statistics.draft_seconds / plain, 1 - statistics.target_seconds / plain)


_UNKNOWN = AnswerSetup()
_PLAIN = Remedy("none", StrategySpec())
_UNDRAFTED = Remedy("ngram-mod, which needs no draft model", StrategySpec.parse("ngram-mod"))


def advise(
    spec: StrategySpec,
    statistics: Statistics,
    cost: CostModel,
    speedup: float | None = None,
    setup: AnswerSetup = _UNKNOWN,
) -> Advice | None:
    """Give advice from the statistics of an answer; `speedup` is the measured one, if a baseline was run.

    None without speculation. The more of the set-up is known, the more causes can be distinguished.
    """
    if not spec.parts:
        return None
    if spec.is_synthetic:
        return Advice(Finding.SYNTHETIC, f"oracle is {SYNTHETIC}.", speedup, speedup is not None)
    advice = _advice(spec, statistics, cost, speedup, setup)
    full = [*_larger_contexts(statistics, setup)]
    if not full:
        return advice
    text = " ".join([advice.text, *(f"The context was full: try {remedy.text}." for remedy in full)])
    return replace(advice, text=text, remedies=(*advice.remedies, *full))


def _advice(
    spec: StrategySpec, statistics: Statistics, cost: CostModel, speedup: float | None, setup: AnswerSetup
) -> Advice:
    if _chances(spec, statistics) < _ENOUGH_ROUNDS:
        return Advice(Finding.TOO_EARLY, "Too few rounds yet for advice.")
    few_rounds = statistics.drafted_rounds < _SELDOM * _chances(spec, statistics)
    few_tokens = statistics.accepted < _SELDOM * statistics.emitted  # a few drafts may be long
    tried = statistics.drafted_rounds >= _ENOUGH_ROUNDS or not few_rounds
    if tried and not statistics.accepted:
        text, remedies = _nothing(spec, statistics)
        return Advice(Finding.NOTHING, text, speedup, speedup is not None, remedies)
    if few_rounds and few_tokens:
        text, remedies = _seldom(spec, statistics, setup)
        return Advice(Finding.SELDOM, text, speedup, speedup is not None, remedies)
    shares = balance(statistics, cost)
    if shares is None:
        return Advice(
            Finding.NO_BASELINE,
            "No pass over a single token was measured yet: measure the baseline to see what drafting saves.",
        )
    factor = shares.factor if speedup is None else speedup
    finding, text, remedies = (
        _gaining(spec, statistics, cost, shares)
        if factor >= _GAIN
        else _losing(spec, statistics, cost, shares, setup)
    )
    return Advice(finding, text, factor, speedup is not None, remedies)


def _chances(spec: StrategySpec, statistics: Statistics) -> int:
    """The number of rounds that could have had a draft: all, if the length rule decides whether to draft."""
    return statistics.rounds if spec.length is LengthRule.AUTO else statistics.attempts


def _gaining(
    spec: StrategySpec, statistics: Statistics, cost: CostModel, shares: Balance
) -> tuple[Finding, str, tuple[Remedy, ...]]:
    text = f"{_said(shares)}: speculation pays here."
    better = _better_length(spec, statistics, cost)
    if better is None:
        return Finding.PAYS, text, ()
    return Finding.LENGTH, f"{text} Try {better.text}.", (better,)


def _losing(
    spec: StrategySpec, statistics: Statistics, cost: CostModel, shares: Balance, setup: AnswerSetup
) -> tuple[Finding, str, tuple[Remedy, ...]]:
    """The first cause that the numbers show: of the machine, then of the model, then of the settings."""
    k = max(1, round(cost.mean_length or 1))
    v, c = cost.v(k), cost.c
    rate = statistics.acceptance_rate or 0.0
    if v is not None and v >= _NO_BATCHING * (k + 1):
        text = (
            f"A target pass over {k + 1} tokens takes {v:.1f} times as long as one over a single token: "
            "this target is too small for speculation to pay here. Use none."
        )
        return Finding.TARGET_SMALL, text, (_PLAIN,)
    if spec.needs_draft and c is not None and c >= _DEAR_DRAFT:
        return _dear_draft(c, setup)
    remedies = _remedies(spec, statistics, cost)
    remedy = f"try {', or '.join(remedy.text for remedy in remedies)}"
    if rate < _LOW_ACCEPTANCE:
        text = f"Only {percent(rate, 0)} of the drafted tokens were accepted. {_sentence(remedy)}"
        return Finding.LOW_ACCEPTANCE, text, remedies
    if rate > _HIGH_ACCEPTANCE:
        text = (
            f"{percent(rate, 0)} of the drafted tokens were accepted and still nothing is gained: "
            f"{_said(shares, start=False)}. {_sentence(remedy)}"
        )
        return Finding.NO_GAIN, text, remedies
    return Finding.LOSES, f"{_said(shares)}: {remedy}.", remedies


def _dear_draft(c: float, setup: AnswerSetup) -> tuple[Finding, str, tuple[Remedy, ...]]:
    """Advice where a draft token takes too long: the draft is on the slower device, or it is too large."""
    text = f"One draft token takes {percent(c, 0)} of a target pass"
    pair, draft = setup.pair, setup.draft
    devices = " and ".join(name for name in pair.devices.split(", ") if name != "CPU") if pair else ""
    if pair is not None and pair.draft is not None and pair.draft.n_gpu_layers == 0 and devices and draft:
        moved = replace(draft, n_gpu_layers=-1, device=setup.target.device if setup.target else "")
        return (
            Finding.DRAFT_ON_CPU,
            f"{text}: the draft is on the CPU, and the target is not. Try the draft on {devices}.",
            (Remedy(f"the draft on {devices}", draft=moved), _UNDRAFTED),
        )
    text += ": the draft is too large for this target."
    if smaller := _smaller_draft(setup):
        return Finding.DRAFT_LARGE, f"{text} Try {smaller.text}, or {_UNDRAFTED.text}.", (smaller, _UNDRAFTED)
    return (
        Finding.DRAFT_LARGE,
        f"{text} Choose a smaller one, or a strategy that needs none, such as ngram-mod.",
        (_UNDRAFTED,),
    )


def _smaller_draft(setup: AnswerSetup) -> Remedy | None:
    """Of the files clearly smaller than the draft, the one whose size is nearest to a tenth of the
    target's."""
    pair, draft = setup.pair, setup.draft
    if pair is None or pair.draft is None or draft is None:
        return None
    size = pair.target.size
    smaller = [file for file in setup.drafts if file.size <= _CLEARLY_SMALLER * pair.draft.size]
    best = min(smaller, key=lambda file: abs(file.size / size - IDEAL_SHARE), default=None)
    if best is None:
        return None
    return Remedy(f"{best.name} ({size_words(best.size / size)})", draft=replace(draft, path=best.path))


def _larger_contexts(statistics: Statistics, setup: AnswerSetup) -> Iterator[Remedy]:
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


def _said(shares: Balance, start: bool = True) -> str:
    first = "Drafting" if start else "drafting"
    share = "under 1\N{NO-BREAK SPACE}%" if 0 < shares.costs < 0.005 else percent(shares.costs, 0)
    costs = f"{first} costs {share} of the time that plain decoding would take"
    if shares.saves < 0:
        return f"{costs}, and verifying adds {percent(-shares.saves, 0)} of it"
    return f"{costs} and saves {percent(shares.saves, 0)} of it"


def _nothing(spec: StrategySpec, statistics: Statistics) -> tuple[str, tuple[Remedy, ...]]:
    instead = None if spec.needs_draft else _another_kind(spec, statistics)
    ways = "Use none, or another draft model."
    if instead is not None:
        ways = f"Use none, or try {instead.text}."
    text = f"None of the {statistics.drafted:,} drafted tokens was accepted: drafting only costs time. {ways}"
    return text, (_PLAIN, instead) if instead is not None else (_PLAIN,)


def _seldom(spec: StrategySpec, statistics: Statistics, setup: AnswerSetup) -> tuple[str, tuple[Remedy, ...]]:
    """Why drafts were rare: the length rule rested, the draft model's were cut, or the text repeats too
    little."""
    share = statistics.drafted_rounds / _chances(spec, statistics)
    names = " and ".join(part.name for part in spec.parts)
    found = "no round" if not statistics.drafted_rounds else f"{percent(share, 0)} of the rounds"
    if spec.length is LengthRule.AUTO:
        return f"length=auto drafted in {found}: more would cost more than it saves.", ()
    if spec.needs_draft:
        text = f"{names} drafted in {found}: its settings let too few drafts through."
        through = _let_through(spec, spec.parts[-1])
        return (f"{text} Try {through.text}.", (through,)) if through is not None else (text, ())
    for part in spec.parts:
        if _discards(part, setup.token_ids) and (through := _let_through(spec, part)):
            text = (
                f"{names} found a draft in {found}: this text repeats, and {part.name} discards most of what "
                f"it finds by its settings. Try {through.text}."
            )
            return text, (through,)
        if shorter := _shorter_match(spec, part, setup.token_ids):
            remedy, n, share = shorter
            text = (
                f"{names} found a draft in {found}: {part.name} matches {_match(part)} tokens by its "
                f"settings, and this text repeats in shorter pieces. After {n} equal tokens the next was "
                f"the same in {percent(share, 0)} of the answer: try {remedy.text}."
            )
            return text, (remedy,)
    text = f"{names} found a draft in {found}: this text repeats too little."
    if any(part.name == "ngram-cache" and not part.params.lookup_cache_static for part in spec.parts):
        text += " Statistics of similar texts, in a file of draftscope lookup-cache, may find more."
    if setup.pair is not None and setup.pair.draft is not None:
        both = Remedy(f"{names} with draft-simple", _with_draft(spec))
        return f"{text} Try {both.text}.", (both,)
    return f"{text} It costs next to nothing; a draft model may do better.", ()


def _remedies(spec: StrategySpec, statistics: Statistics, cost: CostModel) -> tuple[Remedy, ...]:
    """What to try when nothing is gained."""
    low = (statistics.acceptance_rate or 0.0) < _LOW_ACCEPTANCE
    ways = [_better_length(spec, statistics, cost)]
    if low:
        ways.append(_surer_drafts(spec, statistics))
    if spec.needs_draft:
        ways.append(_UNDRAFTED)
    elif low:
        ways.append(_another_kind(spec, statistics))
    return (*(way for way in ways if way is not None), _PLAIN)


def _surer_drafts(spec: StrategySpec, statistics: Statistics) -> Remedy | None:
    """Settings with which fewer tokens are drafted, and more of them accepted."""
    part = _busiest(spec, statistics)
    params = part.params
    match part.name:
        case "draft-simple":
            ways = [{"p_min": value} for value in _P_MINS if params.p_min < value]
        case "suffix":
            ways = [{"p_min": _SURE}] if params.p_min < _SURE else []
        case "ngram-map-k4v":
            ways = [{"min_hits": 2}] if params.min_hits < 2 else []
        case "ngram-mod":
            ways = [{"n_match": _LONG_MATCH}] if params.n_match < _SHORT_MATCH else []
        case _:
            ways = []
    return _setting(spec, part, ways[0]) if ways else None


def _let_through(spec: StrategySpec, part: StrategyPart) -> Remedy | None:
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


def _discards(part: StrategyPart, ids: Sequence[int]) -> bool:
    """Whether the text repeats in pieces that the strategy would have matched."""
    return _repeated(ids, _match(part) or _SHORTER[-1]) >= _SELDOM


def _setting(spec: StrategySpec, part: StrategyPart, changes: dict[str, float]) -> Remedy:
    text = " and ".join(f"{key}={value:g}" for key, value in changes.items())
    return Remedy(text + _whose(spec, part), _changed(spec, part, **changes))


def _with_draft(spec: StrategySpec) -> StrategySpec:
    """The spec with a draft model behind its strategies."""
    return replace(spec, parts=(*spec.parts, *StrategySpec.parse("draft-simple").parts))


def _another_kind(spec: StrategySpec, statistics: Statistics) -> Remedy | None:
    """Another draftless strategy, which weighs what followed or takes shorter matches."""
    part = _busiest(spec, statistics)
    known = [used.name for used in spec.parts]
    name = next((name for name in _KINDS_TO_TRY if name not in known), None)
    if name is None:
        return None
    replacement = StrategySpec.parse(name).parts[0]
    return Remedy(f"{name} in place of {part.name}", _put(spec, part, replacement))


def _shorter_match(
    spec: StrategySpec, part: StrategyPart, ids: Sequence[int]
) -> tuple[Remedy, int, float] | None:
    """Settings with which a strategy would have found more drafts, the tokens that they match, and how often
    the next token was the same after so many."""
    match = _match(part)
    for n in _SHORTER:
        if match is None or n >= match:
            continue
        share = _repeated(ids, n)
        if share >= _SELDOM:
            if part.name == "ngram-mod":
                changes = {"n_match": n, "n_min": 2, "n_max": 2 * n}
            else:
                changes = {"size_n": n, "size_m": 2 * n}
                if part.name == "ngram-map-k4v":
                    changes["min_hits"] = 1
            text = " and ".join(f"{key}={value}" for key, value in changes.items() if key != "min_hits")
            return Remedy(text + _whose(spec, part), _changed(spec, part, **changes)), n, share
    return None


def _match(part: StrategyPart) -> int | None:
    """The number of latest tokens that one of llama.cpp's strategies must find again; None for other
    strategies."""
    return getattr(part.params, "size_n", getattr(part.params, "n_match", None))


def _repeated(ids: Sequence[int], n: int) -> float:
    """The share of tokens that equal the token after the latest earlier occurrence of the n tokens before
    them."""
    followers: dict[tuple[int, ...], int] = {}
    same = 0
    for at in range(n, len(ids)):
        before = tuple(ids[at - n : at])
        same += followers.get(before) == ids[at]
        followers[before] = ids[at]
    return same / len(ids) if len(ids) else 0.0


def _changed(spec: StrategySpec, part: StrategyPart, **values: float) -> StrategySpec:
    return _put(spec, part, StrategyPart(part.name, replace(part.params, **values)))


def _put(spec: StrategySpec, part: StrategyPart, replacement: StrategyPart) -> StrategySpec:
    """The spec with `part` replaced."""
    return replace(spec, parts=tuple(replacement if old is part else old for old in spec.parts))


def _whose(spec: StrategySpec, part: StrategyPart) -> str:
    return f" for {part.name}" if len(spec.parts) > 1 else ""


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _better_length(spec: StrategySpec, statistics: Statistics, cost: CostModel) -> Remedy | None:
    """The draft length that is predicted to be clearly faster than the current drafts, even if alpha is at
    the low end of its confidence interval."""
    alpha, present = statistics.alpha, cost.over_rounds
    if alpha is None or present is None:
        return None
    part = _busiest(spec, statistics)
    low, high = _interval(statistics.accepted, statistics.accepted + statistics.rejected)
    clearly = max(_WORTH_CHANGING * present, _GAIN)
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
