"""The traces of runs, and where an answer leaves its baseline's."""

from __future__ import annotations

import errno
import math
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from app.engine.engine import Engine
from app.engine.errors import TraceError, UserError
from app.engine.fates import Origin
from app.engine.record.trace import Trace, read_trace, write_trace
from app.engine.types import Alternatives, EmittedToken, Race, Round, Sampling
from app.lab.experiment import Job
from app.lab.runs.compare import TraceStore, compared, first_divergence
from app.lab.runs.journal import Journal, trace_folder_of
from app.lab.runs.record import RunRecord
from tests.answers import answer
from tests.files.tiny import Tiny
from tests.lab.experiments import small


def test_an_archive_that_is_stopped_leaves_nothing(engine: Engine, tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "traces")
    trace = answer(engine, max_tokens=3)
    for prompt in range(3):
        store.put(Job(0, prompt, 0), trace)
    folder = tmp_path / "out"
    folder.mkdir()
    asked = iter([False, True])
    store.archive(folder / "traces.zip", lambda: next(asked))
    assert list(folder.iterdir()) == []
    store.archive(folder / "traces.zip")
    with zipfile.ZipFile(folder / "traces.zip") as archive:
        assert len(archive.namelist()) == 3
    assert [file.name for file in folder.iterdir()] == ["traces.zip"]


def test_a_trace_that_is_not_written_says_what_to_do(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TraceStore(tmp_path / "traces")
    trace = answer(engine, max_tokens=3)

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(UserError, match=r"is read-only: make it writable\. Then resume from the journal\."):
        store.put(Job(0, 0, 0), trace)


def test_damage_is_told_in_a_sentence(engine: Engine, pair_files: tuple[Path, Path], tmp_path: Path) -> None:
    store = TraceStore(tmp_path / "traces")
    trace = answer(engine, max_tokens=3)
    store.put(Job(0, 0, 0), trace)
    (file,) = store.folder.iterdir()
    whole = file.read_bytes()
    for broken in (whole[:-20], b"GGUF" + whole[4:], whole[:20] + b"\xff" * 20 + whole[40:]):
        file.write_bytes(broken)
        with pytest.raises(TraceError, match=r"gz is damaged"):
            store.get(Job(0, 0, 0))
        assert store.readable(Job(0, 0, 0)) is None
        with pytest.raises(TraceError, match=r"gz is damaged"):
            store.archive(tmp_path / "traces.zip")
    assert not (tmp_path / "traces.zip").exists()

    plain = tmp_path / "t.jsonl"
    write_trace(plain, trace)
    lines = plain.read_bytes().splitlines(keepends=True)
    for at in (0, 1):
        plain.write_bytes(b"".join([*lines[:at], lines[at].replace(b'":"', b'":"\xff'), *lines[at + 1 :]]))
        with pytest.raises(TraceError, match=rf"line {at + 1}, is damaged|is not a Draftscope trace"):
            read_trace(plain)

    path = tmp_path / "j.jsonl"
    Journal.create(path, small(pair_files))
    with path.open("ab") as journal:
        journal.write(b'{"type":"run","x":"\xff"}\n{"type":"run"}\n')
    with pytest.raises(UserError, match=r"line 2, is damaged"):
        Journal.read(path)


def test_every_journal_has_a_folder_of_its_own() -> None:
    names = [trace_folder_of(Path(name)).name for name in ("llama-3.1", "llama-3.2", "suite.jsonl")]
    assert names == ["llama-3.1-traces", "llama-3.2-traces", "suite-traces"]


@pytest.mark.same_text
def test_the_same_tokens_are_identical(shared_engine: Engine, clear: str) -> None:
    shared_engine.reset()
    plain = answer(shared_engine, clear, max_tokens=10, cold=True)
    drafted = answer(shared_engine, clear, max_tokens=10, cold=True, strategy="draft-simple")
    record = compared(RunRecord.of(drafted, lane=1), RunRecord.of(plain))
    assert record.identical_to_baseline is True
    assert record.first_divergence is None
    assert record.baseline_lane == 0
    assert record.speedup == pytest.approx(
        (record.n_tokens / record.seconds) / (len(plain.token_ids) / RunRecord.of(plain).seconds)
    )


@pytest.mark.same_text
def test_another_model_parts_and_the_gap_is_the_baselines(
    shared_engine: Engine, tiny_file: Callable[[Tiny], Path]
) -> None:
    """Two different targets part for good: the gap is that of the baseline's logits, and no near-tie."""
    shared_engine.reset()
    plain = answer(shared_engine, max_tokens=20, cold=True, ignore_eos=True)
    with Engine(tiny_file(Tiny(name="other", n_ctx=1024, noise=0.3, noise_seed=9))) as noisy:
        parted = answer(noisy, max_tokens=20, cold=True, ignore_eos=True)
    found = first_divergence(parted.token_ids, plain.token_ids, parted, plain)
    assert found is not None
    at = found.index
    assert parted.token_ids[:at] == plain.token_ids[:at]
    assert (found.token, found.baseline_token) == (parted.token_ids[at], plain.token_ids[at])
    assert found.token != found.baseline_token
    top = plain.rounds[at].target_top[0]
    p = dict(zip(top.ids, top.p, strict=True))
    if found.token in p:
        expected = math.log(p[found.baseline_token] / p[found.token])
        assert found.logit_gap == pytest.approx(expected)
        assert found.logit_gap >= 0
        assert found.near_tie is not True
    else:
        assert found.logit_gap is None


def _trace(like: Trace, ids: tuple[int, ...], tops: dict[int, float], temperature: float = 0.0) -> Trace:
    """A trace of one round that emits `ids`, whose last place has these probabilities."""
    top = Alternatives(tuple(tops), tuple(b"x" for _ in tops), tuple(tops.values()))
    emitted = tuple(EmittedToken(id, b"x", Origin.PLAIN, 0.5) for id in ids)
    round = Round(0, 0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, (), emitted, target_top=(top,) * len(ids))
    header = msgspec.structs.replace(like.header, sampling=Sampling(temperature=temperature))
    return Trace(header, [round])


@pytest.fixture(scope="module")
def some_trace(shared_engine: Engine) -> Trace:
    return answer(shared_engine, max_tokens=2)


@pytest.mark.parametrize(
    ("here", "there", "gap", "near"),
    [
        ({1: 0.4001, 2: 0.4}, {2: 0.4001, 1: 0.4}, math.log(0.4001 / 0.4), True),
        ({1: 0.4 * math.exp(0.0539), 2: 0.4}, {2: 0.4 * math.exp(0.0126), 1: 0.4}, 0.0539, True),
        ({1: 0.6, 2: 0.3}, {2: 0.5, 1: 0.4}, math.log(2), None),  # some models round that much
        ({1: 0.8, 2: 0.1}, {2: 0.5, 1: 0.4}, math.log(8), False),
        # Both passes prefer token 1 by far, and token 2 was emitted all the same.
        ({1: 0.9, 2: 0.05}, {1: 0.9, 2: 0.05}, math.log(18), False),
        ({1: 0.6, 3: 0.3}, {2: 0.5, 1: 0.4}, None, None),
    ],
)
def test_a_near_tie_is_what_rounding_explains(
    some_trace: Trace, here: dict[int, float], there: dict[int, float], gap: float | None, near: bool | None
) -> None:
    baseline, trace = _trace(some_trace, (7, 1), here), _trace(some_trace, (7, 2), there)
    found = first_divergence((7, 2), (7, 1), trace, baseline)
    assert found is not None and found.index == 1
    assert found.near_tie is near
    assert found.logit_gap == (None if gap is None else pytest.approx(gap))


def test_at_a_temperature_the_gap_is_of_logits_before_it(some_trace: Trace) -> None:
    baseline = _trace(some_trace, (1,), {1: 0.6, 2: 0.3}, temperature=0.5)
    trace = _trace(some_trace, (2,), {1: 0.6, 2: 0.3}, temperature=0.5)
    found = first_divergence((2,), (1,), trace, baseline)
    assert found is not None and found.logit_gap == pytest.approx(0.5 * math.log(2))
    assert found.near_tie is None  # nothing was drawn, so there is no edge to compare with


@pytest.mark.parametrize(
    ("here", "there", "near"),
    [
        ((2, 0.01), (1, 0.02), True),
        ((2, 0.3), (1, 0.19), True),  # logits moved by less than 0.25 at temperature 0.5
        ((2, 0.3), (1, 0.21), None),  # some models round that much
        ((2, 2.3), (1, 0.21), False),
        ((3, 0.01), (1, 0.02), None),  # p of the other token is not recorded, and it was not the second
    ],
)
def test_a_race_that_two_tokens_won_is_a_near_tie_within_rounding(
    some_trace: Trace, here: tuple[int, float], there: tuple[int, float], near: bool | None
) -> None:
    answers = [
        _raced(_trace(some_trace, (token,), {token: 0.41}, temperature=0.5), Race(1.0, rival, 1.0 - gap))
        for token, (rival, gap) in ((1, here), (2, there))
    ]
    found = first_divergence((2,), (1,), answers[1], answers[0])
    assert found is not None and found.near_tie is near


def _raced(trace: Trace, race: Race) -> Trace:
    """The trace with rule `match`, and with this race for its tokens."""
    emitted = tuple(msgspec.structs.replace(token, race=race) for token in trace.rounds[0].emitted)
    header = msgspec.structs.replace(trace.header, verification="match")
    return Trace(header, [msgspec.structs.replace(trace.rounds[0], emitted=emitted)])


def test_an_answer_that_ends_early_parts_at_its_end(some_trace: Trace) -> None:
    found = first_divergence((1, 2), (1, 2, 3), some_trace, some_trace)
    assert found is not None
    assert (found.index, found.baseline_token, found.token, found.logit_gap) == (2, 3, None, None)
