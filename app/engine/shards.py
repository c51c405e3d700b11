"""Models in several files: llama.cpp opens the first, named `…-00001-of-00003.gguf`, and finds the others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_SHARD = re.compile(r"^(?P<stem>.+)-(?P<index>\d{5})-of-(?P<count>\d{5})\.gguf$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Shard:
    """Which part of a model a file is; `index` counts from 1."""

    stem: str
    index: int
    count: int


def shard_of(name: str) -> Shard | None:
    """The shard that a file name stands for; None for a model in one file."""
    found = _SHARD.match(name)
    if found is None or not 1 <= int(found["index"]) <= int(found["count"]):
        return None
    return Shard(found["stem"], int(found["index"]), int(found["count"]))


def parts_of(path: Path) -> list[Path]:
    """All existing files of the model to which a file belongs, in order."""
    of = shard_of(path.name)
    if of is None:
        return [path]
    named = ((file, shard_of(file.name)) for file in path.parent.glob("*.gguf"))
    return sorted(file for file, shard in named if shard and (shard.stem, shard.count) == (of.stem, of.count))


def size_of(path: Path) -> int:
    """The bytes of all files of a model. Raises OSError if it does not exist."""
    return sum(part.stat().st_size for part in parts_of(path)) or path.stat().st_size
