"""`draftscope drafts` as typed: the table, its order, the JSON, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

from app.lab.drafts.columns import DRAFT_COLUMNS
from tests.commands import Command


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
    assert "d.gguf is not there." in ended.err
