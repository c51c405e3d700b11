"""Conditions on facts."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from app.lessons.lesson import ConditionError, holds

FACTS = {
    "round": SimpleNamespace(accepted=3, drafted=4, own="fox", ratio=None),
    "answer": SimpleNamespace(rate=0.75),
}


@pytest.mark.parametrize(
    "condition",
    [
        "round.accepted == 3",
        "round.accepted + 1 == round.drafted and answer.rate == 3 / 4",
        "round.accepted > 3 or round.own == 'fox'",
        "not round.accepted != 3",
        "1 < round.accepted < round.drafted <= 4",
        "round.drafted - 2 * 2 >= 0",
        "'ox' in round.own",
    ],
)
def test_a_condition_that_fits_the_facts_holds(condition: str) -> None:
    assert holds(condition, FACTS)
    assert not holds(f"not ({condition})", FACTS)


def test_a_fact_that_does_not_apply_fulfils_no_comparison() -> None:
    for condition in (
        "round.ratio < 1",
        "round.ratio >= 1",
        "round.ratio + 1 > 0",
        "round.ratio == round.ratio",
    ):
        assert not holds(condition, FACTS)


@pytest.mark.parametrize(
    "condition",
    ["round.tokens == 1", "chat.open", "round.accepted ==", "len(round.own) == 3", "round.accepted is 3"],
)
def test_what_is_not_a_condition_is_refused_by_its_text(condition: str) -> None:
    with pytest.raises(ConditionError) as refused:
        holds(condition, FACTS)
    assert condition in str(refused.value)
