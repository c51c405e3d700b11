"""`draftscope advise`, and the advice that `run`, `bench` and `tune` give."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from app.base.paths import find_paths
from app.cli.advise import advice_text
from app.cli.models.here import open_shelf
from app.engine.engine import Engine
from app.engine.explain.facts import Factor
from app.engine.explain.purposes import PURPOSES, TypicalPrompt, TypicalRounds, first_strategy
from app.engine.lengths.auto import AutoLength
from app.engine.process.messages import PassSeconds
from app.engine.record.trace import Trace, read_trace
from app.engine.types import ModelInfo, ModelOptions, PairInfo
from app.saved.measured import Calibrations
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
    assert ended.code == 0
    for purpose in PURPOSES:
        first = first_strategy(purpose, "/demo_pair/target.gguf", "/demo_pair/draft.gguf")
        assert f"{purpose.key}: {first.strategy}" in ended.out.splitlines()
        assert " ".join(first.reason.split()) in words


def test_a_kind_of_work_is_answered_with_commands_for_the_pair(command: Command) -> None:
    two = ("--device", "CUDA0,CUDA1")
    ended = command("advise", "--for", "chat", *two)
    lines = ended.out.splitlines()
    assert ended.code == 0 and lines[-1] == "draft-simple:n_max=4:p_min=0.5", "the bundled pair's"
    llama, vllm = (
        shlex.split(next(line for line in lines if line.startswith(name)))
        for name in ("llama-server", "vllm")
    )
    assert llama[llama.index("--spec-type") + 1] == "draft-simple"
    assert vllm[vllm.index("--tensor-parallel-size") + 1] == "2"
    config = json.loads(vllm[vllm.index("--speculative-config") + 1])
    assert config["draft_tensor_parallel_size"] == 1
    alone = command("advise", "--for", "chat", "--target", "t.gguf")
    assert alone.out.splitlines()[-1] == "none" and "--tensor-parallel-size" not in alone.out


def test_only_answers_with_the_named_strategy_are_counted() -> None:
    kinds = {draft: {"none": TypicalRounds({0: 90})} for draft in ("", "d.gguf")}
    kinds["d.gguf"]["draft-simple:n_max=2"] = TypicalRounds({2: 30}, 60)
    known = [TypicalPrompt("t.gguf", *each, 90, {1: 1.0, 3: 1.0}, 0.1, kinds[each[0]]) for each in (
        ("", "talk"), ("d.gguf", "talk"), ("d.gguf", "story")
    )]  # fmt: skip
    first = first_strategy(PURPOSES[0], "/other.gguf", "/d2.gguf", prompts=known)
    assert first.strategy == "draft-simple:n_max=2" and "from 2 measured answers" in first.reason


def test_the_times_of_passes_here_decide_on_a_kind_of_work(command: Command) -> None:
    """Passes over several tokens cost almost nothing, or as much as one by one."""
    pair = PairInfo(ModelInfo("/m/t.gguf", "", "", "", 1, 1, 1, 1, 1, 1, 1, True))
    find_paths().calibrations.parent.mkdir(parents=True)
    for slope, gains in ((0.0, True), (1.0, False)):
        passes = PassSeconds({k: 1 + slope * (k - 1) for k in (1, 2, 3, 5, 9, 17)})
        Calibrations(find_paths().calibrations).keep(pair, passes)
        ended = command("advise", "--target", "/m/t.gguf")
        assert ("code-edits: none" not in ended.out) is gains and "this machine's pass times" in ended.out


def test_work_that_nobody_knows_is_refused_with_what_is_allowed(command: Command) -> None:
    for words in (("advise",), ("tune", "--prompt", "Hi")):
        ended = command(*words, "--for", "knitting")
        assert ended.code == 2 and "Allowed: chat, code-edits, structured-output" in ended.err


def test_run_ends_with_the_sentence_of_the_window(
    command: Command, pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    target, draft = pair_files
    trace = tmp_path / "t.jsonl"
    words = ("--target", target, "--draft", draft, "--prompt", PROMPT, "--max-tokens", 60, "--ignore-eos")
    ended = command("run", *words, "--strategy", "draft-simple", "--trace", trace)
    said = ended.err.splitlines()[-1]
    pair = ModelOptions(str(target)), ModelOptions(str(draft))
    question = AnswerModel(read_trace(trace)).question(*pair, drafts=())  # the library is empty
    advice = question.answer() if question is not None else None
    assert ended.code == 0 and advice is not None and said == advice.text
    plain = command("run", *words, "--strategy", "none")
    assert "Too few" not in plain.err and "speculation" not in plain.err


def test_run_tells_length_auto_what_passes_take_here(
    command: Command, pair_files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, draft = pair_files
    trace, told, begin = tmp_path / "t.jsonl", list[PassSeconds | None](), AutoLength.begin
    monkeypatch.setattr(AutoLength, "begin", lambda own, at: (told.append(at.passes), begin(own, at))[1])
    words = ("run", "--engine", "thread", "--target", target, "--draft", draft, "--prompt", PROMPT)
    more = ("--max-tokens", 8, "--strategy", "draft-simple:length=auto", "--trace", trace)
    assert command(*words, *more).code == 0
    passes = PassSeconds({1: 0.01, 2: 0.02}, 0.001)
    find_paths().calibrations.parent.mkdir(parents=True, exist_ok=True)
    Calibrations(find_paths().calibrations).keep(read_trace(trace).header.pair, passes)
    assert command(*words, *more).code == 0
    assert told == [None, passes]


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
    assert "× was measured" in second or "Keep this" in second


def test_the_library_is_asked_for_another_draft_and_for_a_smaller_one(
    command: Command, tiny_file: Callable[[Tiny], Path]
) -> None:
    target, far, near = (tiny_file(tiny) for tiny in (TARGET, FAR, NEAR))
    pair = ModelOptions(str(target)), ModelOptions(str(far))
    with Engine(*pair) as engine:
        trace = answer(engine, PROMPT, strategy="draft-simple", max_tokens=90, ignore_eos=True)
    costly = Trace(trace.header, at_costs(trace.rounds, 0.1), trace.totals)
    before = advice_text([costly], *pair, (), Factor(0.9, 0.85, 0.95))
    assert "as the draft" not in before
    open_shelf().add([near])
    after = advice_text([costly], *pair, (), Factor(0.9, 0.85, 0.95))
    assert re.search(r"Or try near(-\d+)? as the draft \(\d+ % of the target's size\)", after)
    ended = command("advise", "--for", "little-memory", "--target", target, "--draft", target)
    assert re.search(r"As the draft, near(-\d+)? from your library needs less memory: \d", ended.out)


def test_tune_tries_the_strategy_for_the_work_first(command: Command) -> None:
    ended = command(
        "tune",
        *("--prompt", PROMPT, "--max-tokens", 16, "--ignore-eos"),
        *("--seconds", 1, "--for", "chat", "--strategy", "prompt-lookup"),
    )
    first = "draft-simple:n_max=4:p_min=0.5"
    assert f"{first} is tried first. Free talk repeats little." in ended.err
    assert any(line.startswith(f"{first} ") for line in ended.out.splitlines())
