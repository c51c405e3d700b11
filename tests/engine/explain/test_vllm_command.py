"""vLLM commands: the speculative configuration of each strategy, and what vLLM cannot follow."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest

from app.engine.explain.llama_command import CopiedCommand, vllm_command
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, Sampling

HUB = "/cache/models--owner--small-GGUF/snapshots/" + "0" * 40 + "/small-Q4_K_M.gguf"


def made(spec: str, target: str = "t.gguf", **sampling: Any) -> CopiedCommand:
    return vllm_command(
        StrategySpec.parse(spec),
        ModelOptions(target),
        ModelOptions("d.gguf"),
        Sampling(**sampling),
        64,
    )


def value(command: CopiedCommand, flag: str) -> str | None:
    words = shlex.split(command.text)
    return words[words.index(flag) + 1] if flag in words else None


@pytest.mark.parametrize(
    ("spec", "config"),
    [
        ("none", None),
        (
            "draft-simple:n_max=4",
            {"method": "draft_model", "model": "d.gguf", "num_speculative_tokens": 4},
        ),
        (
            "prompt-lookup:max_ngram_size=4:num_pred_tokens=6",
            {"method": "ngram", "num_speculative_tokens": 6, "prompt_lookup_max": 4, "prompt_lookup_min": 1},
        ),
        (
            "ngram-simple:size_n=5:size_m=9",
            {"method": "ngram", "num_speculative_tokens": 9, "prompt_lookup_max": 5, "prompt_lookup_min": 5},
        ),
        (
            "suffix:n_max=16:p_min=0.2",
            {
                "method": "suffix",
                "num_speculative_tokens": 16,
                "suffix_decoding_max_tree_depth": 24,
                "suffix_decoding_max_spec_factor": 1.0,
                "suffix_decoding_min_token_prob": 0.2,
            },
        ),
    ],
)
def test_each_strategy_has_its_configuration(spec: str, config: dict[str, object] | None) -> None:
    told = value(made(spec), "--speculative-config")
    assert (None if told is None else json.loads(told)) == config


def test_sampling_holds_for_every_request() -> None:
    command = made("none", temperature=0.7, top_k=40, repeat_penalty=1.1, seed=5)
    told = json.loads(value(command, "--override-generation-config") or "")
    assert told == {
        "temperature": 0.7, "top_k": 40, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.1,
        "max_new_tokens": 64,
    }  # fmt: skip
    assert value(command, "--seed") == "5"


def test_sampled_drafts_are_sampled_in_vllm_too() -> None:
    taken, drawn = made("draft-simple:n_max=4"), made("draft-simple:n_max=4:sample=1")
    assert '"draft_sample_method": "probabilistic"' in drawn.text and "sample_method" not in taken.text
    assert drawn.differences == taken.differences


def test_models_of_the_hub_go_by_their_names() -> None:
    assert made("none", HUB).text.startswith("vllm serve owner/small-GGUF:Q4_K_M ")


@pytest.mark.parametrize(
    ("spec", "sampling", "words"),
    [
        ("ngram-mod", {}, "vLLM has no ngram-mod"),
        ("suffix+draft-simple", {}, "draft-simple is left out, suffix stays"),
        ("draft-simple:p_min=0.5", {}, "p_min is left out"),
        ("draft-simple:verify=match", {"temperature": 0.8}, "not by match"),
        ("draft-simple:length=auto", {}, "length=auto is left out"),
        ("none", {"typical_p": 0.5}, "vLLM has no typical_p"),
    ],
)
def test_what_vllm_does_otherwise_is_said(spec: str, sampling: dict[str, Any], words: str) -> None:
    assert any(words in line for line in made(spec, **sampling).differences)


def test_where_nothing_drafts_no_rule_is_compared() -> None:
    assert not any("verifies" in line for line in made("ngram-mod:verify=match", temperature=0.8).differences)


def test_two_devices_are_tensor_parallel_and_the_draft_stays_on_one() -> None:
    def on(device: str) -> CopiedCommand:
        target = ModelOptions("t.gguf", device=device)
        return vllm_command(
            StrategySpec.parse("draft-simple"), target, ModelOptions("d.gguf"), Sampling(), 64
        )

    two = on("CUDA0, CUDA1")
    assert value(two, "--tensor-parallel-size") == "2"
    assert json.loads(value(two, "--speculative-config") or "")["draft_tensor_parallel_size"] == 1
    for device in ("", "CUDA0"):
        assert value(on(device), "--tensor-parallel-size") is None
        assert "tensor_parallel" not in on(device).text
