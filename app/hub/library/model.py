"""A model that is here: one file, or the parts of a sharded one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from app.hub.library.facts import Facts, short_number
from app.hub.names import quantisation_of


class Origin(StrEnum):
    """Where a model came from, which says what can be done with it."""

    HUB = "Hub"  # in the Hugging Face cache
    ADDED = "added"  # a file, or in a folder, that the user added
    BUNDLED = "bundled"  # part of Draftscope: cannot be deleted


@dataclass(frozen=True, slots=True)
class LocalModel:
    """An immutable picture. `facts` are None until the probe has read the file, and where it cannot be."""

    path: Path  # the file to load: the first part
    files: tuple[Path, ...]
    size: int  # bytes of all parts
    changed: int  # nanoseconds: when the part that was written last was
    origin: Origin
    repo: str = ""  # on the Hub
    facts: Facts | None = None
    problem: str = ""  # why it cannot be used, for people
    hint: str = ""

    @property
    def name(self) -> str:
        """As the file calls itself, else its file name without the ending."""
        return (self.facts.name if self.facts else "") or self.path.stem

    @property
    def quantisation(self) -> str:
        """Such as "Q4_K_M"; "?" where neither the file nor its name says."""
        named = quantisation_of(self.path.name)
        # "UD-Q4_K_XL" and the like are finer than what a file can say of itself.
        return named if named != "?" else (self.facts.quantisation if self.facts else "") or "?"

    @property
    def parameters(self) -> str:
        """Such as "1.7B"; empty while it is not known."""
        return short_number(self.facts.parameters) if self.facts else ""

    @property
    def is_read(self) -> bool:
        """Whether all is known that there is to know."""
        return self.facts is not None or bool(self.problem)

    @property
    def refusal(self) -> str:
        """Why it cannot be a target, for people; empty where it can be, or is not read yet."""
        if self.facts is not None and self.facts.refusal:
            return f"{self.path.name} is no language model: {self.facts.refusal}."
        return self.problem

    @property
    def can_delete(self) -> bool:
        return self.origin is not Origin.BUNDLED
