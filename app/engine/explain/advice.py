"""What the measured costs of an answer mean, in a sentence, and what to try next."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import sqrt

from app.engine.explain.cost import LONGEST, CostModel
from app.engine.record.stats import Statistics
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.types import LengthRule

_ENOUGH_ROUNDS = 12
_GAIN = 1.03  # below it, noise would decide
_LOW_ACCEPTANCE = 0.3
_HIGH_ACCEPTANCE = 0.8
_SELDOM = 0.15  # share of rounds in which a draft was found
_DEAR_DRAFT = 0.4  # c from which on a draft model is too large for its target
_NO_BATCHING = 0.8  # v(k) / (k + 1) from which on a pass over several tokens saves nothing
_WORTH_CHANGING = 1.05  # predicted factor over the present one


class Finding(StrEnum):
    """What an advice is about."""

    TOO_EARLY = "too early to say"
    NO_BASELINE = "no single-token pass was measured"
    PAYS = "speculation pays"
    LENGTH = "another draft length is better"
    NOTHING = "no drafted token was accepted"
    SELDOM = "drafts are seldom found"
    TARGET_SMALL = "the target is too small"
    DRAFT_LARGE = "the draft is too large"
    LOW_ACCEPTANCE = "too few tokens are accepted"
    NO_GAIN = "many tokens are accepted, without gain"
    LOSES = "drafting costs more than it saves"


@dataclass(frozen=True, slots=True)
class Advice:
    """A finding and the sentences to show."""

    finding: Finding
    text: str
    factor: float | None = None  # the speed-up that it goes by
    measured: bool = False  # against a baseline run; else predicted by the cost model


@dataclass(frozen=True, slots=True)
class Balance:
    """Drafting against what it saves, as shares of the time that plain decoding would have taken."""

    costs: float
    saves: float

    @property
    def factor(self) -> float:
        """The speed-up that follows."""
        return 1 / (1 - self.saves + self.costs)


def balance(statistics: Statistics, cost: CostModel) -> Balance | None:
    """None where no pass over a single token was measured or can be inferred."""
    if not cost.single_pass or not statistics.emitted:
        return None
    plain = statistics.emitted * cost.single_pass
    return Balance(statistics.draft_seconds / plain, 1 - statistics.target_seconds / plain)


def advise(
    spec: StrategySpec, statistics: Statistics, cost: CostModel, speedup: float | None = None
) -> Advice | None:
    """Read the statistics of an answer; `speedup` is the measured one, where a baseline was run.

    None without speculation: there is nothing to advise on.
    """
    if not spec.parts:
        return None
    if _chances(spec, statistics) < _ENOUGH_ROUNDS:
        return Advice(Finding.TOO_EARLY, "Too few rounds yet for advice.")
    few_rounds = statistics.drafted_rounds < _SELDOM * _chances(spec, statistics)
    few_tokens = statistics.accepted < _SELDOM * statistics.emitted  # a few drafts may be long ones
    tried = statistics.drafted_rounds >= _ENOUGH_ROUNDS or not few_rounds
    if tried and not statistics.accepted:
        return Advice(Finding.NOTHING, _nothing(spec, statistics), speedup, speedup is not None)
    if few_rounds and few_tokens:
        return Advice(Finding.SELDOM, _seldom(spec, statistics), speedup, speedup is not None)
    shares = balance(statistics, cost)
    if shares is None:
        return Advice(
            Finding.NO_BASELINE,
            "No pass over a single token was measured yet: measure the baseline to see what drafting saves.",
        )
    factor = shares.factor if speedup is None else speedup
    finding, text = (
        _gaining(spec, statistics, cost, shares)
        if factor >= _GAIN
        else _losing(spec, statistics, cost, shares)
    )
    return Advice(finding, text, factor, speedup is not None)


def _chances(spec: StrategySpec, statistics: Statistics) -> int:
    """Rounds that a draft could have come of: all of them where the rule decides whether to ask for one."""
    return statistics.rounds if spec.length is LengthRule.AUTO else statistics.attempts


def _gaining(
    spec: StrategySpec, statistics: Statistics, cost: CostModel, shares: Balance
) -> tuple[Finding, str]:
    text = f"{_said(shares)}: speculation pays here."
    better = _better_length(spec, statistics, cost)
    if better is None:
        return Finding.PAYS, text
    return Finding.LENGTH, f"{text} Try {better}."


def _losing(
    spec: StrategySpec, statistics: Statistics, cost: CostModel, shares: Balance
) -> tuple[Finding, str]:
    """The first cause that the numbers show; the machine's before the model's before the setting's."""
    k = max(1, round(cost.mean_length or 1))
    v, c = cost.v(k), cost.c
    rate = statistics.acceptance_rate or 0.0
    if v is not None and v >= _NO_BATCHING * (k + 1):
        return Finding.TARGET_SMALL, (
            f"A target pass over {k + 1} tokens takes {v:.1f} times as long as one over a single token: "
            "this target is too small for speculation to pay here. Use none."
        )
    if spec.needs_draft and c is not None and c >= _DEAR_DRAFT:
        return Finding.DRAFT_LARGE, (
            f"One draft token takes {_percent(c)} of a target pass: the draft is too large for this target. "
            "Choose a smaller one, or a strategy that needs none, such as ngram-mod."
        )
    remedy = _remedy(spec, statistics, cost)
    if rate < _LOW_ACCEPTANCE:
        return Finding.LOW_ACCEPTANCE, (
            f"Only {_percent(rate)} of the drafted tokens were accepted. {_sentence(remedy)}"
        )
    if rate > _HIGH_ACCEPTANCE:
        return Finding.NO_GAIN, (
            f"{_percent(rate)} of the drafted tokens were accepted and still nothing is gained: "
            f"{_said(shares, start=False)}. {_sentence(remedy)}"
        )
    return Finding.LOSES, f"{_said(shares)}: {remedy}."


def _said(shares: Balance, start: bool = True) -> str:
    first = "Drafting" if start else "drafting"
    costs = f"{first} costs {_percent(shares.costs)} of the time that plain decoding would take"
    if shares.saves < 0:
        return f"{costs}, and verifying adds {_percent(-shares.saves)} of it"
    return f"{costs} and saves {_percent(shares.saves)} of it"


def _nothing(spec: StrategySpec, statistics: Statistics) -> str:
    ways = "Use none, or another draft model." if spec.needs_draft else "Use none, or another strategy."
    return f"None of the {statistics.drafted:,} drafted tokens was accepted: drafting only costs time. {ways}"


def _seldom(spec: StrategySpec, statistics: Statistics) -> str:
    """Why drafts were seldom: the rule rested, the draft model's were cut, or the text repeats too little."""
    share = statistics.drafted_rounds / _chances(spec, statistics)
    names = " and ".join(part.name for part in spec.parts)
    found = "no round" if not statistics.drafted_rounds else f"{_percent(share)} of the rounds"
    if spec.length is LengthRule.AUTO:
        return f"length=auto drafted in {found}: more would cost more than it saves."
    if spec.needs_draft:
        return f"{names} drafted in {found}: its settings let too few drafts through."
    return (
        f"{names} found a draft in {found}: this text repeats too little. "
        "It costs next to nothing; a draft model may do better."
    )


def _remedy(spec: StrategySpec, statistics: Statistics, cost: CostModel) -> str:
    """What to try where nothing is gained."""
    better = _better_length(spec, statistics, cost)
    ways = [better] if better else []
    if spec.needs_draft:
        ways.append("ngram-mod, which needs no draft model")
    ways.append("none")
    return "try " + ", or ".join(ways)


def _percent(share: float) -> str:
    return f"{share * 100:.0f}\N{NO-BREAK SPACE}%"


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _better_length(spec: StrategySpec, statistics: Statistics, cost: CostModel) -> str | None:
    """The setting that is predicted to be clearly faster than the drafts that were made, also where alpha is
    as low as so few judged tokens allow."""
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
    if best is None or best == round(cost.mean_length or 0):
        return None
    whose = f" for {part.name}" if len(spec.parts) > 1 else ""
    factor, least, most = (cost.predicted(share, best) or 0.0 for share in (alpha, low, high))
    return f"{part.length_key}={best}{whose} (predicted {factor:.2f}×, {least:.2f} to {most:.2f})"


def _interval(passed: int, judged: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson 1927)."""
    z = 1.96
    share, room = passed / judged, 1 + z * z / judged
    middle = (share + z * z / (2 * judged)) / room
    half = z * sqrt(share * (1 - share) / judged + z * z / (4 * judged * judged)) / room
    return middle - half, middle + half


def _busiest(spec: StrategySpec, statistics: Statistics) -> StrategyPart:
    """The strategy that drafted most tokens: the numbers of the answer are mostly its own."""
    drafted = {name: one.drafted for name, one in statistics.strategies.items()}
    return max(spec.parts, key=lambda part: drafted.get(part.name, 0))
