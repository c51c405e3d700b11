"""Texts from files reach a terminal as characters, never as commands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from app.cli.terminal.console import printable, printable_line
from app.engine.record.trace import Trace, read_trace, write_trace
from tests.commands import Command
from tests.files.tiny import Tiny

if sys.platform == "win32":
    pytest.skip("pseudo-terminals are POSIX", allow_module_level=True)
else:
    import pty

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0  # seconds; the machine may be busy
TITLE, CLEAR, C1 = "\x1b]0;owned\x07", "\x1b[2J", "\x9b2J"
HOSTILE = f"{TITLE}{CLEAR}{C1}"
COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def on_terminal(*words: object, home: Path) -> str:
    """The command's output, with a terminal for both streams; line ends as they were written."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "app", *map(str, words)],
        cwd=ROOT,
        stdout=follower,
        stderr=follower,
        env=os.environ | {"XDG_DATA_HOME": str(home), "XDG_CONFIG_HOME": str(home)},
    )
    os.close(follower)
    written = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # Linux says so when the last writer has left
            part = b""
        if not part:
            break
        written += part
    os.close(leader)
    process.wait(PATIENCE)
    return written.decode().replace("\r\n", "\n")


def test_a_terminal_is_told_how_far_the_prompt_is_read(pair_files: tuple[Path, Path], tmp_path: Path) -> None:
    prompt = tmp_path / "long.txt"
    prompt.write_text("the quick brown fox jumps over the lazy dog. " * 18, encoding="utf-8")
    words = ["run", "--target", pair_files[0], "--strategy", "none", "--max-tokens", 2]
    told = on_terminal(*words, "--prompt-file", prompt, home=tmp_path)
    assert re.search(r"\r\x1b\[KReading the prompt, 512 of 81\d tokens · [\d,.]+ tokens/s", told)
    assert "\r\x1b[K" in told[told.rindex("left") :], "the line is cleared before the answer"


@pytest.fixture
def hostile_trace(command: Command, pair_files: tuple[Path, Path], tmp_path: Path) -> Path:
    """A trace whose answer, strategy and file name hold terminal commands."""
    plain = tmp_path / "run.jsonl"
    assert command("run", "--target", pair_files[0], "--prompt", "a", "--trace", plain).code == 0
    trace = read_trace(plain)
    assert trace.totals is not None
    header = msgspec.structs.replace(trace.header, strategy=f"{HOSTILE}x")
    totals = msgspec.structs.replace(trace.totals, text=f"red{HOSTILE}\n\tindented")
    hostile = tmp_path / f"run{TITLE}.jsonl"
    write_trace(hostile, Trace(header, trace.rounds, totals))
    return hostile


def test_an_answer_on_a_terminal_holds_no_commands(hostile_trace: Path, tmp_path: Path) -> None:
    shown = on_terminal("replay", hostile_trace, "--verify", home=tmp_path)
    assert "red␛]0;owned␇␛[2J\ufffd2J\n\tindented\n" in shown
    assert not COMMANDS.search(shown)


def test_an_answer_in_a_pipe_is_what_was_said(command: Command, hostile_trace: Path) -> None:
    ended = command("replay", hostile_trace)
    assert ended.out == f"red{HOSTILE}\n\tindented\n"
    assert not COMMANDS.search(ended.err)  # statistics are read by people, wherever they go


def test_tables_and_errors_hold_no_commands(
    command: Command, tiny_file: Callable[[Tiny], Path], tmp_path: Path
) -> None:
    named = tmp_path / f"m{TITLE}\nnext.gguf"
    named.write_bytes(tiny_file(Tiny(name=f"evil{HOSTILE}")).read_bytes())
    shown = on_terminal("models", "--add", named, home=tmp_path)
    assert "evil␛]0;owned␇␛[2J" in shown and "m␛]0;owned␇ next.gguf" in shown
    assert not COMMANDS.search(shown)
    refused = command("run", "--prompt", "a", "--target", tmp_path / f"gone{HOSTILE}.gguf")
    assert refused.code == 1 and refused.err.count("\n") == 1
    assert not COMMANDS.search(refused.err)


def test_a_table_keeps_its_columns() -> None:
    assert len(printable_line(f"{HOSTILE}\n\u202e")) == len(HOSTILE) + 2
    assert printable("a\n\tb\r\x00\u202e") == "a\n\tb␍␀\ufffd"
    assert printable("naïve 你好 👩‍💻") == "naïve 你好 👩‍💻"
