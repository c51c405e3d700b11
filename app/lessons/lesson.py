"""The text file of a lesson."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from app.base.files import reason
from app.engine.errors import UserError

Written = TypeVar("Written", bound=msgspec.Struct)
FOLDER = "lessons"  # in the resources


class LessonError(UserError):
    """A lesson's files cannot be read, or do not fit each other."""


class LessonChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A possible answer to a question."""

    text: str
    right: str
    """The condition under which it is the right answer."""


class LessonStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A round of the answer, and what is said about it; with choices, what is asked before it is shown."""

    at: str
    """A condition on the round: the first round behind the step before, or the same one, that fulfils it."""
    text: str
    """Shown beside the round; of a question, before it."""
    true: tuple[str, ...] = ()
    """Conditions for what the text says beside the numbers in it."""
    choices: tuple[LessonChoice, ...] = ()
    """The three answers to choose from, where the text asks."""
    card: Literal["drafted", "own", "none"] = "drafted"
    """What it is about: the token of the draft that decided, the one that the target gave itself, or the
    whole answer."""
    why: str = ""
    """Explains the right answer from what is then on the screen."""
    look: str = ""
    """Where to look for it beside all cards of the round; the stage and the command line have none."""


class Lesson(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lesson as it is written."""

    title: str
    about: str
    steps: tuple[LessonStep, ...]


def lesson_files(resources: Path) -> tuple[Path, ...]:
    """The text files of all lessons, in their order. Raises LessonError where there are none."""
    found = tuple(sorted((resources / FOLDER).glob("[0-9]*.toml")))
    if not found:
        raise LessonError(f"There are no lessons in {resources / FOLDER}.", "Install Draftscope again.")
    return found


def read_lesson(path: Path) -> Lesson:
    """Raises LessonError."""
    return _read(path, Lesson)


def _read(path: Path, kind: type[Written]) -> Written:
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), kind)
    except OSError as error:
        raise LessonError(
            f"{path.name} cannot be read: {reason(error)}.", "Install Draftscope again."
        ) from error
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise LessonError(f"{path.name} is damaged: {error}.", "Install Draftscope again.") from error


class TourStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A step of a lesson that the tour shows."""

    lesson: str
    """The name of its files."""
    step: int
    """Counted from 1."""


class TourPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the window that the tour shows."""

    name: str
    """How its accessible name begins."""
    text: str
    below: str = ""
    """How the name of the widget begins below which the words stand; "" where that is the part."""

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


class TourPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tour as it is written."""

    steps: tuple[TourStep, ...]
    parts: tuple[TourPart, ...]


def read_tour(resources: Path) -> TourPlan:
    """Raises LessonError."""
    return _read(resources / FOLDER / "tour.toml", TourPlan)
