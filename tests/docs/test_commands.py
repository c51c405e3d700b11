"""Every command of README and docs runs as it stands there, or is held to the options that exist."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from app.cli.commands import COMMANDS
from tests.commands import Command
from tests.docs.pages import PAGES, ROOT

PROGRAM = ".venv/bin/draftscope"
QUICK: dict[str, tuple[object, ...]] = {
    "run": ("--max-tokens", 8, "--engine", "thread"),
    "bench": ("--max-tokens", 4, "--engine", "thread", "--repeat", 1, "--category", "story"),
    "sweep": ("--max-tokens", 4, "--engine", "thread", "--repeat", 1, "--category", "story"),
    "tune": ("--max-tokens", 4, "--engine", "thread", "--seconds", 5, "--category", "story"),
    "quants": ("--max-tokens", 4, "--engine", "thread", "--repeat", 1, "--prompt", "Once", "--types", "Q8_0"),
    "drafts": ("--max-tokens", 4, "--engine", "thread", "--suite", "bundled", "--category", "story"),
}
"""What makes a command short: it stands behind the words of the page, of which the last ones count."""
SHALLOW = ("--depth", "0,64")
OTHERS = {
    "--per-request-spec-decode-metrics", "--draft-max", "--spec-type",
    "--add-to-desktop", "--remove-from-desktop",
}  # fmt: skip
"""Options that the pages name, of other programs and of the packages' launcher."""


def why_not(words: list[str]) -> str:
    """Why a command of a page is not run here; "" for those that are."""
    if words[0] not in COMMANDS:
        return "the window, which tests/ui opens"
    if "--server" in words:
        return "tests/cli/test_servers.py runs it"
    if words[0] in ("search", "pull"):
        return "it asks the Hub"
    if words[0] == "worker" or "--rpc" in words:
        return "it serves until it is stopped, or asks what serves"
    if "--suite long" in shlex.join(words):
        return "the bundled pair has no room for the long documents"
    return ""


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, demo_pair: tuple[Path, Path]) -> Path:
    """A folder with the files that the pages name, where the commands run."""
    folder = tmp_path / "desk"
    (folder / "FOLDER").mkdir(parents=True)
    target, draft = demo_pair
    for name, file in (("T.gguf", target), ("D.gguf", draft), ("FOLDER/draft.gguf", draft)):
        (folder / name).symlink_to(file)
    (folder / "resources").symlink_to(ROOT / "resources")
    (folder / "TEXT.txt").write_text("The draft guesses, and the target checks.", encoding="utf-8")
    monkeypatch.setenv("DRAFTSCOPE_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def options(command: Command) -> dict[str, set[str]]:
    """The options of every command, from its help; those of the window under ""."""
    names = {"": (), **{name: (name,) for name in COMMANDS}}
    return {
        name: set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", command(*words, "--help").out))
        for name, words in names.items()
    }


def words_of(commands: list[str]) -> list[list[str]]:
    """The words behind the program's name, of the commands that begin with it."""
    return [shlex.split(line)[1:] for line in commands if line.startswith(PROGRAM)]


def options_in(words: list[str]) -> set[str]:
    """The options among some words."""
    return {word for word in words if re.fullmatch(r"--?[a-z][\w-]*", word)}


SECTIONS = [
    pytest.param(words_of(commands), id=f"{page}: {title}")
    for page in PAGES
    for title, commands in page.sections.items()
    if any(not why_not(words) for words in words_of(commands))
]


@pytest.mark.usefixtures("known_strategies")
@pytest.mark.parametrize("commands", SECTIONS)
def test_the_commands_of_a_section_run_as_written(
    commands: list[list[str]], command: Command, desk: Path
) -> None:
    for words in commands:
        if words[0].endswith(".jsonl"):
            assert (desk / words[0]).is_file(), "a command above writes what the window opens"
        if words == ["compare", "before.json", "after.json"]:
            shutil.copy("before.json", "after.json")
        if not why_not(words):
            shallow = SHALLOW if "--depth" in words else ()
            done = command(*words, *QUICK.get(words[0], ()), *shallow)
            assert done.code == 0, f"{shlex.join(words)}: {done.err}"


def test_commands_that_are_not_run_have_options_that_exist(options: dict[str, set[str]]) -> None:
    left = [words for page in PAGES for words in words_of(page.commands) if why_not(words)]
    assert len(left) > 5
    for words in left:
        name = words[0] if words[0] in COMMANDS else ""
        assert options_in(words) - options[name] == set(), shlex.join(words)


def test_blocks_hold_only_commands_that_are_known_here() -> None:
    lines = [line for page in PAGES for line in page.commands]
    assert [line for line in lines if not line.startswith((f"{PROGRAM} ", "make "))] == []


def test_options_in_sentences_exist(options: dict[str, set[str]]) -> None:
    every = set().union(*options.values())
    for page in PAGES:
        for span in page.spans:
            words = span.removeprefix("draftscope ").split()
            known = options[words[0]] if words[0] in COMMANDS else every
            if words[0] in COMMANDS or words[0].startswith("-"):
                assert options_in(words) - known - OTHERS == set(), f"{page}: {span}"
            elif span.startswith("draftscope "):
                pytest.fail(f"{page}: there is no such command: {span}")


def test_the_llama_servers_that_are_to_be_started_would_start(command: Command) -> None:
    lines = [line for page in PAGES for line in re.findall(r"^llama-server .+$", page.text, re.MULTILINE)]
    assert len(lines) > 1
    for line in lines:
        done = command("explain", line)
        assert done.code == 0
        assert "does not start" not in done.out and "is not used" not in done.out, done.out


def test_make_has_every_target_and_backend_that_is_named() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = (ROOT / "packaging" / "setup" / "recipe.py").read_text(encoding="utf-8")
    code = "\n".join(line for page in PAGES for line in (*page.commands, *page.spans))
    targets, backends = set(re.findall(r"\bmake ([a-z][\w-]*)", code)), set(re.findall(r"\bGPU=(\w+)", code))
    assert {"run", "test", "verify"} <= targets and {"cuda", "none"} <= backends
    assert [name for name in targets if not re.search(rf"^{name}:", makefile, re.MULTILINE)] == []
    assert [name for name in backends if f'"{name}": (' not in recipe] == []
