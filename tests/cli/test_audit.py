"""`draftscope audit`: its page, its exit codes, and servers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.audits import lenient_rule
from tests.commands import Command
from tests.files.heads import files
from tests.files.tiny import Tiny
from tests.servers.real_server import STORY, VARIABLE, find_server, running
from tests.servers.scripted import (
    DRAFTING,
    PLAIN,
    Answer,
    Asked,
    counted,
    ended,
    event,
    llama_server,
    serving,
)

PROGRAM = find_server()
OTHER = (counted(1, "a", 1), counted(2, "b", 2), counted(4, "d", 3), ended(3))
"""Parts from the answer with drafts at its last token."""


def test_a_page_is_printed_and_a_fault_has_a_code_of_its_own(
    command: Command, pair_files: tuple[Path, Path]
) -> None:
    words: tuple[Any, ...] = (
        "audit",
        "--target",
        pair_files[0],
        "--draft",
        pair_files[1],
        "--prompt",
        "abcabcabd abc",
    )
    words += ("--strategy", "draft-simple:n_max=4", "--max-tokens", 40)
    done = command(*words)
    assert done.code == 0, done.err
    assert done.out.startswith("# Audit of drafting: ") and "sha256" in done.out
    assert "`draft-simple:n_max=4`" in done.out and "Reading the text again" in done.err
    with lenient_rule():
        done = command(*words, "--repeat-penalty", 1.1)
    assert done.code == 3 and "# Audit of drafting: a fault of a rule" in done.out, done.out


def test_a_head_drafts_by_its_own_strategy_if_none_is_named(
    command: Command, tiny_file: Callable[[Tiny], Path]
) -> None:
    target, head = files("draft-eagle3 llama", tiny_file)
    asked = ("--target", target, "--draft", head, "--prompt", "abcabcabd abc", "--max-tokens", 12)
    done = command("audit", *asked, "--temperature", 0.8)
    assert done.code == 0 and "`draft-eagle3:verify=match`" in done.out, done.err
    assert "nothing was drafted" not in done.out
    done = command("quants", *asked, "--types", "q8_0", "--repeat", 1, "--engine", "thread")
    assert done.code == 0 and "drafting: with draft-eagle3:length=auto." in done.out, done.err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--strategy", "none"), "none does not draft."),
        (("--server", "http://127.0.0.1:1", "--target", "x"), "--target cannot be used with --server."),
        (("--server", "http://127.0.0.1:1", "--temperature", 1), "only at temperature 0"),
    ],
)
def test_what_cannot_be_audited_is_refused(command: Command, words: tuple[Any, ...], told: str) -> None:
    done = command("audit", "--prompt", "a", *words)
    assert done.code == 2 and told in done.err


def judging(plain: tuple[Any, ...], told: dict[str, float]) -> dict[str, Any]:
    """A server without drafting that tells these log p of its next token."""

    def complete(asked: Asked) -> Answer:
        if asked.body.get("stream"):
            return Answer(pieces=map(event, plain))
        top = [{"id": ord(text) - 96, "token": text, "logprob": p} for text, p in told.items()]
        return Answer({"completion_probabilities": [{"top_logprobs": top}] if told else []})

    return llama_server(types="none") | {"/completion": complete}


@pytest.mark.parametrize(
    ("plain", "told", "code", "finding"),
    [
        (PLAIN, {}, 0, "the same text"),
        (OTHER, {"d": -0.69, "c": -0.70}, 0, "rounding"),
        (OTHER, {"d": -0.01, "c": -6.0}, 3, "a fault of the server"),
        (OTHER, {"d": -0.01, "x": -6.0}, 3, "a fault of the server"),
        (OTHER, {}, 1, "the reason is unknown"),
    ],
)
def test_two_servers_are_compared(
    command: Command, plain: tuple[Any, ...], told: dict[str, float], code: int, finding: str
) -> None:
    with serving(llama_server(*DRAFTING)) as drafting, serving(judging(plain, told)) as other:
        done = command(
            "audit",
            "--server",
            drafting.address,
            "--server",
            other.address,
            "--prompt",
            "x",
            "--max-tokens",
            3,
        )
        asked = [body for body in other.bodies("/completion") if body.get("n_probs")]
    assert done.code == code and finding in done.out, done.out + done.err
    if plain is OTHER:
        assert [body["prompt"] for body in asked] == [[5, 6, 7, 1, 2]], "the shared text, in tokens"
        assert "“d” without drafting, “c” with it" in done.out


def test_a_server_that_always_drafts_needs_a_second_one(command: Command) -> None:
    with serving(llama_server(*DRAFTING)) as server:
        done = command("audit", "--server", server.address, "--prompt", "x")
    assert done.code == 1 and "always drafts" in done.err and "second --server" in done.err


@pytest.mark.same_text
@pytest.mark.skipif(PROGRAM is None, reason=f"make peer builds llama-server, or {VARIABLE} names one")
def test_a_real_server_has_no_fault(command: Command, demo_pair: tuple[Path, Path]) -> None:
    assert PROGRAM is not None
    target, draft = demo_pair
    with (
        running(PROGRAM, target, draft, "draft-simple:n_max=4") as drafting,
        running(PROGRAM, target, None, "none") as plain,
    ):
        words = ("audit", "--server", drafting, "--server", plain, "--prompt", STORY, "--max-tokens", 40)
        done = command(*words, "--ignore-eos")
    assert done.code == 0 and ("the same text" in done.out or "rounding" in done.out), done.out + done.err
