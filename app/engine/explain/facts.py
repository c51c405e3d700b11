"""The known facts of an answer, and the cause of its speed that they show; no Qt, no engine.

A pass takes about as long as its bytes take to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from app.base.numbers import percent
from app.engine.compat import HEAD_STRATEGIES
from app.engine.drafters.base import StrategyKind
from app.engine.drafters.registry import KINDS
from app.engine.explain.cost import CostModel
from app.engine.process.messages import PassSeconds
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, PairInfo, Round

_PROMPTS = 8  # that are looked through


class Factor(NamedTuple):
    """A speed-up of whole answers over strategy none, and its range."""

    value: float
    low: float
    high: float


class Tried(NamedTuple):
    """A strategy that was measured on a prompt."""

    factor: Factor
    rounds: Sequence[Round] = ()  # of its answer


class DraftFile(NamedTuple):
    """A model file that can draft for the target."""

    path: str  # "" if it is only in the catalogue
    size: int  # bytes
    name: str


class AnsweredPrompt(NamedTuple):
    """An answer's text, with its prompt and the rounds that made it."""

    rounds: Sequence[Round]
    prompt_ids: Sequence[int]
    token_ids: Sequence[int]
    max_tokens: int  # that it might have had


@dataclass(frozen=True, slots=True)
class AdviceFacts:
    """An answer, the cost of passes on this machine, and earlier measurements. More facts allow more settings
    to be compared."""

    spec: StrategySpec
    statistics: Statistics  # of the answer
    cost: CostModel  # of its passes, with those of a baseline or a calibration where there is one
    rounds: Sequence[Round] = ()  # of the answer
    prompt_ids: Sequence[int] = ()
    token_ids: Sequence[int] = ()  # of the answer
    measured: Factor | None = None  # of the answer's strategy on this prompt
    tried: Mapping[str, Tried] = field(default_factory=dict)
    """Other strategies that were measured on this prompt, by spec."""
    pair: PairInfo | None = None
    target: ModelOptions | None = None
    draft: ModelOptions | None = None
    drafts: Sequence[DraftFile] | None = None
    """Files in library and catalogue that suit the target; None: not looked for."""
    max_tokens: int = 0  # that the answer might have had; 0: as many as it has
    others: Sequence[AnsweredPrompt] = ()
    """Answers with the same strategy to other prompts: a setting is judged on all together."""

    @classmethod
    def of(
        cls,
        traces: Sequence[Trace],
        plain: Sequence[Trace] = (),
        measured: Factor | None = None,
        tried: Mapping[str, Tried] | None = None,
        calibration: PassSeconds | None = None,
    ) -> AdviceFacts:
        """The facts of recorded answers of one strategy; only the longest answer to each prompt is walked
        through. `plain` are the baseline's answers. Raises SettingError for an unknown strategy."""
        of_prompts: dict[str, Trace] = {}
        for trace in sorted(traces, key=lambda trace: len(trace.token_ids), reverse=True):
            of_prompts.setdefault(trace.header.prompt, trace)
        longest, *others = of_prompts.values()
        cost = CostModel.of(
            (round for trace in traces for round in trace.rounds),
            (round for trace in plain for round in trace.rounds),
        )
        if calibration is not None:
            cost = cost.calibrated(calibration)
        return cls(
            StrategySpec.parse(longest.header.strategy),
            Statistics.pooled(map(Statistics.of_answer, traces)),
            cost,
            longest.rounds,
            longest.header.context_ids,
            longest.token_ids,
            measured,
            tried or {},
            longest.header.pair,
            max_tokens=longest.header.max_tokens,
            others=[
                AnsweredPrompt(each.rounds, each.header.context_ids, each.token_ids, each.header.max_tokens)
                for each in others[: _PROMPTS - 1]
            ],
        )

    def suits(self, kind: StrategyKind) -> bool:
        """Whether a strategy works with the available draft, if it needs one: an EAGLE head serves only its
        own strategy. MTP heads are checked when used."""
        if not kind.by_model or kind.needs_mtp:
            return not kind.needs_mtp or any(part.name == kind.name for part in self.spec.parts)
        draft = self.pair.draft if self.pair is not None else None
        head = HEAD_STRATEGIES.get(draft.architecture) if draft is not None else None
        has_draft = draft is not None or bool(self.cost.known_draft)
        return has_draft and (kind.name == head if head else not kind.is_head)

    @property
    def relative_size(self) -> float:
        """The draft model's size / the target's; 0 without one."""
        pair = self.pair
        return pair.draft.size / pair.target.size if pair is not None and pair.draft is not None else 0.0


IDEAL_SHARE = 0.1
"""The best share of the target's size: small enough to cost little, large enough to agree often."""
LARGEST_THAT_PAYS = 0.5
"""At half the target's size, three drafted tokens per round with 8 in 10 accepted gain a fifth; above it,
nothing."""
_GOOD = (1 / 20, 1 / 5)
_MAY_DO = 1 / 3


def size_words(share: float) -> str:
    """The share of the target's size in words, such as "8 % of the target's size"."""
    if share >= 2:
        return f"{share:.0f} times the target's size"
    digits = 0 if share >= 0.0095 else 1
    return f"{share * 100:.{digits}f} % of the target's size"


def size_verdict(share: float, target: str = "", draft: str = "") -> str:
    """A sentence about a draft by its share of the target's size and, if known, both architectures: models of
    one family agree more often."""
    low, high = _GOOD
    if share > LARGEST_THAT_PAYS:
        said = "it will hardly save time"
    elif share > _MAY_DO:
        said = "it pays only if nearly all of it is accepted"
    elif share > high:
        said = "it may pay"
    elif share >= low:
        said = "a good size"
    else:
        said = "a small draft costs little, but may rarely agree"
    if target and draft and target != draft:
        said += f"; it is from a different family ({draft}, not {target})"
    return f"{size_words(share)}: {said}"


_SELDOM = 0.15  # share of rounds in which a draft was found
_LOW_ACCEPTANCE = 0.3
_ENOUGH_FAILED = 40  # drafted tokens of a head; it does not fit if fewer than 1 in 40 passed
_ENOUGH_JUDGED = 10  # a head that is right at 3 of 10 places fails so often in a row in 3 of 100 answers
_DEAR_DRAFT = 0.4  # from this c on a draft model is too large for its target
_NO_BATCHING = 0.6  # from this v(k) / (k + 1) on a pass over several tokens saves little


class Finding(StrEnum):
    """The cause that a piece of advice names."""

    TOO_EARLY = "too early to say"
    NO_BASELINE = "no single-token pass was measured"
    FINE = "nothing stands out"
    NOTHING = "no drafted token was accepted"
    MISFIT = "the head does not fit the target"
    SELDOM = "drafts are rarely found"
    DISTURBED = "the machine was busy"
    DEAR_PASSES = "a multi-token pass takes too long"
    DRAFT_LARGE = "the draft is too large"
    LOW_ACCEPTANCE = "too few tokens are accepted"
    DRAFT_ON_CPU = "the draft is on the CPU and the target is not"
    SYNTHETIC = "the draft is synthetic"


def cause(facts: AdviceFacts) -> tuple[Finding, str]:
    """The first cause that the numbers show, in this order: a head that does not fit, the machine, the
    models, the text."""
    spec, statistics, cost = facts.spec, facts.statistics, facts.cost
    if not spec.parts:
        return Finding.FINE, ""
    for name in (part.name for part in spec.parts if KINDS[part.name].is_head):
        head = statistics.strategies.get(name)
        judged = head.accepted + head.rejected if head is not None else 0
        if head is None or head.drafted < _ENOUGH_FAILED or judged < _ENOUGH_JUDGED:
            continue
        if head.accepted * _ENOUGH_FAILED < judged:  # what chance may accept
            count = f"Only {head.accepted:,}" if head.accepted else "None"
            return Finding.MISFIT, (
                f"{count} of {judged:,} judged tokens of {name} "
                f"{'were' if head.accepted > 1 else 'was'} accepted. The head was probably trained for a "
                "different base model, or quantised too far, or its reduced vocabulary lacks the words of "
                "this language."
            )
    k = max(1, round(cost.mean_length or 1))
    v, single = cost.v(k), cost.single_pass
    names = " and ".join(part.name for part in spec.parts)
    if v is not None and cost.is_disturbed(k):
        return Finding.DISTURBED, (
            f"A target pass over {k + 1} tokens took {v:.1f} times as long as a single-token pass, and "
            f"{k + 1} single-token passes would be faster. The machine was probably busy."
        )
    drafting = [part.name for part in spec.parts if KINDS[part.name].needs_draft]
    c = max((cost.step_seconds(name) for name in drafting), default=0.0) / single if single else 0.0
    if drafting and c >= _DEAR_DRAFT:
        return _dear_draft(facts, c)
    share = statistics.drafted_rounds / statistics.rounds if statistics.rounds else 0.0
    if statistics.drafted and not statistics.accepted:
        if statistics.drafted == 1:
            return Finding.NOTHING, "The only drafted token was not accepted."
        return Finding.NOTHING, f"None of the {statistics.drafted:,} drafted tokens was accepted."
    if share < _SELDOM and statistics.accepted < _SELDOM * statistics.emitted:
        found = "no round" if not statistics.drafted_rounds else f"{percent(share, 0)} of the rounds"
        if spec.length.by_clock:
            rule = f"length={spec.length.name}"
            return Finding.SELDOM, f"{names} drafted in {found}: {rule} expects more to cost time."
        return Finding.SELDOM, f"With its settings, {names} found a draft in {found}."
    rate = statistics.acceptance_rate
    if rate is not None and rate < _LOW_ACCEPTANCE:
        return Finding.LOW_ACCEPTANCE, f"Only {percent(rate, 0)} of the drafted tokens were accepted."
    if v is not None and v >= _NO_BATCHING * (k + 1):
        return Finding.DEAR_PASSES, (
            f"A target pass over {k + 1} tokens takes {v:.1f} times as long as a single-token pass: "
            f"{_target_words(facts)}."
        )
    return Finding.FINE, ""


def _target_words(facts: AdviceFacts) -> str:
    """Why a pass over several tokens gains little, according to the target's file."""
    target = facts.pair.target if facts.pair is not None else None
    if target is not None and target.n_experts:
        return (
            f"each token uses different experts of the {target.n_experts} in a layer, so only long drafts "
            "gain"
        )
    said = (
        f" ({target.quantisation}, {target.n_params / 1e6:,.0f} M parameters)" if target is not None else ""
    )
    return f"this target{said} is slow to compute here, so a batch saves little"


def _dear_draft(facts: AdviceFacts, c: float) -> tuple[Finding, str]:
    """A draft token takes too long: the draft is on a slower device, or too large."""
    text = f"One draft token takes {percent(c, 0)} of a target pass"
    pair = facts.pair
    if faster_devices(facts):
        return Finding.DRAFT_ON_CPU, f"{text}: the draft is on the CPU, and the target is not."
    share = facts.relative_size
    if pair is None or pair.draft is None or share < LARGEST_THAT_PAYS:
        return Finding.DRAFT_LARGE, f"{text}: the draft is too slow for this target."
    target, draft = pair.target.quantisation, pair.draft.quantisation
    beside = f" ({draft} beside {target})" if draft != target else ""
    return Finding.DRAFT_LARGE, f"{text}: the draft has {size_words(share)}{beside}."


def faster_devices(facts: AdviceFacts) -> str:
    """The target's devices, if the draft is on the CPU and the target is not; else ""."""
    pair = facts.pair
    if pair is None or pair.draft is None or pair.draft.n_gpu_layers:
        return ""
    return " and ".join(name for name in pair.devices.split(", ") if name != "CPU")
