"""Drafts as text: those of a strategy alone, and those of every round."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.base.paths import BUNDLED_TARGET, find_paths
from app.engine.errors import UserError
from app.engine.forcing import draft_alone
from app.engine.record.trace import read_trace
from app.engine.templates.process import Templates
from app.engine.types import GenerationRequest, Message
from tests.commands import Command

ALONE = ["run", "--draft-only", "--strategy"]
TEXT = "The cat sat on the mat. The cat sat"


def test_a_strategy_drafts_alone_after_the_prompt(command: Command) -> None:
    ended = command(*ALONE, "prompt-lookup", "--prompt", TEXT)
    assert ended.code == 0, ended.err
    assert ended.out == " on the mat. The \n"
    head, *tokens = ended.err.splitlines()
    assert head.startswith("prompt-lookup drafts 8 tokens after a prompt of 16 tokens, copied from token 6")
    texts = [json.loads(line[line.index('"') :]) for line in tokens]
    assert "".join(texts) == " on the mat. The "
    assert all(line.split()[0].isdigit() for line in tokens)


def test_the_first_strategy_that_finds_a_draft_is_shown(command: Command) -> None:
    ended = command(*ALONE, "ngram-mod+prompt-lookup", "--prompt", TEXT, "-n", 2)
    assert ended.err.startswith("prompt-lookup drafts 2 tokens")
    none = command(*ALONE, "prompt-lookup", "--prompt", "xyz")
    assert (none.code, none.out) == (0, "\n")
    assert none.err == "No draft after a prompt of 2 tokens (prompt-lookup: no match).\n"


def test_weights_are_not_read(command: Command, pair_files: tuple[Path, Path], tmp_path: Path) -> None:
    """A target whose weights are no numbers cannot answer; its vocabulary is all that a draft needs."""
    broken = tmp_path / "broken.gguf"
    raw = pair_files[0].read_bytes()
    broken.write_bytes(raw[: len(raw) * 3 // 4] + b"\xff" * (len(raw) - len(raw) * 3 // 4))
    words = ["--target", broken, "--prompt", "abcabcabc", "-n", 2]
    assert command("run", *words).code == 1
    ended = command(*ALONE, "prompt-lookup", *words)
    assert ended.code == 0, ended.err
    assert ended.err.startswith("prompt-lookup drafts 2 tokens")


def test_a_chat_is_written_with_the_files_template() -> None:
    text = "hello"
    target, templates = find_paths().model(BUNDLED_TARGET), Templates()
    try:
        chat = GenerationRequest(messages=(Message("user", text),), strategy="prompt-lookup")
        told = draft_alone(target, chat, templates)
    finally:
        templates.close()
    raw = draft_alone(target, GenerationRequest(text, strategy="prompt-lookup"), templates)
    assert told.prompt_tokens > raw.prompt_tokens + 5


@pytest.mark.parametrize("strategy", ["none", "draft-simple", "oracle"])
def test_strategies_that_need_a_model_are_refused(strategy: str) -> None:
    with pytest.raises(UserError, match="cannot draft without a target"):
        draft_alone(
            find_paths().model(BUNDLED_TARGET), GenerationRequest("a", strategy=strategy), Templates()
        )


def test_each_round_is_printed_with_what_became_of_its_draft(
    command: Command, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, draft = pair_files
    out = tmp_path / "t.jsonl"
    words = ["run", "-m", target, "-md", draft, "-p", "abcabcabd abc", "-s", 7, "--ignore-eos", "-n", 40]
    words += ["--strategy", "draft-simple:n_max=4", "--trace", out]
    plain, drafted = command(*words), command(*words, "--drafted")
    assert drafted.out == plain.out
    trace = read_trace(out)
    rounds = [line for line in drafted.err.splitlines() if line.startswith("round ")]
    assert len(rounds) == len(trace.rounds)
    for line, round in zip(rounds, trace.rounds, strict=True):
        for verdict in ("accepted", "rejected", "ignored"):
            assert (f"{verdict} " in line) == bool(getattr(round, verdict))
        if round.drafted:
            assert f"round {round.index + 1}, draft-simple: " in line
    assert [
        line for line in command("replay", out, "--drafted").err.splitlines() if line[:6] == "round "
    ] == rounds
    assert "round 1" not in plain.err
