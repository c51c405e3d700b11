"""One context: rollback against a fresh decode, passes of any size, stopping; for every kind of memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from app.engine.errors import ModelFileError
from app.engine.native import SNAPSHOTS, AbortFlag, Cancelled, Context, Model
from app.engine.native.model import quantise
from app.engine.types import ModelOptions
from tests.files.tiny import Tiny

CLOSE = 2e-3  # logits are about 10; float rounding of other batch shapes stays far below
MEMORIES = ["llama", "gemma3", "gemma3 small", "mamba", "lfm2", "lfm2 small", "qwen35"]
"""small: a sliding window's cache holds little more than the window; no snapshots of recurrent states."""


class Two:
    """Two contexts over one model: the tested one, and one that always starts empty."""

    def __init__(self, model: Model, options: ModelOptions, snapshots: int = SNAPSHOTS) -> None:
        self.abort = AbortFlag()
        self.context = Context(model, options, self.abort, snapshots)
        self._fresh = Context(model, options, AbortFlag())

    def fresh(self, ids: np.ndarray, rows: int = 1) -> np.ndarray:
        """Logits after the last `rows` of `ids`, from an empty cache."""
        self._fresh.clear()
        return self._fresh.decode(np.asarray(ids, np.int32), logits=rows).copy()

    def close(self) -> None:
        self.context.close()
        self._fresh.close()


@pytest.fixture(params=MEMORIES)
def two(request: pytest.FixtureRequest, tiny_file: Callable[[Tiny], Path]) -> Iterator[Two]:
    architecture, _, small = request.param.partition(" ")
    path = tiny_file(Tiny(name=architecture, architecture=architecture, n_ctx=2048, window=16))
    options = ModelOptions(str(path), ctx_size=1024, batch_size=64, ubatch_size=32, swa_full=not small)
    model = Model(options)
    both = Two(model, options, 0 if small else SNAPSHOTS)
    yield both
    both.close()
    model.close()


@pytest.fixture
def plain(tiny_file: Callable[[Tiny], Path]) -> Iterator[Two]:
    options = ModelOptions(str(tiny_file(Tiny(name="plain", n_ctx=2048))), ctx_size=1024, batch_size=16)
    model = Model(options)
    both = Two(model, options)
    yield both
    both.close()
    model.close()


def tokens(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 250, n).astype(np.int32)


def test_rollback_is_as_good_as_a_fresh_decode(two: Two) -> None:
    """Random edits: the text is cut at random places and continued differently, as by edits and drafts."""
    random = np.random.default_rng(1)
    text = tokens(40)
    for step in range(40):
        keep = int(random.integers(0, len(text))) if step % 4 else max(0, len(text) - 3)
        text = np.concatenate([text[:keep], random.integers(0, 250, random.integers(1, 60)).astype(np.int32)])
        text = text[:900]
        start = two.context.sync(text[:-1])
        assert start <= len(text) - 1
        rows = two.context.decode(text[start:], logits=1)
        np.testing.assert_allclose(rows, two.fresh(text), atol=CLOSE)
        assert two.context.n_cached == len(text)


def test_a_long_text_is_cut_far_back(two: Two) -> None:
    """With more text than a small sliding window's cache holds, lost tokens are decoded again."""
    text = tokens(700)
    two.context.decode(text)
    for keep in (690, 500, 300, 10, 0):
        changed = np.concatenate([text[:keep], tokens(5, seed=keep)])
        start = two.context.sync(changed[:-1])
        rows = two.context.decode(changed[start:], logits=1)
        np.testing.assert_allclose(rows, two.fresh(changed), atol=CLOSE)
        two.context.sync(text[:keep])
        two.context.decode(text[two.context.n_cached :])


def test_sync_keeps_the_longest_common_prefix(plain: Two) -> None:
    text = tokens(30)
    plain.context.decode(text)
    assert plain.context.sync(text) == 30
    assert plain.context.sync(text[:20]) == 20
    changed = text.copy()
    changed[7] += 1
    assert plain.context.sync(changed) == 7
    assert plain.context.sync(tokens(5, seed=9)) == 0
    assert plain.context.sync(np.empty(0, np.int32)) == 0


@pytest.mark.parametrize(
    ("n", "rows"),
    [(1, 1), (15, 5), (16, 1), (16, 16), (17, 1), (17, 5), (17, 16), (31, 16), (32, 5), (33, 16), (100, 7)],
)
def test_passes_of_any_length_give_the_same_rows(plain: Two, n: int, rows: int) -> None:
    text = tokens(n)
    got = plain.context.decode(text, logits=rows)
    assert got.shape == (rows, 259)
    for place in range(rows):
        end = n - rows + place + 1
        np.testing.assert_allclose(got[place], plain.fresh(text[:end])[0], atol=CLOSE)


def test_no_rows_are_computed_where_none_are_wanted(plain: Two) -> None:
    assert plain.context.decode(tokens(20)).shape == (0, 259)
    assert plain.context.decode(tokens(0)).shape == (0, 259)
    assert plain.context.n_cached == 20


def test_a_context_takes_as_many_tokens_as_it_says(plain: Two) -> None:
    text = tokens(plain.context.n_ctx)
    rows = plain.context.decode(text, logits=1)
    np.testing.assert_allclose(rows, plain.fresh(text), atol=CLOSE)
    with pytest.raises(RuntimeError, match="llama_decode answered"):
        plain.context.decode(tokens(1))
    assert plain.context.n_cached == len(text)


@pytest.mark.usefixtures("each_way")
def test_seconds_count_the_native_passes(plain: Two) -> None:
    started = time.perf_counter()
    plain.context.decode(tokens(200), logits=1)
    read = plain.context.seconds
    assert 0 < read <= time.perf_counter() - started
    plain.context.best(tokens(1), 259)
    assert read < plain.context.seconds <= time.perf_counter() - started


@pytest.mark.usefixtures("each_way")
def test_the_best_logits_are_those_of_the_last_token(two: Two) -> None:
    """After passes of any length, rollbacks, and of a part of the vocabulary."""
    text = tokens(200)
    for length, size in ((150, 259), (151, 259), (155, 100), (140, 7), (141, 259)):
        start = two.context.sync(text[: length - 1])
        ((ids, logits),) = two.context.best(text[start:length], size)
        assert two.context.n_cached == length
        row = two.fresh(text[:length])[0, :size]
        assert len(ids) == len(set(ids)) == min(size, 10)
        np.testing.assert_allclose(logits, np.sort(row)[::-1][:10], atol=CLOSE)
        np.testing.assert_allclose(logits, row[ids], atol=CLOSE)


@pytest.mark.usefixtures("each_way")
def test_a_stop_before_the_best_are_known_keeps_the_cache_true(two: Two) -> None:
    text = tokens(60)
    two.context.decode(text[:50])
    two.abort.set()
    with pytest.raises(Cancelled):
        two.context.best(text[50:], 259)
    two.abort.clear()
    start = two.context.sync(text[:-1])
    ((_, logits),) = two.context.best(text[start:], 259)
    np.testing.assert_allclose(logits, np.sort(two.fresh(text)[0])[::-1][:10], atol=CLOSE)


@pytest.mark.usefixtures("each_way")
def test_a_greedy_draft_is_the_one_made_token_by_token(two: Two) -> None:
    text, drafted = tokens(50), []
    rows = []
    while len(drafted) < 40:  # more than one call makes
        ids = np.concatenate([text, np.array(drafted, np.int32)])
        made = two.context.best(ids[two.context.sync(ids[:-1]) :], 259, 40 - len(drafted))
        assert made
        rows += made
        drafted += [found[0] for found, _ in made]
        assert two.context.n_cached == len(text) + len(drafted) - 1
    one_by_one = text
    for places, logits in rows:
        row = two.fresh(one_by_one)[0]
        np.testing.assert_allclose(logits, np.sort(row)[::-1][:10], atol=CLOSE)
        np.testing.assert_allclose(logits, row[places], atol=CLOSE)
        one_by_one = np.append(one_by_one, np.int32(places[0]))


@pytest.mark.usefixtures("each_way")
def test_a_draft_beyond_the_context_leaves_what_fits(plain: Two) -> None:
    text = tokens(plain.context.n_ctx - 2)
    plain.context.decode(text[:-1])
    ids = text[-1:]
    with pytest.raises(RuntimeError, match="llama_decode answered"):
        for _ in range(4):
            ids = np.array([plain.context.best(ids, 259, 4)[-1][0][0]], np.int32)
    assert plain.context.n_cached == plain.context.n_ctx
    rows = plain.context.decode(text[plain.context.sync(text[:-1]) :], logits=1)
    np.testing.assert_allclose(rows, plain.fresh(text), atol=CLOSE)


@pytest.mark.usefixtures("each_way")
def test_a_full_context_has_no_best(plain: Two) -> None:
    text = tokens(plain.context.n_ctx)
    plain.context.decode(text)
    with pytest.raises(RuntimeError, match="llama_decode answered"):
        plain.context.best(tokens(1), 259)
    assert plain.context.n_cached == len(text)


def test_a_set_flag_stops_a_pass_and_the_cache_stays_true(two: Two) -> None:
    text = tokens(300)
    two.context.decode(text[:100])
    two.abort.set()
    with pytest.raises(Cancelled):
        two.context.decode(text[100:])
    assert two.context.n_cached <= len(text)
    two.abort.clear()
    start = two.context.sync(text[:-1])
    rows = two.context.decode(text[start:], logits=1)
    np.testing.assert_allclose(rows, two.fresh(text), atol=CLOSE)


def test_a_pass_is_stopped_from_another_thread_at_any_moment(two: Two) -> None:
    text = tokens(600)
    stopped = 0
    for attempt in range(8):
        two.abort.clear()
        timer = threading.Timer(0.0002 * 1.8**attempt, two.abort.set)
        timer.start()
        try:
            start = two.context.sync(text[:-1])
            two.context.decode(text[start:])
        except Cancelled:
            stopped += 1
        timer.join()
        two.abort.clear()
        start = two.context.sync(text[:-1])
        rows = two.context.decode(text[start:], logits=1)
        np.testing.assert_allclose(rows, two.fresh(text), atol=CLOSE)
        two.context.sync(text[: 70 * attempt])
    assert stopped > 0


def test_a_model_without_memory_is_refused(tiny_file: Callable[[Tiny], Path]) -> None:
    """Diffusion and embedding models: llama.cpp runs them, but they do not write token by token."""
    options = ModelOptions(str(tiny_file(Tiny(name="llada", architecture="llada"))))
    model = Model(options)
    with pytest.raises(ModelFileError, match=r"llada.*\.gguf does not write text token by token\."):
        Context(model, options, AbortFlag())
    model.close()


def test_a_context_that_cannot_be_made_says_why(tiny_file: Callable[[Tiny], Path]) -> None:
    path = str(tiny_file(Tiny(name="plain", n_ctx=2048)))
    options = ModelOptions(path, flash_attn="off", cache_type_v="q8_0")
    model = Model(options)
    with pytest.raises(ModelFileError) as refused:
        Context(model, options, AbortFlag())
    assert "plain" in refused.value.message
    assert "cache type" in refused.value.hint
    model.close()


def test_closing_twice_is_closing_once(plain: Two) -> None:
    plain.context.close()
    plain.context.close()
    assert plain.context.handle is None


def test_a_pass_gives_as_many_rows_as_it_takes_tokens(tiny_file: Callable[[Tiny], Path]) -> None:
    """The longest draft, of n_batch - 1 tokens, and the token before it."""
    options = ModelOptions(str(tiny_file(Tiny(name="plain", n_ctx=2048))), ctx_size=1280, batch_size=1100)
    model = Model(options)
    both = Two(model, options)
    try:
        text = tokens(both.context.n_batch)
        rows = both.context.decode(text, logits=len(text))
        assert len(rows) == both.context.n_batch == 1100
        np.testing.assert_allclose(rows[-1], both.fresh(text)[-1], atol=CLOSE)
    finally:
        both.close()
        model.close()


def test_passes_that_are_alike_are_tried_at_each_depth(plain: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the cache's view grows too soon for a trial, no pass over several tokens counts as alike."""
    decode, context, text, passes = Context.decode, plain.context, tokens(600), []

    def one_by_one(self: Context, ids: np.ndarray, logits: int = 0) -> np.ndarray:
        passes.append((self.n_cached, len(ids), logits))
        others = (self.n_cached + np.arange(len(ids))) % 8 == 5  # one row in eight
        rows = np.concatenate([decode(self, ids[at : at + 1], 1).copy() for at in range(len(ids))])
        rows[others] *= 1 if self.n_cached <= 256 or logits <= widest else -1
        return rows

    widest = 3
    for at in range(0, 512, 16):
        context.decode(text[at : at + 16])
    monkeypatch.setattr(Context, "decode", one_by_one)

    def tried(n: int, most: int = 8) -> tuple[int, int]:
        """What is found after `n` tokens, and the widest pass that was tried for it."""
        passes.clear()
        found = context.alike(text[: n + 1], most)
        seen = max((wide for at, wide, logits in passes if at == n), default=0)
        if seen:
            np.testing.assert_array_equal(context.cached_ids, text[:n])
        return found, seen

    assert tried(512) == (3, 8)
    assert (tried(513), tried(513, 2)) == ((3, 0), (2, 0))
    widest = 1
    assert (tried(300), tried(256)) == ((0, 2), (0, 0))
    assert (tried(255), tried(241)) == ((1, 0), (1, 0))
    widest = 8
    assert (tried(240), tried(255)) == ((8, 8), (8, 0))


@pytest.mark.parametrize("threads", [2, 3])
def test_several_threads_have_the_equal_passes_of_one(
    tiny_file: Callable[[Tiny], Path], tmp_path: Path, threads: int
) -> None:
    """From 257 tokens on they share the attention of a single token (packaging/setup/attention.h)."""
    path = tmp_path / "q8_0.gguf"
    quantise(tiny_file(Tiny(name="plain", n_ctx=2048)), "Q8_0", path)
    text, found = tokens(601), []
    for count in (1, threads):
        options = ModelOptions(str(path), ctx_size=1024, threads=count)
        model = Model(options)
        context = Context(model, options, AbortFlag())
        for depth in (200, 300, 600):
            context.decode(text[context.n_cached : depth])
            found.append(context.alike(text[: depth + 1], 8))
        context.close()
        model.close()
    assert found[3:] == found[:3]
