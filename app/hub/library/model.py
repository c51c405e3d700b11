"""A model on this machine: one file, or the parts of a sharded one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app.hub.library.facts import Facts, short_number
from app.hub.names import quantisation_of

_FINER = re.compile(r"(?:UD-(?=.)|(?=Q[24568]_K_X?L|Q3_K_XL))(?P<format>[A-Z]+\d+(?:_[0-9K])?)\w*")
"""Words for mixtures that llama.cpp's file types have no name for."""


class FileOrigin(StrEnum):
    """Where a model came from, which decides what can be done with it."""

    HUB = "Hub"  # in the Hugging Face cache
    ADDED = "added"  # a file, or in a folder, that the user added
    BUNDLED = "bundled"  # part of Draftscope: cannot be deleted
    MADE = "made here"  # another quantisation of a model
    SET_UP = "set-up"  # brought by set-up, or by a package: cannot be deleted


@dataclass(frozen=True, slots=True)
class LocalModel:
    """An immutable snapshot. `facts` are None until the probe has read the file, and where it cannot be
    read."""

    path: Path  # the file to load: the first part
    files: tuple[Path, ...]
    size: int  # bytes of all parts
    changed: int  # nanoseconds: when the newest part was written
    origin: FileOrigin
    repo: str = ""  # on the Hub
    facts: Facts | None = None
    problem: str = ""  # why it cannot be used, for people
    hint: str = ""

    @property
    def name(self) -> str:
        """The name in the file, else its file name without the ending."""
        return (self.facts.name if self.facts else "") or self.path.stem

    @property
    def quantisation(self) -> str:
        """Such as "Q4_K_M": from the file, or from its name where the file gives none or only a coarser word;
        "?" where neither gives one."""
        named = quantisation_of(self.path.name)
        said = self.facts.quantisation if self.facts else ""
        finer = _FINER.fullmatch(named)
        return named if not said or (finer and said.startswith(finer["format"])) else said

    @property
    def parameters(self) -> str:
        """Such as "1.7B"; empty while it is not known."""
        return short_number(self.facts.parameters) if self.facts else ""

    @property
    def is_read(self) -> bool:
        """Whether the file was read, or is known to be unreadable."""
        return self.facts is not None or bool(self.problem)

    @property
    def refusal(self) -> str:
        """Why it cannot be a target, for people; empty where it can be, or is not read yet."""
        if self.facts is not None and self.facts.refusal:
            return f"{self.path.name} is no language model: {self.facts.refusal}."
        if self.is_head:
            return f"{self.path.name} drafts for the model that it was made for, and cannot answer by itself."
        return self.problem

    @property
    def is_head(self) -> bool:
        """Whether it only drafts, for one target."""
        return self.facts is not None and bool(self.facts.strategy)

    @property
    def made_from(self) -> str:
        """The name of the file that it is another quantisation of; empty where it was not made here."""
        return self.path.parent.name.rpartition("-")[0] if self.origin is FileOrigin.MADE else ""

    @property
    def can_delete(self) -> bool:
        return self.origin not in (FileOrigin.BUNDLED, FileOrigin.SET_UP)


def names_apart(models: Sequence[LocalModel]) -> tuple[str, ...]:
    """A name for each model that tells it from the others: its own; where several share that, with the
    quantisation, else with the file name; where they share that too, with the repository or folder."""
    names = [model.name for model in models]
    kinds = Counter((model.name, model.quantisation) for model in models)
    known = [
        model.quantisation
        if model.quantisation != "?" and kinds[model.name, model.quantisation] == 1
        else model.name
        for model in models
    ]
    files = [model.path.stem for model in models]
    places = [model.repo or str(model.path.parent) for model in models]
    for details in (known, files, places):
        many = Counter(names)
        names = [
            f"{name} · {detail}" if many[name] > 1 and detail != name else name
            for name, detail in zip(names, details, strict=True)
        ]
    return tuple(names)
