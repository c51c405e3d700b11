"""Texts that people have: which kind each is, and what vLLM's commands and scripts say."""

from __future__ import annotations

import shlex

import pytest

from app.cli.measure.bench import parse_bench
from app.engine.errors import UserError
from app.engine.explain.explained import LONGEST, ExplainedText, explain_text
from app.engine.explain.llama_command import vllm_command
from app.engine.explain.server_command import ServerCommand
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, Sampling

SCRIPT = """
from vllm import LLM, SamplingParams
import os
draft = "org/draft"
settings = {"method": "draft_model", "model": draft, "num_speculative_tokens": 5}
llm = LLM(model="org/target", tensor_parallel_size=2, speculative_config=settings, seed=os.getpid())
llm.generate(["a"], SamplingParams(temperature=0.8, top_p=0.95, max_tokens=64))
"""


def read(text: str) -> ServerCommand:
    command = explain_text(text).command
    assert command is not None
    return command


@pytest.mark.parametrize(
    "strategy",
    [
        "none",
        "prompt-lookup:max_ngram_size=4:num_pred_tokens=5",
        "suffix:n_max=9",
        "draft-simple:n_max=6:sample=1",
    ],
)
def test_our_own_vllm_commands_are_read_back(strategy: str) -> None:
    spec = StrategySpec.parse(strategy)
    draft = ModelOptions("d.gguf")
    sampling = Sampling(temperature=0.5, top_k=7)
    written = vllm_command(spec, ModelOptions("t.gguf", ctx_size=512), draft, sampling, 64)
    command = read(written.text)
    assert command.strategy == str(spec)
    assert (command.target, command.draft) == ("t.gguf", "d.gguf" if spec.needs_draft else "")
    plan = parse_bench(shlex.split(shlex.join(command.bench))[2:]).experiment
    assert (plan.sampling.temperature, plan.sampling.top_k, plan.max_tokens) == (0.5, 7, 64)
    assert plan.pair.target.ctx_size == 512


def test_a_script_is_read_without_being_run() -> None:
    command = read(SCRIPT)
    assert (command.target, command.draft, command.strategy) == (
        "org/target",
        "org/draft",
        "draft-simple:n_max=5",
    )
    assert command.options == ["--temperature", "0.8", "--top-p", "0.95", "--max-tokens", "64"]
    assert "2 devices share the model there; here use --device and --tensor-split." in command.notes


@pytest.mark.parametrize(
    "text",
    [
        'LLM(model="m", speculative_model="[ngram]", num_speculative_tokens=5, ngram_prompt_lookup_max=4)',
        '    llm = LLM(\n        "m", speculative_config={"method": "ngram", "num_speculative_tokens": 5,\n'
        '        "prompt_lookup_max": 4})',
        'As the guide says (see there): LLM("m", speculative_config=dict(model="[ngram]", '
        "prompt_lookup_min=4, num_speculative_tokens=5)) is enough.",
        "python -m vllm.entrypoints.openai.api_server --model m --speculative-model [ngram] "
        "--num-speculative-tokens=5 --ngram-prompt-lookup-max 4",
        "docker run --gpus all vllm/vllm-openai:latest --model m -sc "
        """'{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}'""",
        "bash -c 'cd /srv && vllm serve m --speculative-config.method=ngram "
        "--speculative-config.num-speculative-tokens 5 --speculative-config.prompt_lookup_max 4 ; vllm'",
    ],
)
def test_older_and_partial_forms_are_read(text: str) -> None:
    command = read(text)
    assert (command.target, command.strategy) == ("m", "prompt-lookup:max_ngram_size=4:num_pred_tokens=5")
    removed = any("do not start with speculative_model" in problem for problem in command.problems)
    assert removed == ("speculative_model" in text.replace("-", "_"))


@pytest.mark.parametrize("text", ["# vllm serve m", "echo 'vllm serve m'", "vllm bench serve --model m"])
def test_a_program_that_is_not_run_is_not_explained(text: str) -> None:
    with pytest.raises(UserError, match="This is not a command"):
        explain_text(text)


def test_a_prompt_that_names_a_call_leaves_a_command_one() -> None:
    command = read("sh -c \"llama-cli -m t.gguf --spec-default -p 'What is an LLM (large model)?'\" --color")
    assert (command.target, command.strategy) == ("t.gguf", "ngram-mod")
    assert command.prompt == "What is an LLM (large model)?"


def test_what_cannot_be_read_is_said() -> None:
    assert read("vllm serve m -tp 2").notes[1].startswith("2 devices share the model there")
    assert read("vllm serve m").problems == ["Nothing drafts: there is no speculative_config."]
    assert "cannot be read" in read("vllm serve m --speculative-config {broken").problems[0]
    assert "cannot be read" in read("LLM('m', speculative_config=load())").problems[0]
    eagle = read("""vllm serve m -sc '{"method": "eagle3", "model": "e", "num_speculative_tokens": 2}'""")
    assert (eagle.strategy, "Draftscope has no eagle3: it is left out." in eagle.notes) == ("none", True)
    assert "n_max" in read("""vllm serve m -sc '{"model": "d", "num_speculative_tokens": -4}'""").problems[0]


@pytest.mark.parametrize(
    "text", ["-" * 100_000 + "1", "(" * 50_000, "[" * 5000 + "]" * 5000, "\0", "0x" + "f" * 6000]
)
def test_hostile_scripts_are_refused(text: str) -> None:
    for script in (f"LLM({text})", f"x = {text}\nLLM(", f"LLM('m', speculative_config={text})"):
        try:
            assert isinstance(explain_text(script), ExplainedText)
        except UserError as error:
            assert "This is not a command" in error.message


def test_texts_that_are_too_long_for_a_command_are_not_read() -> None:
    typed = "llama-server -m t.gguf --spec-default # "
    assert read(typed).strategy == "ngram-mod"
    with pytest.raises(UserError, match="This is not a command"):
        explain_text(typed + "x" * LONGEST)


def test_a_log_says_which_strategy_to_use() -> None:
    told = explain_text(
        "statistics ngram_mod: #calls = 8, #gen drafts = 2, #acc drafts = 1, #gen tokens = 9, #acc tokens = 4"
    )
    assert (told.strategy, told.command) == ("ngram-mod", None)
    assert told.lines[0] == "Drafts with ngram-mod."
    assert "  #gen drafts: it drafted in 2 of these calls (25.0\N{NO-BREAK SPACE}%)." in told.lines
    assert any("a round with a draft gave 3.00 tokens" in line for line in told.lines)
