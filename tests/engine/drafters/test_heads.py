"""Drafts that read what the target computes: their texts are the baseline's, and each entry has its row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import llama_cpp
import pytest
from llama_cpp import llama_cpp_ext as ext
from msgspec import structs

from app.engine.devices.offload import measure_pair
from app.engine.engine import Engine
from app.engine.errors import ModelFileError, PairError, SettingError
from app.engine.native import heads
from app.engine.record.recheck import recheck
from app.engine.record.trace import Trace
from app.engine.types import FinishReason, GenerationRequest, HeadInput, ModelOptions, Round, Sampling
from tests.answers import answer, assert_same_answer
from tests.files.heads import HEAD, PAIRS, Make, files
from tests.files.tiny import Tiny

CHAIN = tuple("abcdefg")
MIXES = ("{head}:n_max={k}", "prompt-lookup:num_pred_tokens=2+{head}:n_max={k}", "{head}:length=auto")
KINDS = (
    "draft-eagle3 llama", "draft-mtp qwen35", "draft-mtp qwen35 beside", "draft-mtp step35",
    "draft-mtp gemma4 beside",
)  # fmt: skip


@pytest.fixture(params=PAIRS, scope="module")
def pair(request: pytest.FixtureRequest, tiny_file: Make) -> Any:
    """An engine, and the strategy of its head."""
    with Engine(*files(request.param, tiny_file)) as engine:
        yield engine, request.param.split()[0]


def greedy(engine: Engine, prompt: str, strategy: str, **settings: Any) -> Trace:
    return answer(engine, prompt, strategy=strategy, max_tokens=24, **settings)


def counts(trace: Trace) -> tuple[int, int]:
    drafted = [token for round in trace.rounds for token in round.drafted]
    return len(drafted), sum(token.verdict == "accepted" for token in drafted)


@pytest.mark.parametrize("kind", PAIRS)
def test_a_head_drafts_until_the_context_is_full(tiny_file: Make, kind: str) -> None:
    """A block has a place for the token before it too."""
    strategy, (target, head) = kind.partition(" ")[0], files(kind, tiny_file)
    draft = ModelOptions(str(head), ctx_size=256) if head else None
    with Engine(ModelOptions(str(target), ctx_size=256), draft) as engine:
        trace = answer(engine, "abc " * 55, strategy=strategy, max_tokens=256, ignore_eos=True)
    assert trace.totals.finish_reason is FinishReason.CONTEXT
    assert any(round.drafted for round in trace.rounds[-4:])


@pytest.mark.same_text
@pytest.mark.parametrize("strategy", MIXES)
@pytest.mark.parametrize("k", [1, 6])  # more than the states that a hybrid target keeps
def test_texts_are_the_baselines_whatever_came_before(
    pair: tuple[Engine, str], strategy: str, k: int
) -> None:
    engine, head = pair
    strategy = strategy.format(head=head, k=k)
    engine.reset()
    for prompt in ("abcabcabd abc", "abcabcabd abc", "abcabcx", "abcabcabd abc, and more"):
        expected = greedy(engine, prompt, "none", cold=True)
        trace = greedy(engine, prompt, strategy)  # behind an answer of another strategy
        assert_same_answer(trace, expected)
        again = greedy(engine, prompt, strategy)  # what its own rejected drafts left is in no cache
        assert_same_answer(again, expected)
        assert "auto" in strategy or counts(trace)[0] > 0


@pytest.mark.same_text
def test_a_draft_depends_on_the_text_alone(pair: tuple[Engine, str]) -> None:
    """What rounds left in the caches, or were taken back from them, changes no guess."""
    engine, head = pair
    engine.reset()
    prompt = engine.tokenize(GenerationRequest(prompt="abcabcabd abc")).ids.tolist()
    rounds = greedy(engine, "abcabcabd abc", f"{head}:n_max=6").rounds
    for round in rounds[1::4]:
        request = GenerationRequest(
            prompt_ids=(*prompt, *emitted(rounds)[: round.position]),
            cold=True,
            strategy=f"{head}:n_max=6",
            max_tokens=24 - round.position,
        )
        cold = engine.answer(request).rounds[0]
        assert len(cold.drafted) == len(round.drafted)
        for warm_top, cold_top, token in zip(round.draft_top, cold.draft_top, cold.drafted, strict=True):
            by_id = dict(zip(cold_top.ids, cold_top.p, strict=True))
            assert by_id[warm_top.ids[0]] == pytest.approx(warm_top.p[0], abs=0.02)
            if token.id != warm_top.ids[0]:  # as probable: from here on the drafts differ
                break
        # With one token to draft no later draft changes what is said of this one.
        alone = engine.answer(replace(request, max_tokens=2)).rounds[0].head
        assert round.head is not None and alone is not None
        assert round.head.norms == pytest.approx(alone.norms, rel=0.02)
        assert round.head.shares == pytest.approx(alone.shares, abs=0.01)


def test_each_place_of_a_draft_is_drafted_by_its_own_head(
    tiny_file: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Engine(*files("draft-mtp step35", tiny_file)) as engine:
        chosen: list[int] = []
        choose = ext.llama_set_nextn_layer_offset

        def listed(context: Any, head: int) -> None:
            chosen.append(head)
            choose(context, head)

        monkeypatch.setattr(ext, "llama_set_nextn_layer_offset", listed)
        round = greedy(engine, "abcabc", "draft-mtp:n_max=3").rounds[0]
        assert len(round.drafted) == 3
        # All heads read the text, the first one last. Then the second and the third draft.
        assert "21012" in "".join(map(str, chosen))


def emitted(rounds: list[Round]) -> list[int]:
    return [token.id for round in rounds for token in round.emitted]


def test_a_block_has_no_more_than_the_file_says(tiny_file: Make) -> None:
    head = replace(HEAD, architecture="dflash")
    with Engine(tiny_file(Tiny(name="target", n_ctx=1024)), tiny_file(head)) as engine:
        first = greedy(engine, "abcabc", "draft-dflash:n_max=20").rounds[0]
    assert (len(first.drafted), first.draft_end) == (7, "the draft's block is full")


@pytest.mark.same_text
@pytest.mark.parametrize("sample", ["", ":sample=1"])
def test_p_min_is_compared_with_a_blocks_own_confidence(tiny_file: Make, sample: str) -> None:
    sampling = Sampling(temperature=0.9, seed=3)
    with Engine(*files("draft-dspark llama", tiny_file)) as engine:

        def first(settings: str, tokens: int = 24) -> Round:
            strategy = f"draft-dspark:n_max=5{sample}{settings}"
            trace = answer(
                engine, "abcabc", strategy=strategy, max_tokens=tokens, sampling=sampling, cold=True
            )
            assert recheck(trace) == []
            return trace.rounds[0]

        whole = first("")
        first("", tokens=2)  # whose only block is that of the first round
        assert engine.draft is not None
        sure = engine.draft.confidence
        assert len(whole.drafted) == len(sure) == 5 and len(set(sure)) == 5
        for p_min in sorted(sure):
            cut = first(f":p_min={p_min + 1e-5:.6f}")
            n = next(place for place, p in enumerate(sure) if p < p_min + 1e-5)
            assert [token.id for token in cut.drafted] == [token.id for token in whole.drafted[:n]]
            assert cut.draft_end == "p_min"


def test_a_head_that_fails_to_load_leaves_no_context(
    tiny_file: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    init, free = llama_cpp.llama_init_from_model, llama_cpp.llama_free
    monkeypatch.setattr(
        llama_cpp, "llama_init_from_model", lambda *given: made.append(init(*given)) or made[-1]
    )
    monkeypatch.setattr(llama_cpp, "llama_free", lambda handle: made.remove(handle) or free(handle))

    def gone(path: Path) -> None:
        raise FileNotFoundError(f"{path.name} is gone.")

    target, draft = files("draft-dspark llama", tiny_file)
    with Engine(target) as engine:
        before = len(made)
        with monkeypatch.context() as broken, pytest.raises(FileNotFoundError):
            broken.setattr(heads, "tensor_sizes", gone)  # after the context is made
            Engine(target, draft, previous=engine)
        assert len(made) == before and engine.target.features == []
        assert greedy(engine, "abc", "none").token_ids


def chain_engine(tiny_file: Make, kind: str = "draft-eagle3 llama") -> Engine:
    """A pair whose head knows nothing but the target's row of the token before: it is right if each entry has
    that row, and wrong with any other."""
    return Engine(*files(kind, tiny_file, chain=CHAIN, letters="".join(CHAIN)))


@pytest.mark.parametrize("head", KINDS)
def test_each_entry_has_the_row_of_the_token_before(tiny_file: Make, head: str) -> None:
    with chain_engine(tiny_file, head) as engine:
        head = head.split(maxsplit=1)[0]
        for prompt in ("abcd", "abcdefgab", "cd"):
            for strategy in (f"{head}:n_max=3", "none", f"{head}:n_max=3:sample=1"):
                trace = greedy(engine, prompt, strategy)
                drafted, accepted = counts(trace)
                assert drafted == accepted
                assert bool(drafted) == (strategy != "none")


def test_a_round_says_what_its_head_read(pair: tuple[Engine, str], tiny_file: Make) -> None:
    engine, head = pair
    for sample in ("", ":sample=1"):
        trace = greedy(engine, "abcabcabd abc", f"{head}:n_max=3{sample}")
        layers = {"draft-eagle3": (0, 1, 1), "draft-mtp": (2,)}.get(head, (0, 1))
        for read in [round.head for round in trace.rounds if round.drafted]:
            assert read is not None and read.layers == layers and all(read.norms)
            assert sum(read.shares) == pytest.approx(1 if head == "draft-eagle3" else 0)
        assert recheck(trace) == []
        rounds = [structs.replace(trace.rounds[0], head=HeadInput((0, 9), (1.0, 1.0))), *trace.rounds[1:]]
        (problem,) = recheck(Trace(trace.header, rounds, trace.totals))
        assert "its head read 2 rows of layers (0, 9)" in problem
    with chain_engine(tiny_file) as chain:  # its matrix takes the first of three layers alone
        read = greedy(chain, "abcd", "draft-eagle3:n_max=3").rounds[0].head
    assert read is not None and read.norms[0] == 1 and read.shares == (1, 0, 0)


@pytest.mark.parametrize("kind", PAIRS)
def test_what_a_head_takes_is_known_before_it_is_loaded(kind: str, tiny_file: Make) -> None:
    target, head = (
        ModelOptions(str(file), load_mode="none", repack=False) if file else None
        for file in files(kind, tiny_file)
    )
    assert target is not None
    expected = measure_pair(target, head)
    with Engine(target, head) as engine:
        taken = [info for info in (engine.pair.target, engine.pair.draft) if info is not None]
    for model, real in zip(expected.models, taken, strict=True):
        for usage, of_real in zip(model.memory, real.memory, strict=True):
            # llama.cpp's report is rounded to 0.01 MiB, for every buffer and cache
            assert usage.compute > 0
            assert bool(usage.context) != (
                "gemma4" in kind and model is expected.draft
            )  # it has its target's
            assert usage.weights == pytest.approx(of_real.weights, rel=0.02, abs=12_000)
            assert usage.context == pytest.approx(of_real.context, rel=0.02, abs=40_000)
            assert usage.compute == pytest.approx(of_real.compute, rel=0.3, abs=12_000)


def test_a_long_prompt_is_read_in_parts(tiny_file: Make) -> None:
    with chain_engine(tiny_file) as engine:
        prompt = "abcdefg" * 90
        trace = greedy(engine, prompt, "draft-eagle3:n_max=3")
        assert counts(trace) == (18, 18)
        assert greedy(engine, prompt[:-1], "draft-eagle3:n_max=3").header.cached_tokens > 600


def test_a_chat_that_it_joins_late_is_read_again(tiny_file: Make) -> None:
    with chain_engine(tiny_file) as engine:
        greedy(engine, "abcdefg" * 20, "none")
        assert greedy(engine, "abcdefg" * 20, "none").header.cached_tokens == 139
        assert greedy(engine, "abcdefg" * 20, "draft-eagle3").header.cached_tokens == 0
        assert greedy(engine, "abcdefg" * 20, "draft-eagle3").header.cached_tokens >= 138


def test_one_token_is_too_short_to_draft_behind(tiny_file: Make) -> None:
    with chain_engine(tiny_file) as engine:
        trace = greedy(engine, "a", "draft-eagle3:n_max=2")
        assert trace.rounds[0].draft_end == "a head drafts from the second token on"
        assert counts(trace)[0] == counts(trace)[1] > 0


def test_what_does_not_belong_together_is_refused(tiny_file: Make) -> None:
    plain, head = tiny_file(Tiny(name="plain")), tiny_file(HEAD)
    with pytest.raises(ModelFileError, match="cannot answer by itself"):
        Engine(head)
    with pytest.raises(PairError, match="needs an embedding size of 64, and the target has 32"):
        Engine(tiny_file(Tiny(name="narrow", n_embd=32)), head)
    with pytest.raises(PairError, match="architecture gemma3"):
        Engine(tiny_file(Tiny(name="other", architecture="gemma3")), head)
    with Engine(plain, head) as engine, pytest.raises(SettingError, match="Choose draft-eagle3"):
        next(engine.generate(GenerationRequest(prompt="a", strategy="draft-simple")))
    with Engine(plain, plain) as engine, pytest.raises(SettingError, match="Choose draft-simple"):
        next(engine.generate(GenerationRequest(prompt="a", strategy="draft-eagle3")))
    with Engine(plain) as engine, pytest.raises(SettingError, match="No MTP head of"):
        next(engine.generate(GenerationRequest(prompt="a", strategy="draft-mtp")))
    beside = Tiny(name="beside", architecture="qwen35", mtp=1, trunk=False)
    with pytest.raises(ModelFileError, match="cannot answer by itself"):
        Engine(tiny_file(beside))
    with pytest.raises(
        PairError, match=r"of architecture qwen35 with an embedding size of 64, and .* is llama"
    ):
        Engine(plain, tiny_file(beside))
    with pytest.raises(PairError, match="contains only an MTP head, but mtp is off"):
        Engine(
            tiny_file(replace(beside, trunk=True, mtp=False)), ModelOptions(str(tiny_file(beside)), mtp=False)
        )
    several = replace(beside, mtp=2)
    with pytest.raises(PairError, match="contains 2 MTP heads"):
        Engine(tiny_file(replace(beside, mtp=0, trunk=True)), tiny_file(several))
    assistant = tiny_file(Tiny(name="assistant", architecture="gemma4-assistant", n_embd=32))
    for made in (Tiny(name="plain"), Tiny(name="wide", architecture="gemma4", n_embd=128)):
        with pytest.raises(PairError, match="a Gemma 4 with an embedding size of 64"):
            Engine(tiny_file(made), assistant)
    headless = ModelOptions(str(tiny_file(Tiny(name="q", architecture="qwen35", mtp=1))), mtp=False)
    with Engine(headless) as engine, pytest.raises(SettingError, match=r"No MTP head of .* is loaded"):
        next(engine.generate(GenerationRequest(prompt="a", strategy="draft-mtp")))
