"""Finds model files: in the Hugging Face cache, among what the user added, and those that come along."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from app.hub.cache import Cache
from app.hub.library.model import FileOrigin, LocalModel
from app.hub.names import Shard, is_model, shard_of

_DEEPEST = 6  # folders below one that was added


def scan(cache: Cache, added: Sequence[Path], bundled: Sequence[Path]) -> tuple[LocalModel, ...]:
    """Every model that is here, each once, without what only reading them tells. Never raises: what cannot
    be looked at is not here."""
    models = [
        *_group([path for path in bundled if path.is_file()], FileOrigin.BUNDLED),
        *_of_cache(cache),
        *_group((path for one in added for path in _files(one)), FileOrigin.ADDED),
    ]
    once: dict[object, LocalModel] = {}
    for model in models:
        once.setdefault(_identity(model.path), model)
    return tuple(sorted(once.values(), key=lambda one: (one.path.name.lower(), str(one.path))))


def model_at(path: Path) -> LocalModel | None:
    """The model that the file at any path is, or is a part of; None where there is no file."""
    paths = [path]
    if shard := shard_of(path.name):
        paths = [one for one in sorted(path.parent.glob("*.gguf")) if _is_part(one, shard)]
    return next(_group([one for one in paths if one.is_file()], FileOrigin.ADDED), None)


def _is_part(path: Path, of: Shard) -> bool:
    shard = shard_of(path.name)
    return shard is not None and (shard.stem, shard.count) == (of.stem, of.count)


def _of_cache(cache: Cache) -> Iterator[LocalModel]:
    found: defaultdict[tuple[str, str], list[Path]] = defaultdict(list)
    for repo, commit, name in cache.files():
        if is_model(name):
            found[repo, commit.name].append(commit.joinpath(*name.split("/")))
    for (repo, _), pointers in found.items():
        yield from _group(pointers, FileOrigin.HUB, repo)


def _files(place: Path) -> Iterator[Path]:
    """The model files at a path that was added."""
    if place.is_file():
        yield place
        return
    for folder, inner, names in os.walk(place):
        deep = len(Path(folder).relative_to(place).parts)
        inner[:] = [] if deep >= _DEEPEST else [one for one in inner if not one.startswith(".")]
        yield from (path for name in names if is_model(name) and (path := Path(folder, name)).is_file())


def _group(paths: Iterable[Path], origin: FileOrigin, repo: str = "") -> Iterator[LocalModel]:
    """One model a file, and one for all parts of a sharded one."""
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
        status = path.stat()  # a tenth of what it takes to resolve the path
    except OSError:
        return path
    return (status.st_dev, status.st_ino) if status.st_ino else path.resolve()


def measure(files: Sequence[Path]) -> tuple[int, int]:
    """Bytes of all files, and when the last of them was written, in nanoseconds. Raises OSError."""
    found = [file.stat() for file in files]
    return sum(one.st_size for one in found), max(one.st_mtime_ns for one in found)
