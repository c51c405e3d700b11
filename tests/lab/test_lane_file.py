"""Lane files: strategies on pairs of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.engine.errors import SettingError
from app.engine.types import ModelOptions
from app.lab.experiment import Lane, Pair
from app.lab.lane_file import read_lanes

OWN = Pair(ModelOptions("/m/t.gguf", threads=2), ModelOptions("/m/d.gguf", ctx_size=512))


def lanes(tmp_path: Path, *entries: dict[str, Any]) -> tuple[Lane, ...]:
    file = tmp_path / "lanes.json"
    file.write_text(json.dumps(entries))
    return read_lanes(file, OWN)


def test_pairs_are_completed_from_the_own_one(tmp_path: Path) -> None:
    plain, drafted, alone, whole = lanes(
        tmp_path,
        {"strategy": "suffix"},
        {"strategy": "draft-simple", "label": "e", "draft": "e.gguf"},
        {"strategy": "suffix", "target": "/n/u.gguf"},
        {"strategy": "draft-simple", "target": {"path": "u.gguf", "threads": 5}, "draft": "/n/f.gguf"},
    )
    assert plain == Lane("suffix")
    draft = ModelOptions(str(tmp_path / "e.gguf"), ctx_size=512)
    assert drafted == Lane("draft-simple", "e", Pair(OWN.target, draft))
    assert alone.pair == Pair(ModelOptions("/n/u.gguf", threads=2))
    assert whole.pair is not None and whole.pair.draft is not None
    assert whole.pair.target == ModelOptions(str(tmp_path / "u.gguf"), threads=5)
    assert whole.pair.draft.path == "/n/f.gguf"


@pytest.mark.parametrize("entry", [{"strategy": "suffix", "drafft": "e"}, {"label": "x"}, {"strategy": 3}])
def test_what_is_no_lane_is_refused(tmp_path: Path, entry: dict[str, Any]) -> None:
    with pytest.raises(SettingError, match=r"lanes\.json cannot be read"):
        lanes(tmp_path, entry)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_gpu_layer": 9}, "no option “n_gpu_layer”"),
        ({"n_gpu_layers": "many"}, "cannot be used"),
        ({"ctx_size": -5}, "ctx_size"),
    ],
)
def test_options_of_a_model_are_checked(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        lanes(tmp_path, {"strategy": "suffix", "target": {"path": "t.gguf", **options}})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="cannot be read"):
        read_lanes(tmp_path / "missing.json", OWN)
