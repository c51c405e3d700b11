"""Quantisations of real files by llama.cpp's own quantiser: made whole or not at all, and found again."""

from __future__ import annotations

import resource
import shutil
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest

from app.engine.errors import UserError
from app.hub.library.model import FileOrigin
from app.hub.library.shelf import Shelf
from app.hub.quantiser import Quantiser
from tests.files.tiny import Tiny


@pytest.fixture
def quantiser(tmp_path: Path) -> Quantiser:
    return Quantiser(tmp_path / "quantised")


def test_files_are_made_once_and_the_library_has_them(
    quantiser: Quantiser, demo_pair: tuple[Path, Path], tmp_path: Path
) -> None:
    source = Path(shutil.copy(demo_pair[1], tmp_path / "small.Q8_0.gguf"))
    plan = quantiser.plan(source, ("Q8_0", "F16"))
    assert [file.kind for file in plan.files] == ["Q8_0", "F16"], "its own kind is the file itself"
    assert plan.source.path == source and plan.missing == plan.files[1:]
    assert "already quantised (Q8_0)" in plan.warning
    assert not quantiser.folder.exists(), "planning writes nothing"
    quantiser.make(plan)
    for file in plan.missing:
        assert file.path.stat().st_size == pytest.approx(file.size, abs=20_000)
    types = {tensor.tensor_type.name for tensor in gguf.GGUFReader(plan.files[1].path).tensors}
    assert types == {"F16", "F32"}
    assert quantiser.plan(source, ("F16",)).missing == ()
    with Shelf(tmp_path) as shelf:
        made = [shelf.read(model) for model in shelf.scan() if model.origin is FileOrigin.MADE]
        assert [model.quantisation for model in made] == ["F16"]
        assert {model.made_from for model in made} == {"small.Q8_0"}
        for model in made:
            shelf.delete(model)
    assert list(quantiser.folder.iterdir()) == []


def test_a_stop_or_a_full_disk_leaves_no_part_of_a_file(
    quantiser: Quantiser, demo_pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = quantiser.plan(demo_pair[1], ("F16",))
    with pytest.raises(InterruptedError):
        quantiser.make(plan, stopped=lambda: True)
    monkeypatch.setattr("app.base.processes._FORKS", False)  # a fresh process inherits this one's limits
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (plan.size // 2, limit[1]))
    try:
        with pytest.raises(UserError, match="was not written: file too large"):
            quantiser.make(plan)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    assert list(quantiser.folder.iterdir()) == []
    monkeypatch.setattr(Quantiser, "free", 10**6)
    with pytest.raises(UserError, match=r"are needed in .*quantised, and 1.00 MB are free"):
        quantiser.make(plan)


def test_what_cannot_be_quantised_says_why(
    quantiser: Quantiser, tiny_file: Callable[[Tiny], Path], tmp_path: Path
) -> None:
    text, part = tmp_path / "text.gguf", tmp_path / "big-00001-of-00002.gguf"
    text.write_text("no model")
    part.write_bytes(b"GGUF")
    aborting = tiny_file(Tiny(name="aborting", experts=4))
    for path, words in (
        (tmp_path / "missing.gguf", "missing.gguf does not exist"),
        (text, "text.gguf is not a GGUF file"),
        (part, "big-00001-of-00002.gguf is not complete: 1 of its 2 parts"),
        (aborting, f"llama.cpp cannot quantise {aborting.name}: .*"),
    ):
        with pytest.raises(UserError, match=words):
            quantiser.plan(path, ("Q8_0",))
    plan = quantiser.plan(tiny_file(Tiny()), ("Q8_0",))
    assert plan.warning == "", "its weights are those of an original"
    quantiser.folder.write_text("a file where the folder should be")
    with pytest.raises(UserError, match=r"quantised cannot be used"):
        quantiser.make(plan)
