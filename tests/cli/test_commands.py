"""The command line: what it prints and writes, and its exit codes."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from shlex import split
from typing import Any

import msgspec
import psutil
import pytest
from typing_extensions import override

from app import __version__
from app.cli.answer.options import parse_run
from app.cli.answer.recorder import RunRecorder, check_writable, write_file
from app.cli.answer.replay import CUT
from app.cli.commands import check_display
from app.cli.terminal.arguments import Parser, add_options
from app.cli.terminal.interrupt import Interrupt, run_interruptible
from app.engine.drafters.registry import KINDS
from app.engine.errors import UserError
from app.engine.params import params_of
from app.engine.process.host import ProcessHome
from app.engine.process.messages import Event, Failed, RoundFinished, Started
from app.engine.record.llama_cpp_lines import llama_cpp_lines
from app.engine.record.recheck import recheck
from app.engine.record.stats import Statistics
from app.engine.record.trace import Trace, read_trace, write_trace
from app.engine.types import FinishReason, GenerationRequest, Message, ModelOptions, Sampling
from app.lab.runs.record import RunRecord
from tests.commands import Command, Ended
from tests.files.llama_models import write_model
from tests.files.tiny import Tiny
from tests.processes import started

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds; the machine may be busy
DRAFTS = "draft-simple:n_max=4"
on_posix = pytest.mark.skipif(os.name != "posix", reason="signals and pipes are POSIX")


def start(*arguments: object, **settings: Any) -> subprocess.Popen[bytes]:
    """The real command, as a process."""
    words = [sys.executable, "-m", "app", *(str(argument) for argument in arguments)]
    usual: dict[str, Any] = {"cwd": ROOT, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, **usual | settings)


def finished(process: subprocess.Popen[bytes]) -> Ended:
    out, err = process.communicate(timeout=PATIENCE)
    return Ended(process.returncode, out.decode(), err.decode())


@pytest.fixture
def pair(pair_files: tuple[Path, Path]) -> list[object]:
    """The arguments of every run here."""
    target, draft = pair_files
    return ["run", "--target", target, "--draft", draft, "--prompt", "abcabcabd abc", "--seed", 7]


@pytest.fixture
def slow(tiny_file: Callable[[Tiny], Path]) -> list[object]:
    """A run that would take some seconds."""
    target = tiny_file(Tiny(name="slow", n_ctx=8192))
    return ["run", "--target", target, "--prompt", "abc", "--ignore-eos", "--max-tokens", 8000]


# ------------------------------------------------------------------------------------------ run


def test_a_run_prints_and_writes_what_came(command: Command, pair: list[object], tmp_path: Path) -> None:
    out, numbers = tmp_path / "run.jsonl", tmp_path / "run.json"
    options = ["--strategy", DRAFTS, "--max-tokens", 40, "--ignore-eos", "--trace", out, "--json", numbers]
    ended = command(*pair, *options)
    trace = read_trace(out)

    assert ended.code == 0
    assert ended.out == trace.text + "\n" or (trace.text.endswith("\n") and ended.out == trace.text)
    assert len(trace.token_ids) == 40
    assert trace.header.strategy == DRAFTS
    assert trace.header.seed == 7
    assert trace.header.cold
    assert recheck(trace) == []

    lines = llama_cpp_lines(Statistics.of(trace.rounds), ["draft-simple"], 4)
    assert ended.err.splitlines()[1:-1] == lines, "the last line is the advice"
    assert "40 tokens" in ended.err.splitlines()[0]

    assert numbers.read_bytes() == RunRecord.of(trace).to_json()
    assert json.loads(numbers.read_text(encoding="utf-8"))["text"] == trace.text


def test_match_at_a_temperature_gives_the_text_of_none(command: Command, pair: list[object]) -> None:
    options = ["--max-tokens", 30, "--temperature", 0.8, "--top-k", 40, "--top-p", 0.95, "--min-p", 0.05]
    plain = command(*pair, *options)
    drafted = command(*pair, *options, "--strategy", f"{DRAFTS}:verify=match")
    assert plain.code == drafted.code == 0
    assert len(plain.out) > 10
    assert drafted.out == plain.out
    assert plain.err.count("\n") == 1  # nothing was drafted: no statistics of drafts


def test_an_engine_on_a_thread_gives_the_same_answer(command: Command, pair: list[object]) -> None:
    words = [*pair, "--strategy", DRAFTS, "--max-tokens", 20]
    assert command(*words, "--engine", "thread").out == finished(start(*words)).out


def test_the_text_comes_while_it_is_generated(slow: list[object]) -> None:
    process = start(*slow)
    try:
        assert process.stdout is not None
        assert process.stdout.read(1)
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def test_a_prompt_file(command: Command, pair: list[object], tmp_path: Path) -> None:
    file = tmp_path / "prompt.txt"
    out = tmp_path / "run.jsonl"
    file.write_bytes(b"\xef\xbb\xbfabc \xc3\xa9\r\n\r\n")
    words = [*pair[:5], "--prompt-file", file, "--max-tokens", 2, "--trace", out]
    assert command(*words).code == 0
    assert read_trace(out).header.prompt == "abc é\r\n"  # less one line break

    file.write_bytes(b"abc \xff")
    ended = command(*words)
    assert ended.code == 1
    assert ended.err == "draftscope run: prompt.txt is not UTF-8 text. Save it as UTF-8.\n"


def test_a_prompt_from_standard_input(
    command: Command, pair: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("hé\n".encode())))
    out = tmp_path / "run.jsonl"
    assert command(*pair[:5], "--prompt-file", "-", "--max-tokens", 2, "--trace", out).code == 0
    assert read_trace(out).header.prompt == "hé"


def test_a_suffix_is_filled_up_to(command: Command, tmp_path: Path) -> None:
    target = write_model(tmp_path, "refact")
    end, trace = tmp_path / "end.txt", tmp_path / "run.jsonl"
    end.write_text("\n    return a\n")
    words = ["run", "--target", target, "--prompt", "def f(a):", "--max-tokens", 12, "--ignore-eos"]
    by_file = command(*words, "--suffix-file", end, "--trace", trace)
    by_text = command(*words, "--suffix", "\n    return a")
    assert by_file.code == by_text.code == 0
    assert by_file.out == by_text.out != command(*words).out
    header = read_trace(trace).header
    assert (header.prompt, header.suffix) == ("def f(a):", "\n    return a")
    bundled = command("run", "--prompt", "a", "--suffix", "b")
    refused(bundled, "This model has no tokens to fill in the middle")


def test_token_ids_are_a_prompt(command: Command, pair: list[object], tmp_path: Path) -> None:
    words = [*pair[:5], "--max-tokens", 12, "--ignore-eos"]
    ids = tmp_path / "ids.txt"
    ids.write_text("[97, 98, 99]\n")
    assert command(*words, "--prompt-ids", "97,98,99").out == command(*words, "--prompt-ids", ids).out != ""
    refused(command(*words, "--prompt-ids", "1,999999"), "This model has no token 999999")


def test_the_draft_answers_alone(command: Command, pair: list[object], tmp_path: Path) -> None:
    numbers = tmp_path / "run.json"
    words = ["--prompt", "abcabcabd abc", "--max-tokens", 12, "--ignore-eos"]
    alone = command(*pair, *words[2:], "--draft-only", "--json", numbers)
    assert alone.code == 0
    assert alone.out == command("run", "--target", pair[4], *words).out
    assert alone.out != command("run", "--target", pair[2], *words).out
    assert json.loads(numbers.read_text())["n_tokens"] == 12


def test_chat_wraps_the_prompt_as_one_user_message(
    command: Command, pair: list[object], tmp_path: Path
) -> None:
    out = tmp_path / "run.jsonl"
    assert command(*pair, "--chat", "--max-tokens", 2, "--trace", out).code == 0
    wrapped = "<|im_start|>user\nabcabcabd abc<|im_end|>\n<|im_start|>assistant\n"
    assert read_trace(out).header.prompt == wrapped


def test_stop_texts_end_the_answer_before_them(command: Command, pair: list[object], tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    words = [*pair, "--strategy", DRAFTS, "--max-tokens", 40, "--ignore-eos", "--trace", out]
    whole = command(*words).out
    stop = whole[10:12]
    ended = command(*words, "--stop", "never said", "--stop", stop)
    trace = read_trace(out)
    assert trace.totals is not None and trace.totals.finish_reason is FinishReason.STOP
    assert ended.code == 0
    assert ended.out.rstrip("\n") == whole[: whole.index(stop)].rstrip("\n")
    assert trace.header.stop == ("never said", stop)


def test_the_bundled_pair_needs_no_names(
    command: Command, demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    numbers = tmp_path / "run.json"
    words = ["run", "--chat", "--prompt", "What is speculative decoding?", "--max-tokens", 48]
    plain = command(*words)
    drafted = command(*words, "--strategy", DRAFTS, "--json", numbers)
    assert plain.code == drafted.code == 0
    assert len(plain.out) > 50
    assert drafted.out == plain.out
    record = json.loads(numbers.read_text(encoding="utf-8"))
    assert record["accepted"] > 0


def test_a_link_stays_a_link(command: Command, pair: list[object], tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "real.json")
    assert command(*pair, "--max-tokens", 2, "--json", link).code == 0
    assert link.is_symlink()
    assert json.loads((tmp_path / "real.json").read_text(encoding="utf-8"))["n_tokens"] == 2


@on_posix
def test_a_pipe_takes_the_numbers_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        check_writable(pipe)
        write_file(pipe, b"numbers")
        assert os.read(reader, 100) == b"numbers"
        assert pipe.is_fifo()
    finally:
        os.close(reader)


# -------------------------------------------------------------------------------------- options


def test_every_parameter_is_an_option() -> None:
    words = ["--target", "T.gguf", "--draft", "D.gguf", "--prompt", "p", "--max-tokens", "5", "--ignore-eos"]
    words += split("--temperature 0.5 --top-k 3 --top-p 0.9 --min-p 0.1 --repeat-penalty 1.1")
    words += split("--repeat-last-n -1 --frequency-penalty 0.2 --presence-penalty -0.3 --top-n-sigma 2.5")
    words += split("--dry-multiplier 0.8 --dry-base 2 --dry-allowed-length 3 --dry-penalty-last-n -1")
    words += [
        "--dry-sequence-breaker",
        "User: ",
        "--dry-sequence-breaker",
        "\n",
        "--dry-sequence-breaker",
        "é",
    ]
    words += split("--typical-p 0.8 --xtc-probability 0.5 --xtc-threshold 0.2 --seed 7 --stop a --stop b")
    words += split("--ctx-size 256 --threads 2 --threads-batch 3 --batch-size 64 --ubatch-size 32")
    words += split("--n-gpu-layers 0 --cache-type-k q8_0 --cache-type-v q4_0 --flash-attn off --no-repack")
    plan = parse_run(words)
    target = ModelOptions("T.gguf", 256, 2, 3, 64, 32, 0, "q8_0", "q4_0", "off", repack=False)
    dry = (0.8, 2.0, 3, -1, r"User:\x20 \x0a é")
    sampling = Sampling(0.5, 3, 0.9, 0.1, 1.1, -1, 0.2, -0.3, *dry, 2.5, 0.8, 0.5, 0.2, seed=7)
    assert plan.target == target
    # What llama.cpp has no option of its own for is shared; the rest has its own default.
    assert plan.draft == ModelOptions("D.gguf", 256, 2, 3, 64, 32, flash_attn="off", repack=False)
    assert plan.request == GenerationRequest(
        prompt="p", sampling=sampling, max_tokens=5, stop=("a", "b"), ignore_eos=True, cold=True
    )


def test_options_are_what_their_text_says() -> None:
    parser = Parser("draftscope", "", "")
    text = """
from FILE  Where
    it begins, 95 % of it
to [FILE ...]  Where it ends
--quick  Soon
--seed N  How it is drawn
--stop S ...  Where
"""
    add_options(parser, text, Path, seed=(int, 7), stop=None)
    bare = parser.parse_args(["a"])
    assert vars(bare) == {"from": Path("a"), "to": [], "quick": False, "seed": 7, "stop": []}
    given = parser.parse_args(split("a b c --quick -s 3 --stop x -r y"))  # also by llama.cpp's names
    assert vars(given) == vars(bare) | {
        "to": [Path("b"), Path("c")],
        "quick": True,
        "seed": 3,
        "stop": ["x", "y"],
    }
    assert "Where it begins, 95 % of it" in parser.format_help()


def test_the_draft_has_options_of_its_own() -> None:
    words = ["--target", "T.gguf", "--draft", "D.gguf", "--prompt", "p", "--threads", "4", "--chat"]
    words += split("--ctx-size-draft 128 --threads-draft 1 --threads-batch-draft 2 --batch-size-draft 16")
    words += split("--ubatch-size-draft 8 --n-gpu-layers-draft 1 --cache-type-k-draft q8_0")
    words += split("--cache-type-v-draft q4_0 --flash-attn-draft on --no-repack-draft")
    plan = parse_run(words)
    assert plan.target == ModelOptions("T.gguf", threads=4)
    assert plan.draft == ModelOptions("D.gguf", 128, 1, 2, 16, 8, 1, "q8_0", "q4_0", "on", repack=False)
    assert plan.request == GenerationRequest(messages=(Message("user", "p"),), cold=True)


def test_help_has_every_option_and_strategy(command: Command) -> None:
    ended = command("run", "--help")
    assert "--engine {process,thread}" in ended.out
    assert (ended.code, ended.err) == (0, "")
    for owner in (Sampling, ModelOptions):
        for param in params_of(owner):
            assert f"-{param.name.replace('_', '-')}" in ended.out
    text = " ".join(ended.out.split())
    for part in ("draft-simple", "n_max=3", "prompt-lookup", "verify=greedy|speculative|match"):
        assert part in text
    assert "a number from 0 to 10; default 0" in text
    assert "Do not rearrange weights" in text and "urned off, it" not in text and "Turn it off" not in text


def test_help_and_version_of_the_whole(command: Command) -> None:
    assert command("--version") == (0, f"draftscope {__version__}\n", "")
    ended = command("--help")
    assert ended.code == 0
    assert "draftscope run" in ended.out and "draftscope replay" in ended.out
    assert command("replay", "--help").code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("race", "Allowed: run, audit, bench"),
        ("race --json", "Allowed: run, audit, bench"),
        ("--demo trace.jsonl", "not allowed with"),
        ("--engine cloud", "process"),
        ("--engine thread run", "run must come first"),
        ("run", "--prompt"),
        ("run --prompt", "expected one argument"),
        ("run --prompt a --prompt-file b", "not allowed with"),
        ("run --prompt a --max-tokens 0", "Allowed: a whole number from 1 to 1,000,000."),
        ("run --prompt a --max-tokens many", "Allowed: a whole number"),
        ("run --prompt a --temperature nan", "Allowed: a number from 0 to 10."),
        ("run --prompt a --cache-type-k f8", "Allowed: f32, f16, bf16, q8_0, q4_0, q4_1,"),
        ("run --prompt a --max-tok 3", "unrecognized"),
        ("run --prompt a --stop=", "cannot be empty"),
        ("run --prompt a --strategy warp", f"Allowed: none, {', '.join(KINDS)}."),
        ("run --prompt a --strategy draft-simple:k=3", "n_max"),
        ("run --prompt a --strategy draft-simple:n_max=0", "a whole number from 1 to 512"),
        ("run --prompt a --strategy none:verify=greedy --temperature 1", "verify=greedy"),
        ("run --prompt a --draft D.gguf", "--target"),
        ("run --prompt a --target T.gguf --strategy draft-simple", "--draft"),
        ("run --prompt a --target T.gguf --threads-draft 1", "--threads-draft needs a draft"),
        ("run --prompt a --trace x --json x", "the same file"),
        ("run --prompt a --suffix b --chat", "--suffix cannot be used with --chat"),
        ("run --prompt-ids 1,2 --chat", "--prompt-ids cannot be used with --chat"),
        ("run --prompt-ids 1,none", "--prompt-ids 1,none is neither token ids nor a file"),
        ("run --prompt-ids 1,2 --suffix b", "--suffix needs a text before it"),
        ("run --prompt a --target T.gguf --draft-only", "--draft-only needs a draft"),
        (
            "run --prompt a --draft-only --strategy draft-simple",
            "--draft-only with draft-simple needs a target",
        ),
        ("run --prompt a --draft-only --strategy oracle", "--draft-only cannot be used with oracle"),
        ("run --prompt a --draft-only --strategy suffix --trace t", "--trace needs rounds"),
        ("replay", "TRACE.jsonl"),
    ],
)
def test_wrong_usage_is_one_line_and_two(command: Command, words: str, said: str) -> None:
    ended = command(*words.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("draftscope") and ended.err.count("\n") == 1
    assert said in ended.err


# ------------------------------------------------------------------------------------- failures


def refused(ended: Ended, said: str) -> None:
    """The command failed, with one line that says why."""
    assert ended.code == 1
    assert ended.err.startswith("draftscope") and ended.err.count("\n") == 1
    assert said in ended.err


def test_bad_model_files(command: Command, pair: list[object], tmp_path: Path) -> None:
    gone, empty, text = tmp_path / "gone.gguf", tmp_path / "empty.gguf", tmp_path / "text.gguf"
    empty.touch()
    text.write_text("not a model")
    for file, said in [(gone, "does not exist"), (empty, "is empty"), (text, "is not a GGUF file")]:
        refused(command("run", "--prompt", "a", "--target", file), said)
    refused(command("run", "--prompt", "a", "--target", pair[2], "--draft", gone), "gone.gguf")


def test_a_draft_of_another_vocabulary(
    command: Command, pair: list[object], tiny_file: Callable[[Tiny], Path]
) -> None:
    draft = tiny_file(Tiny(name="other", letters="abcdefgh"))
    files = ["--target", pair[2], "--draft", draft]
    assert command("run", "--prompt", "a", "--max-tokens", 4, "--strategy", "draft-simple", *files).code == 0
    sampled = command("run", "--prompt", "a", "--strategy", "draft-simple:sample=1", *files)
    assert sampled.code == 1  # the files had to be read to know
    assert "sample=1 needs a draft with the target's vocabulary" in sampled.err


def test_a_prompt_longer_than_the_context(command: Command, pair: list[object]) -> None:
    refused(command(*pair[:5], "--prompt", "a" * 400, "--ctx-size", 256), "the context has room for 256")
    refused(command(*pair[:5], "--prompt", ""), "The prompt is empty")


def test_layers_for_a_gpu_that_is_not_there_are_told(command: Command, pair: list[object]) -> None:
    ended = command(*pair, "--max-tokens", 1, "--device", "none", "--n-gpu-layers", 99)
    assert ended.code == 0
    assert "--n-gpu-layers has no effect: no GPU is used here." in ended.err
    assert "no effect" not in command(*pair, "--max-tokens", 1).err


def test_a_missing_folder_or_file_is_named(
    command: Command, pair: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(
        command(*pair, "--trace", "new/run.jsonl"), "new/run.jsonl cannot be written: there is no folder new."
    )
    refused(
        command("run", "--prompt", "a", "--target", "gone.gguf"),
        f"Looked for {tmp_path / 'gone.gguf'}. Choose a different model file.",
    )


def test_a_failure_in_mid_answer_keeps_what_came(
    command: Command, tiny_file: Callable[[Tiny], Path], tmp_path: Path
) -> None:
    broken = tiny_file(Tiny(name="broken", broken=True))
    out, numbers = tmp_path / "run.jsonl", tmp_path / "run.json"
    ended = command("run", "--target", broken, "--prompt", "a", "--trace", out, "--json", numbers)
    assert ended.code == 1
    assert "gives NaN" in ended.err.splitlines()[-1]
    assert "Traceback" not in ended.err
    totals = read_trace(out).totals
    assert totals is not None and totals.finish_reason is FinishReason.FAILED
    assert "gives NaN" in totals.error
    assert json.loads(numbers.read_text(encoding="utf-8"))["finish_reason"] == "failed"


def test_an_engine_that_dies_costs_one_line(
    command: Command, slow: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Dying(ProcessHome):
        @override
        def receive(self, timeout: float) -> Event | None:
            event = super().receive(timeout)
            if isinstance(event, RoundFinished) and event.round.index == 3:
                assert self.pid is not None
                os.kill(self.pid, signal.SIGKILL)
            return event

    monkeypatch.setattr("app.cli.answer.run.make_home", lambda _kind: Dying())
    out = tmp_path / "run.jsonl"
    ended = command(*slow, "--trace", out)
    assert ended.code == 1
    said = ended.err.splitlines()[-1]
    assert said.startswith("draftscope run: The engine") and "Traceback" not in ended.err
    trace = read_trace(out)
    assert len(trace.rounds) >= 3
    assert trace.totals is not None and trace.totals.finish_reason is FinishReason.FAILED


def test_a_bug_in_the_engine_costs_one_line(
    command: Command, pair: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    try:
        raise ZeroDivisionError
    except ZeroDivisionError:
        details = traceback.format_exc()

    class Buggy(ProcessHome):
        @override
        def receive(self, timeout: float) -> Event | None:
            event = super().receive(timeout)
            if isinstance(event, RoundFinished):
                return Failed(event.run, "It met an error.", "The details help.", False, details)
            return event

    monkeypatch.setattr("app.cli.answer.run.make_home", lambda _kind: Buggy())
    ended = command(*pair)
    assert ended.code == 1 and "Traceback" not in ended.err
    assert re.fullmatch(
        r"draftscope run: It met an error\. \(.*test_commands\.py:\d+\)", ended.err.splitlines()[-1]
    )


def test_the_record_of_an_engine_that_died_holds(command: Command, recorded: Path) -> None:
    """Also where the answer ends in the beginning of a stop text."""
    trace = read_trace(recorded)
    recorder = RunRecorder(None)
    header = msgspec.structs.replace(trace.header, stop=(f"{trace.text[-1]} and never this",))
    recorder.keep(Started(0, header))
    for round in trace.rounds:
        recorder.keep(RoundFinished(0, round, ""))
    recorder.fail("gone")
    assert recorder.trace is not None and recorder.trace.text == trace.text
    assert recheck(recorder.trace) == []
    write_trace(recorded, recorder.trace)
    assert re.match(r"prompt \d+ tokens; answer", command("replay", recorded).err)


def test_what_a_drafter_could_not_do_behind_the_answer_is_told(
    command: Command, pair: list[object], tmp_path: Path
) -> None:
    # With a name to which nothing can be added, not even for a moment.
    kept = str(tmp_path / ("d" * 250)).replace("%", "%25")
    strategy = f"ngram-cache:lookup_cache_dynamic={kept}"
    ended = command(*pair, "--strategy", strategy, "--max-tokens", 8, "--ignore-eos")
    assert ended.code == 0
    assert re.match(r"draftscope run: .*dddd cannot be saved", ended.err.splitlines()[-1])


@pytest.mark.parametrize("option", ["--trace", "--json"])
def test_files_that_cannot_be_written_are_refused_at_once(
    command: Command, tmp_path: Path, option: str
) -> None:
    before = {tmp_path / "file", *tmp_path.iterdir()}
    (tmp_path / "file").touch()
    # The target is missing too, but it is not looked for.
    words = ["run", "--target", tmp_path / "gone.gguf", "--prompt", "a", option]
    for place in (tmp_path, tmp_path / "no" / "folder.json", tmp_path / "file" / "x.json"):
        refused(command(*words, place), f"{place} cannot be written")
    assert set(tmp_path.iterdir()) == before


def test_checking_leaves_no_file_and_changes_none(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("kept")
    for path in (new, old):
        check_writable(path)
    assert not new.exists()
    assert old.read_text() == "kept"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk(pair: list[object], tmp_path: Path) -> None:
    numbers = tmp_path / "run.json"
    with open("/dev/full", "wb") as full:
        ended = Ended(*_outcome(start(*pair, "--json", numbers, stdout=full)))
    assert ended.code == 1
    assert "no space left on device" in ended.err and "Traceback" not in ended.err
    assert json.loads(numbers.read_text(encoding="utf-8"))["finish_reason"] == "failed"

    ended = finished(start(*pair, "--max-tokens", 5, "--trace", "/dev/full", "--json", numbers))
    assert ended.code == 1
    assert "/dev/full cannot be written: no space left on device" in ended.err
    assert "Traceback" not in ended.err


def _outcome(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    _, err = process.communicate(timeout=PATIENCE)
    return process.returncode, "", err.decode()


def test_a_bug_is_one_line_without_a_traceback(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_argv: list[str]) -> int:
        raise ZeroDivisionError("by\nzero")

    monkeypatch.setattr("app.cli.answer.replay.replay", broken)
    ended = command("replay", "x.jsonl")
    refused(ended, "ZeroDivisionError: by zero")
    assert "test_commands.py:" in ended.err


# --------------------------------------------------------------------------------------- replay


@pytest.fixture
def recorded(command: Command, pair: list[object], tmp_path: Path) -> Path:
    out = tmp_path / "run.jsonl"
    words = [*pair, "--strategy", DRAFTS, "--max-tokens", 40, "--ignore-eos", "--temperature", 0.7]
    assert command(*words, "--trace", out).code == 0
    return out


def test_replay_prints_what_the_run_printed(command: Command, pair: list[object], tmp_path: Path) -> None:
    """But for the advice, which is about the files and settings of the machine that ran it."""
    out = tmp_path / "run.jsonl"
    ran = command(*pair, "--strategy", DRAFTS, "--max-tokens", 20, "--trace", out)
    replayed = command("replay", out)
    assert replayed.code == 0
    statistics, said = replayed.err.splitlines(), ran.err.splitlines()
    assert (replayed.out, statistics) == (ran.out, said[: len(statistics)])
    assert len(statistics) > 3 and len(said) <= len(statistics) + 1


def test_replay_verifies(command: Command, recorded: Path) -> None:
    ended = command("replay", recorded, "--verify")
    assert ended.code == 0
    rounds = len(read_trace(recorded).rounds)
    assert ended.err.splitlines()[-1] == f"run.jsonl: {rounds} rounds verified."


def test_replay_finds_a_verdict_that_is_not_the_records(command: Command, recorded: Path) -> None:
    written = recorded.read_text(encoding="utf-8")
    assert '"verdict":"accepted"' in written
    recorded.write_text(written.replace('"verdict":"accepted"', '"verdict":"rejected"', 1), encoding="utf-8")
    ended = command("replay", recorded, "--verify")
    found = recheck(read_trace(recorded))
    assert ended.code == 1
    assert found
    assert ended.err.splitlines()[-1 - len(found) : -1] == found
    assert "failed verification" in ended.err.splitlines()[-1]
    assert command("replay", recorded).code == 0


def test_replay_of_a_record_that_breaks_off(command: Command, recorded: Path) -> None:
    whole = read_trace(recorded)
    write_trace(recorded, Trace(whole.header, whole.rounds[:4]))
    ended = command("replay", recorded, "--verify")
    assert ended.code == CUT == 4
    assert "the record is cut off here" in ended.err
    assert ended.err.splitlines()[-1] == (
        "draftscope replay: run.jsonl is cut off: 4 rounds verified, and the rest of the answer is missing."
    )
    assert command("replay", recorded).code == 0
    assert ended.out.rstrip("\n") == Trace(whole.header, whole.rounds[:4]).text.rstrip("\n")


def test_replay_of_a_strategy_of_another_version(command: Command, recorded: Path) -> None:
    written = recorded.read_text(encoding="utf-8")
    recorded.write_text(written.replace(DRAFTS, "draft-later:depth=4"), encoding="utf-8")
    ended = command("replay", recorded)
    assert ended.code == 0
    assert "statistics      draft-later" in ended.err


def test_replay_of_what_is_no_trace(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    refused(command("replay", file), "cannot be read")
    file.write_text('{"format":"9.0"}\n')
    refused(command("replay", file), "newer trace format")
    file.write_text("hello\n")
    refused(command("replay", file), "is not a Draftscope trace")
    file.write_text('{"format":"1.0","title":"One prompt","lanes":[]}')
    refused(command("replay", file), "contains the results of a measurement, not an answer")


# --------------------------------------------------------------------------------------- window


def test_without_a_display_one_line_says_what_to_do(tmp_path: Path) -> None:
    if sys.platform in ("darwin", "win32"):
        pytest.skip("there is always a display")
    bare = {name: value for name, value in os.environ.items() if "DISPLAY" not in name}
    bare = {name: value for name, value in bare.items() if name != "QT_QPA_PLATFORM"}
    nobody = {"XDG_RUNTIME_DIR": str(tmp_path), "WAYLAND_DISPLAY": "wayland-0"}
    for display, said in (
        ({}, "There is no display for a window."),
        (nobody, "There is no display for a window."),
        ({"DISPLAY": ":987"}, "The display :987 cannot be reached."),
        ({"QT_QPA_PLATFORM": "wayland;xcb"}, "There is no display for a window."),
    ):
        ended = finished(start(env=bare | display))
        refused(ended, said)
        assert "draftscope run, bench" in ended.err


def test_a_compositor_that_answers_is_a_display(tmp_path: Path) -> None:
    if sys.platform in ("darwin", "win32"):
        pytest.skip("there is always a display")
    with socket.socket(socket.AF_UNIX) as compositor:
        compositor.bind(str(tmp_path / "w"))
        compositor.listen()
        check_display({"XDG_RUNTIME_DIR": str(tmp_path), "WAYLAND_DISPLAY": "w"})


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """The arguments that the window was opened with; no window opens."""
    calls: list[dict[str, object]] = []

    class Wiring:
        @staticmethod
        def run_window(**settings: object) -> int:
            calls.append(settings)
            return 0

    monkeypatch.setitem(sys.modules, "app.wiring", Wiring)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    return calls


def test_the_window_opens(command: Command, opened: list[dict[str, object]], tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.touch()
    assert command() == command("--demo") == command(file, "--engine", "thread") == (0, "", "")
    assert opened == [
        {"engine": "process", "trace": None, "demo": False},
        {"engine": "process", "trace": None, "demo": True},
        {"engine": "thread", "trace": str(file), "demo": False},
    ]


def test_a_trace_that_is_not_there_opens_no_window(
    command: Command, opened: list[dict[str, object]], tmp_path: Path
) -> None:
    refused(command(tmp_path / "gone.jsonl"), "does not exist")
    assert opened == []


def test_a_window_that_cannot_be_loaded(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "app.wiring", None)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    refused(command(), "The window cannot be opened")


def test_the_command_line_loads_no_more_than_it_needs(recorded: Path) -> None:
    script = (
        "import sys, app.__main__, app.cli\n"
        "assert not {'argparse', 'msgspec', 'numpy', 'llama_cpp', 'PySide6'} & set(sys.modules)\n"
        f"assert app.cli.main(['replay', {str(recorded)!r}]) == 0\n"
        "assert not {'llama_cpp', 'PySide6'} & set(sys.modules)\n"
        "assert app.cli.main(['run', '--help']) == 0\n"
        "assert app.cli.main(['run', '--prompt', 'a', '--target', 'gone.gguf']) == 1\n"
        "assert 'PySide6' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr.decode()


# --------------------------------------------------------------------- pipes, signals, encodings


@on_posix
def test_a_reader_that_leaves_ends_it_quietly(slow: list[object], tmp_path: Path) -> None:
    numbers = tmp_path / "run.json"
    process = start(*slow, "--json", numbers)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.read(5)
    process.stdout.close()
    err = process.stderr.read().decode()
    process.stderr.close()
    assert process.wait(PATIENCE) == 0
    assert err.count("\n") == 1 and "it was stopped" in err
    assert json.loads(numbers.read_text(encoding="utf-8"))["n_tokens"] < 8000


@on_posix
def test_both_readers_leave(slow: list[object]) -> None:
    process = start(*slow, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    assert process.stdout.read(5)
    process.stdout.close()
    assert process.wait(PATIENCE) == 0


@on_posix
def test_a_measurement_goes_on_where_nobody_reads_its_progress(
    pair_files: tuple[Path, Path], tmp_path: Path
) -> None:
    numbers = tmp_path / "out.json"
    words = ["--prompt", "abcabc", "--strategy", DRAFTS, "--max-tokens", 4, "--repeat", 20, "--json", numbers]
    process = start(
        "bench", "--target", pair_files[0], "--draft", pair_files[1], *words, stderr=subprocess.STDOUT
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(PATIENCE) == 0
    assert len(json.loads(numbers.read_text(encoding="utf-8"))["runs"]) == 40


@on_posix
def test_ctrl_c_in_mid_answer_keeps_what_came(slow: list[object], tmp_path: Path) -> None:
    out, numbers = tmp_path / "run.jsonl", tmp_path / "run.json"
    # Without a buffer: communicate reads past it, and what is in it would be lost.
    process = start(*slow, "--trace", out, "--json", numbers, bufsize=0)
    assert process.stdout is not None
    first = process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=PATIENCE)

    assert process.returncode == 130
    trace = read_trace(out)
    assert trace.totals is not None and trace.totals.finish_reason is FinishReason.CANCELLED
    assert 0 < len(trace.token_ids) < 8000
    assert (first + rest).decode().rstrip("\n") == trace.text.rstrip("\n")
    assert recheck(trace) == []
    assert numbers.read_bytes() == RunRecord.of(trace).to_json()
    assert err.decode().count("\n") == 1 and "it was stopped" in err.decode()


@on_posix
def test_ctrl_c_ends_an_engine_that_hangs_and_keeps_what_came(slow: list[object], tmp_path: Path) -> None:
    out = tmp_path / "run.jsonl"
    process = start(*slow, "--trace", out, bufsize=0)
    assert process.stdout is not None
    assert process.stdout.read(1)
    engine = max(started(process.pid), key=lambda child: child.memory_info().rss)
    engine.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    _rest, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "The engine was ended." in err.decode()
    assert read_trace(out).token_ids
    assert not engine.is_running()


@on_posix
def test_a_second_ctrl_c_leaves_no_engine_behind(slow: list[object]) -> None:
    process = start(*slow, bufsize=0)
    assert process.stdout is not None
    assert process.stdout.read(1)
    engine = max(started(process.pid), key=lambda child: child.memory_info().rss)
    engine.send_signal(signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)  # two at once are one
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    _gone, alive = psutil.wait_procs([engine], timeout=PATIENCE)
    assert not alive


@on_posix
def test_ctrl_c_stops_work_on_its_thread_at_once() -> None:
    stopped: list[float] = []

    def work(interrupt: Interrupt) -> int:
        interrupt.stops(lambda: stopped.append(time.monotonic()))
        pressed = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)
        while not stopped and time.monotonic() < pressed + PATIENCE:
            time.sleep(0.01)
        assert interrupt.pressed
        return 130

    before = signal.getsignal(signal.SIGINT)
    assert run_interruptible(work) == 130
    assert len(stopped) == 1
    assert signal.getsignal(signal.SIGINT) is before


def test_what_fails_on_the_thread_fails_here() -> None:
    def work(_interrupt: Interrupt) -> int:
        raise UserError("No.", "Never.")

    with pytest.raises(UserError, match=r"No\. Never\."):
        run_interruptible(work)


@on_posix
def test_ctrl_c_while_loading(
    command: Command, pair: list[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def pressed(work: Callable[[Interrupt], int]) -> int:
        interrupt = Interrupt()
        interrupt.press()
        return work(interrupt)

    monkeypatch.setattr("app.cli.answer.run.run_interruptible", pressed)
    out = tmp_path / "run.jsonl"
    assert command(*pair, "--trace", out) == (130, "", "")
    assert not out.exists()


@on_posix
def test_utf8_where_the_locale_is_c(pair_files: tuple[Path, Path], tmp_path: Path) -> None:
    for name, file in zip(("target.gguf", "draft.gguf"), pair_files, strict=True):
        shutil.copy(file, tmp_path / name)  # plain names: above them the path may have any characters
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONPATH": str(ROOT)}
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONIOENCODING"} | ascii_only
    here: dict[str, Any] = {"env": environment, "cwd": tmp_path}
    words = ["run", "--target", "target.gguf", "--draft", "draft.gguf", "--prompt", "été → 你好"]
    words += ["--max-tokens", "60", "--ignore-eos", "--temperature", "1.5", "--seed", "3"]
    ended = finished(start(*words, "--stop", "→", "--trace", "run.jsonl", **here))
    assert ended.code == 0, ended.err
    trace = read_trace(tmp_path / "run.jsonl")
    assert trace.header.prompt == "été → 你好"
    assert trace.header.stop == ("→",)
    assert not trace.text.isascii()  # random bytes: at least U+FFFD
    assert ended.out.rstrip("\n") == trace.text.rstrip("\n")

    ended = finished(start("run", "--prompt", "a", "--strategy", "é", **here))
    assert ended.code == 2
    assert "There is no strategy “" in ended.err
