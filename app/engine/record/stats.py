"""Statistics: folds over the rounds of one answer. The definitions are those of METRICS.md.

A fold has no state besides its sums: a live answer calls `add` per round, a recorded answer is `of` all its
rounds, and resetting the statistics is a new fold from a later round on. A ratio whose denominator is zero is
None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from itertools import accumulate, pairwise, zip_longest
from math import fsum, log2
from operator import mul
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from app.engine.fates import Origin, Verdict
from app.engine.types import Alternatives, Round, Totals

if TYPE_CHECKING:
    from app.engine.record.trace import Trace


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None


class DraftOutcome(NamedTuple):
    """What became of a round's draft."""

    verdicts: list[Verdict]
    accepted: int
    rejected_at: int  # position of the rejected token; -1 if there is none
    block: bool  # judged as a block

    @classmethod
    def of(cls, round: Round) -> DraftOutcome:
        verdicts = [token.verdict for token in round.drafted]
        rejected_at = verdicts.index(Verdict.REJECTED) if Verdict.REJECTED in verdicts else -1
        return cls(verdicts, verdicts.count(Verdict.ACCEPTED), rejected_at, not _judged_singly(round))


@dataclass(slots=True)
class DraftStatistics:
    """The results of drafts: one strategy's, or (as the base of Statistics) all."""

    drafted_rounds: int = 0  # rounds with a draft
    drafted: int = 0
    verdicts: dict[Verdict, int] = field(default_factory=lambda: dict.fromkeys(Verdict, 0))
    draft_seconds: float = 0.0
    accept_seconds: float = 0.0  # learning what was accepted
    blocks: int = 0  # rounds whose draft was judged as a block
    lengths: list[int] = field(default_factory=list)
    """Histogram: index k holds the rounds with a draft of k tokens. Ends at the longest draft."""
    accepted_per_round: list[int] = field(default_factory=list)
    """Histogram: index j holds the rounds with a draft of which j tokens were accepted. Ends at the largest j
    that occurred."""
    rejections: list[int] = field(default_factory=list)
    """Index i holds the rounds whose draft was rejected at position i. Ends at the last such position."""

    def add_draft(self, round: Round, outcome: DraftOutcome) -> None:
        """Add a round with a draft, and what became of it."""
        verdicts = self.verdicts
        for verdict in outcome.verdicts:
            verdicts[verdict] += 1
        length = len(outcome.verdicts)
        self.drafted_rounds += 1
        self.blocks += outcome.block
        self.drafted += length
        self.draft_seconds += round.draft_seconds
        self.accept_seconds += round.accept_seconds
        _count(self.lengths, length)
        _count(self.accepted_per_round, outcome.accepted)
        if outcome.rejected_at >= 0:
            _count(self.rejections, outcome.rejected_at)

    def copied(self) -> Self:
        """A fold that goes on by itself."""
        return type(self)(*(_copied(getattr(self, field.name)) for field in fields(self)))

    @property
    def accepted(self) -> int:
        return self.verdicts[Verdict.ACCEPTED]

    @property
    def rejected(self) -> int:
        return self.verdicts[Verdict.REJECTED]

    @property
    def ignored(self) -> int:
        return self.verdicts[Verdict.IGNORED]

    @property
    def acceptance_rate(self) -> float | None:
        """accepted / drafted, pooled over rounds."""
        return _ratio(self.accepted, self.drafted)

    @property
    def alpha(self) -> float | None:
        """accepted / (accepted + rejected): the chance that a judged draft token passes.

        Also None if drafts are judged as blocks: their tokens do not pass one by one.
        """
        if self.blocks:
            return None
        return _ratio(self.accepted, self.accepted + self.rejected)

    @property
    def tau(self) -> float | None:
        """1 + accepted / rounds with a draft, even if the answer ended inside a draft."""
        mean = _ratio(self.accepted, self.drafted_rounds)
        return None if mean is None else 1 + mean

    @property
    def draft_length(self) -> float | None:
        """Mean draft length: drafted / rounds with a draft."""
        return _ratio(self.drafted, self.drafted_rounds)

    @property
    def accepted_drafts(self) -> int:
        """The number of rounds with at least one accepted token."""
        return sum(self.accepted_per_round[1:])

    @property
    def longest_draft(self) -> int:
        return max(len(self.lengths) - 1, 0)

    @property
    def drafted_at(self) -> tuple[int, ...]:
        """For each position of the longest draft: the rounds that drafted a token there."""
        return _at_least(self.lengths)

    @property
    def accepted_at(self) -> tuple[int, ...]:
        """For each position of the longest draft: the rounds whose draft was accepted there."""
        # A draft accepted at position i is accepted at every position before it.
        counts = _at_least(self.accepted_per_round)
        return counts + (0,) * (self.longest_draft - len(counts))

    @property
    def acceptance_by_place(self) -> tuple[float, ...]:
        """For each position of the longest draft: accepted there / drafted there."""
        return tuple(
            accepted / drafted for accepted, drafted in zip(self.accepted_at, self.drafted_at, strict=True)
        )

    @property
    def judged_acceptance_by_place(self) -> tuple[float | None, ...]:
        """For each position of the longest draft: accepted there / (accepted + rejected there); None where
        nothing was judged, and everywhere if drafts are judged as blocks."""
        if self.blocks:
            return (None,) * self.longest_draft
        return tuple(
            _ratio(accepted, accepted + rejected)
            for accepted, rejected in zip_longest(self.accepted_at, self.rejections, fillvalue=0)
        )

    @property
    def acceptance_at(self) -> tuple[float, ...]:
        """Acceptance at position i, unconditional: / rounds with a draft."""
        return tuple(count / self.drafted_rounds for count in self.accepted_at)

    @property
    def conditional_acceptance_at(self) -> tuple[float | None, ...]:
        """Acceptance at position i, conditional: / rounds whose (i-1)-th was accepted.

        A draft that ended after its (i-1)-th token counts as not accepted at i.
        """
        counts = (self.drafted_rounds, *self.accepted_at)
        return tuple(_ratio(here, before) for before, here in pairwise(counts))


@dataclass(slots=True)
class Statistics(DraftStatistics):
    """All statistics of the rounds of an answer, or of its last rounds."""

    rounds: int = 0
    emitted: int = 0
    origins: dict[Origin, int] = field(default_factory=lambda: dict.fromkeys(Origin, 0))
    attempts: int = 0  # rounds in which a draft was asked for, even if none came
    calls: dict[str, int] = field(default_factory=dict)
    """The number of times each strategy was asked for a draft; empty for traces before format 1.2."""
    ends: dict[str, int] = field(default_factory=dict)
    """Reason why a draft ended or did not come about -> rounds, in order of appearance."""
    begin_seconds: dict[str, float] = field(default_factory=dict)
    """The time each strategy took to begin; empty for traces before format 1.6."""
    fruitless_seconds: float = 0.0  # drafting time in rounds without a draft
    target_seconds: float = 0.0  # target passes
    sample_seconds: float = 0.0
    native_seconds: float = 0.0
    start: float = 0.0  # offset of the first round
    end: float = 0.0  # offset of the end of the last round
    strategies: dict[str, DraftStatistics] = field(default_factory=dict)
    """Statistics by the strategy that drafted, in order of appearance."""

    @classmethod
    def of(cls, rounds: Iterable[Round]) -> Statistics:
        """The fold over consecutive `rounds` of one answer."""
        statistics = cls()
        for round in rounds:
            statistics.add(round)
        return statistics

    @classmethod
    def of_answer(cls, trace: Trace) -> Statistics:
        """The statistics of a whole answer."""
        statistics = cls.of(trace.rounds)
        statistics.start = 0.0
        if trace.totals is not None:
            statistics.end_whole(trace.totals)
        return statistics

    def end_whole(self, totals: Totals) -> None:
        """Set the wall time of a whole answer, which includes what comes before its first round and after its
        last: every tokens/s of a finished answer is over this time."""
        self.start, self.end = 0.0, totals.seconds

    @classmethod
    def pooled(cls, parts: Iterable[Statistics]) -> Statistics:
        """Several answers pooled: counts and times are sums, so that no ratio is a mean of ratios."""
        parts = list(parts)
        return _sum(parts) if parts else cls()

    def add(self, round: Round) -> None:
        """Add the next round."""
        if self.rounds == 0:
            self.start = round.offset
        self.rounds += 1
        self.emitted += len(round.emitted)
        origins = self.origins
        for token in round.emitted:
            origins[token.origin] += 1
        self.target_seconds += round.verify_seconds
        self.sample_seconds += round.sample_seconds
        self.native_seconds += round.native_seconds
        self.end = round.offset + round.seconds
        if round.draft_end:
            self.ends[round.draft_end] = self.ends.get(round.draft_end, 0) + 1
        self.attempts += bool(round.drafted or (round.draft_end if round.asked is None else round.asked))
        for name, seconds in round.begin_seconds.items():
            self.begin_seconds[name] = self.begin_seconds.get(name, 0.0) + seconds
        for name in round.asked or ():
            self.calls[name] = self.calls.get(name, 0) + 1
        if round.drafted:
            outcome = DraftOutcome.of(round)
            self.add_draft(round, outcome)
            if round.strategy is not None:
                if round.strategy not in self.strategies:
                    self.strategies[round.strategy] = DraftStatistics()
                self.strategies[round.strategy].add_draft(round, outcome)
        else:
            # Time spent looking for a draft is drafting time, whether or not one was found.
            self.draft_seconds += round.draft_seconds
            self.fruitless_seconds += round.draft_seconds

    @property
    def seconds(self) -> float:
        """Wall time from the start of the first round (of an answer: round 0)."""
        return self.end - self.start

    @property
    def tokens_per_second(self) -> float | None:
        """emitted / wall time from the start of round 0."""
        return _ratio(self.emitted, self.seconds)

    @property
    def tokens_per_pass(self) -> float | None:
        """emitted / rounds."""
        return _ratio(self.emitted, self.rounds)

    @property
    def draft_share(self) -> float | None:
        """accepted / emitted."""
        return _ratio(self.accepted, self.emitted)

    @property
    def engine_overhead(self) -> float | None:
        """1 - (time in native decode calls and the logits reads that wait for them) / wall time; None for a
        server, which does not tell that time."""
        if not self.native_seconds:
            return None
        share = _ratio(self.native_seconds, self.seconds)
        return None if share is None else 1 - share


_BITS_PER_BIN = 0.5


@dataclass(slots=True)
class AlternativeStatistics:
    """What the recorded alternatives of both models say. A place has ten at most, so that both numbers end
    there.

    - Rank: which choice of the draft model the emitted token was, in drafted places that the rule reached.
      A draft that offers w tokens a place would have held the emitted token where its rank is w or less.
      That is exact where the target's token does not depend on the draft (greedy, match), and an estimate
      where it is drawn from the residual (speculative, block).
    - Entropy of a target row: -Σ p log2 p over the recorded tokens, with all other tokens counted as one. It
      is a lower bound, and exact where the sampler kept no other tokens. At temperature 0 it is that of the
      model's own distribution, at temperature 1.
    """

    ranks: list[int] = field(default_factory=list)
    """Histogram: index r holds the places whose token was the draft's choice number r + 1."""
    unranked: int = 0  # places whose token is not among the recorded alternatives
    rows: int = 0  # target rows with alternatives
    bits: float = 0.0  # sum of the rows' entropies
    rest: float = 0.0  # sum of the rows' probabilities of all tokens that are not recorded
    entropies: list[int] = field(default_factory=list)
    """Histogram: index b holds the rows with an entropy from b / 2 bits on."""
    judged_by_entropy: list[int] = field(default_factory=list)  # rows that judged a drafted token, likewise
    accepted_by_entropy: list[int] = field(default_factory=list)  # of these, those that accepted it

    @classmethod
    def of(cls, rounds: Iterable[Round]) -> AlternativeStatistics:
        """The fold over `rounds`."""
        statistics = cls()
        for round in rounds:
            statistics.add(round)
        return statistics

    @classmethod
    def pooled(cls, parts: Iterable[AlternativeStatistics]) -> AlternativeStatistics:
        """Several answers pooled."""
        parts = list(parts)
        return _sum(parts) if parts else cls()

    def add(self, round: Round) -> None:
        """Add a round."""
        for token, top in zip(round.emitted, round.draft_top, strict=False):  # a bonus token has no draft
            if token.id in top.ids:
                _count(self.ranks, top.ids.index(token.id))
            else:
                self.unranked += 1
        verdicts = [token.verdict for token in round.drafted] if _judged_singly(round) else []
        for row, top in enumerate(round.target_top):
            bits, rest = entropy(top)
            self.rows += 1
            self.bits += bits
            self.rest += rest
            at = int(bits / _BITS_PER_BIN)
            _count(self.entropies, at)
            verdict = verdicts[row] if row < len(verdicts) else Verdict.IGNORED
            if verdict is not Verdict.IGNORED:
                _count(self.judged_by_entropy, at)
                if verdict is Verdict.ACCEPTED:
                    _count(self.accepted_by_entropy, at)

    @property
    def ranked(self) -> int:
        """Places with alternatives of the draft model."""
        return sum(self.ranks) + self.unranked

    def held_by(self, width: int) -> float | None:
        """The share of places whose token is among the draft's first `width` choices."""
        return _ratio(sum(self.ranks[:width]), self.ranked)

    @property
    def target_entropy(self) -> float | None:
        """Mean entropy of the target's rows in bits, a lower bound."""
        return _ratio(self.bits, self.rows)

    @property
    def target_rest(self) -> float | None:
        """Mean probability of all tokens that are not recorded: how far the entropy may be off."""
        return _ratio(self.rest, self.rows)


def entropy(top: Alternatives) -> tuple[float, float]:
    """(entropy in bits with all tokens that are not in `top` as one, their probability)"""
    p = [share for share in top.p if share > 0]
    rest = max(1 - sum(p), 0.0)
    if rest > 0:
        p.append(rest)
    return max(-sum(map(mul, p, map(log2, p))), 0.0), rest


def _judged_singly(round: Round) -> bool:
    """Whether no drafted token was judged as part of a block."""
    return {token.h for token in round.drafted} <= {None}  # sooner than `all` over a generator


def _count(histogram: list[int], at: int) -> None:
    """Add 1 at an index, which may lie behind the end."""
    if at >= len(histogram):
        histogram.extend([0] * (at + 1 - len(histogram)))
    histogram[at] += 1


def _at_least(histogram: Sequence[int]) -> tuple[int, ...]:
    """For each value from 1 on, how many are at least that."""
    return tuple(accumulate(reversed(histogram[1:])))[::-1]


def _copied(value: Any) -> Any:
    """A number, or a copy of a list, of a dictionary, of statistics."""
    if isinstance(value, DraftStatistics):
        return value.copied()
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    return value.copy() if isinstance(value, list) else value


def _sum(values: Sequence[Any]) -> Any:
    """The sum of numbers, or element by element of lists, dictionaries and statistics."""
    first = values[0]
    if isinstance(first, DraftStatistics | AlternativeStatistics):
        return type(first)(
            *(_sum([getattr(value, field.name) for value in values]) for field in fields(first))
        )
    if isinstance(first, dict):
        keys = dict.fromkeys(key for value in values for key in value)
        return {key: _sum([value[key] for value in values if key in value]) for key in keys}
    if isinstance(first, list):
        return [sum(column) for column in zip_longest(*values, fillvalue=0)]
    return fsum(values) if isinstance(first, float) else sum(values)


def strategy_names(spec: str) -> tuple[str, ...]:
    """The names in a strategy spec, in order of precedence; none for `none`.

    Values percent-encode ":" and "+", so both always separate.
    """
    names = (part.split(":", 1)[0] for part in spec.split("+"))
    return tuple(name for name in names if name != "none")
