"""Verification: which drafted tokens pass, and what is emitted after them. Pure functions.

`p` is always the target's distribution, `q` the one that the drafted token was drawn from; a token proposed
without drawing is one-hot (q = 1 at that token). Speculative verification is Leviathan et al. 2023 and Chen
et al. 2023: accept with probability min(1, p/q), else draw from the residual max(p - q, 0). Block
verification is Sun et al. 2024 (arXiv 2403.10444), which judges the tokens of a draft together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from app.engine.fates import Origin
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Draws, Purpose
from app.engine.types import Race, Verification

Row = Callable[[int], Distribution]
"""Place in the draft -> a distribution over the vocabulary. Places are first asked for in order, and none
after the last judged place: rows may be computed on demand."""

ArgmaxRow = Callable[[int], int]


class Judgement(msgspec.Struct, frozen=True):
    """Why a judged token passed or not; fields that do not apply to the rule are None."""

    accepted: bool
    u: float | None = None  # speculative, block: the acceptance draw
    h: float | None = None  # block: the acceptance value that u is compared with
    target_id: int | None = None  # greedy: the argmax; match: the target's own draw
    race: Race | None = None  # match: how target_id was drawn


class Outcome(msgspec.Struct, frozen=True):
    """The result of verification: one judgement for each judged token, then the token emitted after them."""

    judged: tuple[Judgement, ...]
    token: int
    origin: Origin
    race: Race | None = None

    @property
    def accepted(self) -> int:
        return sum(judgement.accepted for judgement in self.judged)


def residual(p: Distribution, token: int, q: Distribution | None, reach: float = 1.0) -> Distribution:
    """The distribution to draw from in place of a rejected `token`, not scaled.

    max(reach p - q, 0), with `reach` 1 except in block verification; for a one-hot proposal (`q` None) that
    is p without the token. If nothing is left, both are equal up to rounding, and p itself is the limit.
    """
    rest = p.without(token) if q is None else p.beyond(q, reach)
    return rest if rest.p.any() else p


def verify_greedy(draft: Sequence[int], argmax: ArgmaxRow) -> Outcome:
    """Accept while the drafted token is the target's argmax; then emit the argmax."""
    judged = []
    for place, token in enumerate(draft):
        best = argmax(place)
        judged.append(Judgement(best == token, target_id=best))
        if best != token:
            return Outcome(tuple(judged), best, Origin.RESAMPLED)
    return Outcome(tuple(judged), argmax(len(draft)), _last_origin(draft))


def verify_speculative(
    draft: Sequence[int],
    q: Sequence[Distribution | None],
    p: Row,
    draws: Draws,
    position: int,
) -> Outcome:
    """Accept with probability min(1, p/q), else draw from the residual. Keeps the target's law.

    `q[i]` is the distribution that `draft[i]` was drawn from (None: one-hot); `position` is the index in the
    answer of the first drafted token.
    """
    judged = []
    for place, token in enumerate(draft):
        row, proposal = p(place), q[place]
        u = draws.uniform(position + place, Purpose.ACCEPT)
        accepted = passes(u, row.of(token), 1.0 if proposal is None else proposal.of(token))
        judged.append(Judgement(accepted, u=u))
        if not accepted:
            rest = residual(row, token, proposal)
            emitted, race = _drawn_instead(rest, draws, position + place)
            return Outcome(tuple(judged), emitted, Origin.RESAMPLED, race)
    return _draw_behind(judged, draft, p, draws, position)


def passes(u: float, p: float, q: float) -> bool:
    """The speculative rule: u < p / q, written without the division."""
    return u * q < p


def verify_match(draft: Sequence[int], p: Row, draws: Draws, position: int) -> Outcome:
    """Draw from the target at every place; accept while the drafted token is the one drawn.

    The emitted tokens are those that plain sampling with the same seed draws. A draft that drew with the same
    noise has the target's token with a probability of at least (1 - d) / (1 + d), where d is the distance of
    p and q in total variation (Daliri, Musco and Suresh 2024, arXiv 2408.07978).
    """
    judged = []
    for place, token in enumerate(draft):
        own, race = p(place).draw(draws.key(position + place, Purpose.TOKEN))
        judged.append(Judgement(own == token, target_id=own, race=race))
        if own != token:
            return Outcome(tuple(judged), own, Origin.RESAMPLED, race)
    return _draw_behind(judged, draft, p, draws, position)


def verify_block(
    draft: Sequence[int],
    q: Sequence[Distribution | None],
    p: Row,
    draws: Draws,
    position: int,
) -> Outcome:
    """Accept up to the last token whose draw passes, else draw from the block's residual. Keeps the target's
    law, and on average accepts at least as many tokens as the token-wise rule.

    Every token has its own draw, compared with its acceptance value. Tokens are judged from the last one
    backwards: the tokens before the one that passes are accepted with it, unjudged. Arguments are those of
    `verify_speculative`; a draft may have any length, as long as no token was dropped after it was drawn.
    """
    reach = [1.0]  # of the first i tokens
    for place, token in enumerate(draft):
        row, proposal = p(place), q[place]
        chance = 1.0 if proposal is None else proposal.of(token)
        reach.append(block_reach(reach[-1], row.of(token), chance))
        if reach[-1] == 0:
            break  # neither this token nor any after it can pass
    accepted = judged = len(reach) - 1
    judgements: list[Judgement] = []  # last place first
    while accepted:
        here = reach[accepted]
        if accepted == judged:
            left = here  # no later token takes any of it
        else:
            left = _left_behind(p(accepted), draft[accepted], q[accepted], here)
        h = block_value(here, left)
        # Keyed by the round too: a place after the accepted ones is judged again in the next round.
        u = draws.uniform(position + accepted - 1, Purpose.ACCEPT, position)
        passed = u < h
        judgements.append(Judgement(passed, u=u, h=h))
        if passed:
            break
        accepted -= 1
    judgements += [Judgement(True)] * (accepted - 1)
    judgements.reverse()
    if accepted == len(draft):
        return _draw_behind(judgements, draft, p, draws, position)
    rest = residual(p(accepted), draft[accepted], q[accepted], reach[accepted])
    emitted, race = _drawn_instead(rest, draws, position + accepted)
    return Outcome(tuple(judgements), emitted, Origin.RESAMPLED, race)


def block_reach(before: float, p: float, q: float) -> float:
    """The chance that a block is accepted up to a token or further, over all that may be drafted after it.

    The paper's p_i: min(1, before * p / q), where `before` is the previous token's (1 at the start).
    """
    return 1.0 if before * p >= q else before * p / q


def block_value(reach: float, left: float) -> float:
    """The acceptance value of a token, the paper's h_i: the chance that its own draw passes.

    `left` is the sum of max(reach p - q, 0) over the vocabulary at the next place: how much of `reach` no
    next token takes up. After the last token that is all of it, and the value is `reach`.
    """
    below = left + (1 - reach)
    return left / below if below > 0 else 1.0


def _left_behind(p: Distribution, token: int, q: Distribution | None, reach: float) -> float:
    """The sum of max(reach p - q, 0); a one-hot q (None) is one at `token`."""
    if q is None:
        return reach * (1 - p.of(token))
    return float(np.add.reduce(p.beyond(q, reach).p, dtype=np.float64))


def _drawn_instead(rest: Distribution, draws: Draws, position: int) -> tuple[int, Race]:
    """A token from a residual."""
    return rest.draw(draws.key(position, Purpose.RESIDUAL), float(rest.p.sum()))


def _draw_behind(
    judged: list[Judgement], draft: Sequence[int], p: Row, draws: Draws, position: int
) -> Outcome:
    """All drafted tokens passed (or there were none): draw one more from the target."""
    token, race = p(len(draft)).draw(draws.key(position + len(draft), Purpose.TOKEN))
    return Outcome(tuple(judged), token, _last_origin(draft), race)


def _last_origin(draft: Sequence[int]) -> Origin:
    return Origin.BONUS if draft else Origin.PLAIN


def default_verification(temperature: float) -> Verification:
    """Greedy at temperature 0, else speculative."""
    return Verification.GREEDY if temperature == 0 else Verification.SPECULATIVE
