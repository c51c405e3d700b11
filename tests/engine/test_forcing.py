"""Teacher forcing: α is what the distributions say, and what a sampled draft's acceptance comes to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace as replace_struct

from app.engine import forcing
from app.engine.engine import Engine
from app.engine.errors import PromptError, SettingError, UserError
from app.engine.process.messages import ForcedText
from app.engine.sampling.distribution import Distribution
from app.engine.types import GenerationRequest, ModelOptions, Sampling
from tests.answers import answer
from tests.files.tiny import Tiny
from tests.samplings import each_switched_on, sampler_of

PROMPT = "abcabcabd abc"


def text_of(engine: Engine, temperature: float, max_tokens: int = 60) -> ForcedText:
    sampling = Sampling(temperature=temperature, seed=5)
    request = GenerationRequest(prompt=PROMPT, sampling=sampling, max_tokens=max_tokens, ignore_eos=True)
    made = answer(engine, PROMPT, sampling=sampling, max_tokens=max_tokens, ignore_eos=True)
    return ForcedText(request, made.token_ids)


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_model_agrees_with_itself(pair_files: tuple[Path, Path], temperature: float) -> None:
    with Engine(pair_files[0], pair_files[0]) as engine:
        (found,) = engine.force((text_of(engine, temperature),)).agreements
    assert found.places == 60
    assert found.same_best == 60
    assert found.overlap == pytest.approx(60, abs=0.01)


def test_greedy_overlap_counts_equal_best_tokens(engine: Engine) -> None:
    (found,) = engine.force((text_of(engine, 0.0),)).agreements
    assert found.overlap == found.same_best
    assert 0 <= found.same_best <= found.places == 60


def test_alpha_is_the_chance_that_a_sampled_draft_passes(engine: Engine) -> None:
    """Against real runs: at each place a draft of one token, drawn from q, passes with Σ min(p, q)."""
    sampling = Sampling(temperature=1.0, seed=5)
    made = answer(
        engine,
        PROMPT,
        strategy="draft-simple:n_max=1:sample=1",
        sampling=sampling,
        max_tokens=400,
        ignore_eos=True,
    )
    judged = [token for round in made.rounds for token in round.drafted]
    passed = sum(token.verdict == "accepted" for token in judged)
    text = ForcedText(GenerationRequest(prompt=PROMPT, sampling=sampling, max_tokens=400), made.token_ids)
    (found,) = engine.force((text,)).agreements
    alpha = found.overlap / found.places
    spread = (alpha * (1 - alpha) / len(judged)) ** 0.5
    assert abs(passed / len(judged) - alpha) < 5 * spread + 0.02


def test_a_text_longer_than_a_batch_is_read_in_parts(engine: Engine, pair_files: tuple[Path, Path]) -> None:
    text = text_of(engine, 0.9, 200)
    with Engine(ModelOptions(str(pair_files[0]), batch_size=32), pair_files[1]) as small:
        (found,) = small.force((text,)).agreements
    (expected,) = engine.force((text,)).agreements
    assert (found.places, found.same_best) == (200, expected.same_best)
    assert found.overlap == pytest.approx(expected.overlap, abs=0.1)


def test_ends_that_were_ignored_are_no_tokens(engine: Engine) -> None:
    text = text_of(engine, 2.0)
    ended = ForcedText(replace(text.request, ignore_eos=False), text.answer)
    (ignored,), (counted,) = (engine.force((each,)).agreements for each in (text, ended))
    assert ignored.overlap != counted.overlap


@pytest.mark.parametrize("padded", ["target", "draft"])
def test_a_padded_vocabulary_changes_nothing(
    engine: Engine, tiny_file: Callable[[Tiny], Path], pair_files: tuple[Path, Path], padded: str
) -> None:
    text = text_of(engine, 0.9)
    sampling = Sampling(temperature=0.9, repeat_penalty=1.3)
    text = replace_struct(text, request=replace(text.request, sampling=sampling))
    wide = tiny_file(Tiny(name="wide", padding=8))
    size = engine.vocabulary.size
    with Engine(*((wide, pair_files[1]) if padded == "target" else (pair_files[0], wide))) as pair:
        (found,) = pair.force((text,)).agreements
        assert found.places == 60 and 0 < found.overlap < 60
        lacking = replace_struct(text, answer=(*text.answer, size))
        if padded == "target":
            with pytest.raises(SettingError, match="the draft lacks"):
                pair.force((lacking,))


def test_a_draft_of_no_numbers_is_no_bad_draft(engine: Engine, tiny_file: Callable[[Tiny], Path]) -> None:
    broken = tiny_file(Tiny(name="broken", broken=True))
    with Engine(engine.pair.target.path, broken) as pair, pytest.raises(UserError, match="gives NaN"):
        pair.force((text_of(engine, 0.9),))


def test_passes_are_timed_and_the_caches_left_empty(engine: Engine) -> None:
    seconds = engine.force((text_of(engine, 0.0),)).seconds
    assert sorted(seconds.target) == [*range(1, 10), 17]
    assert all(value > 0 for value in (*seconds.target.values(), seconds.draft))
    assert answer(engine, PROMPT, max_tokens=4).header.cached_tokens == 0


def test_passes_alone_are_timed_and_the_caches_keep_what_they_hold(engine: Engine) -> None:
    answer(engine, "abc" * 10, max_tokens=8, strategy="draft-simple")
    held = engine.target.cached_ids
    found = engine.force(()).seconds
    assert sorted(found.target) == [*range(1, 10), 17] and found.draft > 0
    assert (engine.target.cached_ids == held).all() and len(held) > 30
    engine.reset()
    assert engine.force(()).seconds.target and not len(engine.target.cached_ids)


def test_times_that_are_not_plausible_are_taken_again(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At first a pass over two tokens seems to take 3.7 single ones; the second time says 1.4."""
    taken: list[int] = []

    def timed(context: object, held: object, ids: np.ndarray[tuple[int], np.dtype[np.int32]]) -> float:
        taken.append(len(ids))
        busy = context is engine.target and len(taken) <= 110 and len(ids) > 1
        return (0.01 + 0.004 * (len(ids) - 1)) * (3.7 / 1.4 if busy else 1.0)

    monkeypatch.setattr(forcing, "_timed", timed)
    found = engine.force(()).seconds
    assert len(taken) == 220 and found.target[2] == pytest.approx(0.014)
    assert found.error == pytest.approx(3.7 / 1.4 - 1)
    taken.clear()
    monkeypatch.setattr(forcing, "_timed", lambda _context, _held, ids: 0.01 + 0.004 * (len(ids) - 1))
    assert engine.force(()).seconds.error is None
    monkeypatch.setattr(forcing, "_SECONDS", 0.0)
    monkeypatch.setattr(forcing, "_timed", timed)
    taken += [1] * 110  # not busy any more
    assert engine.force(()).seconds.target[17] and len(taken) == 132, "a slow target: one turn"


def test_passes_of_a_target_alone_are_timed(pair_files: tuple[Path, Path]) -> None:
    with Engine(pair_files[0]) as alone:
        timed = alone.force((ForcedText(GenerationRequest(prompt=PROMPT), ()),))
    assert timed.agreements == () and timed.seconds.draft == 0
    assert sorted(timed.seconds.target) == [*range(1, 10), 17] and min(timed.seconds.target.values()) > 0


def test_what_cannot_be_compared_is_said(pair_files: tuple[Path, Path]) -> None:
    with Engine(pair_files[0]) as alone, pytest.raises(SettingError, match="no draft model"):
        alone.force((text_of(alone, 0.0),))
    small = ModelOptions(str(pair_files[1]), ctx_size=256)
    with Engine(pair_files[0], small) as engine:
        long = ForcedText(GenerationRequest(prompt=PROMPT), tuple([65] * 300))
        with pytest.raises(PromptError, match="313 tokens, but the context has room for 256"):
            engine.force((long,))


def test_a_draft_of_another_vocabulary_is_refused(
    pair_files: tuple[Path, Path], tiny_file: Callable[[Tiny], Path]
) -> None:
    other = tiny_file(Tiny(name="other", letters="zyxwvu"))
    with Engine(pair_files[0], other) as engine, pytest.raises(UserError, match="through text"):
        engine.force((text_of(engine, 0.0),))


def test_overlap_is_the_same_dense_and_sparse() -> None:
    p, q = np.array([0.5, 0.3, 0.2, 0], np.float32), np.array([0.1, 0, 0.6, 0.3], np.float32)
    dense = Distribution(p), Distribution(q)
    sparse = (Distribution(p[:3], np.array([0, 1, 2])), Distribution(q[[0, 2, 3]], np.array([0, 2, 3])))
    for first in (dense[0], sparse[0]):
        for second in (dense[1], sparse[1]):
            assert first.overlap(second) == pytest.approx(0.3)
            assert second.overlap(first) == pytest.approx(0.3)


def test_without_its_filters_a_request_keeps_every_token() -> None:
    for name, sampling in each_switched_on():
        request = forcing.unfiltered(GenerationRequest(prompt="a", sampling=sampling))
        assert sampler_of(request.sampling).keeps_all, f"{name} is no filter of forcing"
