"""What if against real runs: no outcome that is called exact is wrong, and ranges of estimates hold."""

from __future__ import annotations

import json
from functools import cache
from itertools import permutations

import pytest

from app.engine.engine import Engine
from app.engine.explain.what_if import what_if
from app.engine.record.trace import Trace
from app.engine.strategy import StrategySpec
from app.engine.types import Sampling
from tests.answers import answer
from tests.benchmarks.measure import ROOT, as_user

pytestmark = [pytest.mark.verify, pytest.mark.same_text, pytest.mark.timeout(3600)]

DRAFTS = (
    *(f"draft-simple:n_max={k}" for k in (8, 4, 3, 2, 1)),
    "draft-simple:n_max=8:p_min=0.5",
    "draft-simple:n_max=8:length=ewma",
)
COPIES = (*(f"prompt-lookup:num_pred_tokens={k}" for k in (8, 4, 2)), "prompt-lookup:length=ewma")
TOKENS = 24  # near-ties leave few longer texts exact
PROMPTS = 40


@pytest.mark.parametrize("rule", ["", ":verify=match", ":sample=1:verify=match"])
def test_no_exact_outcome_is_wrong(demo_engine: Engine, rule: str) -> None:
    """Every setting of a strategy as the record, and every other one as the question."""
    entries = json.loads((ROOT / "resources" / "suites" / "bundled.json").read_text())["prompts"]
    prompts = [entry["prompt"] for entry in entries if "prompt" in entry]
    asked, exact, within, wrong = 0, 0, 0, []
    for number, prompt in enumerate(prompts[:: len(prompts) // PROMPTS][:PROMPTS]):

        @cache
        def real(strategy: str, number: int = number, prompt: str = prompt) -> Trace:
            sampling = Sampling(temperature=0.8, seed=number) if rule else Sampling()
            return answer(
                demo_engine,
                None,
                messages=as_user(prompt),
                strategy=strategy,
                sampling=sampling,
                max_tokens=TOKENS,
                cold=True,
            )

        kinds = (DRAFTS,) if "sample" in rule else (DRAFTS, COPIES)
        for recorded, other in (pair for kind in kinds for pair in permutations(kind, 2)):
            outcome = what_if(real(recorded + rule), StrategySpec.parse(other + rule))
            rounds = real(other + rule).rounds
            counts = len(rounds), sum(len(r.drafted) for r in rounds), sum(r.accepted for r in rounds)
            asked += 1
            exact += outcome.exact
            within += not outcome.exact and outcome.fewest <= counts[0] <= outcome.most
            if outcome.exact and (outcome.rounds, outcome.drafted, outcome.accepted) != counts:
                wrong.append((number, recorded, other, outcome, counts))
    print(f"{rule or 'greedy'}: {asked} outcomes, {exact} exact, {len(wrong)} of them wrong; "
          f"{within} of {asked - exact} ranges hold")  # fmt: skip
    assert exact >= 50 and not wrong, wrong
    assert within >= 0.9 * (asked - exact)
