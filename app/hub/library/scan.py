"""Finds model files: in the Hugging Face cache, among what the user added, and those that come with
Draftscope."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from app.base.paths import BUNDLED_DRAFT, BUNDLED_TARGET, REAL_TARGET, Paths
from app.engine.shards import parts_of, shard_of
from app.hub.cache import Cache
from app.hub.library.model import FileOrigin, LocalModel
from app.hub.names import is_model

_DEEPEST = 6  # folders below one that was added


def own_models(paths: Paths) -> dict[Path, FileOrigin]:
    """The models that come with Draftscope; those that are missing too."""
    bundled = {Path(paths.model(name)): FileOrigin.BUNDLED for name in (BUNDLED_TARGET, BUNDLED_DRAFT)}
    return bundled | {Path(paths.model(REAL_TARGET)): FileOrigin.SET_UP}


def scan(
    cache: Cache, added: Sequence[Path], own: Mapping[Path, FileOrigin], made: Path | None = None
) -> tuple[LocalModel, ...]:
    """Every model on this machine, each once, without its facts; `made` is the folder of those that were made
    here. Never raises: what cannot be read is left out."""
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
    """The model that the file at any path is, or is a part of; None where there is no file."""
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
    yield LocalModel(
        files[0],
        files,
        size,
        changed,
        origin,
        repo,
        problem=problem,
        hint="Download or copy the others into the same folder." if problem else "",
    )


def _identity(path: Path) -> object:
    """Equal for two paths to the same file."""
    try:
        status = path.stat()  # ten times as fast as resolving the path
    except OSError:
        return path
    return (status.st_dev, status.st_ino) if status.st_ino else path.resolve()


def measure(files: Sequence[Path]) -> tuple[int, int]:
    """Bytes of all files, and when the newest was written, in nanoseconds. Raises OSError."""
    found = [file.stat() for file in files]
    return sum(stat.st_size for stat in found), max(stat.st_mtime_ns for stat in found)
