"""`draftscope explain` as typed: commands, files with commands, logs, other files."""

from __future__ import annotations

from pathlib import Path

from tests.commands import Command
from tests.engine.explain.test_server_log import TWO_ANSWERS


def test_a_command_is_explained_with_its_lane(command: Command, tmp_path: Path) -> None:
    typed = "llama-server -m t.gguf -md d.gguf --spec-type draft-simple --spec-draft-n-max 8"
    ended = command("explain", typed)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("Answers from t.gguf, drafts from d.gguf; strategy draft-simple:n_max=8.")
    assert '[{"strategy":"draft-simple:n_max=8","target":"t.gguf","draft":"d.gguf"}]' in ended.out
    file = tmp_path / "start.sh"
    file.write_text(f"#!/bin/sh\nexec {typed}\n")
    assert command("explain", file).out == ended.out


def test_files_that_are_here_are_judged(command: Command, pair_files: tuple[Path, Path]) -> None:
    target, draft = pair_files
    ended = command("explain", f"llama-server -m {target} -md {draft} --spec-type draft-simple")
    assert ended.code == 0, ended.err
    assert f"{draft.name} as a draft for {target.name}: " in ended.out


def test_a_log_is_summed_up(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_text(TWO_ANSWERS)
    ended = command("explain", file)
    assert ended.code == 0, ended.err
    assert "2 answers, 60 tokens, 30.0 tokens/s while generating." in ended.out
    assert "Acceptance 41.7\N{NO-BREAK SPACE}%: 25 of 60 drafted tokens were accepted" in ended.out


def test_other_files_are_refused_in_a_sentence(command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Buy milk.")
    ended = command("explain", tmp_path / "notes.txt")
    assert ended.code == 1
    assert "notes.txt holds neither a llama-server command nor its log." in ended.err
    assert "cannot be read" in command("explain", tmp_path / "none.log").err
