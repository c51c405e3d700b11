"""Block verification: its law, its gain and its limits, by enumeration of everything that can be drawn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from app.engine.fates import Origin
from app.engine.rules import base, block
from app.engine.rules.base import Outcome
from app.engine.rules.block import block_reach, block_value
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Draws, Purpose
from tests.engine.rules.test_verify import (
    ALMOST_ONE,
    LENGTH,
    POSITION,
    VOCABULARY,
    Model,
    Prefix,
    Script,
    difference,
    draws_of,
    emissions,
    intervals,
    law_of_model,
    measure,
)
from tests.verdicts import verify_block, verify_greedy, verify_speculative

pytestmark = pytest.mark.usefixtures("walked")

Rule = Callable[[Sequence[int], Draws], Outcome]
Emissions = Callable[[Rule, Prefix], Iterator[tuple[Prefix, float]]]
Stop = Callable[[Prefix], bool]
"""Whether a draft ends behind these tokens: what may be looked at before the next one is drawn."""


class Fixed(Model):
    """A model with the same distribution after every prefix."""

    def __init__(self, *p: float) -> None:
        super().__init__(len(p))
        self._row = np.zeros(VOCABULARY, np.float32)
        self._row[: len(p)] = p

    @override
    def row(self, prefix: Prefix) -> np.ndarray:
        return self._row


def never(prefix: Prefix) -> bool:
    return False


def rule_of(judge: Callable[..., Outcome], p: Model, q: Model, *, sampled: bool = True) -> Rule:
    """`judge` on drafts from q for the target p."""

    def rule(draft: Sequence[int], draws: Draws) -> Outcome:
        before = [tuple(draft[:place]) for place in range(len(draft))]
        rows = [q.after(prefix) if sampled else None for prefix in before]
        return judge(draft, rows, lambda place: p.after(tuple(draft[:place])), draws, POSITION)

    return rule


def block_emissions(rule: Rule, draft: Prefix) -> Iterator[tuple[Prefix, float]]:
    """Every outcome of the block rule for this draft, with its exact probability.

    The rule's own record is not used: each place's chance to pass is found by trial.
    """
    k = len(draft)
    reached = 1.0  # the chance that no later place has passed
    for place in reversed(range(-1, k)):
        others = [ALMOST_ONE] * k

        def passes(u: float, others=others, place=place) -> bool:
            accepts = [*others[:place], u, *others[place + 1 :]]
            return rule(draft, draws_of(accepts, Purpose.RESIDUAL, 0.5)).accepted > place

        share = measure(passes) if place >= 0 else 1.0
        if reached * share > 0:
            accepts = [0.0 if i == place else ALMOST_ONE for i in range(k)]
            purpose = Purpose.TOKEN if place == k - 1 else Purpose.RESIDUAL
            for token, width in intervals(lambda v, a=accepts, w=purpose: rule(draft, draws_of(a, w, v))):  # type: ignore[misc]
                yield (*draft[: place + 1], token), reached * share * width
        reached *= 1 - share


def drafts_of(q: Model, k: int, *, sampled: bool, stop: Stop = never) -> Iterator[tuple[Prefix, float]]:
    """Every draft of at most k tokens, with its chance."""
    waiting: list[tuple[Prefix, float]] = [((), 1.0)]
    while waiting:
        draft, chance = waiting.pop()
        if len(draft) == k or stop(draft):
            yield draft, chance
            continue
        row = q.row(draft)
        if not sampled:  # the argmax, chosen without drawing
            row = (np.arange(VOCABULARY) == row.argmax()).astype(np.float32)
        waiting += [((*draft, int(token)), chance * float(row[token])) for token in row.nonzero()[0]]


def law_of_rounds(p: Model, q: Model, k: int, *, sampled: bool = True, stop: Stop = never) -> dict:
    """The joint law of the first LENGTH tokens when one round judged as a block comes first."""
    rule = rule_of(verify_block, p, q, sampled=sampled)
    law: dict[Prefix, float] = {}
    for draft, chance in drafts_of(q, k, sampled=sampled, stop=stop):
        for emitted, share in block_emissions(rule, draft):
            for tokens, rest in law_of_model(p, emitted[:LENGTH]).items():
                law[tokens] = law.get(tokens, 0.0) + chance * share * rest
    return law


def accepted_in_the_mean(rule: Rule, walk: Emissions, q: Model, k: int) -> float:
    """Exact expectation over all sampled drafts."""
    return sum(
        chance * share * (len(emitted) - 1)
        for draft, chance in drafts_of(q, k, sampled=True)
        for emitted, share in walk(rule, draft)
    )


# ---------------------------------------------------------------------------------------- the law


@pytest.mark.parametrize("sampled", [True, False], ids=["sampled", "one-hot"])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(
    ("p_zeros", "q_zeros"), [(0, 0), (3, 0), (0, 4), (4, 4)], ids=["full", "p cut", "q cut", "both cut"]
)
def test_the_law_is_the_targets(k: int, sampled: bool, p_zeros: int, q_zeros: int) -> None:
    p, q = Model(11, p_zeros), Model(12, q_zeros)
    law = law_of_rounds(p, q, k, sampled=sampled)
    assert sum(law.values()) == pytest.approx(1, abs=1e-6)
    assert difference(law, law_of_model(p)) < 1e-6


@pytest.mark.parametrize("sampled", [True, False], ids=["sampled", "one-hot"])
@pytest.mark.parametrize("k", [3, 4])
def test_the_joint_law_of_longer_drafts(k: int, sampled: bool) -> None:
    p, q = Model(1, zeros=4), Model(2, zeros=5)
    assert difference(law_of_rounds(p, q, k, sampled=sampled), law_of_model(p)) < 1e-6


def test_drafts_that_end_early_keep_the_law() -> None:
    p, q = Model(7, zeros=4), Model(8, zeros=4)

    def unsure(prefix: Prefix) -> bool:  # as p_min: the largest q, before anything is drawn
        return float(q.row(prefix).max()) < 0.45

    def ended(prefix: Prefix) -> bool:  # as after an end of generation: a token that was drawn and kept
        return bool(prefix) and prefix[-1] % 3 == 0

    for stop in (unsure, ended):
        lengths = {len(draft) for draft, _ in drafts_of(q, 3, sampled=True, stop=stop)}
        assert len(lengths) > 1, "drafts differ in length"
        assert difference(law_of_rounds(p, q, 3, stop=stop), law_of_model(p)) < 1e-6


def test_dropping_a_token_that_was_drawn_bends_the_law() -> None:
    """A violation of METRICS.md's rule, to show that these tests detect it."""
    p, q = Model(7, zeros=4), Model(8, zeros=4)
    rule = rule_of(verify_block, p, q)
    law: dict[Prefix, float] = {}
    for draft, chance in drafts_of(q, 2, sampled=True):
        kept = draft[:1] if q.row(draft[:1])[draft[1]] < 0.3 else draft
        for emitted, share in block_emissions(rule, kept):
            for tokens, rest in law_of_model(p, emitted).items():
                law[tokens] = law.get(tokens, 0.0) + chance * share * rest
    assert difference(law, law_of_model(p)) > 1e-3


FAULTS = {
    "the residual forgets the reach": ("residual", lambda real: lambda p, token, q, reach: real(p, token, q)),
    "the residual is p": ("residual", lambda real: lambda p, token, q, reach: p),
    "the reach may exceed one": ("block_reach", lambda real: lambda before, p, q: before * p / q),
    "the reach starts anew": ("block_reach", lambda real: lambda before, p, q: real(1.0, p, q)),
    "the value is the reach": ("block_value", lambda real: lambda reach, left: reach),
    "the value is what is left": ("block_value", lambda real: lambda reach, left: left),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_breaks_the_law(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    name, plant = FAULTS[fault]
    module = base if name == "residual" else block
    monkeypatch.setattr(module, name, plant(getattr(module, name)))
    p, q = Model(11, zeros=4), Model(12)
    assert difference(law_of_rounds(p, q, 2), law_of_model(p)) > 1e-4, "a right rule stays below 1e-6"


@given(st.integers(0, 10**6), st.integers(0, 7), st.integers(0, 7), st.booleans())
@settings(max_examples=12)
def test_the_law_of_two_drafted_tokens_for_any_p_and_q(
    seed: int, p_zeros: int, q_zeros: int, sampled: bool
) -> None:
    p, q = Model(seed, p_zeros), Model(seed + 1, q_zeros)
    assert difference(law_of_rounds(p, q, 2, sampled=sampled), law_of_model(p)) < 1e-6


# --------------------------------------------------------------------- against the token-wise rule


@given(
    st.integers(0, 10**6), st.integers(0, 6), st.booleans(), st.integers(0, VOCABULARY - 1),
    st.floats(0, ALMOST_ONE), st.floats(0, ALMOST_ONE),
)  # fmt: skip
def test_a_draft_of_one_token_is_judged_as_by_the_token_wise_rule(
    seed: int, zeros: int, sampled: bool, choice: int, u: float, v: float
) -> None:
    p, q = Model(seed, zeros), Model(seed + 1, zeros)
    drawn = np.flatnonzero(q.row(()))
    draft = (int(drawn[choice % len(drawn)]),)
    outcomes = [
        rule_of(judge, p, q, sampled=sampled)(
            draft,
            Script({
                (POSITION, Purpose.ACCEPT): u,
                (POSITION, Purpose.RESIDUAL): v,
                (POSITION + 1, Purpose.TOKEN): v,
            }, other=None),
        )
        for judge in (verify_block, verify_speculative)
    ]  # fmt: skip
    found = [(outcome.accepted, outcome.token, outcome.origin, outcome.race) for outcome in outcomes]
    assert found[0] == found[1]


@given(st.integers(0, 10**6), st.integers(0, 6), st.integers(1, 3))
@settings(max_examples=40)
def test_one_hot_drafts_have_the_law_of_the_token_wise_rule(seed: int, zeros: int, k: int) -> None:
    p, q = Model(seed, zeros), Model(seed + 1)
    ((draft, _),) = drafts_of(q, k, sampled=False)
    block, single = (
        dict(walk(rule_of(judge, p, q, sampled=False), draft))
        for judge, walk in ((verify_block, block_emissions), (verify_speculative, emissions))
    )
    assert difference(block, single) < 1e-6


@given(st.integers(0, 10**6), st.integers(0, 6), st.integers(0, 6), st.integers(2, 3))
@settings(max_examples=8)
def test_sampled_drafts_lose_no_accepted_tokens(seed: int, p_zeros: int, q_zeros: int, k: int) -> None:
    p, q = Model(seed, p_zeros), Model(seed + 1, max(q_zeros, 4 if k == 3 else 0))
    block = accepted_in_the_mean(rule_of(verify_block, p, q), block_emissions, q, k)
    single = accepted_in_the_mean(rule_of(verify_speculative, p, q), emissions, q, k)
    assert block >= single - 1e-6


def test_the_gain_in_the_papers_example() -> None:
    """Section 2: two tokens, the target's and the draft's preference the other way round."""
    p, q = Fixed(1 / 3, 2 / 3), Fixed(2 / 3, 1 / 3)
    block = accepted_in_the_mean(rule_of(verify_block, p, q), block_emissions, q, 2)
    single = accepted_in_the_mean(rule_of(verify_speculative, p, q), emissions, q, 2)
    assert single == pytest.approx(10 / 9, abs=1e-6)
    assert block == pytest.approx(11 / 9, abs=1e-6)


# -------------------------------------------------------------------------------------- the parts


def test_the_values_are_the_papers() -> None:
    assert block_reach(1.0, 0.2, 0.4) == 0.5
    assert block_reach(0.5, 0.9, 0.3) == 1.0, "never more than one"
    assert block_reach(0.5, 0.4, 0.8) == 0.25
    assert block_reach(0.0, 0.4, 0.8) == 0.0
    assert block_value(0.5, 0.1) == pytest.approx(0.1 / 0.6)
    assert block_value(0.3, 0.3) == pytest.approx(0.3), "the last token: nothing behind takes anything"
    assert block_value(1.0, 0.2) == block_value(1.0, 0.0) == 1.0


def test_a_draft_from_the_target_itself_always_passes() -> None:
    p = Model(5)
    for draft in itertools.product(range(VOCABULARY), repeat=3):
        outcome = rule_of(verify_block, p, p)(draft, draws_of([ALMOST_ONE] * 3, Purpose.TOKEN, 0.5))
        assert outcome.accepted == 3
        assert outcome.origin is Origin.BONUS


@pytest.mark.parametrize("sampled", [True, False], ids=["sampled", "one-hot"])
def test_a_target_at_temperature_0_is_judged_greedily(sampled: bool) -> None:
    p, q = Model(3, one_hot=True), Model(4)
    for draft in itertools.product(range(VOCABULARY), repeat=2):
        asked: list[int] = []

        def row(place: int, draft=draft, asked=asked) -> Distribution:
            asked.append(place)
            return p.after(draft[:place])

        # A token that q never draws is no draft of a sampled one; here q is nowhere zero.
        rows = [q.after(draft[:place]) if sampled else None for place in range(2)]
        block = verify_block(draft, rows, row, Draws(7), POSITION)
        greedy = verify_greedy(draft, lambda place, d=draft: int(p.row(d[:place]).argmax()))  # type: ignore[misc]
        assert (block.accepted, block.token, block.origin) == (greedy.accepted, greedy.token, greedy.origin)
        assert max(asked) == greedy.accepted, "rows behind a token that cannot pass are not looked at"


def test_what_is_judged_is_what_decided() -> None:
    p, q = Fixed(1 / 3, 2 / 3), Fixed(2 / 3, 1 / 3)
    rule = rule_of(verify_block, p, q)
    draft = (0, 1, 0)

    def told(*accepts: float) -> Outcome:
        return rule(draft, Script({(POSITION + i, Purpose.ACCEPT): u for i, u in enumerate(accepts)}))

    second = told(0.0, 0.9, ALMOST_ONE)
    assert second.accepted == 2
    assert [(token.accepted, token.u) for token in second.judged] == [
        (True, None), (True, 0.9), (False, ALMOST_ONE)
    ]  # fmt: skip
    # reach 1/2, 1, 1/2; after the first token 1/2 p - q leaves nothing, so that it cannot pass alone.
    assert [token.h for token in second.judged] == [None, 1.0, pytest.approx(0.5)]
    assert told(0.0, 0.0, 0.0).accepted == 3

    nothing = verify_block([], [], lambda place: p.after(()), Draws(1), POSITION)
    assert (nothing.judged, nothing.origin) == ((), Origin.PLAIN)


def test_a_place_is_judged_by_another_draw_in_the_next_round() -> None:
    """A draw known to have failed must not be used again: that would bend the law."""
    asked: list[tuple[int, int]] = []

    class Watched(Draws):
        @override
        def uniform(self, position: int, purpose: Purpose, round_start: int = 0) -> float:
            if purpose is Purpose.ACCEPT:
                asked.append((position, round_start))
                return ALMOST_ONE
            return super().uniform(position, purpose, round_start)

    p, q = Fixed(1 / 3, 2 / 3), Fixed(2 / 3, 1 / 3)
    for position in (0, 1):
        verify_block((0, 0), [q.after(())] * 2, lambda place: p.after(()), Watched(1), position)
    assert sorted(asked) == [(0, 0), (1, 0), (1, 1), (2, 1)]
