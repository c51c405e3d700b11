"""The known facts of an answer, for advice on it; no Qt, no engine.

A pass takes about as long as its bytes take to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from app.engine.compat import HEAD_STRATEGIES
from app.engine.drafters.base import StrategyKind
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
