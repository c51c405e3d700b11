"""A short sample of the fault campaign, and every file that ever failed in it."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

from tests.faults.campaign import CORPUS, Fate, UnableError, corpus, head, row, run, skipped
from tests.faults.damage import damaged, damaged_text
from tests.faults.kinds import KINDS

SAMPLE = 3
LONG = (
    "clocks",
    "deaths in the window",
    "disks",
    "logouts",
    "models in the window",
    "two windows",
)  # `make verify`
SAMPLES = {"deaths in the window": 2, "disks": 1, "memory": 1, "two windows": 1, "logouts": 2, "clocks": 1}


@pytest.mark.timeout(600)  # two windows take minutes on a busy machine
@pytest.mark.skipif(os.name != "posix", reason="engines die by signals, templates by alarms")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.verify) if name in LONG else name for name in KINDS]
)
def test_a_damaged_file_is_opened_told_or_refused(name: str, tmp_path: Path) -> None:
    try:
        kind = KINDS[name]()
    except UnableError as why:
        pytest.skip(str(why))
    result = run(kind, range(SAMPLES.get(name, SAMPLE)), tmp_path)
    reasons = [path.read_text(encoding="utf-8") for path in tmp_path.glob("*/*.txt")]
    assert result.failed == [], "\n".join(reasons)
    assert result.fates.total() == SAMPLES.get(name, SAMPLE) + len(corpus(name))


def test_every_file_of_the_corpus_has_a_kind() -> None:
    assert {folder.name for folder in CORPUS.iterdir() if folder.is_dir()} <= set(KINDS)


def test_a_seed_makes_the_same_damage_again() -> None:
    text = b'{"a": [1, 2, {"b": "words"}]}\n{"c": 12345}\n'
    for seed in range(200):
        first, second = (damaged_text(text, Random(seed)) for _ in range(2))
        assert first == second
    assert len({damaged(bytes(1000), Random(seed)) for seed in range(200)}) > 100


class Failing:
    """A kind whose files with an odd first byte break the program."""

    name = "failing"

    def make(self, random: Random) -> bytes:
        return bytes([random.randrange(256)])

    def open(self, data: bytes) -> Fate:
        if data[0] % 2:
            raise IndexError("what must not happen")
        return Fate.REFUSED

    def close(self) -> None:
        pass


def test_a_file_that_fails_is_kept_with_its_reason(tmp_path: Path) -> None:
    result = run(Failing(), range(40), tmp_path)
    kept = sorted(path.name for path in (tmp_path / "failing").glob("seed-*") if path.suffix != ".txt")
    assert kept == sorted(result.failed) and 0 < len(kept) < 40
    assert all((tmp_path / "failing" / name).read_bytes()[0] % 2 for name in kept)
    assert "what must not happen" in (tmp_path / "failing" / f"{kept[0]}.txt").read_text()
    assert row(result) == f"| failing | 40 | 0 | 0 | {40 - len(kept)} | 0 | {len(kept)} | 0 |"
    assert [line.count("|") for line in head()] == [row(result).count("|")] * 2
    assert skipped("disks", UnableError("no disk")).count("|") == row(result).count("|")
