"""`draftscope advise`, and the advice that `run`, `bench` and `tune` give."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from app.cli.advise import advice_text
from app.cli.models.common import open_shelf
from app.engine.engine import Engine
from app.engine.explain.purposes import PURPOSES
from app.engine.record.trace import Trace, read_trace
from app.engine.types import ModelOptions
from app.ui.state.answer import AnswerModel
from tests.answers import answer
from tests.commands import Command
from tests.engine.explain.advised import at_costs
from tests.files.tiny import Tiny

ROOT = Path(__file__).parents[2]
PROMPT = "abcabcabd abc"
TARGET = Tiny(name="target", n_layers=24, n_embd=128, n_ctx=1024)
FAR = Tiny(name="far", n_ctx=1024, noise=0.6, noise_seed=3)
NEAR = Tiny(name="near", n_layers=2, n_embd=128, n_ctx=1024)


@pytest.fixture(autouse=True)
def empty_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of its own: the machine's may have a draft."""
    for name in ("DRAFTSCOPE_HOME", "HF_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))


def test_every_kind_of_work_is_listed_with_its_strategy_and_why(command: Command) -> None:
    ended = command("advise")
    words = " ".join(ended.out.split())
    assert ended.code == 0 and "reasoning: ngram-mod+draft-simple" in ended.out
    for purpose in PURPOSES:
        first = purpose.first(has_draft=True)
        assert f"{purpose.key}: {first.strategy}" in ended.out.splitlines()
        assert " ".join(first.reason.split()) in words


def test_a_kind_of_work_is_answered_with_commands_for_the_pair(command: Command) -> None:
    two = ("--device", "CUDA0,CUDA1")
    ended = command("advise", "--for", "code-edits", "--target", "t.gguf", "--draft", "d.gguf", *two)
    lines = ended.out.splitlines()
    assert ended.code == 0 and lines[-1] == "ngram-mod+draft-simple"
    llama, vllm = (
        shlex.split(next(line for line in lines if line.startswith(name)))
        for name in ("llama-server", "vllm")
    )
    assert llama[llama.index("--spec-type") + 1] == "ngram-mod,draft-simple"
    assert vllm[vllm.index("--tensor-parallel-size") + 1] == "2"
    config = json.loads(vllm[vllm.index("--speculative-config") + 1])
    assert (config["model"], config["draft_tensor_parallel_size"]) == ("d.gguf", 1)
    alone = command("advise", "--for", "code-edits", "--target", "t.gguf")
    assert alone.out.splitlines()[-1] == "ngram-mod" and "--tensor-parallel-size" not in alone.out


def test_work_that_nobody_knows_is_refused_with_what_is_allowed(command: Command) -> None:
    for words in (("advise",), ("tune", "--prompt", "Hi")):
        ended = command(*words, "--for", "knitting")
        assert ended.code == 2 and "Allowed: chat, code-edits, reasoning" in ended.err


def test_where_llama_cpps_guide_says_otherwise_the_reason_is_measured() -> None:
    """Its docs/speculative.md proposes ngram-mod with its defaults for code, reasoning and summaries."""
    page = (ROOT / "docs" / "measuring.md").read_text(encoding="utf-8")
    rows = [[cell.strip(" `*") for cell in line.split("|")] for line in page.splitlines() if "|" in line]
    quote = next(row for row in rows if row[1:2] == ["strategy"]).index("quote")
    measured = {row[1]: row[quote] for row in rows if len(row) > quote and row[1][:1].islower()}
    short = "ngram-mod:n_match=4:n_min=1:n_max=16"
    summaries = {
        f"{short}+draft-simple:n_max=4": ("{}×, and the draft model alone {}×", "draft-simple:n_max=4"),
        "prompt-lookup": ("prompt-lookup made {}× and ngram-mod {}×", short),
    }
    for purpose in PURPOSES:
        for first in (purpose.with_draft, purpose.without_draft):
            if purpose.key in ("code-edits", "reasoning"):
                assert first.strategy.partition("+")[0] == "ngram-mod"
            elif purpose.key == "summarise-and-quote":
                words, other = summaries[first.strategy]
                assert "llama.cpp's guide" in first.reason
                assert words.format(measured[first.strategy], measured[other]) in first.reason


def test_run_ends_with_the_sentence_of_the_window(
    command: Command, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, draft = pair_files
    trace = tmp_path / "t.jsonl"
    words = ("--target", target, "--draft", draft, "--prompt", PROMPT, "--max-tokens", 60, "--ignore-eos")
    ended = command("run", *words, "--strategy", "draft-simple", "--trace", trace)
    said = ended.err.splitlines()[-1]
    advice = AnswerModel(read_trace(trace)).advice(ModelOptions(str(target)), ModelOptions(str(draft)))
    assert ended.code == 0 and advice is not None and said == advice.text
    plain = command("run", *words, "--strategy", "none")
    assert "Too few" not in plain.err and "speculation" not in plain.err


def test_bench_ends_with_advice_on_every_lane_that_drafts(
    command: Command, pair_files: tuple[Path, Path]
) -> None:
    target, draft = pair_files
    ended = command(
        "bench",
        *("--target", target, "--draft", draft, "--prompt", PROMPT, "--max-tokens", 60, "--ignore-eos"),
        *("--repeat", 1, "--strategy", "draft-simple", "--strategy", "ngram-mod"),
    )
    assert ended.code == 0, ended.err
    *_, first, second = ended.out.splitlines()
    assert first.startswith("draft-simple: ") and second.startswith("ngram-mod: ")
    assert "× was measured" in first or "Keep this" in first
    assert second.startswith("ngram-mod: ") and "ngram-mod found a draft in" in second


def test_the_library_is_asked_for_another_draft_and_for_a_smaller_one(
    command: Command, tiny_file: Callable[[Tiny], Path]
) -> None:
    target, far, near = (tiny_file(tiny) for tiny in (TARGET, FAR, NEAR))
    pair = ModelOptions(str(target)), ModelOptions(str(far))
    with Engine(*pair) as engine:
        trace = answer(engine, PROMPT, strategy="draft-simple", max_tokens=90, ignore_eos=True)
    costly = Trace(trace.header, at_costs(trace.rounds, 0.1), trace.totals)
    before = advice_text([costly], *pair, speedup=0.9)
    assert "as the draft" not in before
    open_shelf().add([near])
    after = advice_text([costly], *pair, speedup=0.9)
    assert re.search(r"Or try near(-\d+)? as the draft \(\d+ % of the target's size\)", after)
    ended = command("advise", "--for", "little-memory", "--target", target, "--draft", target)
    assert re.search(r"With a draft, near(-\d+)? of your library takes less: \d", ended.out)


def test_tune_tries_the_strategy_for_the_work_first(command: Command, pair_files: tuple[Path, Path]) -> None:
    target, draft = pair_files
    ended = command(
        "tune",
        *("--target", target, "--draft", draft, "--prompt", PROMPT, "--max-tokens", 16, "--ignore-eos"),
        *("--seconds", 1, "--for", "long-sessions", "--strategy", "prompt-lookup"),
    )
    assert "suffix+draft-simple is tried first. suffix remembers the answers" in ended.err
    assert any(line.startswith("suffix+draft-simple ") for line in ended.out.splitlines())
