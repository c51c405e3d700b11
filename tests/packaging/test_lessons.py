"""The recorder of the lessons."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import gguf
import pytest

from app.engine import Engine
from app.engine.record.recheck import recheck
from app.engine.record.trace import read_trace
from app.lessons.lesson import lesson_files
from app.saved.measured import run_files

ROOT = Path(__file__).parents[2]


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch, demo_pair: tuple[Path, Path]) -> Iterator[ModuleType]:
    """The script, in the project's folder."""
    monkeypatch.chdir(ROOT)
    spec = importlib.util.spec_from_file_location("record", ROOT / "packaging" / "lessons" / "record.py")
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    yield made


def test_an_answer_is_recorded_with_its_baseline_or_without(recorder: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "01-x.jsonl"
    baseline = run_files(file)[0]
    asked = recorder.Recording("Count from 3 to 9.", "draft-simple:n_max=2", max_tokens=6, baseline=True)
    recorder.record(asked, file)
    trace, plain = read_trace(file), read_trace(baseline)
    assert recheck(trace) == [] and recheck(plain) == []
    assert (trace.header.strategy, plain.header.strategy) == (asked.strategy, "none")
    assert trace.header.pair.target.path == "resources/demo_pair/target.gguf"
    assert trace.header.cold and len(trace.token_ids) == 6
    recorder.record(recorder.Recording("Count from 3 to 9.", "prompt-lookup", max_tokens=6), file)
    assert read_trace(file).header.strategy == "prompt-lookup" and not baseline.exists()


def test_a_draft_is_cut_out_of_a_model(
    recorder: ModuleType, tmp_path: Path, demo_pair: tuple[Path, Path]
) -> None:
    draft = demo_pair[1]
    recorder.cut_layers(draft, tmp_path / "cut.gguf", {1})
    with Engine(draft, tmp_path / "cut.gguf") as engine:
        asked = recorder.Recording("Count from 3 to 9.", "draft-simple:n_max=2", max_tokens=6)
        trace = recorder.answer(engine, asked.request(asked.strategy))
    target, cut = trace.header.pair.target, trace.header.pair.draft
    assert (cut.n_layers, cut.n_vocab) == (target.n_layers - 1, target.n_vocab)
    assert trace.header.pair.vocabulary == "same vocabulary" and sum(len(r.drafted) for r in trace.rounds)
    third, second = (
        next(tensor.data.tobytes() for tensor in gguf.GGUFReader(file).tensors if tensor.name == name)
        for file, name in ((draft, "blk.2.ffn_up.weight"), (tmp_path / "cut.gguf", "blk.1.ffn_up.weight"))
    )
    assert second == third, "layers behind the gap move up"


def test_what_is_wrong_with_a_lesson_is_told(recorder: ModuleType, tmp_path: Path) -> None:
    first = lesson_files(ROOT / "resources")[0]
    for file in first.parent.glob(f"{first.stem}.*jsonl"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    told = tmp_path / first.name
    copy = told.with_suffix(".toml")
    text = (recorder.FOLDER / copy.name).read_text(encoding="utf-8")
    copy.write_text(
        text.replace("answer.acceptance_rate > 0.75", "answer.acceptance_rate < 0.75"), encoding="utf-8"
    )
    (said,) = recorder.check(copy, tmp_path)
    assert first.stem in said and "answer.acceptance_rate < 0.75" in said and "The whole answer has" in said
    copy.write_text(text.replace("round.index == 0", "round.index == 99"), encoding="utf-8")
    assert recorder.check(copy, tmp_path) and not told.exists(), "what is not true is not told"
    copy.write_text(text, encoding="utf-8")
    assert recorder.check(copy, tmp_path) == [] and told.read_bytes() == first.read_bytes()
    told.with_suffix(".jsonl").unlink()
    assert "cannot be read" in recorder.check(copy, tmp_path)[0]
