"""`draftscope run --drafter FILE`: a plug-in drafter on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from app.cli import main
from app.engine.drafters.registry import KINDS
from app.engine.record.recheck import recheck
from app.engine.record.trace import read_trace
from tests.files.drafter_files import PATTERN, PHRASE_TRIE, write_drafter

pytestmark = pytest.mark.usefixtures("known_strategies")


@pytest.fixture
def pair(pair_files: tuple[Path, Path]) -> list[str]:
    target, draft = map(str, pair_files)
    return ["run", "--target", target, "--draft", draft, "--max-tokens", "12", "--ignore-eos"]


def test_drafters_of_ones_own_draft_under_their_names(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--drafter", str(PHRASE_TRIE), f"--drafter={PATTERN}"]
    written = tmp_path / "answer.jsonl"
    numbers = tmp_path / "answer.json"
    strategy = "phrase-trie:n_max=3+pattern+draft-simple:n_max=2"
    output = ["--trace", str(written), "--json", str(numbers)]
    assert main([*pair, *files, "--prompt", "On the o", "--strategy", strategy, *output]) == 0
    trace = read_trace(written)
    assert trace.header.strategy == strategy
    assert trace.rounds[0].strategy == "phrase-trie"
    assert len(trace.rounds[0].drafted) == 3
    assert recheck(trace) == []
    assert "statistics      phrase-trie: #calls(b,g,a)" in capsys.readouterr().err
    assert json.loads(numbers.read_text())["strategy"] == strategy
    for name in ("phrase-trie", "pattern"):
        del KINDS[name]
    assert main(["replay", str(written), "--verify"]) == 0, "a trace is read without its drafter"


@pytest.mark.parametrize(("file", "name"), [(PATTERN, "pattern"), (PHRASE_TRIE, "phrase-trie")])
def test_the_prompt_that_an_example_names_shows_it(
    file: Path, name: str, demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    (prompt,) = re.findall(r'"(Please [^"]+)"', file.read_text(encoding="utf-8"))
    numbers = tmp_path / "answer.json"
    words = ["run", "--target", str(demo_pair[0]), "--drafter", str(file), "--strategy", name, "--chat"]
    assert main([*words, "--max-tokens", "128", "--prompt", prompt, "--json", str(numbers)]) == 0
    run = json.loads(numbers.read_text())
    assert run["drafted_rounds"] >= 3 and run["accepted"] >= 5


def test_help_tells_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--drafter", str(PHRASE_TRIE), "--help"]) == 0
    said = capsys.readouterr().out
    assert "--drafter FILE.py" in said
    assert "  phrase-trie\n" in said
    assert "min_match=2  Draft a phrase after this many of its tokens (" in said


def test_the_answer_is_that_of_none(pair: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    given = [*pair, "--prompt", "if __name"]
    assert main(given) == 0
    plain = capsys.readouterr().out
    assert main([*given, "--drafter", str(PATTERN), "--strategy", "pattern"]) == 0
    assert capsys.readouterr().out == plain


def test_a_file_that_cannot_be_used_is_one_line(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bad.py"
    file.write_text("x = 1\ny = = 2\n")
    good = write_drafter(tmp_path)
    assert main([*pair, "--prompt", "a", "--drafter", str(good), "--drafter", str(file)]) == 1
    assert capsys.readouterr().err == (
        "draftscope run: bad.py cannot be used: SyntaxError: invalid syntax (bad.py, line 2). "
        "Fix it and try again.\n"
    )
    assert main([*pair, "--prompt", "a", "--drafter"]) == 2
    assert "expected one argument" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no; really')", "faulty raised ValueError: no"),
        ("raise SystemExit(3)", "faulty raised SystemExit: 3"),
        ("return [1, 2]", "faulty gave a value of type list instead of a Proposal"),
        ("return Proposal([10**30])", "faulty gave the id 1,000,000"),
    ],
)
def test_what_a_drafter_did_wrong_is_said_at_the_end(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], body: str, said: str
) -> None:
    file = write_drafter(tmp_path, f"def propose(self, context, k):\n    {body}", "faulty")
    assert main([*pair, "--prompt", "a", "--drafter", str(file), "--strategy", "faulty"]) == 0
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"draftscope run: {said}")
    assert last.endswith("rounds a draft; the answer is complete.")


def test_a_file_that_ends_its_process_is_one_sentence(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ends.py"
    file.write_text("import os\nos._exit(5)\n")
    assert main([*pair, "--prompt", "a", "--drafter", str(file)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("draftscope run: ends.py is not used: it ended the process that read it")
    assert said.count("\n") == 1


def test_a_name_that_is_taken_is_one_line(
    pair: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write_drafter(tmp_path, name="draft-simple")
    assert main([*pair, "--prompt", "a", "--drafter", str(file)]) == 1
    assert "echo.py cannot be used: the name “draft-simple” is taken (Draftscope)." in capsys.readouterr().err
