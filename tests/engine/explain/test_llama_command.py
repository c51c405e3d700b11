"""The command line for llama.cpp, word by word."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.engine.devices.memory import default_threads
from app.engine.drafters.registry import KINDS
from app.engine.explain.llama_command import CopiedCommand, llama_command, template_kwargs, vllm_command
from app.engine.params import Param, params_of
from app.engine.strategy import StrategyPart, StrategySpec
from app.engine.templates.options import TemplateOptions, Thinking, switched
from app.engine.types import ModelOptions, Sampling
from tests.samplings import WARM, each_switched_on

TARGET = ModelOptions("/models/big target.gguf")
DRAFT = ModelOptions("/models/small.gguf", threads=2, n_gpu_layers=7)
FLAGS = Path(__file__).parents[2] / "vectors" / "llama_server_flags.txt"


def made(spec: str, **sampling: float | str) -> CopiedCommand:
    return llama_command(StrategySpec.parse(spec), TARGET, DRAFT, Sampling(**sampling), 256)  # type: ignore[arg-type]


def flag(command: CopiedCommand, name: str) -> str | None:
    words = shlex.split(command.text)
    return words[words.index(name) + 1] if name in words else None


def test_files_of_the_hub_are_named_by_their_repository() -> None:
    def cached(repo: str, file: str) -> ModelOptions:
        return ModelOptions(f"/home/me/hub/models--{repo}/snapshots/{'a1' * 20}/{file}")

    target = cached("owner--big-GGUF", "UD/big-Q4_K_M-00001-of-00002.gguf")
    draft = cached("other--small", "small-UD-Q8_K_XL.gguf")
    spec = StrategySpec.parse("draft-simple")
    command = llama_command(spec, target, draft, Sampling(), 16)
    assert flag(command, "--hf-repo") == "owner/big-GGUF"
    assert flag(command, "--hf-file") == "UD/big-Q4_K_M-00001-of-00002.gguf"
    assert flag(command, "--hf-repo-draft") == "other/small:UD-Q8_K_XL"
    assert "/home/me" not in command.text

    unnamed = llama_command(spec, TARGET, cached("other--small", "small.gguf"), Sampling(), 16)
    assert flag(unnamed, "--model") == TARGET.path
    assert flag(unnamed, "--hf-repo-draft") == "other/small:small"


@pytest.mark.parametrize(
    ("strategy", "kind", "named"),
    [
        ("draft-eagle3", "eagle3", True),
        ("draft-mtp", "mtp", True),
        ("draft-mtp", "gemma4-assistant", True),
        ("draft-mtp", "llama", False),  # the head is in the target's file, the draft is a model
        ("ngram-mod+draft-mtp", "", False),
    ],
)
def test_a_head_beside_its_target_is_named(strategy: str, kind: str, named: bool) -> None:
    spec = StrategySpec.parse(strategy)
    command = llama_command(spec, TARGET, DRAFT, Sampling(), 16, draft_kind=kind)
    assert flag(command, "--model-draft") == (DRAFT.path if named else None)
    assert flag(command, "--spec-type") == ",".join(part.name for part in spec.parts)


def test_what_the_template_is_told_is_handed_on() -> None:
    options = template_kwargs({"thinking": True, "reasoning_effort": "low", "a": "it's"}, None)
    command = llama_command(StrategySpec(), TARGET, None, Sampling(), 16, 0, options)
    assert json.loads(flag(command, "--chat-template-kwargs") or "") == options
    assert flag(made("none"), "--chat-template-kwargs") is None


@pytest.mark.parametrize(
    ("told", "thinking", "handed_on"),
    [
        ({}, None, {}),
        ({}, Thinking(("enable_thinking",), on=True), {}),
        ({}, Thinking(("enable_thinking",), on=False), {"enable_thinking": False}),
        ({}, Thinking(("thinking",), on=False), {}),
        (switched(True), Thinking(("enable_thinking",), on=False), {"enable_thinking": True}),
        (switched(False), Thinking(("thinking",), on=True), {"thinking": False}),
        (switched(False), Thinking(("reasoning_effort",)), {}),
    ],
)
def test_llama_cpp_lets_templates_think_untold(
    told: TemplateOptions, thinking: Thinking | None, handed_on: TemplateOptions
) -> None:
    assert template_kwargs(told, thinking) == handed_on


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
    assert flag(command, "--threads-batch-draft") == "2"  # llama.cpp's default is the target's
    on_the_cpu = replace(DRAFT, n_gpu_layers=0)
    command = llama_command(StrategySpec.parse("draft-simple"), TARGET, on_the_cpu, Sampling(), 256)
    assert flag(command, "--n-gpu-layers-draft") == "0"


def test_offload_settings_have_llama_cpps_names() -> None:
    target = ModelOptions(
        "t.gguf", rpc="a:1,b:2", device="RPC1,CUDA0", tensor_split="1,3", kv_offload=False, load_mode="mlock"
    )
    draft = ModelOptions("d.gguf", device="RPC0", cpu_moe=True, n_cpu_moe=2, kv_offload=False)
    command = llama_command(StrategySpec.parse("draft-simple"), target, draft, Sampling(), 16)
    words = shlex.split(command.text)
    assert flag(command, "--rpc") == "a:1,b:2"
    # llama.cpp looks up the devices while reading its arguments.
    assert words.index("--rpc") < words.index("--device")
    assert flag(command, "--device") == "RPC1,CUDA0"
    assert flag(command, "--device-draft") == "RPC0"
    assert flag(command, "--tensor-split") == "1,3"
    assert flag(command, "--load-mode") == "mlock"
    assert flag(command, "--n-cpu-moe-draft") == "2"
    assert words.count("--no-kv-offload") == 1 and "--cpu-moe-draft" in words


def test_sampling_is_written_out() -> None:
    command = made("none", temperature=0.8, top_k=40, top_p=0.95, seed=5, repeat_penalty=1.1)
    assert flag(command, "--temp") == "0.8"
    assert flag(command, "--top-k") == "40"
    assert flag(command, "--min-p") == "0"
    assert flag(command, "--seed") == "5"
    assert flag(command, "--repeat-last-n") == "64"


def test_dry_is_written_with_each_breaker_by_itself() -> None:
    sampling = Sampling(dry_multiplier=0.8, dry_penalty_last_n=100, dry_sequence_breaker=r'\n " User:\x20')
    words = shlex.split(llama_command(StrategySpec(), TARGET, None, sampling, 9).text)
    start = words.index("--dry-multiplier")
    assert words[start : start + 10] == [
        *("--dry-multiplier", "0.8", "--dry-penalty-last-n", "100", "--dry-sequence-breaker", r"\n"),
        *("--dry-sequence-breaker", '"', "--dry-sequence-breaker", r"User:\x20"),
    ]
    assert words[words.index("--samplers") + 1].startswith("penalties;dry;top_n_sigma;")
    assert "--dry-base" not in words and "--dry-allowed-length" not in words  # the same default there
    assert flag(made("none", dry_multiplier=1, dry_sequence_breaker=""), "--dry-sequence-breaker") == "none"
    assert "dry" not in made("none").text.replace(";dry;", ";")


def test_the_whole_context_is_written_in_tokens() -> None:
    sampling = Sampling(repeat_penalty=1.1, repeat_last_n=-1, dry_multiplier=1, dry_penalty_last_n=-1)
    command = llama_command(StrategySpec(), TARGET, None, sampling, 9, n_ctx=2048)
    assert flag(command, "--repeat-last-n") == flag(command, "--dry-penalty-last-n") == "2048"


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


def test_where_the_defaults_differ_the_flag_is_written() -> None:
    command = llama_command(
        StrategySpec.parse("draft-simple"), ModelOptions("t.gguf"), ModelOptions("d.gguf"), Sampling(), 16
    )
    assert not command.differences
    assert flag(command, "--ctx-size") == "8192"  # llama.cpp's default 0 is the model's whole trained context
    assert "--swa-full" in shlex.split(command.text)  # off there
    assert flag(command, "--parallel") == "1"  # 4 there
    assert flag(command, "--fit") == "off"
    # llama.cpp's default is as many as fit.
    assert flag(command, "--n-gpu-layers") == flag(command, "--n-gpu-layers-draft") == "all"
    threads = str(default_threads())
    for name in ("--threads", "--threads-draft", "--threads-batch-draft"):
        assert flag(command, name) == threads


@pytest.mark.parametrize(
    ("asked", "loaded", "says"), [(0, 2048, "2048"), (0, 0, "8192"), (512, 2048, "512"), (8192, 2048, "2048")]
)
def test_the_context_is_the_one_that_was_loaded(asked: int, loaded: int, says: str) -> None:
    target = ModelOptions("t.gguf", ctx_size=asked)
    assert flag(llama_command(StrategySpec(), target, None, Sampling(), 16, loaded), "--ctx-size") == says


def test_without_the_full_window_there_is_no_flag() -> None:
    target = ModelOptions("t.gguf", swa_full=False)
    assert "swa" not in llama_command(StrategySpec(), target, None, Sampling(), 16).text


@pytest.mark.parametrize(
    ("target", "draft", "words"),
    [
        ({}, {"ctx_size": 512, "swa_full": False}, "without its own ctx_size, swa_full"),
        ({"ctx_size": 512}, {}, None),  # as far as the target goes
        ({"flash_attn": "on"}, {}, "without its own flash_attn"),
        ({"device": "CUDA0"}, {}, "the target's devices"),
        ({"device": "CUDA0"}, {"device": "CUDA0"}, None),
    ],
)
def test_what_llama_cpp_opens_otherwise_is_said(
    target: dict[str, Any], draft: dict[str, Any], words: str | None
) -> None:
    spec = StrategySpec.parse("draft-simple")
    command = llama_command(
        spec, ModelOptions("t.gguf", **target), ModelOptions("d.gguf", **draft), Sampling(), 16
    )
    assert [words in line for line in command.differences] == ([True] if words else [])


def test_the_lookup_caches() -> None:
    command = made("ngram-cache:n_draft=4:lookup_cache_dynamic=d.bin:lookup_cache_static=s.bin")
    assert flag(command, "--lookup-cache-dynamic") == "d.bin"
    assert flag(command, "--lookup-cache-static") == "s.bin"
    assert len(command.differences) == 2
    assert "n_draft is left out" in command.differences[0]
    assert "dynamic lookup cache" in command.differences[1]


def other_values(param: Param) -> list[Any]:
    """Values that are not the default."""
    if param.choices:
        return [choice for choice in param.choices if choice != param.default]
    if param.kind is bool:
        return [not param.default]
    if param.name == "replace":
        return ['[["a", "b"]]']
    if param.kind is str:
        return ["7"]
    return [param.low if param.high in (None, param.default) else param.high]


def commands() -> Iterator[CopiedCommand]:
    """With every setting of both models and of every strategy changed, one at a time."""
    draft = StrategySpec.parse("draft-simple")
    for param in params_of(ModelOptions):
        for value in other_values(param):
            changed = ModelOptions("m.gguf", **{param.name: value})
            yield llama_command(draft, changed, changed, Sampling(), 9)
    for kind in KINDS.values():
        for param in params_of(kind.params):
            for value in other_values(param):
                part = StrategyPart(kind.name, replace(kind.params(), **{param.name: value}))
                yield llama_command(StrategySpec((part,)), TARGET, DRAFT, Sampling(), 9)
    for param in params_of(Sampling):
        for value in other_values(param):
            yield made("none", **{param.name: value})


def test_every_flag_that_can_come_out_is_llama_cpps() -> None:
    known = {}
    for line in FLAGS.read_text().splitlines():
        if not line.startswith("#"):
            name, _, value = line.partition(" ")
            known[name] = bool(value)
    for command in commands():
        words = shlex.split(command.text)[1:]
        while words:
            name = words.pop(0)
            assert name in known, command.text
            if known[name]:
                words.pop(0)


HUB = "/cache/models--owner--small-GGUF/snapshots/" + "0" * 40 + "/small-Q4_K_M.gguf"


def made_for_vllm(spec: str, target: str = "t.gguf", **sampling: Any) -> CopiedCommand:
    return vllm_command(
        StrategySpec.parse(spec), ModelOptions(target), ModelOptions("d.gguf"), Sampling(**sampling), 64
    )


def value(command: CopiedCommand, flag: str) -> str | None:
    words = shlex.split(command.text)
    return words[words.index(flag) + 1] if flag in words else None


@pytest.mark.parametrize(
    ("spec", "config"),
    [
        ("none", None),
        ("draft-simple:n_max=4", {"method": "draft_model", "model": "d.gguf", "num_speculative_tokens": 4}),
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
    told = value(made_for_vllm(spec), "--speculative-config")
    assert (None if told is None else json.loads(told)) == config


def test_sampling_holds_for_every_request() -> None:
    command = made_for_vllm("none", temperature=0.7, top_k=40, repeat_penalty=1.1, seed=5)
    told = json.loads(value(command, "--override-generation-config") or "")
    assert told == {
        "temperature": 0.7, "top_k": 40, "top_p": 1.0, "min_p": 0.0, "repetition_penalty": 1.1,
        "max_new_tokens": 64,
    }  # fmt: skip
    assert value(command, "--seed") == "5"


def test_sampled_drafts_are_sampled_in_vllm_too() -> None:
    taken, drawn = made_for_vllm("draft-simple:n_max=4"), made_for_vllm("draft-simple:n_max=4:sample=1")
    assert '"draft_sample_method": "probabilistic"' in drawn.text and "sample_method" not in taken.text
    assert drawn.differences == taken.differences


def test_models_of_the_hub_go_by_their_names() -> None:
    assert made_for_vllm("none", HUB).text.startswith("vllm serve owner/small-GGUF:Q4_K_M ")


@pytest.mark.parametrize(
    ("spec", "sampling", "words"),
    [
        ("ngram-mod", {}, "vLLM has no ngram-mod"),
        ("draft-eagle3", {}, "vLLM loads no heads from GGUF files: draft-eagle3"),
        ("suffix+draft-simple", {}, "draft-simple is left out, suffix stays"),
        ("draft-simple:p_min=0.5", {}, "p_min is left out"),
        ("draft-simple:verify=match", {"temperature": 0.8}, "not by match"),
        ("draft-simple:length=auto", {}, "length=auto is left out"),
        ("none", {"typical_p": 0.5}, "vLLM has no typical_p"),
    ],
)
def test_what_vllm_does_otherwise_is_said(spec: str, sampling: dict[str, Any], words: str) -> None:
    assert any(words in line for line in made_for_vllm(spec, **sampling).differences)


def test_where_nothing_drafts_no_rule_is_compared() -> None:
    assert not any(
        "verifies" in line for line in made_for_vllm("ngram-mod:verify=match", temperature=0.8).differences
    )


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


def test_every_sampler_setting_is_in_a_command_or_among_its_differences() -> None:
    usual = made("none", temperature=1), made_for_vllm("none", temperature=1)
    for name, sampling in each_switched_on():
        changed = {name: getattr(sampling, name), "temperature": WARM.temperature}
        commands = made("none", **changed), made_for_vllm("none", **changed)
        for command, without in zip(commands, usual, strict=True):
            assert command != without, f"{name} is neither in {command.text} nor among the differences"
