"""SECURITY.md names tests that exist, and limits that hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from app.base import files
from app.care import log
from app.cli import advise
from app.engine import plugins
from app.engine.drafters import cache_file, guarded
from app.engine.templates import process, sandbox
from app.hub import hub
from app.hub.downloads import fetch
from app.hub.library import probe
from app.servers import answer, http

TESTS = Path(__file__).parent
SECURITY = TESTS.parent / "SECURITY.md"
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
LIMITS = {
    "a chat template's time": f"{process.TIME_LIMIT:.0f} s",
    "a chat template's memory (Linux)": f"{sandbox.MEMORY_LIMIT // 10**6:,} MB",
    "a chat template's text": f"{sandbox.MAX_CHARACTERS:,} characters",
    "the probe's time to read a file": f"{probe.PATIENCE:.0f} s",
    "nesting of Draftscope's JSON files": f"{files.DEEPEST} levels",
    "an answer of a server": f"{http.LARGEST_ANSWER // 2**20} MB",
    "an answer of a server that is not streamed, from its request to its end": (
        f"twice the patience, {2 * http.PATIENCE:.0f} s"
    ),
    "values in an answer of a server or the Hub": f"{files.MOST_VALUES:,}",
    "drafted tokens that a server counts for a round": f"{answer.LONGEST_DRAFT:,}",
    "an answer of the Hub: a listing, any other": (
        f"{hub.LARGEST_LISTING // 2**20} MB, {hub.LARGEST_ANSWER // 2**20} MB; {hub.WHOLE_SECONDS:.0f} s"
    ),
    "a line that a server streams": f"{http.LONGEST_LINE // 2**20} MB",
    "a file that is downloaded": f"{fetch.LARGEST // 10**9} GB",
    "a lookup cache of `ngram-cache`": f"{cache_file.LARGEST // 2**30} GiB",
    "the part of a file that `draftscope explain` reads": f"{advise.LARGEST // 2**20} MiB",
    "a drafter file": f"{plugins.LARGEST // 10**6} MB",
    "a drafter file's time to load when it is tried": f"{plugins.TIME_LIMIT:.0f} s",
    "your own drafter's time for a draft": f"{guarded.SLOW_SECONDS} s",
    "the log": f"{log.SIZE * (1 + log.OLDER) // 10**6} MB",
}


@pytest.fixture
def text() -> str:
    return SECURITY.read_text(encoding="utf-8")


def test_every_test_that_is_named_exists(text: str) -> None:
    named = NAMED.findall(text)
    assert len(named) == text.count("::") - 1 > 25, "one is the form itself"
    missing = [
        f"{path}::{name}"
        for path, name in named
        if not re.search(rf"^def {name}\(", (TESTS / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert missing == []


def test_every_limit_is_that_of_the_code_and_has_a_test(text: str) -> None:
    rows = re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \|$", text.split("## Limits")[1], re.MULTILINE)[1:]
    assert {subject: limit for subject, limit, _test in rows if subject in LIMITS} == LIMITS
    assert [subject for subject, _limit, test in rows if not NAMED.fullmatch(test)] == []
    assert [subject for subject, _limit, _test in rows if subject not in LIMITS] == [
        "the engine's memory (Linux)"
    ], "a number that nothing holds to the code"
