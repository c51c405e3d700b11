"""`draftscope quants` as typed: what it makes, measures and says, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from app.base.paths import find_paths
from tests.commands import Command
from tests.files.tiny import Tiny


def test_quantisations_are_made_and_measured(
    command: Command, tiny_file: Callable[[Tiny], Path], tmp_path: Path
) -> None:
    out = tmp_path / "out.json"
    asked = (
        "--prompt",
        "abcabcabd abc",
        "--max-tokens",
        12,
        "--ignore-eos",
        "--repeat",
        2,
        "--engine",
        "thread",
    )
    ended = command("quants", tiny_file(Tiny()), "--types", "q8_0", *asked, "--json", out)
    assert ended.code == 0, ended.err
    assert "Making Q8_0 (" in ended.err and str(find_paths().quantised) in ended.err
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["F32", "Q8_0"]
    assert lines[2:4] != lines[7:9] and [line.split()[0] for line in lines[7:9]] == ["F32", "Q8_0"]
    assert any(line.startswith("With drafts, ") or " is the fastest with drafts: " in line for line in lines)
    report = json.loads(out.read_text())
    assert [lane["strategy"] for lane in report["lanes"]] == ["none", "prompt-lookup:length=auto"] * 2
    for pair in report["pairs"]:
        assert pair["passes"], "they are timed whenever a file is loaded"
        assert all(set(each) == {*map(str, (*range(1, 10), 17))} for each in pair["passes"])


def test_what_is_asked_wrongly_makes_nothing(
    command: Command, tiny_file: Callable[[Tiny], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tiny_file(Tiny())
    for words, code, said in (
        (("--types", "IQ1_S"), 2, "cannot contain 'IQ1_S'. Allowed: Q3_K_M, "),
        (("--strategy", "none"), 2, "none does not draft"),
        (("--strategy", "draft-simple"), 2, "needs a draft model"),
        (("--target", file), 2, "--target names a second model"),
        (("--strategy", "suffix", "--strategy", "ngram-mod"), 2, "--strategy is given twice"),
    ):
        ended = command("quants", file, *words)
        assert (ended.code, said in ended.err) == (code, True), ended.err
    monkeypatch.setattr("app.cli.measure.quants.LARGE", 10)
    monkeypatch.setattr("sys.stdin.isatty", lambda: False)
    ended = command("quants", file)
    assert ended.code == 1 and "were not written. Add --yes" in ended.err
    assert not list(find_paths().quantised.rglob("*.gguf"))
