"""verify=match: a drafted token passes if the target draws the same one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.engine.fates import Origin
from app.engine.rules.base import Drafted, Judgement, Outcome, Rule, TokenTest
from app.engine.rules.checks import Check, Judged
from app.engine.rules.formula import Named, Sum, draw_sums, equal_sum
from app.engine.sampling.draws import Purpose
from app.engine.types import DraftedToken, Draw, Race


@dataclass(frozen=True, slots=True)
class DrawTest(TokenTest):
    """The drafted token beside the target's own draw."""

    drafted: int
    drawn: int
    draw: Race | Draw

    @property
    def passed(self) -> bool:
        return self.drafted == self.drawn

    @property
    def target_draw(self) -> tuple[int, Race | Draw]:
        return self.drawn, self.draw

    def sums(self, named: Named) -> tuple[Sum, ...]:
        own = named(self.drawn)
        last = equal_sum(named(self.drafted), own, self.passed)
        return *draw_sums(self.draw), Sum("drawn from p", own), last


class MatchRule(Rule):
    """Draws from the target at every place; accepts while the drafted token is the one drawn.

    The emitted tokens are those of plain sampling with the same seed. A draft drawn with the same noise has
    the target's token with probability at least (1 - d) / (1 + d). Here d is the total variation distance of
    p and q (Daliri, Musco and Suresh 2024, arXiv 2408.07978).
    """

    name = "match"
    summary = (
        "Accepts a draft token that equals the target's own draw. The text is the same as without drafting, "
        "for some files apart from rounding. With sample=1 the draft uses the target's random numbers, and "
        "is right more often."
    )
    gives = frozenset({"target_id", "draw", "race"})
    keeps_law = True
    keeps_text = True
    shares_luck = True
    in_llama_cpp = True

    def judge(self, draft: Drafted) -> Outcome:
        judged = []
        for place, token in enumerate(draft.ids):
            own, race = draft.p(place).draw(draft.draws.key(draft.position + place, Purpose.TOKEN))
            judged.append(Judgement(own == token, target_id=own, race=race))
            if own != token:
                return Outcome(tuple(judged), own, Origin.RESAMPLED, race)
        return draft.behind(judged)

    def test_of(self, token: DraftedToken) -> DrawTest | None:
        if token.target_id is None or token.drawn is None:
            return None
        return DrawTest(token.id, token.target_id, token.drawn)

    def recheck(self, at: Judged, check: Check) -> Iterator[str]:
        yield from check.same_token(at)
        token = at.token
        if token.drawn is not None and token.target_id is not None:
            yield from check.from_p(at, token.drawn, token.target_id, at.emitted)
        else:
            yield f"{at.where} was judged without a draw"
