"""llama-server command lines, read: what drafts, what does not and why, and the lane that is the same."""

from __future__ import annotations

import shlex

import pytest

from app.cli.measure.bench import parse_bench
from app.engine.errors import SettingError
from app.engine.explain.llama_command import llama_command
from app.engine.explain.server_command import explain_command
from app.engine.strategy import StrategySpec
from app.engine.types import ModelOptions, Sampling

DRAFT = "llama-server -m t.gguf -md d.gguf "


@pytest.mark.parametrize(
    "strategy",
    [
        "none",
        "draft-simple:n_max=8:p_min=0.5",
        "ngram-simple:size_n=4:size_m=8",
        "ngram-map-k:min_hits=2+ngram-mod:n_match=16:n_min=2:n_max=32+draft-simple:n_max=4",
        "ngram-cache:lookup_cache_static=a b+c.bin",
    ],
)
def test_our_own_commands_are_read_back(strategy: str) -> None:
    spec = StrategySpec.parse(strategy.replace("b+c", "b%2Bc"))
    target = ModelOptions("t.gguf", ctx_size=4096, n_gpu_layers=3, cache_type_k="q8_0", threads=2)
    written = llama_command(spec, target, ModelOptions("d.gguf", threads=1), Sampling(temperature=0.5), 64)
    read = explain_command(written.text)
    assert read.strategy == str(spec)
    assert (read.target, read.draft) == ("t.gguf", "d.gguf" if spec.needs_draft else "")
    assert not [problem for problem in read.problems if spec.parts]
    words = " ".join(read.options)
    for option in ("--ctx-size 4096", "--n-gpu-layers 3", "--cache-type-k q8_0", "--temperature 0.5"):
        assert option in words


def test_a_draft_without_a_type_is_said_not_to_draft() -> None:
    read = explain_command(DRAFT + "--spec-draft-n-max 8")
    assert any("Add --spec-type draft-simple" in problem for problem in read.problems)
    assert read.strategy == "draft-simple:n_max=8"


def test_a_type_that_leaves_the_draft_out_is_said() -> None:
    assert explain_command(DRAFT + "--spec-type ngram-mod").problems == [
        "The draft model is not used: --spec-type is ngram-mod. Add draft-simple to it."
    ]
    assert explain_command("llama-server -m t.gguf --spec-type none").problems == [
        "Nothing drafts: --spec-type is none."
    ]


@pytest.mark.parametrize("flag", ["--draft", "--draft-n", "--draft-max"])
def test_removed_flags_are_named_with_what_replaced_them(flag: str) -> None:
    read = explain_command(f"{DRAFT} --spec-type draft-simple {flag} 16")
    assert read.problems == [
        f"llama-server does not start: {flag} has been removed. "
        "Use --spec-draft-n-max or --spec-ngram-mod-n-max."
    ]
    assert read.strategy == "draft-simple:n_max=16"


def test_a_draft_beside_n_grams_is_kept_and_has_the_removed_flag() -> None:
    read = explain_command(
        "llama-server -m t -md D --draft 16 --spec-type ngram-mod --spec-ngram-mod-n-match 8"
    )
    assert read.strategy == "ngram-mod:n_match=8+draft-simple:n_max=16"
    assert read.draft == "D"
    assert "The draft model is not used: --spec-type is ngram-mod. Add draft-simple to it." in read.problems
    alone = explain_command("llama-server -m t --draft-max 70 --spec-type ngram-mod")
    assert alone.strategy == "ngram-mod:n_max=70"


def test_flags_that_llama_server_does_not_have_are_told_apart() -> None:
    read = explain_command(
        f"{DRAFT} --spec-type draft-simple -cd 2048 --spec-replace a B --no-such-flag 3 --spec-tyqe x "
        "--port 80"
    )
    stops = "llama-server does not start: it has no "
    assert read.problems == [
        f"{stops}-cd. --ctx-size-draft does the same here.",
        f"{stops}--spec-replace. draft-simple:replace=… does the same here.",
        f"{stops}--no-such-flag, and Draftscope has nothing similar.",
        f"{stops}--spec-tyqe. You may mean --spec-type.",
    ]
    assert read.strategy == 'draft-simple:replace=[["a", "B"]]'
    assert read.options[:2] == ["--ctx-size-draft", "2048"]
    assert read.notes == ["Not carried over: --port."]


@pytest.mark.parametrize(("preset", "size"), [("--fim-qwen-7b-spec", "7B"), ("--fim-qwen-14b-spec", "14B")])
def test_presets_name_both_models(preset: str, size: str) -> None:
    read = explain_command(f"llama-server {preset}")
    assert read.target == f"ggml-org/Qwen2.5-Coder-{size}-Q8_0-GGUF/qwen2.5-coder-{size.lower()}-q8_0.gguf"
    assert read.draft == "ggml-org/Qwen2.5-Coder-0.5B-Q8_0-GGUF/qwen2.5-coder-0.5b-q8_0.gguf"
    assert read.strategy == "draft-simple"
    assert any("Add --spec-type draft-simple" in problem for problem in read.problems)


def test_the_other_programs_of_llama_cpp_are_read() -> None:
    chat = explain_command(
        "./build/bin/llama-cli -m t.gguf -p 'Say -n 5' -n 64 -cnv --spec-default | tee log"
    )
    assert (chat.prompt, chat.strategy) == ("Say -n 5", "ngram-mod")
    assert "llama-cli does not start: it has no -cnv" in chat.problems[0]
    tree = explain_command("llama-speculative.exe -m t.gguf -md d.gguf --spec-draft-n-max 5 -p a")
    assert (tree.strategy, tree.problems) == ("draft-simple:n_max=5", [])
    docker = "docker run -p 80:80 -v m:/m ghcr.io/ggml-org/llama.cpp:server-cuda -m /m/t.gguf --spec-default"
    assert (explain_command(docker).target, explain_command(docker).problems) == ("/m/t.gguf", [])
    assert explain_command(docker).program == "llama-server"


def test_flags_without_their_value_are_said() -> None:
    read = explain_command(f"{DRAFT} --spec-type draft-simple --top-k=5 -fa -ub --swa-full --kv-offload -c")
    assert read.problems == [
        "llama-server does not start: it takes --top-k VALUE, not --top-k=VALUE.",
        "llama-server does not start: -fa needs a value: on, off or auto.",
        "llama-server does not start: -ub needs a value.",
        "llama-server does not start: -c needs a value.",
    ]
    assert read.options[:2] == ["--flash-attn", "on"]
    parse_bench(shlex.split(shlex.join(read.bench))[2:])


def test_values_that_are_not_ours_are_said() -> None:
    read = explain_command(f"{DRAFT} --spec-type draft-simple -t -1 -n -1 --seed 5")
    assert "--threads -1 is not carried over. Allowed: a whole number from 0 to 1,024." in read.notes
    parse_bench(shlex.split(shlex.join(read.bench))[2:])


def test_a_type_without_its_draft_is_said() -> None:
    read = explain_command("llama-server -m t.gguf --spec-type draft-simple")
    assert read.problems == [
        "draft-simple has no draft model: give one with --model-draft or --hf-repo-draft."
    ]


@pytest.mark.parametrize("kind", ["draft-eagle3", "draft-dflash", "draft-dspark"])
def test_a_head_without_its_file_is_said(kind: str) -> None:
    read = explain_command(f"llama-server -m t.gguf --spec-type {kind}")
    assert read.problems == [
        f"{kind} has no file of its head: give one with --model-draft or --hf-repo-draft."
    ]
    own = explain_command("llama-server -m t.gguf --spec-type draft-mtp")
    assert (own.problems, own.strategy) == ([], "draft-mtp")
    hub = explain_command(f"llama-server -hf o/r:Q8_0 --spec-type {kind}")
    assert hub.problems == [] and hub.strategy == kind
    assert f"if a file name there contains {kind.removeprefix('draft-')}-." in hub.notes[0]


def test_types_that_nobody_has_are_refused() -> None:
    read = explain_command("llama-server -m t.gguf --spec-type ngram-mode")
    assert "it has no type ngram-mode" in read.problems[0]


def test_a_head_is_drafted_with_by_its_type() -> None:
    read = explain_command(DRAFT + "--spec-type draft-eagle3,ngram-mod --spec-draft-n-max 5")
    assert read.strategy == "ngram-mod+draft-eagle3:n_max=5"


def test_settings_of_a_strategy_that_is_not_asked_for_are_named() -> None:
    read = explain_command("llama-server -m t.gguf --spec-type ngram-mod --spec-ngram-simple-size-n 3")
    assert "--spec-ngram-simple-size-n has no effect: ngram-simple is not in --spec-type." in read.notes


def test_the_servers_own_sampling_holds_where_nothing_is_said() -> None:
    read = explain_command("llama-server -m t.gguf --spec-default --top-k 20")
    options = dict(zip(read.options[::2], read.options[1::2], strict=True))
    assert options == {"--temperature": "0.8", "--top-k": "20", "--top-p": "0.95", "--min-p": "0.05"}


def test_shells_and_environments_are_read() -> None:
    read = explain_command(
        "LLAMA_ARG_SPEC_TYPE=ngram-mod \\\n  llama-server \\\n  --hf-repo=o/r:Q8_0 -ngl all  # fast\n"
    )
    assert (read.target, read.strategy) == ("o/r:Q8_0", "ngram-mod")
    assert read.options[:2] == ["--n-gpu-layers", "-1"]


def test_a_value_out_of_range_is_a_problem() -> None:
    read = explain_command("llama-server -m t.gguf --spec-type ngram-simple --spec-ngram-simple-size-n 0")
    assert any("size_n" in problem for problem in read.problems)


def test_an_open_quote_is_refused() -> None:
    with pytest.raises(SettingError, match="cannot be read"):
        explain_command("llama-server -m 't.gguf")


def test_the_bench_command_is_one_that_bench_reads() -> None:
    read = explain_command(DRAFT + "--spec-type draft-simple -ngl 0 --temp 0.7 -fa on -ctk q8_0 -cmoe")
    plan = parse_bench(shlex.split(shlex.join(read.bench))[2:])
    assert [lane.strategy for lane in plan.experiment.lanes] == ["none", "draft-simple"]
    assert plan.experiment.sampling.temperature == 0.7
    assert plan.experiment.pair.target.cpu_moe
