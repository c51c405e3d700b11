"""The facts that lessons state: numbers of a recorded answer and of its rounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from app.engine.drafters.registry import KINDS
from app.engine.explain.decision import Residual, own_token, residual_of
from app.engine.fates import JUDGED, Verdict
from app.engine.lengths.base import LengthAt
from app.engine.record.stats import DraftStatistics, Statistics
from app.engine.record.trace import Trace
from app.engine.rules.block import BlockTest, block_chain
from app.engine.rules.formula import add_up
from app.engine.types import DraftedToken, EmittedToken, Race, Round, TraceHeader
from app.saved.measured import Measurement


class Quoted(str):
    """A token's text. Sentences show it in quotation marks."""

    __slots__ = ()

    @classmethod
    def of(cls, tokens: Iterable[DraftedToken | EmittedToken]) -> Quoted:
        pieces = b"".join(token.piece or token.label.encode() for token in tokens)
        return cls(pieces.decode(errors="replace"))


class AnswerFacts:
    """The facts of a whole answer."""

    def __init__(self, trace: Trace, measurement: Measurement | None) -> None:
        """`measurement` is the same request without drafts, if it was recorded."""
        self._trace = trace
        self._measurement = measurement
        self._statistics = Statistics.of(trace.rounds)

    def __getattr__(self, name: str) -> object:
        """The statistics of its rounds, by their own names, are facts too (`engine/record/stats.py`)."""
        return getattr(self._statistics, name)

    @property
    def undrafted(self) -> int:
        """Rounds without a draft."""
        return self._statistics.rounds - self._statistics.drafted_rounds

    @property
    def copied_rounds(self) -> int:
        """Rounds whose draft was copied from text."""
        return sum(part.drafted_rounds for part in self._copying)

    @property
    def copied_accepted(self) -> int:
        return sum(part.accepted for part in self._copying)

    @property
    def model_rounds(self) -> int:
        """Rounds whose draft came from the draft model."""
        return self._statistics.drafted_rounds - self.copied_rounds

    @property
    def model_accepted(self) -> int:
        return self._statistics.accepted - self.copied_accepted

    @property
    def _copying(self) -> list[DraftStatistics]:
        every = self._statistics.strategies.items()
        return [part for name, part in every if name not in KINDS or not KINDS[name].by_model]

    # What it was made with.

    @property
    def temperature(self) -> float:
        return self._trace.header.sampling.temperature

    @property
    def draft_size(self) -> float | None:
        """The draft model's parameters / the target's."""
        pair = self._trace.header.pair
        return pair.draft.n_params / pair.target.n_params if pair.draft is not None else None

    # Beside the same request without drafts.

    @property
    def speed_up(self) -> float | None:
        return self._measurement.factor if self._measurement is not None else None

    @property
    def baseline_passes(self) -> int | None:
        """Passes that the target took without drafts."""
        return len(self._measurement.baseline.rounds) if self._measurement is not None else None

    @property
    def round_cost(self) -> float | None:
        """The mean time of a round, in passes of the target over a single token."""
        if self._measurement is None:
            return None
        return self._statistics.seconds / self._statistics.rounds / self._plain_pass(self._measurement)

    @property
    def draft_cost(self) -> float | None:
        """The mean time to draft a token, in passes of the target over a single token."""
        if self._measurement is None or not self._statistics.drafted:
            return None
        return self._statistics.draft_seconds / self._statistics.drafted / self._plain_pass(self._measurement)

    @staticmethod
    def _plain_pass(measurement: Measurement) -> float:
        """Seconds of a round without a draft."""
        plain = Statistics.of(measurement.baseline.rounds)
        return plain.seconds / plain.rounds

    @property
    def same_text(self) -> bool | None:
        """Whether the same request without drafts gave the same tokens."""
        return (
            self._measurement.baseline.token_ids == self._trace.token_ids
            if self._measurement is not None
            else None
        )

    @property
    def targets_own(self) -> bool:
        """Whether every emitted token was the target's most probable one at its place."""
        return all(
            token.id == top.ids[0]
            for round in self._trace.rounds
            for token, top in zip(round.emitted, round.target_top, strict=False)
        )


@dataclass(frozen=True)
class RoundFacts:
    """The facts of a round. Its decisive token is the rejected one, else the accepted one whose chance was
    the smallest."""

    record: Round
    header: TraceHeader
    length: LengthAt | None
    """What the draft length rule based its choice on; None without such a rule."""
    before: str
    """The answer's text before the round."""

    @property
    def index(self) -> int:
        return self.record.index

    @property
    def drafted(self) -> int:
        return len(self.record.drafted)

    @property
    def accepted(self) -> int:
        return self.record.accepted

    @property
    def rejected(self) -> int:
        return self.record.count(Verdict.REJECTED)

    @property
    def ignored(self) -> int:
        return self.record.count(Verdict.IGNORED)

    @property
    def emitted(self) -> int:
        return len(self.record.emitted)

    @property
    def strategy(self) -> str:
        """The strategy that drafted; "" if none did."""
        return self.record.strategy or ""

    @property
    def asked_first(self) -> str:
        """The strategy that was asked first for a draft; "" if none was."""
        return next(iter(self.record.asked or ()), "")

    # Texts.

    @property
    def draft(self) -> Quoted:
        """The drafted text."""
        return Quoted.of(self.record.drafted)

    @property
    def taken(self) -> Quoted:
        """The accepted text."""
        return Quoted.of(self.record.drafted[: self.accepted])

    @property
    def text(self) -> Quoted:
        """The emitted text."""
        return Quoted.of(self.record.emitted)

    @property
    def own(self) -> Quoted:
        """The target's own token; empty if the answer ended before it."""
        token = own_token(self.record)
        return Quoted.of([token] if token is not None else [])

    @property
    def fate(self) -> str:
        """The fate of that token: resampled, bonus or plain; "" if there is none."""
        token = own_token(self.record)
        return token.origin.value if token is not None else ""

    # The decisive token.

    @cached_property
    def place(self) -> int | None:
        """Its place in the draft, counted from 0; None if nothing was judged."""
        judged = [at for at, token in enumerate(self.record.drafted) if token.verdict in JUDGED]
        return min(judged, key=self._chance, default=None)

    def _chance(self, place: int) -> float:
        token = self.record.drafted[place]
        if token.verdict is Verdict.REJECTED:
            return -1.0
        return token.p / token.q if token.p is not None and token.q else 1.0

    @property
    def number(self) -> int | None:
        """Its place, counted from 1."""
        return self.place + 1 if self.place is not None else None

    @property
    def _token(self) -> DraftedToken | None:
        return self.record.drafted[self.place] if self.place is not None else None

    @property
    def token(self) -> Quoted:
        return Quoted.of([self._token] if self._token is not None else [])

    @property
    def p(self) -> float | None:
        return self._token.p if self._token is not None else None

    @property
    def q(self) -> float | None:
        return self._token.q if self._token is not None else None

    @property
    def u(self) -> float | None:
        return self._token.u if self._token is not None else None

    @property
    def ratio(self) -> float | None:
        """p / q of the decisive token."""
        return self.p / self.q if self.p is not None and self.q else None

    @property
    def _exact(self) -> tuple[str, ...]:
        return add_up((self.p or 0.0, self.q or 0.0), lambda p, q: p / q)[0]

    @property
    def exact_p(self) -> str:
        """p with as many figures as p / q needs to come out as written."""
        return self._exact[0]

    @property
    def exact_q(self) -> str:
        """q, like `exact_p`."""
        return self._exact[1]

    # The residual.

    @cached_property
    def _residual(self) -> Residual | None:
        return residual_of(self.record, self.header)

    @property
    def own_share(self) -> float | None:
        """The probability of that token under the residual."""
        return self._residual.share if self._residual is not None else None

    @property
    def _race(self) -> Race | None:
        draw = self._residual.draw if self._residual is not None else None
        return draw if isinstance(draw, Race) else None

    @property
    def score(self) -> float | None:
        """The score with which that token won the draw from the residual: the logarithm of its share, plus
        its luck."""
        return self._race.score if self._race is not None else None

    @property
    def second(self) -> Quoted:
        """The token with the second best score."""
        return Quoted(self._race.piece.decode(errors="replace") if self._race is not None else "")

    @property
    def second_score(self) -> float | None:
        return self._race.rival_score if self._race is not None else None

    # The block.

    @cached_property
    def _chain(self) -> tuple[BlockTest, ...]:
        return block_chain(self.record)

    @property
    def reach_before(self) -> float | None:
        """The reach before the decisive token."""
        return self._chain[self.place].before if self._chain and self.place is not None else None

    @property
    def reach(self) -> float | None:
        """The reach after the decisive token."""
        return self._chain[self.place].reach if self._chain and self.place is not None else None

    @property
    def lowest_reach(self) -> float | None:
        """The smallest reach among the accepted tokens."""
        return min((test.reach for test in self._chain[: self.accepted]), default=None)

    @property
    def last_reach(self) -> float | None:
        """The reach of the last accepted token."""
        return self._chain[self.accepted - 1].reach if self._chain and self.accepted else None

    @property
    def h(self) -> float | None:
        """The acceptance value of the token whose draw passed."""
        return self._chain[self.accepted - 1].h if self._chain and self.accepted else None

    @property
    def block_u(self) -> float | None:
        """The draw that passed."""
        return self._chain[self.accepted - 1].u if self._chain and self.accepted else None

    # The draft length rule.

    @property
    def k(self) -> int | None:
        """The most tokens that the rule allowed."""
        return self.length.k if self.length is not None else None

    @property
    def smoothed(self) -> float | None:
        """The smoothed acceptance, with this round counted."""
        return self.length.acceptance if self.length is not None else None
