"""--no-thinking and --template-option: what the chat template gets, and what is reported if it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from app.engine.record.trace import read_trace
from app.lab.report.report import Report
from app.lab.runs.journal import Journal
from tests.commands import Command, Ended
from tests.files.tiny import EFFORT_TEMPLATE, THINKING_TEMPLATE, Tiny

GRID = ("--x", "num_pred_tokens=2", "--y", "max_ngram_size=2,3")
NO_SWITCH = "This model's chat template has no switch for thinking."


@pytest.fixture
def run(command: Command, tiny_file: Callable[[Tiny], Path], tmp_path: Path) -> Command:
    """Runs on a target with this template; the trace is out.jsonl."""

    def make(template: str, *words: object, chat: tuple[str, ...] = ("--chat",)) -> Ended:
        target = tiny_file(Tiny(name="told", template=template))
        common = (
            "--prompt",
            "hi",
            "--max-tokens",
            3,
            "--engine",
            "thread",
            "--trace",
            tmp_path / "out.jsonl",
        )
        return command("run", "--target", target, *common, *chat, *words)

    return make


def complaint(ended: Ended) -> str:
    (line,) = [line for line in ended.err.splitlines() if line.startswith("draftscope")]
    return line


def test_no_thinking_is_told_and_written_down(run: Command, tmp_path: Path) -> None:
    ended = run(THINKING_TEMPLATE, "--no-thinking")
    assert ended.code == 0 and "draftscope" not in ended.err
    header = read_trace(tmp_path / "out.jsonl").header
    assert header.template_options == {"enable_thinking": False}
    assert header.prompt.endswith("<think>\n\n</think>\n\n")


def test_template_options_are_told_and_written_down(run: Command, tmp_path: Path) -> None:
    ended = run(EFFORT_TEMPLATE, "--template-option", "reasoning_effort=low")
    assert ended.code == 0 and "draftscope" not in ended.err
    header = read_trace(tmp_path / "out.jsonl").header
    assert header.template_options == {"reasoning_effort": "low"}
    assert header.prompt.startswith("Reasoning: low\n")


def test_an_option_that_is_not_read_is_named(run: Command, tmp_path: Path) -> None:
    ended = run(THINKING_TEMPLATE, "--template-option", "a=1", "--template-option", "b=x", "--no-thinking")
    assert ended.code == 0
    assert complaint(ended) == "draftscope run: The chat template does not read a and b: no effect."
    assert read_trace(tmp_path / "out.jsonl").header.template_options == {"enable_thinking": False}


@pytest.mark.parametrize(
    ("template", "hint"),
    [
        ("{{ messages[0].content }}", "Leave --no-thinking out."),
        (EFFORT_TEMPLATE, "The lowest setting it has is --template-option reasoning_effort=low."),
    ],
)
def test_no_thinking_where_it_has_no_switch_is_refused(
    run: Command, tmp_path: Path, template: str, hint: str
) -> None:
    ended = run(template, "--no-thinking")
    assert (ended.code, ended.out) == (1, "")
    assert complaint(ended) == f"draftscope run: {NO_SWITCH} {hint}"
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--template-option", "a"), "Write KEY=VALUE."),
        (("--template-option", "a=null"), "The template option a cannot be null."),
        (("--template-option", "messages=1"), "Every chat template already receives messages."),
        (("--template-option", "a=1", "--template-option", "a=2"), "names a variable twice"),
        (("--no-thinking", "--template-option", "thinking=true"), "contradict each other"),
    ],
)
def test_options_that_cannot_be_are_wrong_usage(run: Command, words: tuple[str, ...], said: str) -> None:
    ended = run(THINKING_TEMPLATE, *words)
    assert ended.code == 2 and said in complaint(ended)


@pytest.mark.parametrize("words", [("--no-thinking",), ("--template-option", "a=1")])
def test_options_need_a_template(run: Command, words: tuple[str, ...]) -> None:
    ended = run(THINKING_TEMPLATE, *words, chat=())
    assert ended.code == 2 and f"{words[0]} needs --chat." in complaint(ended)


# ------------------------------------------------------------------------------------ measurements


@pytest.fixture
def measure(command: Command, tiny_file: Callable[[Tiny], Path]) -> Command:
    """Runs a measuring command on a target with this template."""

    def make(name: str, template: str, *words: object) -> Ended:
        target = tiny_file(Tiny(name="told", template=template))
        common = ("--prompt", "hi", "--chat", "--max-tokens", 4, "--engine", "thread", "--seed", 7)
        return command(name, "--target", target, *common, *words)

    return make


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("bench", ("--strategy", "prompt-lookup", "--repeat", 1)),
        ("sweep", ("--strategy", "prompt-lookup", "--repeat", 1, *GRID)),
    ],
)
def test_measurements_tell_the_template_too(
    measure: Command, tmp_path: Path, name: str, words: tuple[object, ...]
) -> None:
    files = ("--json", tmp_path / "out.json", "--journal", tmp_path / "journal.jsonl")
    options = ("--no-thinking", "--template-option", "a=1")
    ended = measure(name, THINKING_TEMPLATE, *words, *options, *files, "--markdown", tmp_path / "out.md")
    assert ended.code == 0
    assert ended.err.count("The chat template does not read a: no effect.") == 1
    asked = {"a": 1, "enable_thinking": False, "thinking": False}
    report = Report.from_json((tmp_path / "out.json").read_bytes())
    assert report.settings.template_options == asked
    assert """--chat-template-kwargs '{"a":1,"enable_thinking":false}'""" in report.lanes[0].command
    assert "enable_thinking=false" in (tmp_path / "out.md").read_text()
    assert Journal.read(tmp_path / "journal.jsonl").experiment.template_options == asked
    prefilled = {run.prompt_tokens for run in report.runs}
    measure(name, THINKING_TEMPLATE, *words, "--json", tmp_path / "untold.json")
    untold = Report.from_json((tmp_path / "untold.json").read_bytes())
    assert min(prefilled) > max(run.prompt_tokens for run in untold.runs)


def test_tune_tells_the_template_too(measure: Command, tmp_path: Path) -> None:
    ended = measure(
        "tune",
        THINKING_TEMPLATE,
        *("--strategy", "prompt-lookup", "--seconds", 1, "--no-thinking", "--json", tmp_path / "out.json"),
    )
    assert "draftscope" not in ended.err
    settings = json.loads((tmp_path / "out.json").read_text())["settings"]
    assert settings["template_options"] == {"enable_thinking": False, "thinking": False}


@pytest.mark.parametrize(
    ("name", "words"), [("bench", ("--strategy", "prompt-lookup", "--repeat", 1)), ("tune", ("--seconds", 1))]
)
def test_measurements_without_a_switch_are_refused(
    measure: Command, name: str, words: tuple[object, ...]
) -> None:
    ended = measure(name, EFFORT_TEMPLATE, *words, "--no-thinking")
    assert (ended.code, ended.out) == (1, "")
    assert NO_SWITCH in complaint(ended)


def test_a_journal_with_other_options_is_not_gone_on_with(measure: Command, tmp_path: Path) -> None:
    words = ("--strategy", "prompt-lookup", "--repeat", 1, "--journal", tmp_path / "journal.jsonl")
    assert measure("bench", THINKING_TEMPLATE, *words).code == 0
    ended = measure("bench", THINKING_TEMPLATE, *words, "--no-thinking")
    assert ended.code == 1 and "belongs to a different measurement" in complaint(ended)


def test_prompts_without_a_template_take_no_options(command: Command, pair_files: tuple[Path, Path]) -> None:
    words = ("--target", pair_files[0], "--prompt", "hi", "--strategy", "prompt-lookup")
    ended = command("bench", *words, "--no-thinking")
    assert ended.code == 2 and "--no-thinking needs --chat." in complaint(ended)
