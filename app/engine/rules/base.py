"""The interface of verification rules, which decide over drafted tokens."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

import msgspec

from app.engine.fates import JUDGED, Origin
from app.engine.rules.formula import Named, Sum
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Draws, Purpose
from app.engine.types import DraftedToken, Draw, Race, Round

if TYPE_CHECKING:
    from app.engine.rules.checks import Check, Judged, Own


GIVEN = frozenset({"u", "h", "target_id", "race", "draw"})
"""The fields of a judged token that may contain a rule's reasons."""


class Rows(Protocol):
    """The target's rows after the context and the first drafted tokens. Rows are computed on demand: read
    places in order, up to the last judged one."""

    @property
    def n_vocab(self) -> int:
        """The size of the vocabulary."""

    def argmax(self, row: int) -> int:
        """The most probable token at a place."""

    def distribution(self, row: int) -> Distribution:
        """p at a place, after the sampler's settings."""


class Judgement(msgspec.Struct, frozen=True):
    """Why a judged token passed or not; fields that do not apply to the rule are None."""

    accepted: bool
    u: float | None = None  # speculative, block: the acceptance draw
    h: float | None = None  # block: the acceptance value that u is compared with
    target_id: int | None = None  # greedy: the argmax; match: the target's own draw
    race: Race | None = None  # match: how target_id was drawn


class Outcome(msgspec.Struct, frozen=True):
    """The result of verification: a judgement for each judged token, then the token emitted after them."""

    judged: tuple[Judgement, ...]
    token: int
    origin: Origin
    race: Race | None = None

    @property
    def accepted(self) -> int:
        return sum(judgement.accepted for judgement in self.judged)


def residual(p: Distribution, token: int, q: Distribution | None, reach: float = 1.0) -> Distribution:
    """The residual of a rejected `token` before it is scaled to sum to 1.

    It is max(reach p - q, 0), with `reach` 1 except in block verification. For a one-hot proposal (`q` None)
    that is p without the token. If nothing is left, both are equal apart from rounding, and p itself is the
    limit.
    """
    rest = p.without(token) if q is None else p.beyond(q, reach)
    return rest if rest.p.any() else p


class Drafted(msgspec.Struct, frozen=True):
    """A draft to judge, and the target's rows for it."""

    ids: Sequence[int]
    q: Sequence[Distribution | None]  # what each token was drawn from; None: one-hot
    rows: Rows
    draws: Draws
    position: int  # index in the answer of the first drafted token

    def p(self, place: int) -> Distribution:
        return self.rows.distribution(place)

    def instead(self, judged: Sequence[Judgement], place: int, reach: float = 1.0) -> Outcome:
        """The outcome if the token at a place is rejected: one is drawn from the residual."""
        rest = residual(self.p(place), self.ids[place], self.q[place], reach)
        key = self.draws.key(self.position + place, Purpose.RESIDUAL)
        token, race = rest.draw(key, float(rest.p.sum()))
        return Outcome(tuple(judged), token, Origin.RESAMPLED, race)

    def behind(self, judged: Sequence[Judgement]) -> Outcome:
        """The outcome if all tokens passed (or there were none): one more is drawn from the target."""
        key = self.draws.key(self.position + len(self.ids), Purpose.TOKEN)
        token, race = self.p(len(self.ids)).draw(key)
        return Outcome(tuple(judged), token, self.origin_behind, race)

    @property
    def origin_behind(self) -> Origin:
        """The origin of the token after a wholly accepted draft."""
        return Origin.BONUS if self.ids else Origin.PLAIN


class TokenTest(ABC):
    """What a rule compared to judge a recorded token."""

    __slots__ = ()

    @property
    @abstractmethod
    def passed(self) -> bool:
        """Whether the token passes by its numbers."""

    @abstractmethod
    def sums(self, named: Named) -> tuple[Sum, ...]:
        """The arithmetic of the verdict; its last line decides."""

    @property
    def chance(self) -> tuple[float, float] | None:
        """(c, u): the token passes if u < c. None if nothing is compared with a draw."""
        return None

    @property
    def target_draw(self) -> tuple[int, Race | Draw] | None:
        """The target's own token and how it was drawn; None if it was not drawn to judge."""
        return None

    def notes(self, token: DraftedToken) -> list[str]:
        """Sentences below the arithmetic."""
        return []


class Rule(ABC):
    """A named rule, `verify=NAME` in a strategy; grammar, form and help are made from it."""

    name: ClassVar[str]
    summary: ClassVar[str]
    gives: ClassVar[frozenset[str]]
    """The fields in GIVEN that a judged token has."""
    any_temperature: ClassVar[bool] = True
    """Whether it can be used above temperature 0."""
    draws: ClassVar[bool] = True
    """Whether tokens are drawn from p. Otherwise the p of a record is the model's own, before the sampler's
    settings."""
    keeps_text: ClassVar[bool] = False
    """Whether the answer has the same tokens as without drafting, apart from rounding ties."""
    keeps_law: ClassVar[bool] = False
    """Whether emitted tokens have the target's distribution."""
    shares_luck: ClassVar[bool] = False
    """Whether a sampled draft uses the target's noise."""
    from_residual: ClassVar[bool] = False
    """Whether the replacement of a rejected token is drawn from max(p - q, 0)."""
    whole: ClassVar[bool] = False
    """Whether the tokens of a draft are judged together, so that ignored ones have a p too."""
    in_llama_cpp: ClassVar[bool] = False
    in_vllm: ClassVar[bool] = False

    def __str__(self) -> str:
        return self.name

    @abstractmethod
    def judge(self, draft: Drafted) -> Outcome:
        """Judge a draft."""

    def test(self, round: Round, place: int) -> TokenTest | None:
        """The test of a drafted token; None if it was not judged, or if the trace lacks what the rule
        compares."""
        token = round.drafted[place]
        return self.test_of(token) if token.verdict in JUDGED else None

    def test_of(self, token: DraftedToken) -> TokenTest | None:
        """The test of a judged token, for rules that judge token by token."""
        return None

    def reach(self, round: Round, place: int) -> float:
        """The factor of p in the residual at a place: see `residual`."""
        return 1.0

    @abstractmethod
    def recheck(self, at: Judged, check: Check) -> Iterator[str]:
        """Recompute the verdict of a judged token; yields the disagreements, worded to follow "Round 3:"."""

    def recheck_draft(self, check: Check, round: Round, position: int) -> Iterator[str]:
        """Recompute the values of the whole draft."""
        return iter(())

    def recheck_own(self, at: Own, check: Check) -> Iterator[str]:
        """Recompute how the token after the accepted ones was chosen."""
        token = at.token
        if token.drawn is None:
            yield f"{at.where} has no draw"
        elif token.origin is not Origin.RESAMPLED or not self.from_residual:
            yield from check.from_p(at, token.drawn, token.id, token)
        elif at.rejected is not None:  # else no token was rejected, which is reported elsewhere
            yield from check.from_residual(at, token, at.rejected)
