"""The command line for llama.cpp, word by word."""

from __future__ import annotations

import shlex

import pytest

from app.engine.llama_command import LlamaCommand, llama_command
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, Sampling

TARGET = ModelOptions("/models/big target.gguf")
DRAFT = ModelOptions("/models/small.gguf", threads=2, n_gpu_layers=7, ctx_size=512)


def made(spec: str, **sampling: float) -> LlamaCommand:
    return llama_command(StrategySpec.parse(spec), TARGET, DRAFT, Sampling(**sampling), 256)  # type: ignore[arg-type]


def flag(command: LlamaCommand, name: str) -> str | None:
    words = shlex.split(command.text)
    return words[words.index(name) + 1] if name in words else None


def test_no_speculation_names_no_draft() -> None:
    command = made("none")
    assert "draft" not in command.text and "--spec" not in command.text
    assert flag(command, "--model") == "/models/big target.gguf"
    assert flag(command, "--temp") == "0" and flag(command, "--predict") == "256"
    assert not command.differences


def test_a_draft_model_and_its_settings() -> None:
    command = made("draft-simple:n_max=8:p_min=0.5")
    assert flag(command, "--model-draft") == "/models/small.gguf"
    assert flag(command, "--spec-type") == "draft-simple"
    assert flag(command, "--spec-draft-n-max") == "8"
    assert flag(command, "--spec-draft-p-min") == "0.5"
    assert flag(command, "--threads-draft") == "2"
    assert flag(command, "--n-gpu-layers-draft") == "7"
    assert "--ctx-size-draft" not in command.text  # llama.cpp has no such flag any more


def test_sampling_is_written_out() -> None:
    command = made("none", temperature=0.8, top_k=40, top_p=0.95, seed=5, repeat_penalty=1.1)
    assert flag(command, "--temp") == "0.8"
    assert flag(command, "--top-k") == "40"
    assert flag(command, "--min-p") == "0"
    assert flag(command, "--seed") == "5"
    assert flag(command, "--repeat-last-n") == "64"


@pytest.mark.parametrize(
    ("spec", "sampling", "words"),
    [
        ("prompt-lookup", {}, "no prompt-lookup"),
        ("draft-simple", {"temperature": 0.5}, "not by speculative"),
        ("draft-simple:sample=1", {"temperature": 0.5}, "sample is left out"),
    ],
)
def test_what_llama_cpp_does_otherwise_is_said(spec: str, sampling: dict[str, float], words: str) -> None:
    assert any(words in line for line in made(spec, **sampling).differences)


def test_match_is_llama_cpps_own_rule() -> None:
    assert not made("draft-simple:verify=match", temperature=0.5).differences


def test_what_llama_cpp_does_not_know_is_left_out_of_the_command() -> None:
    command = made("prompt-lookup+draft-simple:sample=1", temperature=0.5)
    assert flag(command, "--spec-type") == "draft-simple"
    assert "sample=" not in command.text and "--spec-draft-sample" not in command.text
