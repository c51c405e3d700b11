"""typical: a verification rule, typical acceptance (Cai et al. 2024, arXiv 2401.10774).

A drafted token passes if the target finds it probable enough: p above min(0.3, 0.09 exp(-H)), where H is the
entropy of p. More tokens pass than by the speculative rule, and the target's distribution is not kept.

    draftscope run --drafter resources/plugins/typical.py --strategy draft-simple:verify=typical --prompt Hi
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.engine.plugins import (
    Check,
    Drafted,
    Judged,
    Judgement,
    Named,
    Outcome,
    Rule,
    Sum,
    TokenTest,
    compared,
)

MOST, SHARE = 0.3, 0.09


def threshold(p: np.ndarray) -> float:
    """The probability that a token must exceed; `p` contains the probabilities of all tokens."""
    p = p[p > 0].astype(np.float64)
    return float(min(MOST, SHARE * np.exp((p * np.log(p)).sum())))


@dataclass(frozen=True, slots=True)
class TypicalTest(TokenTest):
    p: float
    least: float

    @property
    def passed(self) -> bool:
        return self.p > self.least

    def sums(self, named: Named) -> tuple[Sum, ...]:
        return (Sum("threshold, p", compared(self.least, self.p), "accepted" if self.passed else "rejected"),)


class Typical(Rule):
    name = "typical"
    summary = "Accepts a draft token that the target finds probable enough. Does not keep its distribution."
    gives = frozenset({"u"})  # the threshold
    from_residual = True

    def judge(self, draft: Drafted) -> Outcome:
        judged = []
        for place, token in enumerate(draft.ids):
            p = draft.p(place)
            least = threshold(p.p)
            judged.append(Judgement(p.of(token) > least, u=least))
            if not judged[-1].accepted:
                return draft.instead(judged, place)
        return draft.behind(judged)

    def test_of(self, token) -> TypicalTest | None:
        return TypicalTest(token.p, token.u) if token.p is not None and token.u is not None else None

    def recheck(self, at: Judged, check: Check) -> Iterator[str]:
        test = self.test_of(at.token)
        if test is None or not 0 < test.least <= MOST:
            yield f"{at.where} has no threshold"
        elif test.passed != (at.token.verdict == "accepted"):
            yield f"{at.where} is {at.token.verdict}, and its p is {test.p:g}, its threshold {test.least:g}"


RULE = Typical
