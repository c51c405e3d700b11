"""SmolLM2-135M, the real model that set-up brings: strategies, template, ends, limits, names and advice.

Its draft is the bundled pair's: their vocabularies differ, so those drafts go through text.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.base.paths import REAL_TARGET
from app.engine.engine import Engine
from app.engine.errors import PromptError
from app.engine.record.recheck import recheck
from app.engine.record.trace import read_trace
from app.engine.types import FinishReason, GenerationRequest, Message, Sampling
from tests.answers import answer
from tests.commands import Command
from tests.equality import NGRAMS, RENAME, REPEATED, STRATEGIES, Baselines, drafted

pytestmark = pytest.mark.real

KINDS = STRATEGIES | NGRAMS


@pytest.mark.parametrize("kind", KINDS)
def test_every_strategy_is_the_baseline(real_engine: Engine, baselines: Baselines, kind: str) -> None:
    trace = baselines.check(real_engine, RENAME, KINDS[kind].format(k=4))
    assert trace.totals.finish_reason is FinishReason.END
    if kind != "auto":  # which may find that drafting does not pay
        assert drafted(trace) > sum(round.accepted for round in trace.rounds) > 0


def test_match_at_a_temperature_is_plain_sampling(real_engine: Engine, baselines: Baselines) -> None:
    sampling = Sampling(temperature=0.8, top_k=40, top_p=0.95, min_p=0.05, repeat_penalty=1.1, seed=1)
    request = replace(RENAME, sampling=sampling)
    strategy = "suffix:n_max=4+draft-simple:n_max=4:verify=match"
    assert drafted(baselines.check(real_engine, request, strategy)) > 0


@pytest.mark.parametrize("rule", ["speculative", "block"])
def test_verdicts_of_sampled_answers_are_recomputed(real_engine: Engine, rule: str) -> None:
    """From a trace with 49,152 tokens in each distribution."""
    request = replace(
        RENAME, sampling=Sampling(temperature=1.0, seed=3), strategy=f"suffix:verify={rule}", cold=True
    )
    trace = real_engine.answer(request)
    assert sum(round.rejected for round in trace.rounds) > 0 and recheck(trace) == []


def test_the_files_template_is_used_and_its_end_is_seen(real_engine: Engine) -> None:
    trace = real_engine.answer(RENAME)
    system = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
    assert trace.header.prompt == (
        f"<|im_start|>system\n{system}<|im_end|>\n"
        f"<|im_start|>user\n{RENAME.messages[0].content}<|im_end|>\n"
        "<|im_start|>assistant\n"
    )
    last = trace.rounds[-1].emitted[-1]
    assert (last.piece, last.label) == (b"", "<|im_end|>")
    stopped = real_engine.answer(replace(RENAME, stop=("zzz", "door")))
    assert stopped.totals.finish_reason is FinishReason.STOP
    assert stopped.totals.text and "door" not in stopped.totals.text
    own = (Message("system", "Say yes."), Message("user", "Yes?"))
    assert real_engine.tokenize(GenerationRequest(messages=own))[0].startswith(
        "<|im_start|>system\nSay yes.<|im_end|>\n<|im_start|>user\nYes?"
    )


def test_a_context_that_fills_ends_the_answer(real_engine: Engine) -> None:
    room = real_engine.pair.target.n_ctx
    prompt = real_engine.target.model.vocabulary.tokenize(REPEATED * 3, special=True, parse_special=False)
    ids = tuple(prompt[: room - 10].tolist())
    full = answer(real_engine, None, prompt_ids=ids, strategy="suffix:n_max=8", ignore_eos=True)
    assert full.totals.finish_reason is FinishReason.CONTEXT and len(full.token_ids) == 11
    assert drafted(full) > 0 and recheck(full) == []
    with pytest.raises(PromptError, match=f"{room + 1} tokens, but the context has room for {room}"):
        answer(real_engine, None, prompt_ids=tuple(prompt[: room + 1].tolist()))


def test_a_command_names_it_and_ends_with_advice(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "answer.jsonl"
    ended = command(
        "run", "--target", REAL_TARGET, "--ctx-size", 256, "--engine", "thread", "--chat", "--max-tokens", 20,
        "--prompt", "Write one sentence about the sea.", "--strategy", "ngram-mod", "--trace", file,
    )  # fmt: skip
    assert ended.code == 0 and " " in ended.out.strip()
    # Nothing was drafted, so that no time decides what is advised.
    assert ended.err.endswith("\nKeep this: 1.00×, nothing tried or predicted is better.\n")
    pair = read_trace(file).header.pair
    assert (pair.target.name, pair.target.quantisation) == ("SmolLM2-135M-Instruct", "Q4_1")
    assert command("replay", file, "--verify").code == 0
