"""The local models: found, read, compared, added and deleted, by one thread at a time. Also the library's
saved data: added places, and facts of files."""

from __future__ import annotations

import contextlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from app.base.files import SpareFile, decode_kept, explained, put_aside, read_file, reason, write_json
from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, QUANTISED, REAL_DRAFT, REAL_TARGET, Paths
from app.engine.compat import FitKind, VocabularyFit
from app.engine.errors import ModelFileError, UserError, no_model_at
from app.engine.shards import parts_of, shard_of
from app.hub.cache import Cache
from app.hub.library.model import Candidate, DraftVerdict, FileOrigin, LocalModel, best_first, judge_draft
from app.hub.library.probe import Facts, NoAnswerError, Reader
from app.hub.names import is_model

VERSION = 1
_LIST = "The list of added files"


class _PlacesFile(msgspec.Struct, frozen=True):
    added: tuple[str, ...] = ()
    version: int = VERSION


class AddedPlaces:
    """The files and folders that the user added. Every change first reads the list again, because a window
    and a command may both change it."""

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


_FACTS = 2  # raise it with each new field of Facts: earlier files are read again


class _Known(msgspec.Struct):
    version: int = _FACTS
    facts: dict[str, Facts] = {}
    fits: dict[str, tuple[FitKind, str]] = {}


class RememberedFiles:
    """Facts of files and fits of their vocabularies, until the files change. Losing them costs only time."""

    def __init__(self, file: Path | None) -> None:
        self._file = SpareFile(file, _Known, _FACTS)
        self._changed = False
        known = self._file.read()
        self._known = known if known.version == _FACTS else _Known()

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
        """Save everything about `models`, and drop the rest. A failure is harmless and not reported."""
        if not self._changed:
            return
        known, here = self._known, {_file_key(model) for model in models}
        known.facts = {key: facts for key, facts in known.facts.items() if key in here}
        words = {facts.vocabulary for facts in known.facts.values()}
        known.fits = {key: fit for key, fit in known.fits.items() if words.issuperset(key.split())}
        self._changed = False
        self._file.write(self._known)


def _file_key(model: LocalModel) -> str:
    return f"{model.path} {model.size} {model.changed}"


_DEEPEST = 6  # folders below one that was added


def own_models(paths: Paths) -> dict[Path, FileOrigin]:
    """The models that come with Draftscope, including missing ones."""
    bundled = {
        Path(paths.model(name)): FileOrigin.BUNDLED for name in (BUNDLED_TARGET, BUNDLED_DRAFT, REAL_DRAFT)
    }
    return bundled | {Path(paths.model(REAL_TARGET)): FileOrigin.SET_UP}


def scan(
    cache: Cache, added: Sequence[Path], own: Mapping[Path, FileOrigin], made: Path | None = None
) -> tuple[LocalModel, ...]:
    """Every model on this machine, once, without its facts; `made` is the folder of models made here. Never
    raises: unreadable files are left out."""
    models = [
        *(model for path, origin in own.items() if path.is_file() for model in _group([path], origin)),
        *_of_cache(cache),
        *_group(_files(made) if made else (), FileOrigin.MADE),
        *_group((path for place in added for path in _files(place)), FileOrigin.ADDED),
    ]
    once: dict[object, LocalModel] = {}
    for model in models:
        once.setdefault(_identity(model.path), model)
    return tuple(sorted(once.values(), key=lambda model: (model.path.name.lower(), str(model.path))))


def model_at(path: Path) -> LocalModel | None:
    """The model of which the file at this path is all or a part; None if there is no file."""
    return next(_group([file for file in parts_of(path) if file.is_file()], FileOrigin.ADDED), None)


def _of_cache(cache: Cache) -> Iterator[LocalModel]:
    found: defaultdict[tuple[str, str], list[Path]] = defaultdict(list)
    for repo, commit, name in cache.files():
        if is_model(name):
            found[repo, commit.name].append(commit.joinpath(*name.split("/")))
    for (repo, _), pointers in found.items():
        yield from _group(pointers, FileOrigin.HUB, repo)


def _files(place: Path) -> Iterator[Path]:
    """The model files at an added path."""
    if place.is_file():
        yield place
        return
    for folder, inner, names in os.walk(place):
        deep = len(Path(folder).relative_to(place).parts)
        inner[:] = [] if deep >= _DEEPEST else [name for name in inner if not name.startswith(".")]
        yield from (path for name in names if is_model(name) and (path := Path(folder, name)).is_file())


def _group(paths: Iterable[Path], origin: FileOrigin, repo: str = "") -> Iterator[LocalModel]:
    """One model per file, and one for all parts of a sharded model."""
    shards: defaultdict[tuple[Path, str, int], dict[int, Path]] = defaultdict(dict)
    for path in dict.fromkeys(paths):
        if shard := shard_of(path.name):
            shards[path.parent, shard.stem, shard.count][shard.index] = path
        else:
            yield from _model((path,), origin, repo)
    for (_, _, count), parts in shards.items():
        there = tuple(parts[index] for index in sorted(parts))
        problem = f"{len(there)} of its {count} parts are here." if len(there) < count else ""
        yield from _model(there, origin, repo, problem)


def _model(files: tuple[Path, ...], origin: FileOrigin, repo: str, problem: str = "") -> Iterator[LocalModel]:
    try:
        size, changed = measure(files)
    except OSError:
        return  # gone meanwhile
    hint = "Download or copy the others into the same folder." if problem else ""
    yield LocalModel(files[0], files, size, changed, origin, repo, problem=problem, hint=hint)


def _identity(path: Path) -> object:
    """Equal for two paths to the same file."""
    try:
        status = path.stat()  # ten times as fast as resolving the path
    except OSError:
        return path
    return (status.st_dev, status.st_ino) if status.st_ino else path.resolve()


def measure(files: Sequence[Path]) -> tuple[int, int]:
    """The bytes of all files, and when the newest was written, in nanoseconds. Raises OSError."""
    found = [file.stat() for file in files]
    return sum(stat.st_size for stat in found), max(stat.st_mtime_ns for stat in found)


class Shelf:
    """The whole library, with blocking calls; `Library` runs it on its own thread."""

    def __init__(
        self,
        folder: Path | None,
        cache: Cache | None = None,
        own: Mapping[Path, FileOrigin] | None = None,
        reader: Reader | None = None,
    ) -> None:
        """`folder` is for its saved data (None: not saved); `own` are the models that come with Draftscope
        (`own_models`)."""
        self._cache = cache or Cache()
        self._own = own or {}
        self._made = folder / QUANTISED if folder else None
        self._reader = reader or Reader()
        self.places = AddedPlaces(folder / "library.json" if folder else None)
        self._known = RememberedFiles(folder / "library-cache.json" if folder else None)
        # Files that could not be read, by path, size and time of the last change.
        self._refused: dict[tuple[Path, int, int], UserError] = {}

    def scan(self) -> tuple[LocalModel, ...]:
        """The present models, with known facts; opens no file."""
        found = scan(self._cache, self.places.added, self._own, self._made)
        return tuple(self._recalled(model) for model in found)

    def _recalled(self, model: LocalModel) -> LocalModel:
        if model.problem:
            return model
        if error := self._refused.get((model.path, model.size, model.changed)):
            return replace(model, problem=error.message, hint=error.hint)
        return replace(model, facts=self._known.facts(model))

    def at(self, path: Path, models: Iterable[LocalModel]) -> LocalModel:
        """The model in `models` to which the file at `path` belongs, else a new one. Raises ModelFileError if
        there is no file."""
        found = find_model(models, path) or model_at(path)
        if found is None:
            raise no_model_at(path)
        return self._recalled(found)

    def read(self, model: LocalModel) -> LocalModel:
        """The model with its facts, or with the problem of reading it."""
        if model.is_read:
            return model
        try:
            facts = self._reader.facts(model.path)
        except ModelFileError as error:
            if not isinstance(error, NoAnswerError):
                self._refused[model.path, model.size, model.changed] = error
            return replace(model, problem=error.message, hint=error.hint)
        self._known.keep_facts(model, facts)
        return replace(model, facts=facts)

    def candidates(self, target: LocalModel, models: Iterable[LocalModel]) -> Iterator[Candidate]:
        """Every other model as a draft for `target`, in the given order. Raises ModelFileError if the target
        cannot be used."""
        target = self._usable(target)
        for model in models:
            if model.path != target.path:
                yield self._candidate(target, self.read(model))

    def suiting(self, target: Path) -> tuple[Candidate, ...]:
        """The good drafts for a target, best first: those of its architecture, if any. Saves the facts.
        Raises ModelFileError if the target cannot be used."""
        models = [self.read(model) for model in self.scan()]
        candidates = best_first(self.candidates(self.read(self.at(target, models)), models))
        self.save(models)
        good = [candidate for candidate in candidates if candidate.verdict is DraftVerdict.GOOD]
        return tuple([candidate for candidate in good if candidate.related] or good)

    def judge(self, target: Path, draft: Path) -> Candidate:
        """Judge a file as a draft for a target; neither has to be listed. Raises ModelFileError if one is
        missing, or the target cannot be used."""
        return self._candidate(self._usable(self.at(target, ())), self.read(self.at(draft, ())))

    def _usable(self, target: LocalModel) -> LocalModel:
        target = self.read(target)
        if target.refusal:
            raise ModelFileError(target.refusal, target.hint or "Choose a language model as the target.")
        return target

    def _candidate(self, target: LocalModel, draft: LocalModel) -> Candidate:
        assert target.facts is not None
        if draft.facts is None or draft.facts.refusal:
            return judge_draft(target, draft, None)
        fit = self._known.fit(target.facts, draft.facts)
        if fit is None:
            try:
                fit = self._reader.compare(target.path, draft.path)
            except ModelFileError as error:
                return judge_draft(target, replace(draft, problem=error.message, hint=error.hint), None)
            self._known.keep_fit(target.facts, draft.facts, fit)
        return judge_draft(target, draft, fit)

    def add(self, places: Iterable[Path]) -> None:
        """Add files and folders; raises UserError if one contains no model."""
        absolute = [place.expanduser().absolute() for place in places]
        for place in absolute:
            if not place.exists():
                raise UserError(
                    f"{place} does not exist.", "Choose a .gguf file, or a folder that contains one."
                )
            if place.is_file():
                if place.suffix.lower() != ".gguf":
                    raise UserError(f"{place.name} is not a GGUF file.", "Choose a .gguf file.")
            elif not scan(Cache(place / "no cache"), [place], {}):
                raise UserError(f"There is no .gguf file in {place}.", "Choose a folder that contains one.")
        self.places.add(absolute)

    def delete(self, model: LocalModel) -> int:
        """Delete a model's files from the disk; returns the bytes freed. Raises UserError, also if the
        files have changed since this snapshot."""
        if not model.can_delete:
            raise UserError(f"{model.name} is part of Draftscope.", "It cannot be deleted.")
        with explained(f"{model.path.name} was not deleted", "Close what uses it, then try again."):
            if measure(model.files) != (model.size, model.changed):
                raise UserError(
                    f"{model.path.name} has changed since it was listed, and was not deleted.",
                    "Look at it again, then delete it.",
                )
            if model.origin is FileOrigin.HUB:
                return self._cache.delete(model.files)
            for file in model.files:
                file.unlink(missing_ok=True)
            if model.origin is FileOrigin.MADE:
                with contextlib.suppress(OSError):  # it has other files
                    model.path.parent.rmdir()
        if model.path in self.places.added:
            self.places.remove(model.path)
        return model.size

    def save(self, models: Iterable[LocalModel]) -> None:
        """Save the facts of these models."""
        self._known.save(models)

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> Shelf:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def find_model(models: Iterable[LocalModel], path: Path) -> LocalModel | None:
    """The model in `models` to which the file at `path` belongs."""
    with contextlib.suppress(OSError):
        path = path.resolve()
    return next((model for model in models if path in [file.resolve() for file in model.files]), None)
