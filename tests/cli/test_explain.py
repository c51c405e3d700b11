"""`draftscope explain` as typed: commands, files with commands, logs, other files."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from app.cli import advise
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
    server = ["llama-server", "-m", str(target), "-md", str(draft), "--spec-type", "draft-simple"]
    ended = command("explain", shlex.join(server))
    assert ended.code == 0, ended.err
    assert f"{draft.name} as a draft for {target.name}: " in ended.out


def test_a_log_is_summed_up(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "server.log"
    file.write_text(TWO_ANSWERS)
    ended = command("explain", file)
    assert ended.code == 0, ended.err
    assert "2 answers, 60 tokens, 30.0 tokens/s while generating." in ended.out
    assert "Acceptance 41.7\N{NO-BREAK SPACE}%: 25 of 60 drafted tokens were accepted" in ended.out


def test_a_journal_of_llama_server_is_a_log(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "journal.txt"
    lines = [f"Nov 22 host llama-server[7]: {line}" for line in TWO_ANSWERS.splitlines()]
    file.write_text("\n".join(["-- Logs begin at Sun 2026-11-22 --", *lines]))
    assert "2 answers, 60 tokens" in command("explain", file).out


def test_a_log_that_is_too_long_is_said_to_be_cut(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "server.log"
    file.write_text(TWO_ANSWERS)
    assert "Only the first" not in command("explain", file).out
    monkeypatch.setattr(advise, "LARGEST", len(TWO_ANSWERS) - 1)
    assert command("explain", file).out.endswith("of the text were read.\n")


@pytest.mark.parametrize("name", ["~nobody-of-this-name/t.gguf", "t" * 5000])
def test_names_that_no_file_can_have_are_explained(command: Command, name: str) -> None:
    ended = command("explain", f"llama-server -m {name} -md {name} --spec-type draft-simple")
    assert ended.code == 0, ended.err
    assert ended.out.startswith(f"Answers from {name}")


def test_what_comes_on_standard_input_is_explained(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "log").write_text(TWO_ANSWERS)
    with (tmp_path / "log").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert "2 answers, 60 tokens" in command("explain", "-").out


def test_our_own_statistics_are_explained(command: Command, pair_files: tuple[Path, Path]) -> None:
    target, draft = pair_files
    words = ["-m", target, "-md", draft, "-p", "abcabcabcabc", "--ignore-eos", "-n", 30]
    run = command("run", *words, "--strategy", "ngram-simple:size_n=2+draft-simple")
    said = command("explain", run.err)
    assert said.code == 0, said.err
    assert "Drafts with ngram-simple and draft-simple." in said.out
    assert "1 answer, 30 tokens" in said.out
    assert all(f"  {name}:" in said.out for name in ("#calls(b,g,a)", "#gen drafts", "dur(b,g,a)"))


def test_a_script_is_explained_and_not_run(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "serve.py"
    file.write_text(
        f"open({str(tmp_path / 'ran')!r}, 'w')\nllm = LLM('m', speculative_config=dict(method='ngram'))\n"
    )
    assert "strategy prompt-lookup:max_ngram_size=5." in command("explain", file).out
    assert not (tmp_path / "ran").exists()


def test_other_files_are_refused_in_a_sentence(command: Command, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("Buy milk.")
    ended = command("explain", tmp_path / "notes.txt")
    assert ended.code == 1
    assert "notes.txt: This is not a command of llama-server" in ended.err
    assert "cannot be read" in command("explain", tmp_path).err
    assert "none.log is not a file." in command("explain", tmp_path / "none.log").err
    assert "There is nothing to explain." in command("explain", " ").err
    assert "Give a command with its options" in command("explain", "llama-server").err
    assert "This is not a command" in command("explain", "Buy milk").err
