"""Memories that cannot be cut: tokens decoded again after a rejection, an edit or a stop; and equality.

Recurrent (mamba), hybrid with snapshots (lfm2, qwen35; longer drafts go without), sliding windows in full and
as small as they get (gemma3); each as target and as draft.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import pytest

from app.engine.engine import Engine
from app.engine.native import SNAPSHOTS, AbortFlag, Cancelled, Context, Model
from app.engine.native.checkpoints import APART, MOST, Checkpoints
from app.engine.native.context import _NEAR
from app.engine.native.library import decode_batch
from app.engine.process.messages import RoundFinished
from app.engine.record.trace import Trace
from app.engine.sampling.kernel import Batch
from app.engine.types import FinishReason, GenerationRequest, ModelOptions, Sampling
from tests.answers import answer, assert_same_answer
from tests.equality import STRATEGIES, Baselines, Parting
from tests.files.tiny import Tiny

PROMPT = "to be or not to be, that is the question: " * 9  # more than a small window's cache and APART
KINDS = [("mamba", True), ("lfm2", True), ("qwen35", True), ("gemma3", True), ("gemma3", False)]
RECURRENT = ["mamba", "lfm2", "qwen35"]
CLOSE = 5e-3
ROUNDING = 0.05  # of logits, which are about 10
_HEAD = 20  # bytes of a state: magic, sequence, number of cells, position, sequences of the cell

Files = Callable[[Tiny], Path]


def options_of(tiny_file: Files, architecture: str, swa_full: bool = True, **other: Any) -> ModelOptions:
    path = tiny_file(Tiny(name=f"{architecture}-long", architecture=architecture, n_ctx=2048, **other))
    return ModelOptions(str(path), ctx_size=1024, ubatch_size=32, swa_full=swa_full)


def near(tiny_file: Files, architecture: str, swa_full: bool = True) -> ModelOptions:
    """A draft that agrees with the target of the same architecture now and then."""
    return options_of(tiny_file, architecture, swa_full, noise=0.15, noise_seed=3)


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: f"{kind[0]}{'' if kind[1] else '-small'}")
def kind(request: pytest.FixtureRequest) -> tuple[str, bool]:
    return request.param


@pytest.fixture(scope="module")
def engine(kind: tuple[str, bool], tiny_file: Files) -> Iterator[Engine]:
    """Target and draft both have that architecture."""
    with Engine(options_of(tiny_file, *kind), near(tiny_file, *kind)) as engine:
        yield engine


class Count:
    """Counts the tokens that llama.cpp was asked to decode, by the context's address."""

    def __init__(self) -> None:
        self._of: dict[int, int] = defaultdict(int)

    def __call__(self, handle: int, batch: Batch) -> int:
        self._of[handle] += batch.n_tokens
        return int(decode_batch(handle, batch))

    def taken(self, context: Context) -> int:
        """The tokens since the last call."""
        return self._of.pop(context.handle, 0)

    def forget(self) -> None:
        """Reset the count, for example after the self-test on loading."""
        self._of.clear()


@pytest.fixture
def count(monkeypatch: pytest.MonkeyPatch) -> Count:
    count = Count()
    monkeypatch.setattr("app.engine.native.context.decode_batch", count)
    return count


def request_of(prompt: str = PROMPT, **settings: object) -> GenerationRequest:
    return GenerationRequest(prompt=prompt, **{"max_tokens": 48, "ignore_eos": True} | settings)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------ equality


def check(baselines: Baselines, engine: Engine, request: GenerationRequest, strategy: str) -> Trace:
    """Equal, and where there is a near-tie the logits differ by rounding: what restores a wrong state does so
    in the repeated passes as well, and all that is measured there is how wrong it is."""
    partings: list[Parting] = []
    own = Baselines(partings)
    own.known = baselines.known
    trace = own.check(engine, request, strategy)
    baselines.partings.extend(partings)
    assert all(parting.difference < ROUNDING for parting in partings), f"parted: {partings[0]}"
    return trace


@pytest.mark.parametrize("k", [1, 4, 16])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_greedy_is_the_baseline(engine: Engine, baselines: Baselines, strategy: str, k: int) -> None:
    trace = check(baselines, engine, request_of(), STRATEGIES[strategy].format(k=k))
    assert sum(round.rejected for round in trace.rounds) > 0


@pytest.mark.parametrize("strategy", ["prompt-lookup", "draft-simple"])
def test_match_is_plain_sampling(engine: Engine, baselines: Baselines, strategy: str) -> None:
    sampling = Sampling(temperature=0.8, top_k=50, seed=3)
    for k in (4, 16):
        spec = STRATEGIES[strategy].format(k=k) + ":verify=match"
        check(baselines, engine, request_of(sampling=sampling), spec)


def test_a_plain_target_with_such_a_draft(
    kind: tuple[str, bool], tiny_file: Files, baselines: Baselines
) -> None:
    with Engine(options_of(tiny_file, "llama"), near(tiny_file, *kind)) as engine:
        for k in (1, 4, 16):
            check(baselines, engine, request_of(), f"draft-simple:n_max={k}")


def test_such_a_target_with_a_plain_draft(
    kind: tuple[str, bool], tiny_file: Files, baselines: Baselines
) -> None:
    with Engine(options_of(tiny_file, *kind), near(tiny_file, "llama")) as engine:
        for k in (1, 4, 16):
            check(baselines, engine, request_of(), f"draft-simple:n_max={k}")


def test_a_context_that_fills_up(engine: Engine, baselines: Baselines) -> None:
    n_ctx = engine.pair.target.n_ctx
    request = request_of((PROMPT * 3)[: n_ctx - 20])
    for k in (4, 16):
        trace = check(baselines, engine, request, f"draft-simple:n_max={k}")
        assert trace.totals is not None
        assert trace.totals.finish_reason is FinishReason.CONTEXT


@pytest.mark.parametrize("k", [4, pytest.param(16, marks=pytest.mark.verify)])
def test_after_an_edit_a_stop_and_another_answer(engine: Engine, k: int) -> None:
    """Earlier contents make no difference: warm answers equal cold ones."""
    strategy = f"draft-simple:n_max={k}"
    settings = {"max_tokens": 40, "ignore_eos": True}
    prompts = [PROMPT, PROMPT[:-30] + "whether", PROMPT[:100] + "the slings", PROMPT + "and arrows"]
    cold = [answer(engine, prompt, cold=True, **settings) for prompt in prompts]
    engine.reset()
    for prompt, expected in zip(prompts * 2, cold * 2, strict=True):
        for event in engine.generate(request_of(prompt, strategy=strategy)):
            if isinstance(event, RoundFinished) and event.round.index == 3:
                engine.stop()
        assert_same_answer(answer(engine, prompt, strategy=strategy, **settings), expected)


# ------------------------------------------------------------------------- what is decoded again


@pytest.mark.parametrize("k", [1, 4, 16])
@pytest.mark.parametrize("architecture", RECURRENT)
def test_a_rejection_costs_a_few_tokens(tiny_file: Files, count: Count, architecture: str, k: int) -> None:
    with Engine(options_of(tiny_file, architecture), near(tiny_file, architecture)) as engine:
        count.forget()
        trace = answer(engine, PROMPT, strategy=f"draft-simple:n_max={k}", max_tokens=60, ignore_eos=True)
        rejections = [round for round in trace.rounds if round.rejected]
        assert len(rejections) > 5
        read = trace.header.prompt_tokens - 1
        asked = sum(1 + len(round.drafted) for round in trace.rounds)
        again = sum(_NEAR + 1 + round.accepted for round in rejections)
        target, draft = count.taken(engine.target), count.taken(engine.draft)
        if architecture != "mamba" and k <= SNAPSHOTS:
            assert target == read + asked, "every token once"
        else:
            assert read + asked < target <= read + asked + again
        emitted = len(trace.token_ids)  # a draft of one token is left undecoded, so it may go back further
        assert draft <= read + asked + again + emitted


@pytest.mark.parametrize("kind", [*KINDS[:3], KINDS[4]], ids=str)
def test_an_answer_again_does_not_read_the_prompt_again(
    tiny_file: Files, count: Count, kind: tuple[str, bool]
) -> None:
    """An edit decodes at most the distance between two checkpoints again."""
    with Engine(options_of(tiny_file, *kind)) as engine:
        for strategy in ("none", "prompt-lookup"):
            settings = {"strategy": strategy, "max_tokens": 400, "ignore_eos": True}
            first = answer(engine, PROMPT, cold=True, **settings)
            count.taken(engine.target)
            second = answer(engine, PROMPT, **settings)
            assert second.header.cached_tokens >= second.header.prompt_tokens - 1 - APART
            assert_same_answer(second, first)
            asked = sum(1 + len(round.drafted) + _NEAR + 1 for round in second.rounds)
            assert count.taken(engine.target) <= APART + asked


@pytest.mark.parametrize("architecture", RECURRENT)
def test_a_stopped_pass_goes_back_to_a_checkpoint(tiny_file: Files, architecture: str) -> None:
    options = options_of(tiny_file, architecture)
    abort = AbortFlag()
    model = Model(options)
    context = Context(model, options, abort)
    text = np.random.default_rng(0).integers(0, 250, 400).astype(np.int32)
    for start in range(0, 300, 100):
        context.decode(text[start : start + 100])
    abort.set()
    with pytest.raises(Cancelled):
        context.decode(text[300:])
    assert context.n_cached in (200, 300)
    abort.clear()
    rows = context.decode(text[context.sync(text[:-1]) :], logits=1).copy()
    context.clear()
    np.testing.assert_allclose(rows, context.decode(text, logits=1), atol=CLOSE)
    context.close()
    model.close()


def test_a_memory_that_can_be_cut_keeps_no_states(tiny_file: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Checkpoints, "take", lambda self, at: pytest.fail("a state was copied"))
    for architecture in ("llama", "gemma3"):
        with Engine(options_of(tiny_file, architecture), near(tiny_file, architecture)) as engine:
            answer(engine, PROMPT, strategy="draft-simple:n_max=4", max_tokens=100, ignore_eos=True)


@pytest.mark.parametrize("architecture", RECURRENT)
def test_the_baseline_pays_next_to_nothing(
    tiny_file: Files, monkeypatch: pytest.MonkeyPatch, architecture: str
) -> None:
    taken = []
    take = Checkpoints.take
    monkeypatch.setattr(Checkpoints, "take", lambda self, at: (taken.append(at), take(self, at)))
    with Engine(options_of(tiny_file, architecture)) as engine:
        answer(engine, "a", max_tokens=200, ignore_eos=True)
    assert len(taken) == 200 // (APART + 1)


# ---------------------------------------------------------------------------- which are kept


@pytest.fixture
def mamba(tiny_file: Files) -> Iterator[Context]:
    options = options_of(tiny_file, "mamba")
    model = Model(options)
    context = Context(model, options, AbortFlag())
    yield context
    context.close()
    model.close()


def places(kept: Checkpoints) -> list[int]:
    return [checkpoint.at for checkpoint in kept.kept]


def test_few_are_kept_spread_over_the_text(mamba: Context) -> None:
    kept = Checkpoints(mamba.handle, apart=10)
    for at in range(1, 600):
        kept.take(at)
        assert len(places(kept)) <= MOST
        assert kept.latest == at
    assert len(places(kept)) == MOST
    gaps = np.diff([0, *places(kept)])
    assert max(gaps) < 2 * 600 / MOST
    kept.forget(200)
    assert 0 < kept.latest <= 200
    kept.forget(0)
    assert kept.latest == 0


def test_large_states_are_kept_less_often(mamba: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    mamba.decode(np.arange(20, dtype=np.int32))
    size = llama_cpp.llama_state_seq_get_size_ext(mamba.handle, 0, 1)
    for budget, expected in ((0, 2), (3 * size, 3), (100 * size, MOST)):
        monkeypatch.setattr("app.engine.native.checkpoints._MOST_BYTES", budget)
        kept = Checkpoints(mamba.handle, apart=10)
        for at in range(20, 2000, 20):
            kept.take(at)
        assert len(places(kept)) == expected
        assert sum(len(checkpoint.state) for checkpoint in kept.kept) == expected * size


# ------------------------------------------------------------------------------ planted faults


_restore = Checkpoints.restore


def wrong_state(self: Checkpoints, keep: int) -> int:
    """Put the oldest state in place of the newest; llama.cpp would notice a different position."""
    self.forget(keep)
    if self.kept:
        right = self.kept.pop()
        state = (self.kept or [right])[0].state.copy()
        state[:_HEAD] = right.state[:_HEAD]
        self.kept.append(type(right)(right.at, state))
    return _restore(self, keep)


@pytest.mark.parametrize("architecture", RECURRENT)
def test_the_wrong_checkpoint_is_noticed(
    tiny_file: Files, monkeypatch: pytest.MonkeyPatch, architecture: str
) -> None:
    with Engine(options_of(tiny_file, architecture), near(tiny_file, architecture)) as engine:
        check(Baselines([]), engine, request_of(), "draft-simple:n_max=16")
        monkeypatch.setattr(Checkpoints, "restore", wrong_state)
        with pytest.raises(AssertionError, match=r"parted|WRONG"):
            check(Baselines([]), engine, request_of(), "draft-simple:n_max=16")


@pytest.mark.parametrize("architecture", ["lfm2", "qwen35"])
def test_snapshots_that_no_pass_wrote_are_not_trusted(tiny_file: Files, architecture: str) -> None:
    """llama.cpp goes back to them without an error; `_can_cut` prevents that."""
    options = options_of(tiny_file, architecture)
    model = Model(options)
    context = Context(model, options, AbortFlag())
    text = np.random.default_rng(0).integers(0, 250, 40).astype(np.int32)
    expected = context.decode(text, logits=1).copy()
    context.clear()
    for wrong in (False, True):
        context.clear()
        context.decode(text[:-1])
        for token in (1, 2, 3):  # drafted one by one: none of these passes wrote more than one state
            context.decode(np.array([token], np.int32), logits=1)
        if wrong:
            assert llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(context.handle), 0, 39, -1)
            context.n_cached = 39
        rows = context.decode(text[context.sync(text[:-1]) :], logits=1)
        assert np.allclose(rows, expected, atol=CLOSE) is not wrong
    context.close()
    model.close()
