"""The sampling law through the loop: 50,000 answers a seed, five seeds, for both rules that keep it, one-hot
and sampled drafts; other draft lengths, every other strategy and the bundled pair with 20,000 answers;
SmolLM2 with 2,000."""

from __future__ import annotations

import multiprocessing
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from app.engine.devices.memory import cores
from app.engine.engine import Engine
from tests.files.tiny import Tiny
from tests.law import (
    BUNDLED_CASES,
    CASES,
    HEAD_CASES,
    LENGTH_CASES,
    REAL_CASES,
    SMALL,
    STRATEGY_CASES,
    TARGET,
    Case,
    count_elsewhere,
    emitted_elsewhere,
    exact_law,
    holds,
    likely_law,
    likely_p_values,
    open_engine,
    p_values,
)

pytestmark = [pytest.mark.verify, pytest.mark.timeout(3600)]

ANSWERS = 50_000
SEEDS = range(11, 16)
PART = 5_000  # answers handed to a worker at once


@pytest.fixture(scope="module")
def workers() -> Iterator[Executor]:
    spawn = multiprocessing.get_context("spawn")
    # Two a core: a loop waits for its target pass about half of the time.
    with ProcessPoolExecutor(2 * cores(), mp_context=spawn) as pool:
        yield pool


ANSWERS_MORE = 20_000
MORE_CASES = LENGTH_CASES + STRATEGY_CASES + HEAD_CASES
ANSWERS_REAL = 2_000
COUNTS = len(CASES) * len(SEEDS) + len(MORE_CASES) + len(BUNDLED_CASES) + len(REAL_CASES)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_is_emitted_has_the_targets_law(
    workers: Executor, law_engine: Engine, tiny_file: Callable[[Tiny], Path], case: Case
) -> None:
    measure(workers, law_engine, (tiny_file(TARGET), tiny_file(case.draft)), case, ANSWERS, SEEDS)


@pytest.mark.parametrize("case", MORE_CASES, ids=str)
def test_every_length_and_strategy_keeps_the_law(
    workers: Executor, law_engine: Engine, tiny_file: Callable[[Tiny], Path], case: Case
) -> None:
    measure(workers, law_engine, (tiny_file(TARGET), tiny_file(case.draft)), case, ANSWERS_MORE, SEEDS[:1])


@pytest.mark.parametrize("case", BUNDLED_CASES, ids=str)
def test_the_bundled_pair_keeps_the_law(workers: Executor, demo_pair: tuple[Path, Path], case: Case) -> None:
    measure_likely(workers, demo_pair, case, ANSWERS_MORE)


@pytest.mark.real
@pytest.mark.parametrize("case", REAL_CASES, ids=str)
def test_smollm2_keeps_the_law(
    workers: Executor, real_file: Path, demo_pair: tuple[Path, Path], case: Case
) -> None:
    measure_likely(workers, (real_file, demo_pair[1]), case, ANSWERS_REAL)


def measure_likely(workers: Executor, files: tuple[Path, Path], case: Case, answers: int) -> None:
    """Test answers of a target of many tokens against the law of what is likely."""
    with open_engine(*files) as engine:
        law = likely_law(engine, case, SMALL / answers)
    first = sum(chance for prefix, chance in law.items() if len(prefix) == 1)
    assert len(law) > 100 and first > 0.9, "the prompt is one where many words can follow"
    part = answers // 4
    parts = [
        workers.submit(emitted_elsewhere, files, case, part, SEEDS[0], start)
        for start in range(0, answers, part)
    ]
    counts = sum((made.result() for made in parts), Counter[tuple[int, ...]]())
    assert counts.total() == answers
    values = likely_p_values(counts, law)
    print(f"{case}: {len(law)} cells, p-values {', '.join(f'{value:.3g}' for value in values)}")
    assert holds(values, COUNTS), str(values)


def measure(
    workers: Executor, engine: Engine, files: tuple[Path, Path], case: Case, answers: int, seeds: range
) -> None:
    """Test `answers` answers of each seed against the law."""
    law = exact_law(engine, case.sampling)
    parts = {
        seed: [
            workers.submit(count_elsewhere, files, case, PART, seed, first)
            for first in range(0, answers, PART)
        ]
        for seed in seeds
    }
    for seed, counted in parts.items():
        counts = np.sum([part.result() for part in counted], axis=0)
        assert counts.sum() == answers
        values = p_values(counts, law)
        print(f"{case}, seed {seed}: p-values {', '.join(f'{value:.3g}' for value in values)}")
        assert holds(values, COUNTS), f"seed {seed}: {values}"
