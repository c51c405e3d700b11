"""Pairs with the vocabularies of real models: every strategy, and every draft for every target.

A few of each are in tests/engine/test_real_pairs.py.
"""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from app.engine.engine import Engine
from app.engine.types import GenerationRequest, Sampling
from tests.equality import NGRAMS, RULES, STRATEGIES, Baselines
from tests.files.llama_models import PROMPT, VOCABULARIES, assert_drafts_the_text, real_pair, write_text_model

pytestmark = [pytest.mark.verify, pytest.mark.timeout(3600)]

KINDS = STRATEGIES | NGRAMS
FILTERS = partial(Sampling, temperature=0.8, top_k=40, top_p=0.95, min_p=0.05, repeat_penalty=1.1)


@pytest.fixture(scope="module", params=VOCABULARIES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with real_pair(tmp_path_factory.mktemp("pair"), request.param) as engine:
        yield engine


@pytest.mark.parametrize("kind", KINDS)
def test_every_strategy_is_the_baseline(pair: Engine, baselines: Baselines, kind: str) -> None:
    greedy = GenerationRequest(prompt=PROMPT, max_tokens=48, ignore_eos=True)
    for k in (1, 4, 16):
        for rule in RULES:
            baselines.check(pair, greedy, KINDS[kind].format(k=k) + rule)
    for seed in range(3):
        request = replace(greedy, sampling=FILTERS(seed=seed))
        baselines.check(pair, request, KINDS[kind].format(k=4) + ":verify=match")


@pytest.fixture(scope="module")
def text_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """Models that write the same text, by the name of their vocabulary."""
    folder = tmp_path_factory.mktemp("text")
    yield functools.cache(lambda name: write_text_model(folder, name))
    shutil.rmtree(folder)


@pytest.mark.parametrize("target", VOCABULARIES)
def test_every_draft_serves_every_target(
    text_files: Callable[[str], Path], baselines: Baselines, target: str
) -> None:
    engine: Engine | None = None
    for draft in VOCABULARIES:
        engine = Engine(text_files(target), text_files(draft), previous=engine)
        assert_drafts_the_text(engine, baselines)
    assert engine is not None
    engine.close()
