"""`draftscope drafts` as typed: the table, its order, the JSON, and what is refused."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from app.lab.drafts import DRAFT_COLUMNS
from app.lab.report.report import Report
from tests.commands import Command
from tests.files.tiny import Tiny


def test_a_folder_of_drafts_is_judged(
    command: Command, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, draft = pair_files
    folder = tmp_path / "drafts"
    folder.mkdir()
    for name, file in (("itself.gguf", target), ("draft.gguf", draft)):
        (folder / name).write_bytes(file.read_bytes())
    (folder / "damaged.gguf").write_bytes(b"GGUF")
    prompts, out = tmp_path / "prompts.txt", tmp_path / "out.json"
    prompts.write_text("abcabcabd abc\nthe quick brown fox\none two\n")
    ended = command(
        "drafts", folder, "--target", target, "--prompts", prompts, "--max-tokens", 20,
        "--ignore-eos", "--engine", "thread", "--json", out,
    )  # fmt: skip
    assert ended.code == 0, ended.err
    lines = ended.out.splitlines()
    assert {line.split()[0] for line in lines[2:4]} == {"itself.gguf", "draft.gguf"}
    assert any(line.startswith("damaged.gguf was not judged: ") for line in lines)
    assert {f"{column.title}: {column.definition}" for column in DRAFT_COLUMNS} <= set(lines)
    assert lines[-1].startswith(f"Over 3 answers of {target.name}, 60 tokens.")
    report = json.loads(out.read_text())
    assert [draft["file"] for draft in report["drafts"]][-1] == "damaged.gguf"
    alphas = {draft["file"]: draft["alpha"] for draft in report["drafts"]}
    assert alphas["itself.gguf"] == 1.0
    assert report["tokens"] == 60


@pytest.mark.verify
def test_five_drafts_have_the_order_that_bench_measures(
    command: Command, tiny_file: Callable[[Tiny], Path], tmp_path: Path
) -> None:
    target = tiny_file(Tiny(name="wide", scale=2.0))
    noises = (0.0, 0.02, 0.05, 0.1, 0.4)
    files = [tiny_file(Tiny(name=f"near-{noise}", scale=2.0, noise=noise, noise_seed=7)) for noise in noises]
    prompts, judged, measured = (tmp_path / name for name in ("prompts.txt", "drafts.json", "bench.json"))
    prompts.write_text("abcabcabd abc\nthe quick brown fox\none two three\n")
    asked = ("--target", target, "--prompts", prompts, "--temperature", 1, "--seed", 3, "--ignore-eos")
    ended = command(
        "drafts", *reversed(files), *asked, "--max-tokens", 80, "--engine", "thread", "--json", judged
    )
    assert ended.code == 0, ended.err
    lanes = tmp_path / "lanes.json"
    drafting = [{"strategy": "draft-simple:n_max=1:sample=1", "draft": str(file)} for file in reversed(files)]
    lanes.write_text(json.dumps(drafting))
    more = ("--max-tokens", 160, "--repeat", 1, "--engine", "thread", "--json", measured)
    ended = command("bench", *asked, "--lanes", lanes, *more)
    assert ended.code == 0, ended.err
    found = {draft["file"]: draft["alpha"] for draft in json.loads(judged.read_text())["drafts"]}
    report = Report.from_json(measured.read_bytes())
    accepted = {
        report.pairs[lane.pair].draft.file: row.acceptance_rate
        for lane, row in zip(report.lanes, report.summary, strict=True)
        if row.drafted
    }
    assert len(found) == len(accepted) == 5
    best_first = [file.name for file in files]
    assert sorted(found, key=found.__getitem__, reverse=True) == best_first
    assert sorted(accepted, key=accepted.__getitem__, reverse=True) == best_first


def test_at_a_temperature_the_strategy_that_is_predicted_is_named(
    command: Command, pair_files: tuple[Path, Path]
) -> None:
    target, draft = pair_files
    words = ["drafts", draft, "--target", target, "--prompt", "abc", "--max-tokens", 8, "--engine", "thread"]
    assert "sample=1" not in command(*words).out
    assert command(*words, "--temperature", 0.8).out.splitlines()[-1].startswith("At this temperature")


def test_the_target_of_a_folder_is_not_its_own_draft(
    command: Command, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    copy = tmp_path / "target.gguf"
    copy.write_bytes(pair_files[0].read_bytes())
    ended = command("drafts", tmp_path, "--target", copy, "--prompt", "abc", "--engine", "thread")
    assert ended.code == 2
    assert "There is no draft in these folders." in ended.err


def test_a_file_that_is_missing_is_named(command: Command, pair_files: tuple[Path, Path]) -> None:
    ended = command("drafts", "/nowhere/d.gguf", "--target", pair_files[0], "--prompt", "abc")
    assert ended.code == 1
    assert "d.gguf does not exist." in ended.err


def test_a_command_that_judged_no_draft_ends_with_1(
    command: Command, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"GGUF and nothing else")
    words = ["--target", pair_files[0], "--prompt", "abcabc", "--max-tokens", 6, "--ignore-eos"]
    ended = command("drafts", *words, "--engine", "thread", bad)
    assert ended.code == 1
    assert ended.err.splitlines()[-1].startswith("draftscope drafts: No draft could be judged. ")
    assert "bad.gguf was not judged: " in ended.out


def test_an_interrupt_says_how_far_it_came(pair_files: tuple[Path, Path]) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "app", "drafts", "--target", pair_files[0], pair_files[1]),
            *("--suite", "general", "--max-tokens", "64", "--ignore-eos"),
        ],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith("1 of "):
            break
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=90)
    assert process.returncode == 130
    assert "answers of up to 64 tokens; then it and 1 draft read them." in lines[0]
    assert "left" in lines[-1]
    assert "Interrupted: " in rest and " of 1 drafts judged." in rest
