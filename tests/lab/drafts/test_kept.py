"""Results on drafts: kept for each target, and dropped where their files change."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.engine.process.host import make_home
from app.engine.types import ModelOptions
from app.lab.drafts import DraftResults, DraftTrials, KeptDrafts
from app.lab.experiment import Experiment, Pair, Prompt
from app.lab.runs.events import Control


@pytest.fixture
def files(pair_files: tuple[Path, Path], tmp_path: Path) -> list[Path]:
    """A target, a draft that is the target again, and a draft near it."""
    copies = [tmp_path / name for name in ("target.gguf", "same.gguf", "draft.gguf")]
    for source, copy in zip((pair_files[0], *pair_files), copies, strict=True):
        shutil.copy(source, copy)
    return copies


@pytest.fixture
def results(files: list[Path]) -> DraftResults:
    target, *drafts = (ModelOptions(str(file)) for file in files)
    prompts = tuple(map(Prompt, ("abcabc", "the fox", "one two")))
    experiment = Experiment(Pair(target), (), prompts, max_tokens=16, chat=False, ignore_eos=True)
    missing = ModelOptions(str(files[0].with_name("missing.gguf")))
    trials = DraftTrials(experiment, [missing, *drafts], lambda: make_home("thread"), Control())
    assert list(trials.run())
    return DraftResults.of(target.path, "Three prompts", trials)


def test_what_was_kept_is_read_again(results: DraftResults, tmp_path: Path, files: list[Path]) -> None:
    kept = KeptDrafts(tmp_path / "kept")
    assert kept.read(results.target) is None
    kept.keep(results)
    again = kept.read(results.target)
    assert again is not None
    assert (again.measured, again.prompts) == (results.measured, "Three prompts")
    judged = {path: score for path, score in results.scores.items() if not path.endswith("missing.gguf")}
    assert again.scores == judged and set(judged) == {str(file) for file in files[1:]}
    assert list(results.scores)[-1].endswith("missing.gguf")


def test_a_draft_that_changed_is_left_out(results: DraftResults, tmp_path: Path, files: list[Path]) -> None:
    kept = KeptDrafts(tmp_path / "kept")
    kept.keep(results)
    files[2].write_bytes(files[2].read_bytes() + b"more")
    again = kept.read(results.target)
    assert again is not None and list(again.scores) == [str(files[1])]
    files[1].unlink()
    assert kept.read(results.target) is None


def test_results_of_a_target_that_changed_are_not_shown(
    results: DraftResults, tmp_path: Path, files: list[Path]
) -> None:
    kept = KeptDrafts(tmp_path / "kept")
    kept.keep(results)
    shutil.copy(files[2], files[0])
    assert kept.read(results.target) is None


def test_damaged_results_are_measured_again(results: DraftResults, tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    kept = KeptDrafts(folder)
    kept.keep(results)
    (file,) = folder.iterdir()
    file.write_bytes(file.read_bytes()[:-9])
    assert kept.read(results.target) is None
    kept.keep(results)
    assert kept.read(results.target) is not None
