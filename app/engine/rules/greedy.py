"""verify=greedy: a drafted token passes if it is the target's most probable one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from app.engine.fates import Origin
from app.engine.rules.base import Drafted, Judgement, Outcome, Rule, TokenTest
from app.engine.rules.checks import Check, Judged, Own, is_argmax
from app.engine.rules.formula import Named, Sum, equal_sum
from app.engine.types import DraftedToken

BEST = "target's best"  # the name of the sum that says the target's most probable token


@dataclass(frozen=True, slots=True)
class ArgmaxTest(TokenTest):
    """The drafted token beside the target's most probable one."""

    drafted: int
    best: int

    @property
    def passed(self) -> bool:
        return self.drafted == self.best

    def sums(self, named: Named) -> tuple[Sum, ...]:
        best = named(self.best)
        return Sum(BEST, best), equal_sum(named(self.drafted), best, self.passed)


class GreedyRule(Rule):
    """Accepts while the drafted token is the target's argmax; then emits the argmax."""

    name = "greedy"
    summary = "Accepts a draft token that is the target's most probable one. Temperature 0 only."
    gives = frozenset({"target_id"})
    any_temperature = False
    draws = False
    keeps_text = True
    in_llama_cpp = in_vllm = True

    def judge(self, draft: Drafted) -> Outcome:
        judged = []
        for place, token in enumerate(draft.ids):
            best = draft.rows.argmax(place)
            judged.append(Judgement(best == token, target_id=best))
            if best != token:
                return Outcome(tuple(judged), best, Origin.RESAMPLED)
        return Outcome(tuple(judged), draft.rows.argmax(len(draft.ids)), draft.origin_behind)

    def test_of(self, token: DraftedToken) -> ArgmaxTest | None:
        return ArgmaxTest(token.id, token.target_id) if token.target_id is not None else None

    def recheck(self, at: Judged, check: Check) -> Iterator[str]:
        yield from check.same_token(at)
        yield from is_argmax(at, at.token.target_id)

    def recheck_own(self, at: Own, check: Check) -> Iterator[str]:
        if at.token.drawn is not None:
            yield f"{at.where} was drawn, which greedy never does"
        yield from is_argmax(at, at.token.id)
