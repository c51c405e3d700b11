"""The library on a thread of its own, as a window uses it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from app.engine.errors import UserError
from app.hub.cache import Cache
from app.hub.library.library import DraftsChanged, Library, LibraryChanged, LibraryEvent, LibraryProblem
from app.hub.library.model import FileOrigin, LocalModel
from app.hub.library.shelf import Shelf
from tests.files.tiny import Tiny

E = TypeVar("E")
PATIENCE = 40.0
TARGET = Tiny(name="target", n_embd=128, n_ff=256, n_layers=4)
DRAFT = Tiny(name="draft")
Put = Callable[..., Path]


class Told:
    def __init__(self) -> None:
        self.events: list[LibraryEvent] = []

    def wait(self, kind: type[E], reached: Callable[[E], bool] = lambda _event: True) -> E:
        """The newest event of its kind, as soon as it meets the condition; forgets the earlier ones."""
        until = time.monotonic() + PATIENCE
        while True:
            found = [event for event in self.events if isinstance(event, kind) and reached(event)]
            if found:
                self.events.clear()
                return found[-1]
            assert time.monotonic() < until, self.events
            time.sleep(0.01)


def reading() -> bool:
    """Whether a library's thread is alive."""
    return "library" in {thread.name for thread in threading.enumerate()}


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def library(tmp_path: Path, cache: Cache, told: Told) -> Iterator[Library]:
    made = Library(Shelf(tmp_path / "data", cache), told.events.append)
    yield made
    made.close()
    assert not reading()


def test_a_window_follows_the_library(library: Library, told: Told, put: Put, folder: Path) -> None:
    path, draft = put(TARGET), put(DRAFT)
    library.refresh()
    assert told.wait(LibraryChanged).models == ()
    library.add([folder])
    changed = told.wait(LibraryChanged, lambda event: not event.reading)
    assert [model.name for model in changed.models] == ["draft", "target"]
    assert library.models == changed.models

    library.find_drafts(path)
    found = told.wait(DraftsChanged, lambda event: not event.reading)
    assert found.target == path and [str(candidate) for candidate in found.candidates] == ["good"]

    # A change of the library also changes its drafts.
    library.delete(changed.models[0])
    assert told.wait(DraftsChanged, lambda event: not event.reading).candidates == ()
    assert not draft.exists()
    assert library.added == (folder,)
    library.remove(folder)
    told.wait(LibraryChanged, lambda event: event.models == ())
    assert path.exists()


def test_problems_are_told(library: Library, told: Told, put: Put, folder: Path) -> None:
    with pytest.raises(UserError, match=r"no \.gguf file"):
        library.add([folder])
    library.find_drafts(folder / "gone.gguf")
    assert "does not exist" in told.wait(DraftsChanged).problem
    path = put(TARGET)
    bundled = LocalModel(path, (path,), 1, 0, FileOrigin.BUNDLED)
    library.delete(bundled)
    assert "part of Draftscope" in told.wait(LibraryProblem).message
    assert path.exists()


def test_closing_in_the_middle_of_reading(tmp_path: Path, cache: Cache, put: Put, folder: Path) -> None:
    for i in range(8):
        put(DRAFT, f"{i}.gguf")
    told = Told()
    library = Library(Shelf(tmp_path / "data", cache), told.events.append)
    library.add([folder])
    told.wait(LibraryChanged)
    library.close()
    assert not reading()
