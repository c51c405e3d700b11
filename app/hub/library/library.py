"""The library on its own thread, for a window."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.engine.errors import ModelFileError, UserError
from app.hub.library.model import Candidate, LocalModel, best_first
from app.hub.library.shelf import Shelf

log = logging.getLogger("draftscope.library")

_TELL_SECONDS = 0.2  # between two reports while files are read
_CLOSE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class LibraryChanged:
    """All models, sorted by file name; `reading` while some are not read yet."""

    models: tuple[LocalModel, ...]
    reading: bool


@dataclass(frozen=True, slots=True)
class DraftsChanged:
    """Every other model as a draft for `target`, best first; `reading` while more will come. `problem` says
    why the target itself cannot be used (then there are no candidates)."""

    target: Path
    candidates: tuple[Candidate, ...]
    reading: bool
    problem: str = ""


@dataclass(frozen=True, slots=True)
class LibraryProblem:
    """A command could not be carried out."""

    message: str
    hint: str


LibraryEvent = LibraryChanged | DraftsChanged | LibraryProblem


class Library:
    """Commands return at once (`add` checks first). Results go to `listen` on the library's thread: it must
    be quick and must not raise. Safe from any thread."""

    def __init__(self, shelf: Shelf, listen: Callable[[LibraryEvent], None]) -> None:
        """Take over the shelf, which no other code may use. `refresh` fills the library."""
        self._shelf = shelf
        self._listen = listen
        self.models: tuple[LocalModel, ...] = ()  # the models as last reported
        self._commands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._target: Path | None = None  # whose drafts are asked for
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="library", daemon=True)
        self._thread.start()

    @property
    def added(self) -> tuple[Path, ...]:
        """The files and folders that the user added."""
        return self._shelf.places.added

    @property
    def notice(self) -> str:
        """A sentence on the lost part of the list of added files; "" if nothing was lost."""
        return self._shelf.places.notice

    def refresh(self) -> None:
        """List all models and read new ones: at the start, and after a download."""
        self._commands.put(self._refresh)

    def add(self, places: Iterable[Path]) -> None:
        """Add files and folders. Raises UserError if one contains no model."""
        self._shelf.add(places)
        self.refresh()

    def remove(self, place: Path) -> None:
        """Remove an added file or folder from the list; it stays on the disk. Raises UserError."""
        self._shelf.places.remove(place)
        self.refresh()

    def delete(self, model: LocalModel) -> None:
        """Delete a model's files from the disk."""
        self._commands.put(partial(self._delete, model))

    def find_drafts(self, target: Path | None) -> None:
        """Report the drafts for this target, now and after every change of the library; None stops it."""
        self._target = target
        self._commands.put(self._drafts)

    def close(self) -> None:
        """End the thread and the probe process, and save the facts."""
        self._closing = True
        self._commands.put(None)
        self._thread.join(_CLOSE_SECONDS)

    # ------------------------------------------------------------------ on the library's thread

    def _run(self) -> None:
        while (command := self._commands.get()) is not None and not self._closing:
            try:
                command()
            except UserError as error:
                self._listen(LibraryProblem(error.message, error.hint))
            except Exception:
                log.exception("Unexpected error in the library")
        self._shelf.save(self.models)
        self._shelf.close()

    def _refresh(self) -> None:
        models = list(self._shelf.scan())
        self._tell(models)
        next_time = time.monotonic() + _TELL_SECONDS
        for index, model in enumerate(models):
            if self._closing:
                return
            models[index] = self._shelf.read(model)
            if models[index] is not model and time.monotonic() >= next_time:
                self._tell(models)
                next_time = time.monotonic() + _TELL_SECONDS
        if tuple(models) != self.models:
            self._tell(models)
        self._shelf.save(models)
        self._drafts()

    def _tell(self, models: list[LocalModel]) -> None:
        self.models = tuple(models)
        self._listen(LibraryChanged(self.models, not all(model.is_read for model in models)))

    def _delete(self, model: LocalModel) -> None:
        try:
            self._shelf.delete(model)
        finally:
            self._refresh()

    def _drafts(self) -> None:
        path = self._target
        if path is None:
            return
        found: list[Candidate] = []
        next_time = time.monotonic() + _TELL_SECONDS
        try:
            target = self._shelf.at(path, self.models)
            for candidate in self._shelf.candidates(target, self.models):
                if self._closing or self._target != path:
                    return  # another target was chosen meanwhile and is next
                found.append(candidate)
                if time.monotonic() >= next_time:
                    self._listen(DraftsChanged(path, best_first(found), True))
                    next_time = time.monotonic() + _TELL_SECONDS
        except ModelFileError as error:
            self._listen(DraftsChanged(path, (), False, str(error)))
            return
        self._listen(DraftsChanged(path, best_first(found), False))
