"""The readable parts of a damaged trace file: the rounds before the damage, and the text after it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from app.engine.engine import Engine
from app.engine.fates import Verdict
from app.engine.record.trace import Salvaged, Trace, read_trace, salvage_trace, write_trace
from app.engine.types import Round
from tests.answers import answer


@pytest.fixture(scope="module")
def whole(pair_files: tuple[Path, Path]) -> Trace:
    with Engine(*pair_files) as engine:
        return answer(engine, max_tokens=16, strategy="draft-simple:n_max=3", stop=("never",))


@pytest.fixture
def path(whole: Trace, tmp_path: Path) -> Path:
    path = tmp_path / "answer.jsonl"
    write_trace(path, whole)
    return path


def changed(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> Salvaged:
    """The result of reading the file after `change` of its lines."""
    path.write_bytes(b"".join(change(path.read_bytes().splitlines(keepends=True))))
    return salvage_trace(path)


def test_a_sound_file_is_read_as_it_is(path: Path, whole: Trace) -> None:
    found = salvage_trace(path)
    assert (found.trace, found.text, found.damage) == (read_trace(path), whole.text, None)


def test_a_file_that_ends_in_a_round_is_not_damaged(path: Path, whole: Trace) -> None:
    found = changed(path, lambda lines: [*lines[:-2], lines[-2][:-9]])
    assert found.trace is not None and found.damage is None
    assert found.trace.rounds == whole.rounds[:-1] and found.trace.totals is None
    assert found.text and whole.text.startswith(found.text)


def test_damage_costs_the_rounds_behind_it_and_no_words(path: Path, whole: Trace) -> None:
    found = changed(path, lambda lines: [*lines[:2], b'{"index": 1,\n', b"\n", *lines[3:]])
    assert found.trace is not None and found.trace.rounds == whole.rounds[:1]
    assert "answer.jsonl, line 3, is damaged" in str(found.damage)
    assert found.text == whole.text, "the totals have the words of the round that is lost"


def test_the_first_damage_is_the_one_that_is_named(path: Path) -> None:
    found = changed(path, lambda lines: [*lines[:2], b"[]\n", b"{}\n", *lines[4:]])
    assert "line 3, is damaged" in str(found.damage)


def test_words_are_joined_where_the_totals_are_lost(path: Path, whole: Trace) -> None:
    found = changed(path, lambda lines: [*lines[:2], b"{}\n", *lines[3:-1]])
    lost = b"".join(token.piece for token in whole.rounds[1].emitted)
    rest = b"".join(token.piece for round in whole.rounds if round.index != 1 for token in round.emitted)
    assert lost and found.text == rest.decode(errors="replace")


@pytest.mark.parametrize("header", [b"", b"{}\n", b'{"format": "1.5"}\n'], ids=repr)
def test_a_lost_header_leaves_the_words(path: Path, whole: Trace, header: bytes) -> None:
    found = changed(path, lambda lines: [header, *lines[1:]])
    assert found.trace is None and found.damage is not None
    assert found.text == whole.text


def test_an_empty_file_has_neither_trace_nor_words(path: Path) -> None:
    found = changed(path, lambda _lines: [])
    assert (found.trace, found.text) == (None, "")
    assert "is not a Draftscope trace" in str(found.damage)


@pytest.mark.parametrize("extra", [1, -1], ids=["a round", "totals"])
def test_what_stands_behind_the_totals_is_damage(path: Path, whole: Trace, extra: int) -> None:
    found = changed(path, lambda lines: [*lines, lines[extra]])
    assert found.trace is not None and found.trace.rounds == whole.rounds
    assert str(found.damage).endswith("it follows the totals.")


FLAWS: dict[str, tuple[str, Callable[[Round], Round]]] = {
    "its index": ("does not follow", lambda round: replace(round, index=9)),
    "its position": ("does not follow", lambda round: replace(round, position=0)),
    "an offset before the last round's": ("before", lambda round: replace(round, offset=0.0)),
    "an offset before the answer": ("offset", lambda round: replace(round, offset=-1.0)),
    "a negative time": ("verify_seconds", lambda round: replace(round, verify_seconds=-1.0)),
    "a time of ages": ("0.0 - at `$.seconds`", lambda round: replace(round, seconds=1e12)),
    "more accepted than emitted": (
        "judges more",
        lambda round: replace(
            round,
            drafted=tuple(replace(token, verdict=Verdict.ACCEPTED) for token in round.drafted),
            emitted=(),
        ),
    ),
    "a rejection that nothing was emitted for": (
        "judges more",
        lambda round: replace(
            round, drafted=(replace(round.drafted[0], verdict=Verdict.REJECTED),), emitted=()
        ),
    ),
    "a q above one": (
        "1.001 - at `$.drafted[0].q`",
        lambda round: replace(round, drafted=tuple(replace(token, q=2.0) for token in round.drafted)),
    ),
    "an emitted p below zero": (
        "0.0 - at `$.emitted[0].p`",
        lambda round: replace(round, emitted=tuple(replace(token, p=-0.5) for token in round.emitted)),
    ),
    "alternatives without their p": (
        "alternatives",
        lambda round: replace(round, target_top=tuple(replace(top, p=()) for top in round.target_top)),
    ),
    "an alternative's p above one": (
        "1.001",
        lambda round: replace(
            round, target_top=tuple(replace(top, p=tuple(p + 2 for p in top.p)) for top in round.target_top)
        ),
    ),
    "alternatives that are numbers": ("Expected", lambda round: replace(round, draft_top=(1, 2))),
}


@pytest.mark.parametrize("flaw", FLAWS)
def test_a_round_that_cannot_be_is_damage(path: Path, whole: Trace, flaw: str) -> None:
    words, change = FLAWS[flaw]
    assert whole.rounds[1].drafted
    line = msgspec.json.encode(change(whole.rounds[1])) + b"\n"
    found = changed(path, lambda lines: [*lines[:2], line, *lines[3:]])
    assert found.trace is not None and found.trace.rounds == whole.rounds[:1]
    assert "line 3, is damaged" in str(found.damage) and words in str(found.damage)


@pytest.mark.parametrize("name", ["gone.jsonl", "zero\0byte"], ids=["gone", "no path"])
def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, name: str) -> None:
    found = salvage_trace(tmp_path / name)
    assert (found.trace, found.text) == (None, "")
    assert "cannot be read" in str(found.damage)
