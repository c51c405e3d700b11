"""verify=block: the tokens of a draft are judged together (Sun et al. 2024, arXiv 2403.10444)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from app.base.numbers import ordinal
from app.engine.fates import Origin, Verdict
from app.engine.rules.base import Drafted, Judgement, Outcome, Rule, TokenTest
from app.engine.rules.checks import WIDTH, Check, Judged
from app.engine.rules.formula import Named, Sum, add_up, compared, written
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Purpose
from app.engine.types import DraftedToken, Round


def block_reach(before: float, p: float, q: float) -> float:
    """The chance that a block is accepted up to a token or further, over all possible continuations of the
    draft.

    The paper's p_i: min(1, before * p / q), where `before` is the previous token's (1 at the start).
    """
    return 1.0 if before * p >= q else before * p / q


def block_value(reach: float, left: float) -> float:
    """The acceptance value of a token, the paper's h_i: the chance that its own draw passes.

    `left` is the sum of max(reach p - q, 0) over the vocabulary at the next place. It is the part of `reach`
    that no next token can use. After the last token that is all of it, and the value is `reach`.
    """
    below = left + (1 - reach)
    return left / below if below > 0 else 1.0


def _left_behind(p: Distribution, token: int, q: Distribution | None, reach: float) -> float:
    """The sum of max(reach p - q, 0); a one-hot q (None) is 1 at `token`."""
    if q is None:
        return reach * (1 - p.of(token))
    return float(np.add.reduce(p.beyond(q, reach).p, dtype=np.float64))


@dataclass(frozen=True, slots=True)
class BlockTest(TokenTest):
    """A token of a draft that is judged as a whole, backwards from its last token.

    `reach` is the paper's p_i, the chance that the draft is accepted up to here or further. The token passes
    if its draw `u` is below `h`. Both are None for tokens that were accepted with a later one.
    """

    p: float
    q: float
    before: float  # the reach of the token before, 1 at the start
    reach: float
    h: float | None
    u: float | None
    with_block: bool  # it is accepted, by its own draw or with a later token

    @property
    def passed(self) -> bool:
        return self.with_block

    @property
    def chance(self) -> tuple[float, float] | None:
        return (self.h, self.u) if self.h is not None and self.u is not None else None

    @property
    def left(self) -> float | None:
        """The part of `reach` that no next token can use, derived from h; None if h is 1 or unknown."""
        if self.h is None or self.h == 1:
            return None
        return self.h * (1 - self.reach) / (1 - self.h)

    @property
    def own(self) -> bool | None:
        """Whether its own draw passes; None if it has none."""
        return self.u < self.h if self.u is not None and self.h is not None else None

    def sums(self, named: Named) -> tuple[Sum, ...]:
        values = self.before, self.p, self.q
        (before, p, q), reach = add_up(values, lambda b, p, q: min(1.0, b * p / q))
        sums = [Sum("reach r", f"min(1, {before} × {p} / {q}) = {reach}")]
        if self.h is None or self.u is None:
            return tuple(sums)
        if self.left is not None and written(self.left) == written(self.reach):
            sums.append(Sum("h = r: no later token uses r", written(self.h)))
        elif self.left is not None:
            (left, r), h = add_up((self.left, self.reach), lambda left, r: left / (left + 1 - r))
            sums.append(Sum("h", f"{left} / ({left} + 1 − {r}) = {h}"))
        else:
            sums.append(Sum("h", written(self.h)))
        alone = "not by itself" if self.with_block else "not accepted"
        return *sums, Sum("u", compared(self.u, self.h), "accepted up to here" if self.own else alone)

    def notes(self, token: DraftedToken) -> list[str]:
        if self.own is None and token.verdict is Verdict.ACCEPTED:
            return ["Accepted with the block, by a later token's draw."]
        if self.left is not None and written(self.left) != written(self.reach):
            return ["“left” is the part of r that no next token can use. It is derived from the recorded h."]
        return []


def block_chain(round: Round) -> tuple[BlockTest, ...]:
    """The tests of a draft that was judged as a block, up to the last token that was judged."""
    judged: list[tuple[DraftedToken, float, float, float, float]] = []
    reach = 1.0
    for token in round.drafted:
        if token.p is None or not token.q:
            break
        before, reach = reach, block_reach(reach, token.p, token.q)
        judged.append((token, token.p, token.q, before, reach))
    passed = (
        place
        for place, (token, *_) in enumerate(judged)
        if token.u is not None and token.h is not None and token.u < token.h
    )
    last = max(passed, default=-1)  # the draft is accepted up to there
    return tuple(
        BlockTest(p, q, before, reach, token.h, token.u, place <= last)
        for place, (token, p, q, before, reach) in enumerate(judged)
    )


class BlockRule(Rule):
    """Accepts up to the last token whose draw passes, then draws from the block's residual. Keeps the
    target's law, and on average accepts at least as many tokens as the token-wise rule.

    Every token has its own draw, compared with its acceptance value. Tokens are judged backwards from the
    last: all before the one that passes are accepted with it, unjudged. A draft may have any length, if no
    token was dropped after it was drawn.
    """

    name = "block"
    summary = (
        "Verifies a draft as a whole: accepts at least as many tokens on average. Keeps the target's "
        "distribution. Gains over speculative with sample=1 only."
    )
    gives = frozenset({"u", "h"})
    keeps_law = True
    from_residual = True
    whole = True

    def judge(self, draft: Drafted) -> Outcome:
        reach = [1.0]  # of the first i tokens
        for place, token in enumerate(draft.ids):
            p, q = draft.p(place), draft.q[place]
            reach.append(block_reach(reach[-1], p.of(token), 1.0 if q is None else q.of(token)))
            if reach[-1] == 0:
                break  # neither this token nor any after it can pass
        accepted = judged = len(reach) - 1
        judgements: list[Judgement] = []  # last place first
        while accepted:
            here = reach[accepted]
            if accepted == judged:
                left = here  # no later token takes any of it
            else:
                left = _left_behind(draft.p(accepted), draft.ids[accepted], draft.q[accepted], here)
            h = block_value(here, left)
            # Keyed by the round too: a place after the accepted ones is judged again in the next round.
            u = draft.draws.uniform(draft.position + accepted - 1, Purpose.ACCEPT, draft.position)
            passed = u < h
            judgements.append(Judgement(passed, u=u, h=h))
            if passed:
                break
            accepted -= 1
        judgements += [Judgement(True)] * (accepted - 1)
        judgements.reverse()
        if accepted == len(draft.ids):
            return draft.behind(judgements)
        return draft.instead(judgements, accepted, reach[accepted])

    def test(self, round: Round, place: int) -> BlockTest | None:
        chain = block_chain(round)
        return chain[place] if place < len(chain) else None

    def reach(self, round: Round, place: int) -> float:
        chain = block_chain(round)
        return chain[place - 1].reach if 0 < place <= len(chain) else 1.0

    def recheck(self, at: Judged, check: Check) -> Iterator[str]:
        return iter(())  # a block is judged as a whole: see below

    def recheck_draft(self, check: Check, round: Round, position: int) -> Iterator[str]:
        """Check that the draft is accepted up to the last token whose u is below its h."""
        chain, reach = block_chain(round), 1.0
        for test in chain:
            reach = test.reach
        judged = round.drafted[: len(chain)]
        if len(judged) < len(round.drafted) and reach > 0:
            yield f"the draft at place {ordinal(len(judged))} was judged without its p or q"
        passed = 0
        for place, token in enumerate(judged):
            where = f"the draft at place {ordinal(place)}"
            if token.h is None:
                if token.u is not None:
                    yield f"{where} has a draw that was not compared with anything"
                continue
            if token.u is None or token.u != check.draws.uniform(position + place, Purpose.ACCEPT, position):
                yield f"{where} was judged by a draw that is not its seed's"
                continue
            if token.u < token.h:
                passed = place + 1
            here = chain[place].reach
            low, high = _left(here, judged[place + 1] if place + 1 < len(judged) else None)
            if not _is_block_value(token.h, here, low, high):
                yield f"{where} has the acceptance value {token.h:g}, which its p and q do not give"
        for place, token in enumerate(judged[passed:], passed):
            if token.h is None:
                yield f"the draft at place {ordinal(place)} was judged without its acceptance value"
        cut = bool(round.emitted) and round.emitted[-1].origin is Origin.ACCEPTED
        if round.accepted > passed or (round.accepted < passed and not cut):
            yield f"{round.accepted} drafted tokens are accepted, but {passed} pass as a block"


def _left(reach: float, behind: DraftedToken | None) -> tuple[float, float]:
    """Bounds for the part of `reach` that the next drafted token leaves; `behind` is that token, if judged.
    For a sampled draft only the drafted token's part of a row is recorded."""
    if behind is None or behind.p is None:
        return reach, reach
    if behind.draft_drawn is None or behind.q is None:
        left = reach * (1 - behind.p)
        return left, left
    taken = min(reach * behind.p, behind.q)
    return reach * behind.p - taken, reach - taken


def _is_block_value(h: float, reach: float, low: float, high: float) -> bool:
    """Whether h = left / (left + 1 - reach) for a `left` between `low` and `high`."""
    if reach == 1:
        return h == 1

    def excess(left: float) -> float:
        """Grows with `left`; zero if `left` gives h."""
        return left - h * (left + (1 - reach))

    return excess(low) <= WIDTH and excess(high) >= -WIDTH
