"""The verifiers: their laws by enumeration of everything that can be drawn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typing_extensions import override

from app.engine.fates import Origin
from app.engine.rules.base import Outcome, residual
from app.engine.rules.registry import GREEDY, SPECULATIVE, default_rule
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Draws, Purpose
from tests.dense import dense, sparse
from tests.engine.rules.conftest import DRAWN
from tests.verdicts import verify_greedy, verify_match, verify_speculative

pytestmark = pytest.mark.usefixtures("walked")

VOCABULARY = 8
LENGTH = 3  # tokens of the joint law
POSITION = 5  # where the draft begins; its value must not matter
ALMOST_ONE = 1 - 2.0**-53

Prefix = tuple[int, ...]
Rule = Callable[[Sequence[int], Draws], Outcome]


class Model:
    """A fake language model: a random distribution after every prefix, dense or sparse."""

    def __init__(self, seed: int, zeros: int = 0, one_hot: bool = False) -> None:
        self._seed, self._zeros, self._one_hot = seed, zeros, one_hot
        self._rows: dict[Prefix, np.ndarray] = {}

    def row(self, prefix: Prefix) -> np.ndarray:
        """float32, shape [VOCABULARY]."""
        if prefix not in self._rows:
            random = np.random.default_rng([self._seed, *prefix])
            row = random.dirichlet(np.ones(VOCABULARY))
            row[random.permutation(VOCABULARY)[: self._zeros]] = 0
            if self._one_hot:
                row = (row == row.max()).astype(float)
            self._rows[prefix] = (row / row.sum()).astype(np.float32)
        return self._rows[prefix]

    def after(self, prefix: Prefix) -> Distribution:
        """The same as a Distribution, dense or sparse depending on the prefix."""
        row = self.row(prefix)
        return sparse(row) if hash((self._seed, prefix)) % 2 else Distribution(row)


FORMS: tuple[Callable[[np.ndarray], Distribution], ...] = (Distribution, sparse)


class Script(Draws):
    """Draws with given values, and `other` everywhere else."""

    def __init__(self, told: dict[tuple[int, Purpose], float], other: float | None = 0.5) -> None:
        super().__init__(0)
        self._told, self._other = told, other

    @override
    def uniform(self, position: int, purpose: Purpose, round_start: int = 0) -> float:
        value = self._told.get((position, purpose), self._other)
        assert value is not None, f"{purpose!r} at {position} must not be asked for"
        return value

    key = uniform  # type: ignore[assignment]  # of draws that are walked over


def draws_of(accepts: Sequence[float], purpose: Purpose, last: float) -> Script:
    """Acceptance draws place by place, and one value for every draw of `purpose`."""
    told = {(POSITION + place, Purpose.ACCEPT): u for place, u in enumerate(accepts)}
    told |= {(POSITION + place, purpose): last for place in range(len(accepts) + 1)}
    return Script(told)


def measure(passes: Callable[[float], bool]) -> float:
    """The share of [0, 1) where `passes` holds, for a rule that holds below a threshold."""
    if passes(ALMOST_ONE):
        return 1.0
    if not passes(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if passes(middle) else (low, middle)
    return low


def intervals(outcome: Callable[[float], Outcome]) -> Iterator[tuple[int, float]]:
    """Walk over a draw from 0 to 1: yields every token with the width of its interval."""
    at = 0.0
    while at < ALMOST_ONE:
        DRAWN.clear()
        first = outcome(at)
        ((u, low, high),) = DRAWN
        assert low <= at == u < high
        width = high - at
        # The interval is accepted only if both of its ends give the same token.
        assert outcome(at + width * 0.5).token == first.token
        assert outcome(at + width * (1 - 1e-9)).token == first.token
        yield first.token, width
        at = high


def emissions(rule: Rule, draft: Prefix) -> Iterator[tuple[Prefix, float]]:
    """Every outcome of a speculative rule for this draft, with its exact probability."""
    reached = 1.0
    for place in range(len(draft)):
        before, behind = [0.0] * place, [ALMOST_ONE] * (len(draft) - place - 1)

        def passes(u: float, before=before, behind=behind, place=place) -> bool:
            accepts = [*before, u, *behind]
            return rule(draft, draws_of(accepts, Purpose.RESIDUAL, 0.5)).accepted > place

        share = measure(passes)
        if share < 1:
            accepts = [*before, ALMOST_ONE, *behind]
            walked = intervals(lambda v, accepts=accepts: rule(draft, draws_of(accepts, Purpose.RESIDUAL, v)))  # type: ignore[misc]
            for token, width in walked:
                yield (*draft[:place], token), reached * (1 - share) * width
        reached *= share
        if reached == 0:
            return
    accepts = [0.0] * len(draft)
    for token, width in intervals(lambda v: rule(draft, draws_of(accepts, Purpose.TOKEN, v))):
        yield (*draft, token), reached * width


def law_of_model(p: Model, prefix: Prefix = ()) -> dict[Prefix, float]:
    """The joint law of the next tokens under the target alone."""
    law = {prefix: 1.0}
    for _ in range(LENGTH - len(prefix)):
        law = {
            (*before, token): chance * float(p.row(before)[token])
            for before, chance in law.items()
            for token in range(VOCABULARY)
        }
    return law


def law_of_rounds(p: Model, q: Model, k: int, *, sampled: bool) -> dict[Prefix, float]:
    """The joint law of the first LENGTH tokens when one round of k drafted tokens comes first."""

    def rule(draft: Sequence[int], draws: Draws) -> Outcome:
        drafted = [q.after(tuple(draft[:place])) for place in range(len(draft))]
        rows = drafted if sampled else [None] * len(draft)
        return verify_speculative(draft, rows, lambda place: p.after(tuple(draft[:place])), draws, POSITION)

    law: dict[Prefix, float] = {}
    for draft in itertools.product(range(VOCABULARY), repeat=k):
        places = range(k)
        chances = [float(q.row(draft[:place])[draft[place]]) for place in places]
        if not sampled:  # the draft is the argmax, chosen without drawing
            chances = [float(draft[place] == q.row(draft[:place]).argmax()) for place in places]
        chance = float(np.prod(chances))
        if chance == 0:
            continue
        for emitted, share in emissions(rule, draft):
            for tokens, rest in law_of_model(p, emitted[:LENGTH]).items():
                law[tokens] = law.get(tokens, 0.0) + chance * share * rest
    return law


def difference(law: dict[Prefix, float], exact: dict[Prefix, float]) -> float:
    return max(abs(law.get(tokens, 0.0) - exact.get(tokens, 0.0)) for tokens in law.keys() | exact.keys())


@pytest.mark.parametrize("sampled", [True, False], ids=["sampled", "one-hot"])
@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(
    ("p_zeros", "q_zeros"), [(0, 0), (3, 0), (0, 4), (4, 4)], ids=["full", "p cut", "q cut", "both cut"]
)
def test_the_speculative_law_is_the_targets(k: int, sampled: bool, p_zeros: int, q_zeros: int) -> None:
    p, q = Model(11, p_zeros), Model(12, q_zeros)
    law = law_of_rounds(p, q, k, sampled=sampled)
    assert sum(law.values()) == pytest.approx(1, abs=1e-6)
    assert difference(law, law_of_model(p)) < 1e-6


def test_the_joint_law_of_three_drafted_tokens() -> None:
    p, q = Model(1, zeros=4), Model(2, zeros=4)
    assert difference(law_of_rounds(p, q, 3, sampled=True), law_of_model(p)) < 1e-6


@given(st.integers(0, 10**6), st.integers(0, 7), st.integers(0, 7), st.booleans())
@settings(max_examples=25)
def test_the_law_of_the_first_token_for_any_p_and_q(
    seed: int, p_zeros: int, q_zeros: int, sampled: bool
) -> None:
    p, q = Model(seed, p_zeros), Model(seed + 1, q_zeros)
    first = np.zeros(VOCABULARY)
    for tokens, chance in law_of_rounds(p, q, 1, sampled=sampled).items():
        first[tokens[0]] += chance
    np.testing.assert_allclose(first, p.row(()), atol=1e-6)


@pytest.mark.parametrize("sampled", [True, False], ids=["sampled", "one-hot"])
def test_a_target_at_temperature_0_is_never_left(sampled: bool) -> None:
    p, q = Model(3, one_hot=True), Model(4)
    law = law_of_rounds(p, q, 2, sampled=sampled)
    assert difference(law, law_of_model(p)) < 1e-6


def test_a_draft_from_the_target_itself_always_passes() -> None:
    p = Model(5)
    for draft in itertools.product(range(VOCABULARY), repeat=2):
        rows = [p.after(draft[:place]) for place in range(2)]
        draws = draws_of([ALMOST_ONE] * 2, Purpose.TOKEN, 0.5)
        outcome = verify_speculative(draft, rows, lambda place, d=draft: p.after(d[:place]), draws, POSITION)  # type: ignore[misc]
        assert outcome.accepted == 2
        assert outcome.origin is Origin.BONUS


def match_emissions(
    rule: Callable[[Draws], Outcome], told: tuple[float, ...] = ()
) -> Iterator[tuple[Prefix, float]]:
    """Every outcome of `match` with its probability, by walking over the draws place by place."""
    place, at = len(told), 0.0
    while at < ALMOST_ONE:
        values = {(POSITION + i, Purpose.TOKEN): u for i, u in enumerate((*told, at))}
        DRAWN.clear()
        outcome = rule(Script(values))
        judged = outcome.judged[place] if place < len(outcome.judged) else None
        u, _, high = DRAWN[place]
        assert u == at
        width = high - at
        if judged and judged.accepted:
            for emitted, chance in match_emissions(rule, (*told, at)):
                yield emitted, width * chance
        else:
            accepted = [token.target_id for token in outcome.judged[: outcome.accepted]]
            yield (*map(int, accepted), outcome.token), width
        at = high


@pytest.mark.parametrize("k", [0, 1, 2])
def test_the_law_of_match_is_the_targets_whatever_is_drafted(k: int) -> None:
    p = Model(21)
    exact = law_of_model(p)
    for draft in itertools.islice(itertools.product(range(VOCABULARY), repeat=k), 0, None, 5):
        law: dict[Prefix, float] = {}
        rule = partial(_match, draft, p)
        for emitted, chance in match_emissions(rule):
            for tokens, rest in law_of_model(p, emitted).items():
                law[tokens] = law.get(tokens, 0.0) + chance * rest
        assert difference(law, exact) < 1e-6


def _match(draft: Prefix, p: Model, draws: Draws) -> Outcome:
    return verify_match(draft, lambda place: p.after(draft[:place]), draws, POSITION)


def test_match_emits_what_plain_drawing_emits() -> None:
    p, draws = Model(8), Draws(99)

    def plain(length: int) -> Prefix:
        tokens: Prefix = ()
        for place in range(length):
            outcome = verify_match([], lambda _, t=tokens: p.after(t), draws, POSITION + place)  # type: ignore[misc]
            tokens = (*tokens, outcome.token)
        return tokens

    expected = plain(LENGTH)
    for draft in itertools.product(range(VOCABULARY), repeat=LENGTH - 1):
        outcome = verify_match(draft, lambda place, d=draft: p.after(d[:place]), draws, POSITION)  # type: ignore[misc]
        emitted = (*draft[: outcome.accepted], outcome.token)
        assert emitted == expected[: len(emitted)]


def test_greedy_accepts_the_argmax_and_emits_it_behind() -> None:
    best = [4, 7, 2, 6]
    rows = []

    def argmax(place: int) -> int:
        rows.append(place)
        return best[place]

    all_pass = verify_greedy([4, 7, 2], argmax)
    assert (all_pass.accepted, all_pass.token, all_pass.origin) == (3, 6, Origin.BONUS)
    assert [token.target_id for token in all_pass.judged] == [4, 7, 2]

    rows.clear()
    second_fails = verify_greedy([4, 1, 2], argmax)
    assert (second_fails.accepted, second_fails.token) == (1, 7)
    assert second_fails.origin is Origin.RESAMPLED
    assert [token.accepted for token in second_fails.judged] == [True, False]
    assert rows == [0, 1], "rows behind the rejected token are not looked at"

    plain = verify_greedy([], argmax)
    assert (plain.judged, plain.token, plain.origin) == ((), 4, Origin.PLAIN)


def test_nothing_is_judged_behind_the_first_rejected_token() -> None:
    p = Model(31)
    draws = Script({(POSITION, Purpose.ACCEPT): ALMOST_ONE, (POSITION, Purpose.RESIDUAL): 0.3}, other=None)
    worst = int(p.row(()).argmin())
    outcome = verify_speculative([worst, 0, 0], [None] * 3, lambda place: p.after(()), draws, POSITION)
    assert [token.accepted for token in outcome.judged] == [False]
    assert outcome.origin is Origin.RESAMPLED
    assert outcome.token != worst


def test_the_residual_of_equal_distributions_is_the_distribution() -> None:
    row = Model(41).row(())
    alone = np.zeros(VOCABULARY, np.float32)
    alone[3] = 1
    for form in (Distribution, sparse):
        p = form(row)
        assert residual(p, 0, p) is p
        p = form(alone)
        assert residual(p, 3, None) is p


@given(
    st.integers(0, 10**6), st.integers(0, 7), st.integers(0, 7), st.integers(0, VOCABULARY - 1),
    st.floats(0, 1), st.booleans(),
)  # fmt: skip
def test_every_form_of_rows_has_the_same_residual(
    seed: int, p_zeros: int, q_zeros: int, token: int, reach: float, sampled: bool
) -> None:
    p, q = Model(seed, p_zeros).row(()), Model(seed + 1, q_zeros).row(())
    without = np.where(np.arange(VOCABULARY) == token, 0, p)
    expected = np.maximum(p * np.float32(reach) - q, 0) if sampled else without
    expected = expected if expected.any() else p
    for form, other in itertools.product(FORMS, repeat=2):
        rest = residual(form(p), token, other(q) if sampled else None, reach)
        np.testing.assert_array_equal(dense(rest, VOCABULARY), expected)
        assert rest.of(token) == expected[token]


def test_the_default_rule_follows_the_temperature() -> None:
    assert default_rule(0.0) is GREEDY
    assert default_rule(0.7) is SPECULATIVE
