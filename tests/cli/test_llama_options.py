"""llama.cpp's names for options, on our command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.answer.options import RunPlan, parse_run
from app.cli.measure.bench import parse_bench
from app.cli.terminal.arguments import UsageError
from app.engine.errors import SettingError
from app.engine.explain.llama_flags import NAMES, PROGRAMS, known_flags
from tests.commands import Command

PROMPT = ["--prompt", "a"]
SHORT = (
    "-c 512 -t 2 -tb 3 -b 64 -ub 32 -ngl all -ctk q8_0 -ctv f16 -fa on -sm row -ts 1,2 -mg 1 -cmoe -ncmoe 2 "
    "-nkvo -nr -lm none -cd 2048 -td 1 -tbd 2 -ngld 0 -ctkd f32 -ctvd f16 -devd X -cmoed -ncmoed 3 "
    "--temp 0.5 -n 9 -s 5 -r END -np 1 -p text"
)
LONG = (
    "--ctx-size 512 --threads 2 --threads-batch 3 --batch-size 64 --ubatch-size 32 --n-gpu-layers -1 "
    "--cache-type-k q8_0 --cache-type-v f16 --flash-attn on --split-mode row --tensor-split 1,2 --main-gpu 1 "
    "--cpu-moe --n-cpu-moe 2 --no-kv-offload --no-repack --load-mode none --ctx-size-draft 2048 "
    "--threads-draft 1 --threads-batch-draft 2 --n-gpu-layers-draft 0 --cache-type-k-draft f32 "
    "--cache-type-v-draft f16 --device-draft X --cpu-moe-draft --n-cpu-moe-draft 3 --temperature 0.5 "
    "--max-tokens 9 --seed 5 --stop END --prompt text"
)


def planned(words: str) -> RunPlan:
    return parse_run(words.split())


def test_llama_cpps_short_flags_are_read_as_the_long_ones() -> None:
    short, long = planned(SHORT), planned(LONG)
    assert (short.target, short.draft, short.request) == (long.target, long.draft, long.request)
    assert (long.target.ctx_size, long.draft and long.draft.ctx_size) == (512, 2048)
    strategy = ["--strategy", "draft-simple"]
    assert (
        parse_bench([*SHORT.split(), *strategy]).experiment
        == parse_bench([*LONG.split(), *strategy]).experiment
    )


@pytest.mark.parametrize("command_name", ["sweep", "tune", "drafts", "devices"])
def test_the_other_commands_list_them_too(command: Command, command_name: str) -> None:
    assert "--ctx-size-draft, -cd N" in command(command_name, "--help").out


@pytest.mark.parametrize("flag", ["-cx", "-c2048", "-nx", "-tdd", "-mdx"])
def test_a_short_flag_is_no_beginning_of_another(flag: str) -> None:
    """argparse reads -cd as -c with the value d."""
    with pytest.raises(UsageError, match=f"unrecognized arguments: {flag} 3"):
        parse_run([flag, "3", *PROMPT])


def test_the_table_names_flags_that_llama_cpp_has() -> None:
    unknown = {name for name in NAMES if not any(name in known_flags(program) for program in PROGRAMS)}
    assert unknown == {"-cd"}  # which it had


@pytest.mark.parametrize(
    ("words", "strategy"),
    [
        ("--draft 16", "draft-simple:n_max=16"),
        ("--draft-max 16 --draft-min 2 --draft-p-min 0.5", "draft-simple:n_max=16:n_min=2:p_min=0.5"),
        ("--spec-draft-n-max 5 --strategy ngram-mod+draft-simple", "ngram-mod+draft-simple:n_max=5"),
        (
            "--draft-max 70 --strategy ngram-mod:n_match=8:verify=match",
            "ngram-mod:n_match=8:n_max=70:verify=match",
        ),
        ("--draft-max 4 --strategy draft-simple:n_max=4", "draft-simple:n_max=4"),
    ],
)
def test_the_drafts_settings_come_as_options_too(words: str, strategy: str) -> None:
    assert planned(f"--prompt a {words}").request.strategy == strategy
    if "--strategy" in words:
        lanes = parse_bench([*PROMPT, *words.split()]).experiment.lanes
        assert [lane.strategy for lane in lanes] == ["none", strategy]


def test_draft_takes_a_file_and_a_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pair_files: tuple[Path, Path]
) -> None:
    target, draft = map(str, pair_files)
    both = parse_run([*PROMPT, "-m", target, "--draft", draft, "--draft", "7"])
    assert (both.draft and both.draft.path, both.request.strategy) == (draft, "draft-simple:n_max=7")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "16").write_bytes(b"")
    named = parse_run([*PROMPT, "-m", target, "--draft", "16"])
    assert (named.draft and named.draft.path, named.request.strategy) == ("16", "none")


def test_a_number_is_a_file_where_nothing_is_drafted(command: Command, pair_files: tuple[Path, Path]) -> None:
    ended = command("devices", "-m", pair_files[0], "--draft", "16")
    assert ended.code == 1
    assert "16" in ended.err


def test_settings_that_nothing_takes_are_refused(command: Command) -> None:
    with pytest.raises(UsageError, match="--draft-max sets n_max, and prompt-lookup has none"):
        planned("--prompt a --draft-max 4 --strategy prompt-lookup")
    with pytest.raises(SettingError, match="n_max is given as 4 and as 8"):
        planned("--prompt a --draft-max 8 --strategy draft-simple:n_max=4")
    with pytest.raises(UsageError, match="--draft-max cannot be used with --server"):
        planned("--prompt a --draft-max 8 --server http://127.0.0.1:1")
    ended = command("tune", *PROMPT, "--draft-max", "8")
    assert ended.code == 2
    assert "--draft-max needs a strategy." in ended.err


def test_parallel_says_what_it_would_mean() -> None:
    with pytest.raises(UsageError, match="would answer this many requests at once") as refused:
        planned("--prompt a -np 4")
    assert "--load 1,4" in str(refused.value)
