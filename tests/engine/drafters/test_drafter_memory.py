"""What drafters learned outlives an answer, a change of settings that do not shape it, and a cold run."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from app.engine.drafters.cache_file import Followers, LookupCache, count_ngrams
from app.engine.drafters.lookup_caches import LookupCaches
from app.engine.drafters.ngram_cache import NgramCache
from app.engine.drafters.registry import KINDS
from app.engine.engine import Engine
from app.engine.params import params_of
from app.engine.plugins import use_drafters
from app.engine.strategy import StrategySpec
from tests.answers import answer
from tests.files.drafter_files import write_drafter
from tests.files.tiny import Tiny

PROMPT = "the same words, the same words, the same words, the same words"


def warm(engine: Engine, strategy: str) -> Any:
    ((_name, drafter),) = engine.warm.of(StrategySpec.parse(strategy))
    return drafter


def earlier(engine: Engine, strategy: str = "suffix") -> int:
    """Tokens of earlier answers that suffix remembers."""
    return sum(index.size for index in warm(engine, strategy).earlier.indices)


def test_a_cold_run_leaves_what_the_warm_drafters_learned(engine: Engine) -> None:
    answer(engine, PROMPT, strategy="suffix:length=ewma", max_tokens=40, ignore_eos=True)
    answer(engine, PROMPT, strategy="ngram-mod:n_match=4:n_min=1", max_tokens=8, ignore_eos=True)
    pool = warm(engine, "ngram-mod:n_match=4:n_min=1").pool
    before = earlier(engine), pool.occupancy, dict(engine.warm.lengths)
    lengths = [vars(length).copy() for length in engine.warm.lengths.values()]
    assert before[0] > 40 and before[1] > 0
    for strategy in ("none", "suffix:length=ewma", "ngram-mod:n_match=4:n_min=1"):
        cold = answer(engine, PROMPT, strategy=strategy, max_tokens=40, ignore_eos=True, cold=True)
        assert (cold.header.cold, cold.header.cached_tokens) == (True, 0)
    assert (earlier(engine), pool.occupancy, engine.warm.lengths) == before
    assert [vars(length) for length in engine.warm.lengths.values()] == lengths


@pytest.mark.same_text
def test_cold_runs_are_alike_whatever_was_learned_before(engine: Engine) -> None:
    def drafts() -> list[tuple[int, ...]]:
        trace = answer(engine, PROMPT, strategy="suffix", max_tokens=40, ignore_eos=True, cold=True)
        return [tuple(token.id for token in round.drafted) for round in trace.rounds]

    first = drafts()
    answer(engine, PROMPT, strategy="suffix", max_tokens=40, ignore_eos=True)
    assert drafts() == first
    assert drafts() == first


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ngram-mod:n_max=64", "ngram-mod:n_max=32:n_min=2"),
        ("suffix", "suffix:n_max=8:p_min=0.5:max_spec_factor=2:max_spec_offset=1"),
        ("ngram-cache", "ngram-cache:n_draft=3"),
        ("ngram-map-k", "ngram-map-k:min_hits=2"),
        ("ngram-map-k4v", "ngram-map-k4v:min_hits=2"),
        ("prompt-lookup", "prompt-lookup:max_ngram_size=5:num_pred_tokens=2"),
        ("ngram-simple", "ngram-simple:size_n=4:size_m=8"),
        ("draft-simple", "draft-simple:n_max=5:p_min=0.25:sample=1"),
    ],
)
def test_another_setting_that_does_not_shape_the_memory_goes_on_with_it(
    engine: Engine, before: str, after: str
) -> None:
    first = warm(engine, before)
    assert warm(engine, after) is first
    fresh = engine.new_drafter(StrategySpec.parse(after).parts[0])
    for name in ("_params", "_n_draft", "_min_hits"):
        assert getattr(first, name, None) == getattr(fresh, name, None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ngram-mod", "ngram-mod:n_match=8"),
        ("suffix", "suffix:max_depth=8"),
        ("suffix", "suffix:max_cached_tokens=8"),
        ("ngram-map-k", "ngram-map-k:size_m=8"),
    ],
)
def test_a_setting_that_shapes_the_memory_has_another(engine: Engine, before: str, after: str) -> None:
    assert warm(engine, after) is not warm(engine, before)


def test_a_strategy_keeps_two_memories_at_most(engine: Engine) -> None:
    """Keeping one for every setting ever tried would take up to 126 MB each."""
    pools = [weakref.ref(warm(engine, f"ngram-mod:n_match={n}").pool) for n in range(20, 30)]
    gc.collect()
    assert [pool() is not None for pool in pools] == [False] * 8 + [True] * 2
    used_again = warm(engine, "ngram-mod:n_match=28")
    warm(engine, "ngram-mod:n_match=30")
    assert warm(engine, "ngram-mod:n_match=28") is used_again


def test_static_files_are_kept_two_at_most(tmp_path: Path) -> None:
    caches = LookupCaches()
    read = [weakref.ref(caches.static(str(saved(tmp_path / f"{n}.bin", 1, 2, n)), 50)) for n in range(4)]
    gc.collect()
    assert [cache() is not None for cache in read] == [False, False, True, True]


@pytest.mark.same_text
@pytest.mark.parametrize(
    "changed", ["prompt-lookup:max_ngram_size=1", "ngram-simple:size_n=2:size_m=4", "draft-simple:n_max=5"]
)
def test_one_that_remembers_nothing_drafts_by_its_new_settings(engine: Engine, changed: str) -> None:
    def drafts(cold: bool) -> list[tuple[int, ...]]:
        trace = answer(engine, PROMPT, strategy=changed, max_tokens=40, ignore_eos=True, cold=cold)
        return [tuple(token.id for token in round.drafted) for round in trace.rounds]

    expected = drafts(cold=True)
    assert any(expected)
    name, _, _ = changed.partition(":")
    answer(engine, PROMPT, strategy=name, max_tokens=40, ignore_eos=True)
    assert drafts(cold=False) == expected


def test_a_shorter_draft_is_drafted_from_the_same_pool(engine: Engine) -> None:
    """As the user moves n_max in the window, in the middle of a chat."""
    spec = "ngram-mod:n_match=4:n_min=1"
    answer(engine, PROMPT, strategy=spec, max_tokens=8, ignore_eos=True)
    pool = warm(engine, spec).pool
    answer(engine, PROMPT, strategy=f"{spec}:n_max=2", max_tokens=8, ignore_eos=True)
    assert warm(engine, f"{spec}:n_max=2").pool is pool
    assert pool.occupancy > 0


@pytest.mark.parametrize(
    "name", [kind.name for kind in KINDS.values() if kind.memory is not None and not kind.needs_mtp]
)
def test_memory_names_parameters_and_can_be_adjusted(engine: Engine, name: str) -> None:
    kind = KINDS[name]
    assert kind.memory is not None
    assert set(kind.memory) < {param.name for param in params_of(kind.params)}
    warm(engine, kind.name).adjust(kind.params())


@pytest.mark.usefixtures("known_strategies")
def test_the_drafter_of_a_kind_that_is_gone_goes_too(engine: Engine, tmp_path: Path) -> None:
    file = str(write_drafter(tmp_path))
    assert not use_drafters([file])
    engine.warm.of(StrategySpec.parse("none"))  # other tests leave theirs
    before = len(engine.warm)
    warm(engine, "echo")
    assert len(engine.warm) == before + 1
    assert not use_drafters([])
    engine.warm.of(StrategySpec.parse("none"))
    assert len(engine.warm) == before


@pytest.mark.usefixtures("known_strategies")
def test_a_plug_in_may_name_what_shapes_its_memory(engine: Engine, tmp_path: Path) -> None:
    body = """
def adjust(self, params):
    self.params = params

def propose(self, context, k):
    return Proposal(ids=[int(context[-1])] * min(k, self.params.n_max))
"""
    file = write_drafter(tmp_path, body)
    file.write_text(file.read_text().replace("make=Mine", "memory=(), make=Mine"))
    assert not use_drafters([str(file)])
    echo = warm(engine, "echo:n_max=2")
    inside = echo.drafter
    assert warm(engine, "echo:n_max=3") is echo
    assert (echo.drafter, inside.params.n_max) == (inside, 3)
    wrong = write_drafter(tmp_path, name="other", file="other.py")
    wrong.write_text(wrong.read_text().replace("make=Mine", "memory=('speed',), make=Mine"))
    (problem,) = use_drafters([str(file), str(wrong)]).values()
    assert "its memory is not a tuple of names of its parameters" in str(problem)


# ------------------------------------------------------------------------------------ lookup caches


def saved(path: Path, *tokens: int) -> Path:
    counts: dict[bytes, Followers] = {}
    count_ngrams(counts, np.array(tokens, np.int32))
    path.write_bytes(LookupCache.empty().merged(counts))
    return path


def test_a_static_file_is_read_once_and_again_where_it_changed(tmp_path: Path) -> None:
    caches = LookupCaches()
    path = saved(tmp_path / "static.bin", 1, 2, 3)
    first = caches.static(str(path), 50)
    assert caches.static(str(path), 50) is first
    saved(path, 1, 2, 3, 4)
    assert len(caches.static(str(path), 50)) > len(first)


def test_a_cold_run_does_not_find_its_answer_in_the_dynamic_file(tmp_path: Path) -> None:
    """The repeated answer of a measurement is not counted a second time."""
    caches, path = LookupCaches(), str(tmp_path / "dynamic.bin")
    params = KINDS["ngram-cache"].params(lookup_cache_dynamic=path)
    text = np.array([1, 2, 3, 1, 2, 3], np.int32)
    NgramCache(params, 50, caches).finish(text)
    written = Path(path).read_bytes()
    again = NgramCache(params, 50, caches)
    assert again.propose(text[:3], 4).ids == NgramCache(type(params)(), 50).propose(text[:3], 4).ids == []
    again.finish(text)
    assert Path(path).read_bytes() == written


def test_another_draft_leaves_the_dynamic_file_as_it_was(
    pair_files: tuple[Path, Path], tiny_file: Callable[[Tiny], Path], tmp_path: Path
) -> None:
    path = tmp_path / "dynamic.bin"
    strategy = f"ngram-cache:lookup_cache_dynamic={quote(str(path))}"
    target, draft = pair_files
    alone = Engine(target)
    answer(alone, PROMPT, strategy=strategy, max_tokens=20, ignore_eos=True)
    assert path.stat().st_size
    with Engine(target, draft, previous=alone) as both:
        assert not len(warm(both, strategy).dynamic)
        other = tiny_file(Tiny(name="other", n_ctx=512))
        with Engine(other, previous=both) as another:
            assert len(warm(another, strategy).dynamic), "another model's session begins here"


def test_what_kinds_keep_is_what_their_summaries_say() -> None:
    for kind in KINDS.values():
        assert (" kB of memory per token" in kind.summary) == bool(kind.keeps.per_token), kind.name
        if kind.keeps.per_token:
            assert f"{kind.keeps.per_token / 1000:g} kB of memory per token" in kind.summary, kind.name
    assert KINDS["ngram-mod"].memory_at(None, 8192) == 120 * 2**20
