"""The verdicts of the rules as functions of a draft and the target's rows, without a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace

from app.engine.rules.base import Drafted, Outcome, Rule
from app.engine.rules.registry import BLOCK, GREEDY, MATCH, SPECULATIVE
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Draws

Row = Callable[[int], Distribution]
"""Place in the draft -> p."""


def verify(
    rule: Rule,
    draft: Sequence[int],
    q: Sequence[Distribution | None],
    p: Row | None,
    draws: Draws,
    position: int,
    argmax: Callable[[int], int] | None = None,
) -> Outcome:
    rows = SimpleNamespace(distribution=p, argmax=argmax)
    return rule.judge(Drafted(draft, q, rows, draws, position))


def verify_greedy(draft: Sequence[int], argmax: Callable[[int], int]) -> Outcome:
    return verify(GREEDY, draft, [], None, Draws(0), 0, argmax)


def verify_match(draft: Sequence[int], p: Row, draws: Draws, position: int) -> Outcome:
    return verify(MATCH, draft, [], p, draws, position)


def verify_speculative(
    draft: Sequence[int], q: Sequence[Distribution | None], p: Row, draws: Draws, position: int
) -> Outcome:
    return verify(SPECULATIVE, draft, q, p, draws, position)


def verify_block(
    draft: Sequence[int], q: Sequence[Distribution | None], p: Row, draws: Draws, position: int
) -> Outcome:
    return verify(BLOCK, draft, q, p, draws, position)
