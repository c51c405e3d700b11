"""Trace files: written, read back, cut short, damaged, from a newer version."""

from __future__ import annotations

import json
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from app.engine.engine import Engine
from app.engine.errors import TraceError
from app.engine.record.trace import FORMAT, Trace, TraceWriter, parse_trace, read_trace, write_trace
from app.engine.types import FinishReason, Round, Sampling
from tests.answers import answer

SETTINGS: dict[str, dict[str, Any]] = {
    "greedy": {"strategy": "draft-simple:n_max=4"},
    "speculative": {"strategy": "draft-simple:n_max=3:sample=1", "sampling": Sampling(temperature=1, seed=3)},
    "match": {"strategy": "prompt-lookup:verify=match", "sampling": Sampling(temperature=1, seed=2**63 - 1)},
    "plain": {"strategy": "none", "stop": ("never",)},
}


@pytest.fixture(params=SETTINGS)
def trace(engine: Engine, request: pytest.FixtureRequest) -> Trace:
    return answer(engine, max_tokens=24, **SETTINGS[request.param])


@pytest.fixture
def lines(engine: Engine, tmp_path: Path) -> list[bytes]:
    path = tmp_path / "answer.jsonl"
    write_trace(path, answer(engine, max_tokens=12, strategy="draft-simple"))
    return path.read_bytes().splitlines(keepends=True)


def test_a_trace_is_read_back_as_it_was(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "answer.jsonl"
    write_trace(path, trace)
    assert read_trace(path) == trace
    assert [entry.name for entry in tmp_path.iterdir()] == ["answer.jsonl"]


def test_rounds_that_were_read_are_written_byte_for_byte(trace: Trace, tmp_path: Path) -> None:
    path, again = tmp_path / "answer.jsonl", tmp_path / "again.jsonl"
    write_trace(path, trace)
    write_trace(again, read_trace(path))
    assert again.read_bytes().splitlines()[1:] == path.read_bytes().splitlines()[1:]


def test_alternatives_that_were_read_are_those_written(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "answer.jsonl"
    write_trace(path, trace)
    for round, read in zip(trace.rounds, read_trace(path).rounds, strict=True):
        assert round.target_top and len(read.target_top) == len(round.target_top)
        assert list(read.target_top) == list(round.target_top) and read.target_top[-1] == round.target_top[-1]
        assert read.draft_top == round.draft_top and (read.target_top != round.target_top[1:])
        assert hash(read.target_top) == hash(round.target_top)


def test_a_long_trace_takes_little_memory(trace: Trace, tmp_path: Path) -> None:
    """At most 2 kB a token that is emitted with ten alternatives of the target and ten of the draft."""
    path = tmp_path / "answer.jsonl"
    rounds = list[Round]()
    for at, round in enumerate(trace.rounds * 50):
        position = rounds[-1].position + len(rounds[-1].emitted) if rounds else 0
        rounds.append(replace(round, index=at, position=position, offset=float(at)))
    write_trace(path, Trace(trace.header, rounds))
    tracemalloc.start()
    try:
        read = read_trace(path)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken / len(read.token_ids) < 2048


def test_every_line_is_plain_json_and_on_disk_at_once(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "live.jsonl"

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    with closing(TraceWriter(path, trace.header)) as writer:
        for number, round in enumerate(trace.rounds, start=1):
            writer.add(round)
            read = read_trace(path)
            assert read.rounds == trace.rounds[:number]
            assert read.totals is None
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=refuse)
    assert json.loads(path.read_text().splitlines()[0])["format"] == FORMAT


def test_traces_from_before_suffixes_are_read(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "answer.jsonl"
    write_trace(path, trace)
    first, *rest = path.read_text().splitlines()
    header = json.loads(first) | {"format": "1.5"}
    del header["suffix"], header["prompt_ids"], header["context_ids"], header["pair"]["fills_middle"]
    path.write_text("\n".join([json.dumps(header), *rest]))
    read = read_trace(path)
    assert (read.header.suffix, read.header.prompt_ids) == (None, ())
    assert (read.rounds, read.totals) == (trace.rounds, trace.totals)


def test_an_unfinished_trace_is_read_back_as_it_was(trace: Trace, tmp_path: Path) -> None:
    running = Trace(trace.header, trace.rounds)
    write_trace(tmp_path / "answer.jsonl", running)
    assert read_trace(tmp_path / "answer.jsonl") == running


def test_an_unfinished_trace_has_the_text_that_was_readable(trace: Trace) -> None:
    assert trace.totals is not None
    running = Trace(trace.header, trace.rounds)
    assert trace.totals.text.startswith(running.text)
    assert len(trace.totals.text) - len(running.text) <= 1, "at most a character that was cut short"


@pytest.mark.same_text
def test_an_unfinished_trace_never_shows_a_stop(engine: Engine) -> None:
    whole = answer(engine, max_tokens=40).text
    stop = next(whole[i : i + 2] for i in range(4, 30) if "\ufffd" not in whole[i : i + 2])
    stopped = answer(engine, max_tokens=40, stop=(stop,))
    assert stopped.totals is not None and stopped.totals.finish_reason is FinishReason.STOP
    assert Trace(stopped.header, stopped.rounds).text == stopped.text == whole[: whole.index(stop)]


def test_a_truncated_last_line_is_left_out(lines: list[bytes]) -> None:
    whole = parse_trace(lines)
    for cut in (1, len(lines[-1]) // 2, len(lines[-1]) - 2):
        read = parse_trace([*lines[:-1], lines[-1][:cut]])
        assert read.rounds == whole.rounds
        assert read.totals is None
    cut_round = parse_trace([*lines[:-2], lines[-2][:-9]])
    assert cut_round.rounds == whole.rounds[:-1]


def test_every_length_of_a_trace_file_can_be_read_or_is_refused(lines: list[bytes], tmp_path: Path) -> None:
    raw = b"".join(lines)
    path = tmp_path / "cut.jsonl"
    for length in range(0, len(raw), 97):
        path.write_bytes(raw[:length])
        if length < len(lines[0]) - 1:
            with pytest.raises(TraceError, match=r"cut\.jsonl is not a Draftscope trace"):
                read_trace(path)
        else:
            assert len(read_trace(path).rounds) <= len(lines) - 2


def test_damage_before_the_last_line_is_named(lines: list[bytes]) -> None:
    lines[2] = lines[2][: len(lines[2]) // 2] + b"\n"
    with pytest.raises(TraceError, match=r"story\.jsonl, line 3, is damaged"):
        parse_trace(lines, "story.jsonl")


def test_a_line_of_another_shape_is_damage(lines: list[bytes]) -> None:
    changed = json.loads(lines[1])
    changed["emitted"][0]["origin"] = None
    lines[1] = json.dumps(changed).encode() + b"\n"
    with pytest.raises(TraceError, match=r"line 2, is damaged"):
        parse_trace(lines)


def test_lines_behind_the_totals_are_refused(lines: list[bytes]) -> None:
    with pytest.raises(TraceError, match="follows the totals"):
        parse_trace([*lines, lines[1]])


def test_a_damaged_header_is_named(lines: list[bytes]) -> None:
    header = json.loads(lines[0])
    del header["pair"]
    with pytest.raises(TraceError, match=r"line 1, is damaged.*pair"):
        parse_trace([json.dumps(header).encode(), *lines[1:]])


@pytest.mark.parametrize("version", ["2.0", "17.3"])
def test_a_newer_major_version_is_refused(lines: list[bytes], version: str) -> None:
    header = json.loads(lines[0]) | {"format": version, "unknown": 1}
    with pytest.raises(TraceError, match=rf"newer trace format {version}.*reads 1\.") as refused:
        parse_trace([json.dumps(header).encode(), b"{}"])
    assert "Update" in refused.value.hint


def test_a_trace_from_before_template_options_is_read(lines: list[bytes]) -> None:
    header = json.loads(lines[0]) | {"format": "1.4"}
    del header["template_options"], header["pair"]["thinking"]
    older = parse_trace([json.dumps(header).encode(), *lines[1:]]).header
    assert older.template_options == {} and older.pair.thinking is None


def test_a_newer_minor_version_is_read_and_its_new_fields_are_left_out(lines: list[bytes]) -> None:
    whole = parse_trace(lines)
    extended = [json.dumps(json.loads(line) | {"new": {"deep": [1]}}).encode() + b"\n" for line in lines]
    extended[0] = json.dumps(json.loads(extended[0]) | {"format": "1.9"}).encode() + b"\n"
    read = parse_trace(extended)
    assert read.rounds == whole.rounds
    assert read.totals == whole.totals


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"hello\n",
        b"[]\n",
        b"{}\n",
        b'{"format": 3}\n',
        b'{"format": "x"}\n',
        b"\xff\xfe\x00",
        b"GGUF",
    ],
    ids=repr,
)
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other.jsonl"
    path.write_bytes(content)
    with pytest.raises(TraceError, match=r"^other\.jsonl is not a Draftscope trace\."):
        read_trace(path)


def test_the_results_of_a_measurement_are_not_called_an_answer() -> None:
    with pytest.raises(TraceError, match=r"^x\.jsonl contains the results of a measurement, not an answer\."):
        parse_trace([b'{"format": "1.0", "title": "Mine"}'], "x.jsonl")


def test_files_that_cannot_be_opened_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"gone\.jsonl cannot be read: No such file"):
        read_trace(tmp_path / "gone.jsonl")
    with pytest.raises(TraceError, match="cannot be read: Is a directory"):
        read_trace(tmp_path)


def test_a_failed_write_leaves_the_old_file(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "answer.jsonl"
    path.write_text("old")
    trace = answer(engine, max_tokens=4)
    trace.rounds.append("not a round")  # type: ignore[arg-type]
    trace.totals = object()  # type: ignore[assignment]
    with pytest.raises(TypeError):
        write_trace(path, trace)
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("answer.jsonl", "old")]
