"""Statistics: folds over the rounds of one answer. The definitions are those of METRICS.md.

A fold's only state is its sums. A live answer calls `add` for each round; a recorded answer is `of` all its
rounds. A reset is a new fold from a later round. A ratio with denominator zero is None, never 0."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from itertools import accumulate, zip_longest
from math import fsum
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from typing_extensions import override

from app.engine.fates import Origin, Verdict
from app.engine.types import Round, Totals

if TYPE_CHECKING:
    from app.engine.record.trace import Trace


def ratio(part: float, whole: float) -> float | None:
    """None without a denominator."""
    return part / whole if whole > 0 else None


def judged_singly(round: Round) -> bool:
    """Whether no drafted token was judged as part of a block."""
    return {token.h for token in round.drafted} <= {None}  # sooner than `all` over a generator


def count_at(histogram: list[int], at: int) -> None:
    """Add 1 at an index, which may be past the end."""
    if at >= len(histogram):
        histogram.extend([0] * (at + 1 - len(histogram)))
    histogram[at] += 1


def at_least(histogram: Sequence[int]) -> tuple[int, ...]:
    """For each value from 1, how many entries are at least that."""
    return tuple(accumulate(reversed(histogram[1:])))[::-1]


def sum_of(values: Sequence[Any]) -> Any:
    """The sum of numbers or counters; lists, dictionaries and statistics are added element by element."""
    first = values[0]
    if is_dataclass(first) and not isinstance(first, type):
        columns = ([getattr(value, field.name) for value in values] for field in fields(first))
        return type(first)(*map(sum_of, columns))
    if isinstance(first, dict):
        keys = dict.fromkeys(key for value in values for key in value)
        sums = {key: sum_of([value[key] for value in values if key in value]) for key in keys}
        return type(first)(sums)
    if isinstance(first, list):
        return [sum(column) for column in zip_longest(*values, fillvalue=0)]
    return fsum(values) if isinstance(first, float) else sum(values)


class Fold(ABC):
    """Sums over the rounds of answers, a dataclass."""

    __slots__ = ()

    @abstractmethod
    def add(self, round: Round) -> None:
        """Add the next round."""

    @classmethod
    def of(cls, rounds: Iterable[Round]) -> Self:
        """The fold over consecutive `rounds` of one answer."""
        fold = cls()
        for round in rounds:
            fold.add(round)
        return fold

    @classmethod
    def pooled(cls, parts: Iterable[Self]) -> Self:
        """Several answers pooled: counts and times are sums, so no ratio is a mean of ratios."""
        parts = list(parts)
        return sum_of(parts) if parts else cls()


_VERDICTS = tuple(Verdict)
# Python 3.11 takes longer to look a member up than to count it.
_REJECTED, _ACCEPTED_AT = Verdict.REJECTED, _VERDICTS.index(Verdict.ACCEPTED)


class DraftOutcome(NamedTuple):
    """What became of a round's draft."""

    counts: tuple[int, ...]  # of each verdict
    rejected_at: int  # position of the rejected token; -1 if there is none
    block: bool  # judged as a block

    @classmethod
    def of(cls, round: Round) -> DraftOutcome:
        verdicts = [token.verdict for token in round.drafted]
        counts = tuple(map(verdicts.count, _VERDICTS))
        if sum(counts) != len(verdicts):
            raise KeyError(*set(verdicts).difference(Verdict))
        rejected_at = verdicts.index(_REJECTED) if _REJECTED in verdicts else -1
        return cls(counts, rejected_at, not judged_singly(round))


@dataclass(slots=True)
class DraftStatistics:
    """The results of drafts: one strategy's, or all (as the base of Statistics)."""

    drafted_rounds: int = 0  # rounds with a draft
    drafted: int = 0
    verdicts: dict[Verdict, int] = field(default_factory=lambda: dict.fromkeys(Verdict, 0))
    draft_seconds: float = 0.0
    accept_seconds: float = 0.0  # learning what was accepted
    blocks: int = 0  # rounds whose draft was judged as a block
    lengths: list[int] = field(default_factory=list)
    """Histogram: index k counts the rounds with a draft of k tokens. Ends at the longest draft."""
    accepted_per_round: list[int] = field(default_factory=list)
    """Histogram: index j counts the drafted rounds with j accepted tokens. Ends at the largest j that
    occurred."""
    rejections: list[int] = field(default_factory=list)
    """Index i counts the rounds whose draft was rejected at position i. Ends at the last such position."""

    def add_draft(self, round: Round, outcome: DraftOutcome) -> None:
        """Add a round with a draft, and what became of it."""
        counts, rejected_at, block = outcome
        for verdict, count in zip(_VERDICTS, counts, strict=True):
            self.verdicts[verdict] += count
        length, accepted = sum(counts), counts[_ACCEPTED_AT]
        self.drafted_rounds += 1
        self.blocks += block
        self.drafted += length
        self.draft_seconds += round.draft_seconds
        self.accept_seconds += round.accept_seconds
        count_at(self.lengths, length)
        count_at(self.accepted_per_round, accepted)
        if rejected_at >= 0:
            count_at(self.rejections, rejected_at)

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
        return ratio(self.accepted, self.drafted)

    @property
    def alpha(self) -> float | None:
        """accepted / (accepted + rejected): the chance that a judged draft token is accepted.

        Also None if drafts are judged as blocks: their tokens do not pass one by one.
        """
        if self.blocks:
            return None
        return ratio(self.accepted, self.accepted + self.rejected)

    @property
    def tau(self) -> float | None:
        """1 + accepted / rounds with a draft, even if the answer ended inside a draft."""
        mean = ratio(self.accepted, self.drafted_rounds)
        return None if mean is None else 1 + mean

    @property
    def draft_length(self) -> float | None:
        """Mean draft length: drafted / rounds with a draft."""
        return ratio(self.drafted, self.drafted_rounds)

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
        return at_least(self.lengths)

    @property
    def accepted_at(self) -> tuple[int, ...]:
        """For each position of the longest draft: the rounds whose draft was accepted there."""
        # A draft accepted at position i is accepted at every position before it.
        counts = at_least(self.accepted_per_round)
        return counts + (0,) * (self.longest_draft - len(counts))

    @property
    def acc_per_pos(self) -> tuple[float, ...]:
        """For each position of the longest draft: rounds whose draft was accepted there / rounds with a
        draft. The name and the number are llama.cpp's."""
        return tuple(count / self.drafted_rounds for count in self.accepted_at)

    @property
    def acceptance_by_place(self) -> tuple[float, ...]:
        """For each position of the longest draft: accepted there / drafted there."""
        return tuple(
            accepted / drafted for accepted, drafted in zip(self.accepted_at, self.drafted_at, strict=True)
        )

    @property
    def judged_acceptance_by_place(self) -> tuple[float | None, ...]:
        """For each position of the longest draft: accepted there / (accepted + rejected there); None if
        nothing was judged, and everywhere if drafts are judged as blocks."""
        if self.blocks:
            return (None,) * self.longest_draft
        return tuple(
            ratio(accepted, accepted + rejected)
            for accepted, rejected in zip_longest(self.accepted_at, self.rejections, fillvalue=0)
        )


@dataclass(slots=True)
class Statistics(DraftStatistics, Fold):
    """All statistics of the rounds of an answer, or of its last rounds."""

    rounds: int = 0
    untold: int = 0  # rounds of a server that does not tell what became of its drafts
    emitted: int = 0
    origins: dict[Origin, int] = field(default_factory=lambda: dict.fromkeys(Origin, 0))
    attempts: int = 0  # rounds in which a draft was asked for, even if none came
    calls: dict[str, int] = field(default_factory=dict)
    """The number of times each strategy was asked for a draft; empty for traces before format 1.2."""
    ends: dict[str, int] = field(default_factory=dict)
    """Reason why a draft ended or was not made -> rounds, in order of appearance."""
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
    def of_answer(cls, trace: Trace) -> Statistics:
        """The statistics of a whole answer."""
        statistics = cls.of(trace.rounds)
        statistics.start = 0.0
        if trace.totals is not None:
            statistics.end_whole(trace.totals)
        return statistics

    def end_whole(self, totals: Totals) -> None:
        """Set the wall time of a whole answer, including the time before its first round and after its last.
        Every tokens/s of a finished answer uses this time."""
        self.start, self.end = 0.0, totals.seconds

    @override
    def add(self, round: Round) -> None:
        if self.rounds == 0:
            self.start = round.offset
        self.rounds += 1
        self.untold += round.untold
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
        return ratio(self.emitted, self.seconds)

    @property
    def tokens_per_pass(self) -> float | None:
        """emitted / rounds; None if a server does not report its rounds."""
        return None if self.untold else ratio(self.emitted, self.rounds)

    @property
    def draft_share(self) -> float | None:
        """accepted / emitted; None if a server does not report what was accepted."""
        return None if self.untold else ratio(self.accepted, self.emitted)

    @property
    def engine_overhead(self) -> float | None:
        """1 - (time in native decode calls and the logits reads that wait for them) / wall time; None for a
        server."""
        if not self.native_seconds:
            return None
        share = ratio(self.native_seconds, self.seconds)
        return None if share is None else 1 - share


def strategy_names(spec: str) -> tuple[str, ...]:
    """The names in a strategy spec, in order of precedence; none for `none`.

    Values percent-encode ":" and "+", so both always separate.
    """
    names = (part.split(":", 1)[0] for part in spec.split("+"))
    return tuple(name for name in names if name != "none")
