"""A folder of tiny models, and a shelf that reads them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.hub.cache import Cache
from app.hub.library.probe import Reader
from app.hub.library.shelf import Shelf
from tests.files.tiny import Tiny

MakeTiny = Callable[[Tiny], Path]


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    made = Reader()
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my models"
    made.mkdir()
    return made


@pytest.fixture
def shelf(tmp_path: Path, cache: Cache, reader: Reader) -> Shelf:
    """Not closed: its reader is shared."""
    return Shelf(tmp_path / "data", cache, {}, reader)


@pytest.fixture
def put(folder: Path, tiny_file: MakeTiny) -> Callable[..., Path]:
    """Puts a tiny model into the folder."""

    def make(tiny: Tiny, name: str = "") -> Path:
        path = folder / (name or f"{tiny.name}.gguf")
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tiny_file(tiny), path)
        return path

    return make
