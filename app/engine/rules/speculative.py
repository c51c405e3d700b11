"""verify=speculative: a drafted token passes with probability min(1, p/q), else a token is drawn from the
residual."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.engine.fates import Verdict
from app.engine.rules.base import Drafted, Judgement, Outcome, Rule, TokenTest
from app.engine.rules.checks import Check, Judged
from app.engine.rules.formula import Named, Sum, add_up, compared, written
from app.engine.sampling.draws import Purpose
from app.engine.types import DraftedToken


def passes(u: float, p: float, q: float) -> bool:
    """The speculative rule: u < p / q, written without the division."""
    return u * q < p


@dataclass(frozen=True, slots=True)
class RatioTest(TokenTest):
    """p / q and the draw u: the token passes if u < p/q, that is with probability min(1, p/q)."""

    p: float
    q: float
    u: float
    draft_p: float | None = None  # the draft model's own probability, where the token was not drawn

    @property
    def chance(self) -> tuple[float, float]:
        return min(1.0, self.p / self.q), self.u

    @property
    def passed(self) -> bool:
        return passes(self.u, self.p, self.q)

    def sums(self, named: Named) -> tuple[Sum, ...]:
        (p, q), ratio = add_up((self.p, self.q), lambda p, q: p / q)
        return (
            *([Sum("draft_p", written(self.draft_p))] if self.draft_p is not None else []),
            Sum("p / q", f"{p} / {q} = {ratio}"),
            Sum("u", compared(self.u, self.chance[0]), "accepted" if self.passed else "rejected"),
        )


class SpeculativeRule(Rule):
    """Accepts with probability min(1, p/q), else draws from the residual: max(p - q, 0), scaled to sum to
    one. Keeps the target's distribution (Leviathan et al. 2023, Chen et al. 2023)."""

    name = "speculative"
    summary = "Accepts a draft token with probability min(1, p / q). Keeps the target's distribution."
    gives = frozenset({"u"})
    keeps_law = True
    from_residual = True
    in_vllm = True

    def judge(self, draft: Drafted) -> Outcome:
        judged = []
        for place, token in enumerate(draft.ids):
            p, q = draft.p(place), draft.q[place]
            u = draft.draws.uniform(draft.position + place, Purpose.ACCEPT)
            accepted = passes(u, p.of(token), 1.0 if q is None else q.of(token))
            judged.append(Judgement(accepted, u=u))
            if not accepted:
                return draft.instead(judged, place)
        return draft.behind(judged)

    def test_of(self, token: DraftedToken) -> RatioTest | None:
        if token.p is None or token.u is None or not token.q:
            return None
        return RatioTest(token.p, token.q, token.u, token.draft_p if token.draft_drawn is None else None)

    def recheck(self, at: Judged, check: Check) -> Iterator[str]:
        token = at.token
        assert token.p is not None and token.q is not None
        if token.u is None or token.u != check.draws.uniform(at.position, Purpose.ACCEPT):
            yield f"{at.where} was judged by a draw that is not its seed's"
        elif (token.verdict is Verdict.ACCEPTED) != passes(token.u, token.p, token.q):
            sign = "<" if passes(token.u, token.p, token.q) else "≥"
            yield f"{at.where} is {token.verdict}, but u·q {sign} p"
