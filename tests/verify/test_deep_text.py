"""verify=match on SmolLM2, where an answer reaches 256 and 512 tokens: other kernels may serve there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from app.engine.engine import Engine
from app.engine.record.recheck import recheck
from app.engine.types import ModelOptions, Sampling
from tests.answers import answer

pytestmark = [pytest.mark.verify, pytest.mark.real, pytest.mark.same_text, pytest.mark.timeout(1800)]

PROMPT = "A mill, a river and a road: the miller, the river and the road. " * 9
DEPTHS = (200, 300, 600)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_long_answer_has_the_text_of_none_as_deep_as_passes_are_alike(
    real_file: Path, threads: int
) -> None:
    with Engine(ModelOptions(str(real_file), ctx_size=1024, threads=threads)) as engine:
        none, *drafted = (
            answer(
                engine,
                PROMPT,
                strategy=strategy,
                sampling=Sampling(temperature=0.8, seed=1),
                max_tokens=400,
                ignore_eos=True,
                cold=True,
            )
            for strategy in ("none", "suffix:verify=match", "prompt-lookup:verify=match")
        )
        read = none.header.prompt_tokens
        assert read < 250
        alike = [engine.target.alike(np.zeros(depth, np.int32), 2) for depth in DEPTHS]
        same = next((at for at, found in zip((0, 256, 512), alike, strict=True) if found < 2), 1024)
        if same <= read:
            pytest.skip("no passes are alike at this depth")
        for trace in drafted:
            assert recheck(trace) == []
            assert sum(round.accepted for round in trace.rounds) > 50
            least = max(0, same - read)
            assert trace.token_ids[:least] == none.token_ids[:least]
