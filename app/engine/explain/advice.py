"""Advice: what the measured costs of an answer mean, in a sentence, and what to try next."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from app.base.numbers import percent
from app.engine.drafters.outside.foreign import ForeignKind
from app.engine.drafters.registry import KINDS
from app.engine.explain.cost import CostModel
from app.engine.explain.facts import Facts
from app.engine.explain.remedies import (
    GAIN,
    LONG_DRAFTS,
    PLAIN,
    SELDOM,
    UNDRAFTED,
    AnswerSetup,
    Remedy,
    another_draft,
    another_kind,
    better_length,
    discards,
    larger_contexts,
    let_through,
    match_length,
    shorter_match,
    smaller_draft,
    surer_drafts,
    with_draft,
)
from app.engine.record.stats import Statistics
from app.engine.strategy import SYNTHETIC, StrategySpec
from app.engine.types import LengthRule

_ENOUGH_ROUNDS = 12
_LOW_ACCEPTANCE = 0.3
_HIGH_ACCEPTANCE = 0.8
_DEAR_DRAFT = 0.4  # from this c on a draft model is too large for its target
_LONG = 16  # tokens; a shorter draft may gain nothing where a mixture of experts is the target
_NO_BATCHING = 0.8  # from this v(k) / (k + 1) on a pass over several tokens saves nothing
_DISTURBED = 1.5  # from this v(k) / (k + 1) on the times are not the target's own: k + 1 passes take less


class Finding(StrEnum):
    """The subject of an advice."""

    TOO_EARLY = "too early to say"
    NO_BASELINE = "no single-token pass was measured"
    PAYS = "speculation pays"
    LENGTH = "another draft length is better"
    NOTHING = "no drafted token was accepted"
    SELDOM = "drafts are seldom found"
    DISTURBED = "something else took the machine's time"
    TARGET_SMALL = "the target is too small"
    DRAFT_LARGE = "the draft is too large"
    LOW_ACCEPTANCE = "too few tokens are accepted"
    DRAFT_ON_CPU = "the draft is on the CPU and the target is not"
    NO_GAIN = "many tokens are accepted, without gain"
    SYNTHETIC = "the draft is synthetic"
    LOSES = "drafting costs more than it saves"


OTHER_DRAFTS = frozenset({
    Finding.NOTHING, Finding.DRAFT_LARGE, Finding.LOW_ACCEPTANCE, Finding.DRAFT_ON_CPU
})  # fmt: skip
"""Findings whose remedies may name other drafts of the library."""


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding, the sentences to show, and the changes that they name."""

    finding: Finding
    text: str
    factor: float | None = None  # the speed-up that it is based on
    measured: bool = False  # against a baseline run; False: predicted by the cost model
    remedies: tuple[Remedy, ...] = ()


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


def next_advice(facts: Facts) -> Advice | None:
    """The next advice on an answer: its first remedy is the setting to try, and without one the setting is
    to be kept. None where nothing was drafted and nothing was measured."""
    setup = AnswerSetup(facts.pair, facts.target, facts.draft, facts.token_ids, facts.drafts)
    speedup = facts.measured.value if facts.measured is not None else None
    return advise(facts.spec, facts.statistics, facts.cost, speedup, setup)


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
    full = [*larger_contexts(statistics, setup)]
    if not full:
        return advice
    text = " ".join([advice.text, *(f"The context was full: try {remedy.text}." for remedy in full)])
    return replace(advice, text=text, remedies=(*advice.remedies, *full))


def _advice(
    spec: StrategySpec, statistics: Statistics, cost: CostModel, speedup: float | None, setup: AnswerSetup
) -> Advice:
    if _chances(spec, statistics) < _ENOUGH_ROUNDS:
        return Advice(Finding.TOO_EARLY, "Too few rounds yet for advice.")
    few_rounds = statistics.drafted_rounds < SELDOM * _chances(spec, statistics)
    few_tokens = statistics.accepted < SELDOM * statistics.emitted  # a few drafts may be long
    tried = statistics.drafted_rounds >= _ENOUGH_ROUNDS or not few_rounds
    if tried and not statistics.accepted:
        text, remedies = _nothing(spec, statistics, setup)
        return Advice(Finding.NOTHING, text, speedup, speedup is not None, remedies)
    if few_rounds and few_tokens:
        text, remedies = _seldom(spec, statistics, setup)
        return Advice(Finding.SELDOM, text, speedup, speedup is not None, remedies)
    shares = balance(statistics, cost)
    if shares is None:
        return _unmeasured(spec, statistics, cost, setup)
    factor = shares.factor if speedup is None else speedup
    said = _said(shares) if speedup is None else f"{speedup:.2f}× was measured"
    finding, text, remedies = (
        _gaining(spec, statistics, cost, said)
        if factor >= GAIN
        else _losing(spec, statistics, cost, said, setup)
    )
    return Advice(finding, text, factor, speedup is not None, remedies)


def _chances(spec: StrategySpec, statistics: Statistics) -> int:
    """The number of rounds that could have had a draft: all, if the length rule decides whether to draft."""
    return statistics.rounds if spec.length is LengthRule.AUTO else statistics.attempts


def _unmeasured(spec: StrategySpec, statistics: Statistics, cost: CostModel, setup: AnswerSetup) -> Advice:
    """Advice without a pass over a single token: what drafting costs is not known, what is accepted is."""
    rate = statistics.acceptance_rate or 0.0
    remedies = tuple(remedy for remedy in _remedies(spec, statistics, cost, setup) if remedy is not PLAIN)
    if rate >= _LOW_ACCEPTANCE or not remedies:
        text = (
            "No pass over a single token was measured yet: measure the baseline to see what drafting saves."
        )
        return Advice(Finding.NO_BASELINE, text)
    ways = _sentence(f"try {', or '.join(remedy.text for remedy in remedies)}")
    text = f"{_seldom_right(rate)} {ways} Measure the baseline to see whether drafting pays."
    return Advice(Finding.LOW_ACCEPTANCE, text, remedies=remedies)


def _gaining(
    spec: StrategySpec, statistics: Statistics, cost: CostModel, said: str
) -> tuple[Finding, str, tuple[Remedy, ...]]:
    text = f"{said}: speculation pays here."
    better = better_length(spec, statistics, cost)
    if better is None:
        return Finding.PAYS, text, ()
    return Finding.LENGTH, f"{text} Try {better.text}.", (better,)


def _losing(
    spec: StrategySpec, statistics: Statistics, cost: CostModel, said: str, setup: AnswerSetup
) -> tuple[Finding, str, tuple[Remedy, ...]]:
    """The first cause that the numbers show: of the machine, then of the model, then of the settings."""
    k = max(1, round(cost.mean_length or 1))
    v, c = cost.v(k), cost.c
    rate = statistics.acceptance_rate or 0.0
    if v is not None and v >= _DISTURBED * (k + 1):
        text = (
            f"A target pass over {k + 1} tokens took {v:.1f} times as long as one over a single token, and "
            f"{k + 1} such passes would take less: the machine was probably busy with something else. "
            "Measure the baseline when it is idle."
        )
        return Finding.DISTURBED, text, ()
    if v is not None and v >= _NO_BATCHING * (k + 1):
        text = (
            f"A target pass over {k + 1} tokens takes {v:.1f} times as long as one over a single token: "
            "this target is too small for speculation to pay here"
        )
        if k >= _LONG or any(part.name == "ngram-mod" for part in spec.parts):
            return Finding.TARGET_SMALL, f"{text}. Use strategy none.", (PLAIN,)
        text += (
            ", or a mixture of experts, which gains by long drafts only. Use strategy none; with a mixture"
        )
        return Finding.TARGET_SMALL, f"{text} of experts, try {LONG_DRAFTS.text}.", (PLAIN, LONG_DRAFTS)
    if spec.needs_draft and c is not None and c >= _DEAR_DRAFT:
        return _dear_draft(c, setup)
    remedies = _remedies(spec, statistics, cost, setup)
    remedy = f"try {', or '.join(remedy.text for remedy in remedies)}"
    if rate < _LOW_ACCEPTANCE:
        text = f"{_seldom_right(rate)} {_sentence(remedy)}"
        return Finding.LOW_ACCEPTANCE, text, remedies
    if rate > _HIGH_ACCEPTANCE:
        text = (
            f"{percent(rate, 0)} of the drafted tokens were accepted and still nothing is gained: "
            f"{said[0].lower()}{said[1:]}. {_sentence(remedy)}"
        )
        return Finding.NO_GAIN, text, remedies
    return Finding.LOSES, f"{said}: {remedy}.", remedies


def _dear_draft(c: float, setup: AnswerSetup) -> tuple[Finding, str, tuple[Remedy, ...]]:
    """Advice where a draft token takes too long: the draft is on the slower device, or it is too large."""
    text = f"One draft token takes {percent(c, 0)} of a target pass"
    pair, draft = setup.pair, setup.draft
    devices = " and ".join(name for name in pair.devices.split(", ") if name != "CPU") if pair else ""
    if pair is not None and pair.draft is not None and pair.draft.n_gpu_layers == 0 and devices:
        remedies: tuple[Remedy, ...] = (UNDRAFTED,)
        if draft is not None:
            moved = replace(draft, n_gpu_layers=-1, device=setup.target.device if setup.target else "")
            remedies = (Remedy(f"the draft on {devices}", draft=moved), UNDRAFTED)
        text += f": the draft is on the CPU, and the target is not. Try the draft on {devices}"
        smaller = smaller_draft(setup)
        text += f", or {smaller.text} if it does not fit there." if smaller is not None else "."
        if smaller is not None:
            remedies = (*remedies[:-1], smaller, remedies[-1])
        return Finding.DRAFT_ON_CPU, text, remedies
    text += ": the draft is too large for this target."
    if smaller := smaller_draft(setup):
        return Finding.DRAFT_LARGE, f"{text} Try {smaller.text}, or {UNDRAFTED.text}.", (smaller, UNDRAFTED)
    return (
        Finding.DRAFT_LARGE,
        f"{text} Choose a smaller one, or a strategy that needs none, such as ngram-mod.",
        (UNDRAFTED,),
    )


def _said(shares: Balance) -> str:
    share = "under 1\N{NO-BREAK SPACE}%" if 0 < shares.costs < 0.005 else percent(shares.costs, 0)
    costs = f"Drafting costs {share} of the time that plain decoding would take"
    if shares.saves < 0:
        return f"{costs}, and verifying adds {percent(-shares.saves, 0)} of it"
    return f"{costs} and saves {percent(shares.saves, 0)} of it"


def _nothing(
    spec: StrategySpec, statistics: Statistics, setup: AnswerSetup
) -> tuple[str, tuple[Remedy, ...]]:
    instead = another_draft(setup) if spec.needs_draft else another_kind(spec, statistics)
    ways = "Use strategy none, or another draft model."
    if instead is not None:
        ways = f"Use strategy none, or try {instead.text}."
    text = f"None of the {statistics.drafted:,} drafted tokens was accepted: drafting only costs time. {ways}"
    return text, (PLAIN, instead) if instead is not None else (PLAIN,)


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
        through = let_through(spec, spec.parts[-1])
        return (f"{text} Try {through.text}.", (through,)) if through is not None else (text, ())
    for part in spec.parts:
        if discards(part, setup.token_ids) and (through := let_through(spec, part)):
            text = (
                f"{names} found a draft in {found}: this text repeats, and {part.name} discards most of what "
                f"it finds by its settings. Try {through.text}."
            )
            return text, (through,)
        if shorter := shorter_match(spec, part, setup.token_ids):
            remedy, n, share = shorter
            text = (
                f"{names} found a draft in {found}: {part.name} matches {match_length(part)} tokens by its "
                f"settings, and this text repeats in shorter pieces. After {n} equal tokens the next was "
                f"the same in {percent(share, 0)} of the answer: try {remedy.text}."
            )
            return text, (remedy,)
    own = any(isinstance(KINDS[part.name], ForeignKind) for part in spec.parts)  # only it knows what it needs
    text = f"{names} found a draft in {found}{'' if own else ': this text repeats too little'}."
    if any(part.name == "ngram-cache" and not part.params.lookup_cache_static for part in spec.parts):
        text += (
            " Statistics of similar texts may find more: the strategy panel makes them, and so does "
            "draftscope lookup-cache."
        )
    if setup.pair is not None and setup.pair.draft is not None:
        both = Remedy(f"{names} with draft-simple", with_draft(spec))
        return f"{text} Try {both.text}.", (both,)
    costs = "" if own else "It costs next to nothing; "
    return f"{text} {_sentence(f'{costs}a draft model may do better')}", ()


def _remedies(
    spec: StrategySpec, statistics: Statistics, cost: CostModel, setup: AnswerSetup
) -> tuple[Remedy, ...]:
    """What to try when nothing is gained."""
    low = (statistics.acceptance_rate or 0.0) < _LOW_ACCEPTANCE
    ways = [better_length(spec, statistics, cost)]
    if low:
        ways.append(surer_drafts(spec, statistics))
    if spec.needs_draft:
        ways += [another_draft(setup) if low else None, UNDRAFTED]
    elif low:
        ways.append(another_kind(spec, statistics))
    return (*(way for way in ways if way is not None), PLAIN)


def _seldom_right(rate: float) -> str:
    return f"Only {percent(rate, 0)} of the drafted tokens were accepted."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."
