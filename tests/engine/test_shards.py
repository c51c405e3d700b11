"""Models in several files: their names, their parts, their size."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engine.shards import Shard, parts_of, shard_of, size_of


def test_shards_are_told_by_their_names() -> None:
    assert shard_of("a-00002-of-00003.gguf") == Shard("a", 2, 3)
    for name in ("a.gguf", "a-00004-of-00003.gguf", "a-00000-of-00003.gguf", "a-1-of-3.gguf"):
        assert shard_of(name) is None


def test_the_size_is_that_of_all_parts(tmp_path: Path) -> None:
    for name, size in (
        ("m-00001-of-00002.gguf", 5),
        ("m-00002-of-00002.gguf", 7),
        ("m-00001-of-00003.gguf", 100),
        ("other-00001-of-00002.gguf", 100),
        ("m.gguf", 3),
    ):
        (tmp_path / name).write_bytes(bytes(size))
    first = tmp_path / "m-00001-of-00002.gguf"
    assert [part.name for part in parts_of(first)] == [first.name, "m-00002-of-00002.gguf"]
    assert size_of(first) == 12
    assert size_of(tmp_path / "m.gguf") == 3
    with pytest.raises(FileNotFoundError):
        size_of(tmp_path / "none-00001-of-00002.gguf")
