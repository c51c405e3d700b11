"""A lesson: its texts about the rounds of a recorded answer, and that answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from app.base.files import reason
from app.base.paths import REAL_TARGET
from app.engine.errors import UserError
from app.engine.record.trace import Trace, read_trace
from app.saved.measured import Measurement, run_files

T = TypeVar("T")
FOLDER = "lessons"  # in the resources


class LessonError(UserError):
    """A lesson's files cannot be read, or do not match."""


class LessonStep(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A round of the answer and the text about it; with choices, the question before it is shown."""

    round: int
    """The index of its round."""
    card: Literal["drafted", "own", "none"]
    """The step's subject: the decisive token of the draft, the target's own token, or the whole answer."""
    place: int | None
    """The place of its token in the draft; None if it is not about a token."""
    text: str
    """Shown beside the round; a question is shown before it."""
    choices: tuple[str, ...] = ()
    """The three answers to choose from, if the text asks."""
    right: int = 0
    """The index of the right choice."""
    why: str = ""
    """Explains the right answer from what the screen then shows."""
    look: str = ""
    """Where to look among the cards of the round; not shown on the stage and the command line."""


class Lesson(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The texts of a lesson."""

    title: str
    about: str
    steps: tuple[LessonStep, ...]


def lesson_files(resources: Path) -> tuple[Path, ...]:
    """The text files of all lessons, in order. Raises LessonError if there are none."""
    found = tuple(sorted((resources / FOLDER).glob("[0-9]*.json")))
    if not found:
        raise LessonError(f"There are no lessons in {resources / FOLDER}.", "Install Draftscope again.")
    return found


def read_lesson(path: Path) -> Lesson:
    """Raises LessonError."""
    return _read(path, msgspec.json.Decoder(Lesson).decode)


def _read(path: Path, decode: Callable[[bytes], T]) -> T:
    try:
        return decode(path.read_bytes())
    except OSError as error:
        raise LessonError(
            f"{path.name} cannot be read: {reason(error)}.", "Install Draftscope again."
        ) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
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
    """The beginning of its accessible name."""
    text: str
    below: str = ""
    """The beginning of the name of the widget below which the words appear; "" if it is the part itself."""

    @property
    def words(self) -> str:
        return " ".join(self.text.split())


class TourPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The tour as it is written."""

    steps: tuple[TourStep, ...]
    parts: tuple[TourPart, ...]


def read_tour(resources: Path) -> TourPlan:
    """Raises LessonError."""
    return _read(resources / FOLDER / "tour.toml", lambda data: msgspec.toml.decode(data, type=TourPlan))


class ToldLesson(Lesson, frozen=True, kw_only=True):
    """A lesson and its recorded answer."""

    name: str
    """The name of its files, such as "01-good-draft"."""
    trace: Trace
    measurement: Measurement | None
    """The same request with and without drafts, if that was recorded."""

    @property
    def real(self) -> bool:
        """Whether SmolLM2 answered rather than the small pair."""
        return self.trace.header.pair.target.path == REAL_TARGET

    @property
    def models(self) -> str:
        """Our models that answered, in a few words."""
        return "SmolLM2 135M, a real model" if self.real else "small pair, made to be fast"


def tell_lesson(path: Path) -> ToldLesson:
    """Read a lesson's text file and the trace beside it. Raises LessonError or TraceError."""
    trace, measurement = recorded(path)
    texts = msgspec.structs.asdict(read_lesson(path))
    return ToldLesson(**texts, name=path.stem, trace=trace, measurement=measurement)


def recorded(path: Path) -> tuple[Trace, Measurement | None]:
    """The answer of a lesson, and its measurement if one was recorded. Raises TraceError."""
    trace = read_trace(trace_file(path))
    baseline = run_files(trace_file(path))[0]
    return trace, Measurement(read_trace(baseline), trace) if baseline.exists() else None


def trace_file(lesson: Path) -> Path:
    """The trace beside a lesson's text file."""
    return lesson.with_suffix(".jsonl")
