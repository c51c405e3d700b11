"""The checks bite: each planted fault makes the law or the equality fail. Those of the law run with the long
grid."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from typing_extensions import override

from app.engine.drafters.base import RunContext
from app.engine.drafters.draft_simple import DraftSimple
from app.engine.engine import Engine
from app.engine.fates import Origin, Verdict
from app.engine.native import Context
from app.engine.record.recheck import recheck
from app.engine.rules import base, block, speculative
from app.engine.rules.base import Drafted, Judgement, Outcome
from app.engine.rules.greedy import GreedyRule
from app.engine.sampling.distribution import Distribution
from app.engine.sampling.draws import Draws, Purpose
from app.engine.sampling.rows import TargetRows
from app.engine.sampling.sampler import Sampler
from app.engine.types import GenerationRequest, Race, Sampling
from tests.answers import answer
from tests.equality import Baselines
from tests.files.tiny import Tiny
from tests.law import CASES, CUT, DRY, PENALISED, Case, count, exact_law, holds, p_values
from tests.reference import softmax

DRAWS, FEW = 1200, 600  # as in the slice of `make test`
ONE_HOT = Case("draft-simple:n_max=3")
SAMPLED = Case("draft-simple:n_max=3:sample=1")
SAMPLED_CUT = Case("draft-simple:n_max=3:sample=1", CUT)
BLOCK = Case("draft-simple:n_max=3:sample=1:verify=block")
BLOCK_ONE_HOT = Case("draft-simple:n_max=3:verify=block")
LOOKUP = Case("prompt-lookup:num_pred_tokens=3")
SAMPLED_PENALISED = Case("draft-simple:n_max=3:sample=1", PENALISED)

Patch = pytest.MonkeyPatch


def law_holds(engine: Engine, case: Case, draws: int = DRAWS) -> bool:
    """The check of tests/engine/test_law.py, which passes there; the exact law has no planted fault."""
    law = exact_law(engine, case.sampling)
    few = count(engine, case, draws // 4, seed=1)
    if not holds(p_values(few, law), len(CASES)):
        return False
    rest = count(engine, case, draws - draws // 4, seed=1, first=draws // 4)
    return holds(p_values(few + rest, law), len(CASES))


# ---------------------------------------------------------------------------------------- the law


def accept_with_p(patch: Patch) -> None:
    patch.setattr(speculative, "passes", lambda u, p, q: u < p)


def accept_with_q(patch: Patch) -> None:
    patch.setattr(speculative, "passes", lambda u, p, q: u < q)


def accept_always(patch: Patch) -> None:
    patch.setattr(speculative, "passes", lambda u, p, q: True)


def residual_is_p(patch: Patch) -> None:
    patch.setattr(base, "residual", lambda p, token, q, reach=1.0: p)


def residual_forgets_q(patch: Patch) -> None:
    """Of a sampled draft only the rejected token is taken out, as for a one-hot one."""
    real = base.residual
    patch.setattr(base, "residual", lambda p, token, q, reach=1.0: real(p, token, None))


def q_before_its_filters(patch: Patch) -> None:
    """Draft tokens are drawn after the filters and the temperature, but judged by the q before them."""
    begin = DraftSimple.begin

    class Misjudged(Distribution):
        drawn_from: Distribution

        @override
        def draw(self, key: int, whole: float = 1.0) -> tuple[int, Race]:
            return self.drawn_from.draw(key, whole)

    class Misjudging(Sampler):
        @override
        def distribution(self, adjusted: np.ndarray, out: np.ndarray | None = None) -> Distribution:
            q = Misjudged(softmax(adjusted).astype(np.float32))
            q.drawn_from = super().distribution(adjusted, out)
            return q

    def misled(self: DraftSimple, context: np.ndarray, surroundings: RunContext) -> None:
        assert not surroundings.sampler.adjusts
        sampler = Misjudging(surroundings.sampler.sampling)
        begin(self, context, dataclasses.replace(surroundings, sampler=sampler))

    patch.setattr(DraftSimple, "begin", misled)


def same_draw_twice(patch: Patch) -> None:
    """The residual is drawn with the number that decided the rejection."""

    def instead(draft: Drafted, judged: Sequence[Judgement], place: int, reach: float = 1.0) -> Outcome:
        rest, u = base.residual(draft.p(place), draft.ids[place], draft.q[place], reach), judged[-1].u
        assert u is not None
        sums = np.cumsum(rest.p, dtype=np.float64)
        at = int(np.searchsorted(sums, u * sums[-1], side="right"))
        token = at if rest.ids is None else int(rest.ids[at])
        return Outcome(tuple(judged), token, Origin.RESAMPLED, Race(0.0))

    patch.setattr(Drafted, "instead", instead)


def rows_are_off_by_one(patch: Patch) -> None:
    """Each drafted token but the first is judged by the row before its own."""
    real = TargetRows.__init__

    def init(self: TargetRows, logits: np.ndarray, *rest: object) -> None:
        real(self, np.concatenate([logits[:1], logits[:-1]]), *rest)  # type: ignore[arg-type]

    patch.setattr(TargetRows, "__init__", init)


def q_is_off_by_one(patch: Patch) -> None:
    real = speculative.passes
    last = [1.0]

    def passes(u: float, p: float, q: float) -> bool:
        before, last[0] = last[0], q
        return real(u, p, before)

    patch.setattr(speculative, "passes", passes)


def long_drafts_are_dropped(patch: Patch) -> None:
    """A drawn token is thrown away for being improbable: p_min after the draw."""
    real = DraftSimple.propose

    def propose(self: DraftSimple, context: np.ndarray, k: int):
        proposal = real(self, context, k)
        drafted = zip(proposal.q, proposal.ids, strict=True)
        doubtful = (i for i, (q, token) in enumerate(drafted) if q.of(token) < 0.15)
        proposal.cut(next(doubtful, len(proposal.ids)))
        return proposal

    patch.setattr(DraftSimple, "propose", propose)


def penalties_forget_the_draft(patch: Patch) -> None:
    """The penalties of a row look only at the tokens before the round."""
    real = TargetRows.adjusted

    def adjusted(self: TargetRows, row: int) -> np.ndarray:
        kept, self._draft = self._draft, []
        try:
            return real(self, row)
        finally:
            self._draft = kept

    patch.setattr(TargetRows, "adjusted", adjusted)


def reach_forgets_the_tokens_before(patch: Patch) -> None:
    real = block.block_reach
    patch.setattr(block, "block_reach", lambda before, p, q: real(1.0, p, q))


def value_is_the_reach(patch: Patch) -> None:
    """Every place passes as often as only the last place may."""
    patch.setattr(block, "block_value", lambda reach, left: reach)


def same_draws_in_the_next_round(patch: Patch) -> None:
    """A place that failed is judged again by the draw that failed."""
    real = Draws.uniform

    def uniform(self: Draws, position: int, purpose: Purpose, round_start: int = 0) -> float:
        return real(self, position, purpose, 0 if purpose is Purpose.ACCEPT else round_start)

    patch.setattr(Draws, "uniform", uniform)


FAULTS: list[tuple[Callable[[Patch], None], Case]] = [
    (accept_with_p, SAMPLED),
    (accept_with_p, SAMPLED_CUT),
    (accept_with_q, SAMPLED),
    (accept_with_q, ONE_HOT),
    (accept_always, ONE_HOT),
    (accept_always, LOOKUP),
    (residual_is_p, ONE_HOT),
    (residual_is_p, LOOKUP),
    (residual_is_p, SAMPLED),
    (residual_forgets_q, SAMPLED),
    (q_before_its_filters, SAMPLED_CUT),
    (same_draw_twice, SAMPLED),
    (same_draw_twice, ONE_HOT),
    (rows_are_off_by_one, ONE_HOT),
    (rows_are_off_by_one, SAMPLED),
    (q_is_off_by_one, SAMPLED),
    (long_drafts_are_dropped, SAMPLED),
    (penalties_forget_the_draft, SAMPLED_PENALISED),
    (penalties_forget_the_draft, Case("draft-simple:n_max=3:sample=1", DRY)),
    (residual_is_p, BLOCK),
    (reach_forgets_the_tokens_before, BLOCK),
    (reach_forgets_the_tokens_before, BLOCK_ONE_HOT),
    (value_is_the_reach, BLOCK),
    (value_is_the_reach, BLOCK_ONE_HOT),
]


@pytest.mark.verify
@pytest.mark.parametrize(("plant", "case"), FAULTS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_a_planted_fault_breaks_the_law(
    law_engine: Engine, monkeypatch: Patch, plant: Callable[[Patch], None], case: Case
) -> None:
    with monkeypatch.context() as patch:
        plant(patch)
        draws = {LOOKUP: FEW, SAMPLED_PENALISED: 2 * DRAWS}.get(case, DRAWS)
        assert not law_holds(law_engine, case, draws)


@pytest.mark.verify
def test_draws_that_are_used_again_break_the_law(law_engine: Engine, monkeypatch: Patch) -> None:
    """A smaller fault than the others: it takes more draws to detect."""
    case = Case("draft-simple:n_max=2:verify=block")
    same_draws_in_the_next_round(monkeypatch)
    assert not law_holds(law_engine, case, 4 * DRAWS)


# ----------------------------------------------------------------------------------- the equality


def no_rollback(patch: Patch, broken: Context | None) -> None:
    """The cache of one context is never cut: rejected tokens stay before the next ones."""
    real = Context.sync

    def sync(self: Context, ids: np.ndarray) -> int:
        if self is not broken:
            return real(self, ids)
        n = min(self.n_cached, len(ids))
        self._ids[:n] = ids[:n]
        return n

    patch.setattr(Context, "sync", sync)


REQUEST = GenerationRequest(prompt="abcabcabd abc", max_tokens=40, ignore_eos=True)
STRATEGY = "draft-simple:n_max=4"


def test_equality_holds_and_partings_are_listed(engine: Engine) -> None:
    listed: list = []
    Baselines(listed).check(engine, REQUEST, STRATEGY)
    assert all(parting.is_near_tie for parting in listed)


@pytest.mark.parametrize("rule", ["greedy", "speculative", "match", "block"])
def test_rows_off_by_one_break_the_equality(engine: Engine, monkeypatch: Patch, rule: str) -> None:
    rows_are_off_by_one(monkeypatch)
    listed: list = []
    with pytest.raises(AssertionError, match="WRONG"):
        Baselines(listed).check(engine, REQUEST, f"{STRATEGY}:verify={rule}")
    assert len(listed) == 1


def test_a_target_that_is_not_rolled_back_breaks_the_equality(engine: Engine, monkeypatch: Patch) -> None:
    baselines = Baselines([])
    baselines.check(engine, REQUEST, "none")
    no_rollback(monkeypatch, engine.target)
    with pytest.raises(AssertionError, match="WRONG"):
        baselines.check(engine, REQUEST, STRATEGY)


def test_a_rejected_token_that_is_emitted_breaks_the_equality(engine: Engine, monkeypatch: Patch) -> None:
    real = GreedyRule.judge

    def judge(self: GreedyRule, draft: Drafted) -> Outcome:
        outcome = real(self, draft)
        if len(outcome.judged) > outcome.accepted:
            return msgspec.structs.replace(outcome, token=draft.ids[outcome.accepted])
        return outcome

    monkeypatch.setattr(GreedyRule, "judge", judge)
    trace = answer(engine, strategy=STRATEGY, max_tokens=40, ignore_eos=True)
    assert any("rejected and emitted" in sentence for sentence in recheck(trace))
    with pytest.raises(AssertionError):
        Baselines([]).check(engine, REQUEST, STRATEGY)


# --------------------------------------------------------------------------------------- the draft


@pytest.fixture
def self_draft(tiny_file: Callable[[Tiny], Path]) -> Iterator[Engine]:
    """The target as its own draft, from another file."""
    target = tiny_file(Tiny(name="target", n_ctx=1024))
    with Engine(target, tiny_file(Tiny(name="draft-twin", n_ctx=1024))) as engine:
        yield engine


def largest_difference(engine: Engine, patch: Patch) -> float:
    """Between p and q of the target as its own draft, over drafts that are mostly rejected: they are drawn
    with luck of their own."""
    begin = DraftSimple.begin

    def apart(self: DraftSimple, context: np.ndarray, surroundings: RunContext) -> None:
        begin(self, context, dataclasses.replace(surroundings, shares_luck=False))

    patch.setattr(DraftSimple, "begin", apart)
    trace = answer(
        engine,
        strategy="draft-simple:n_max=4:sample=1:verify=match",
        sampling=Sampling(temperature=1, seed=5),
        max_tokens=60,
        ignore_eos=True,
    )
    drafted = [token for round in trace.rounds for token in round.drafted]
    assert sum(token.verdict is Verdict.REJECTED for token in drafted) > 20
    return max(abs(token.q - token.p) for token in drafted if token.p is not None)


def test_a_draft_that_is_rolled_back_has_the_targets_q(self_draft: Engine, monkeypatch: Patch) -> None:
    assert largest_difference(self_draft, monkeypatch) < 5e-3


def test_the_target_as_its_own_draft_with_the_same_luck_is_right_but_for_rounding(self_draft: Engine) -> None:
    trace = answer(
        self_draft,
        strategy="draft-simple:n_max=4:sample=1:verify=match",
        sampling=Sampling(temperature=1, seed=5),
        max_tokens=60,
        ignore_eos=True,
    )
    drafted = [token for round in trace.rounds for token in round.drafted]
    refused = [token.race.gap for token in drafted if token.verdict is Verdict.REJECTED and token.race]
    assert sum(token.verdict is Verdict.ACCEPTED for token in drafted) > 30
    assert len(refused) <= 1 and all(gap < 0.02 for gap in refused)


def test_a_draft_that_is_not_rolled_back_has_another(self_draft: Engine, monkeypatch: Patch) -> None:
    no_rollback(monkeypatch, self_draft.draft)
    assert largest_difference(self_draft, monkeypatch) > 0.1
