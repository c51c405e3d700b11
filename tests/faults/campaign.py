"""Runs files of a kind through what opens them, and counts what became of them."""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Protocol

from app.engine.errors import UserError

CORPUS = Path(__file__).parent / "corpus"


class Fate(StrEnum):
    """What became of a file."""

    OPENED = "opened"
    SAID = "opened, damage reported"
    REFUSED = "refused"
    ENDED = "process ended, reported"


class UnableError(Exception):
    """A kind cannot be tried on this machine; the message says why."""


class Kind(Protocol):
    """A kind of file. One object is used for many files."""

    name: str

    def make(self, random: Random) -> bytes:
        """A damaged or hostile file."""

    def open(self, data: bytes) -> Fate:
        """Open it by everything that would; raises where something happens that must not."""

    def close(self) -> None: ...


@dataclass(slots=True)
class Result:
    """What became of the files of a kind."""

    kind: str
    fates: Counter[Fate] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)  # the names of the files
    seconds: float = 0.0


def corpus(kind: str) -> list[Path]:
    """The files that failed once."""
    return sorted(path for path in (CORPUS / kind).glob("*") if path.is_file())


def files(kind: Kind, seeds: Iterable[int]) -> Iterator[tuple[str, bytes]]:
    """(name, contents) of the corpus, then of every seed."""
    for path in corpus(kind.name):
        yield path.name, path.read_bytes()
    for seed in seeds:
        yield f"seed-{seed}", kind.make(Random(f"{kind.name} {seed}"))


def run(kind: Kind, seeds: Iterable[int], failures: Path) -> Result:
    """Open every file; those that failed are kept in `failures`, each with its traceback."""
    result = Result(kind.name)
    began = time.monotonic()
    try:
        for name, data in files(kind, seeds):
            try:
                result.fates[kind.open(data)] += 1
            except Exception:
                result.failed.append(name)
                folder = failures / kind.name
                folder.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
                (folder / f"{name}.txt").write_text(traceback.format_exc(), encoding="utf-8")
    finally:
        kind.close()
    result.seconds = time.monotonic() - began
    return result


def checked(error: UserError | str) -> None:
    """Fail where an error is no sentence for people."""
    text = str(error)
    assert text and text[0] == text[0].strip() and text.rstrip().endswith((".", ")", "…")), text
    assert len(text) < 1500 and "Traceback" not in text and "Unexpected error" not in text, text


def head() -> tuple[str, str]:
    """The head of the table, in Markdown."""
    return "| kind | files | " + " | ".join(Fate) + " | failed | seconds |", "|---|" + "---|" * (
        len(Fate) + 3
    )


def skipped(kind: str, why: UnableError) -> str:
    """The row of a kind that cannot be tried here."""
    return f"| {kind} | skipped: {why} |" + " |" * (len(Fate) + 2)


def row(result: Result) -> str:
    """The row of a kind."""
    total = result.fates.total() + len(result.failed)
    counts = " | ".join(f"{result.fates[fate]:,}" for fate in Fate)
    return f"| {result.kind} | {total:,} | {counts} | {len(result.failed)} | {result.seconds:.0f} |"
