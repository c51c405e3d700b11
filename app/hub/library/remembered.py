"""What the library saves: the places that were added, and the facts of files that were read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from app.base.files import (
    NewerError,
    decode_kept,
    make_own_folder,
    put_aside,
    read_file,
    reason,
    write_atomic,
    write_json,
)
from app.engine.compat import FitKind, VocabularyFit
from app.engine.errors import UserError
from app.hub.library.model import LocalModel
from app.hub.library.probe import Facts

VERSION = 1
_LIST = "The list of added files"


class _PlacesFile(msgspec.Struct, frozen=True):
    added: tuple[str, ...] = ()
    version: int = VERSION


class Places:
    """The files and folders that the user added. Every change first reads the file again: a window and a
    command may both change it."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._added: tuple[str, ...] = ()
        self._unread = ""  # why the file cannot be read now
        self.notice = ""  # what could not be read, for people

    @property
    def added(self) -> tuple[Path, ...]:
        self._read()
        return tuple(map(Path, self._added))

    def add(self, places: Iterable[Path]) -> None:
        """Add places; raises UserError if the list cannot be saved."""
        self._read()
        self._write(tuple(dict.fromkeys((*self._added, *map(str, places)))))

    def remove(self, place: Path) -> None:
        """Remove a place; raises UserError if the list cannot be saved."""
        self._read()
        self._write(tuple(path for path in self._added if path != str(place)))

    def _read(self) -> None:
        if self._file is None:
            return
        self._unread = ""
        try:
            self._added = decode_kept(read_file(self._file), _PlacesFile, VERSION).added
        except FileNotFoundError:
            self._added = ()
        except OSError as error:  # this may be temporary, and the file is intact
            self.notice = self._unread = f"{_LIST} could not be read: {reason(error)}."
        except ValueError as error:
            self._added = ()
            self.notice = put_aside(self._file, _LIST, error)

    def _write(self, added: tuple[str, ...]) -> None:
        if self._file is not None and added != self._added:
            if self._unread:  # writing would lose what it holds
                raise UserError(self._unread, f"Look at {self._file}.")
            saved = _PlacesFile(added)
            write_json(self._file, saved, f"{_LIST} was not saved", "Rename the file or the folder.")
        self._added = added


class _Known(msgspec.Struct):
    version: int = VERSION
    facts: dict[str, Facts] = {}
    fits: dict[str, tuple[FitKind, str]] = {}


class RememberedFiles:
    """Facts of files and fits of their vocabularies, until the files change. Losing them costs only time."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._changed = False
        self._known = _Known()
        if file is not None:
            try:
                self._known = decode_kept(read_file(file), _Known, VERSION)
            except NewerError:
                self._file = None  # kept for the newer version that wrote it
            except (OSError, ValueError):
                self._known = _Known()

    def facts(self, model: LocalModel) -> Facts | None:
        return self._known.facts.get(_file_key(model))

    def keep_facts(self, model: LocalModel, facts: Facts) -> None:
        self._known.facts[_file_key(model)] = facts
        self._changed = True

    def fit(self, target: Facts, draft: Facts) -> VocabularyFit | None:
        if target.vocabulary == draft.vocabulary:
            return VocabularyFit(FitKind.SAME)
        found = self._known.fits.get(f"{target.vocabulary} {draft.vocabulary}")
        return VocabularyFit(*found) if found else None

    def keep_fit(self, target: Facts, draft: Facts, fit: VocabularyFit) -> None:
        self._known.fits[f"{target.vocabulary} {draft.vocabulary}"] = (fit.kind, fit.detail)
        self._changed = True

    def save(self, models: Iterable[LocalModel]) -> None:
        """Save everything about `models`, and drop the rest. A failure loses nothing, and is not reported."""
        if self._file is None or not self._changed:
            return
        here = {_file_key(model) for model in models}
        self._known.facts = {key: facts for key, facts in self._known.facts.items() if key in here}
        words = {facts.vocabulary for facts in self._known.facts.values()}
        self._known.fits = {
            key: fit for key, fit in self._known.fits.items() if words.issuperset(key.split())
        }
        self._changed = False
        try:
            make_own_folder(self._file.parent)
            write_atomic(self._file, msgspec.json.encode(self._known))
        except (OSError, UnicodeEncodeError):
            return


def _file_key(model: LocalModel) -> str:
    return f"{model.path} {model.size} {model.changed}"
