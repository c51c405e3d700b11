"""A lesson: its text file, and its text with the numbers of its recorded answer."""

from __future__ import annotations

import ast
import operator
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from string import Formatter
from typing import Any, Literal, TypeVar

import msgspec

from app.base.files import reason
from app.base.numbers import NONE, milliseconds, ordinal, percent, significant
from app.base.numbers import factor as times
from app.base.paths import REAL_TARGET
from app.engine.errors import UserError
from app.engine.record.trace import Trace, read_trace
from app.engine.strategy import length_fold
from app.lessons.facts import AnswerFacts, Quoted, RoundFacts
from app.saved.measured import Measurement, run_files

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Add: operator.add, ast.Sub: operator.sub,
    ast.Mult: operator.mul, ast.Div: operator.truediv, ast.In: lambda part, whole: part in whole,
}  # fmt: skip


class ConditionError(UserError):
    """A condition cannot be parsed, or names a fact that does not exist."""


def holds(condition: str, facts: Mapping[str, object]) -> bool:
    """Whether a condition holds. A comparison with a fact that does not apply (None) never does.

    Raises ConditionError.
    """
    try:
        return bool(_value(ast.parse(condition, mode="eval").body, facts))
    except (SyntaxError, KeyError, AttributeError) as error:
        raise ConditionError(f"The condition {condition!r} is not understood: {error}.") from error


def _value(node: ast.expr, facts: Mapping[str, object]) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return facts[name]
        case ast.Attribute(value=of, attr=name):
            return getattr(_value(of, facts), name)
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, facts) for part in parts)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return any(_value(part, facts) for part in parts)
        case ast.UnaryOp(op=ast.Not(), operand=part):
            return not _value(part, facts)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _applied(op, _value(left, facts), _value(right, facts))
        case ast.Compare(left=left, ops=ops, comparators=rights):
            values = [_value(part, facts) for part in (left, *rights)]
            return all(_applied(op, *pair) for op, pair in zip(ops, pairwise(values), strict=True))
    raise SyntaxError(ast.unparse(node))


def _applied(op: ast.AST, left: Any, right: Any) -> Any:
    if type(op) not in _OPERATORS:
        raise SyntaxError(type(op).__name__)
    if left is None or right is None:
        return False if isinstance(op, ast.cmpop) else None
    return _OPERATORS[type(op)](left, right)


Written = TypeVar("Written", bound=msgspec.Struct)
FOLDER = "lessons"  # in the resources


class LessonError(UserError):
    """A lesson's files cannot be read, or do not match."""


class LessonChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A possible answer to a question."""

    text: str
    right: str
    """The condition under which it is the right answer."""


class LessonStep(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A round of the answer and the text about it; with choices, the question before it is shown."""

    at: str
    """Selects the round: the first that fulfils this condition, starting at the previous step's round."""
    text: str
    """Shown beside the round; a question is shown before it."""
    true: tuple[str, ...] = ()
    """Conditions for the text's claims other than its numbers."""
    choices: tuple[LessonChoice, ...] = ()
    """The three answers to choose from, if the text asks."""
    card: Literal["drafted", "own", "none"] = "drafted"
    """The step's subject: the decisive token of the draft, the target's own token, or the whole answer."""
    why: str = ""
    """Explains the right answer from what the screen then shows."""
    look: str = ""
    """Where to look among the cards of the round; not shown on the stage and the command line."""


class Lesson(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lesson as it is written."""

    title: str
    about: str
    steps: tuple[LessonStep, ...]


def lesson_files(resources: Path) -> tuple[Path, ...]:
    """The text files of all lessons, in order. Raises LessonError if there are none."""
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
    return _read(resources / FOLDER / "tour.toml", TourPlan)


_FORMATS: dict[str, Callable[[float | None], str]] = {"%": percent, "x": times, "ms": milliseconds}


@dataclass(frozen=True, slots=True)
class ToldStep:
    """A step with its numbers."""

    round: int
    """The index of its round."""
    card: Literal["drafted", "own", "none"]
    """The step's subject, as in `LessonStep`."""
    place: int | None
    """The place of its token in the draft; None if it is not about a token."""
    text: str
    choices: tuple[str, ...] = ()
    right: int = 0
    """The index of the right choice."""
    why: str = ""
    look: str = ""
    """Where to look for it, as in `LessonStep`."""


@dataclass(frozen=True, slots=True)
class ToldLesson:
    """A lesson as it is shown."""

    name: str
    """The name of its files, such as "01-good-draft"."""
    title: str
    about: str
    steps: tuple[ToldStep, ...]
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
    """Read a lesson's text file and the trace beside it. Raises LessonError, ConditionError or TraceError."""
    return told(path.stem, read_lesson(path), *recorded(path))


def recorded(path: Path) -> tuple[Trace, Measurement | None]:
    """The answer of a lesson, and its measurement if one was recorded. Raises TraceError."""
    trace = read_trace(trace_file(path))
    baseline = run_files(trace_file(path))[0]
    return trace, Measurement(read_trace(baseline), trace) if baseline.exists() else None


def trace_file(lesson: Path) -> Path:
    """The trace beside a lesson's text file."""
    return lesson.with_suffix(".jsonl")


def told(name: str, lesson: Lesson, trace: Trace, measurement: Measurement | None) -> ToldLesson:
    """Combine a lesson with its recorded answer. Raises LessonError or ConditionError."""
    answer = AnswerFacts(trace, measurement)
    rounds = facts_of_rounds(trace)
    steps = tuple(
        _told_step(name, step, answer, facts) for step, facts in rounds_of_steps(name, lesson, answer, rounds)
    )
    return ToldLesson(name, lesson.title, lesson.about, steps, trace, measurement)


def facts_of_rounds(trace: Trace) -> list[RoundFacts]:
    """The facts of all rounds of an answer."""
    fold = length_fold(trace.header.strategy)
    found, before = [], ""
    for round in trace.rounds:
        found.append(RoundFacts(round, trace.header, fold.add(round) if fold is not None else None, before))
        before += Quoted.of(round.emitted)
    return found


def rounds_of_steps(
    name: str, lesson: Lesson, answer: AnswerFacts, rounds: list[RoundFacts]
) -> list[tuple[LessonStep, RoundFacts]]:
    """Every step with the facts of its round. Raises LessonError if no round fulfils its condition."""
    found = []
    at = 0
    for step in lesson.steps:
        fits = (facts for facts in rounds[at:] if holds(step.at, {"round": facts, "answer": answer}))
        facts = next(fits, None)
        if facts is None:
            raise LessonError(f"{name}: from round {ordinal(at)} on, no round fulfils {step.at!r}.")
        at = facts.index
        found.append((step, facts))
    return found


def untrue(name: str, lesson: Lesson, trace: Trace, measurement: Measurement | None) -> list[str]:
    """The claims of a lesson that its answer contradicts; empty if all are true."""
    answer = AnswerFacts(trace, measurement)
    wrong = []
    for step, facts in rounds_of_steps(name, lesson, answer, facts_of_rounds(trace)):
        known = {"round": facts, "answer": answer}
        said = f"{name}, round {ordinal(facts.index)}, {filled(step.text, known)!r}"
        wrong += [
            f"{said}: {condition!r} is not true" for condition in step.true if not holds(condition, known)
        ]
        right = [choice.text for choice in step.choices if holds(choice.right, known)]
        if step.choices and len(right) != 1:
            wrong.append(f"{said}: {len(right)} answers are right: {right}")
    return wrong


def _told_step(name: str, step: LessonStep, answer: AnswerFacts, facts: RoundFacts) -> ToldStep:
    known = {"round": facts, "answer": answer}
    right = [index for index, choice in enumerate(step.choices) if holds(choice.right, known)]
    if step.choices and len(right) != 1:
        raise LessonError(f"{name}: {len(right)} answers to {step.text!r} are right.")
    choices = tuple(filled(choice.text, known) for choice in step.choices)
    correct = right[0] if right else 0
    place = facts.place if step.card == "drafted" else None
    text, why, look = (filled(words, known) for words in (step.text, step.why, step.look))
    return ToldStep(facts.index, step.card, place, text, choices, correct, why, look)


class _Filler(Formatter):
    """Fills in fields: texts in quotation marks, counts whole, all else with three digits."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec and format_spec not in _FORMATS:
            raise ValueError(format_spec)
        if value is None:
            return NONE
        if format_spec:
            return _FORMATS[format_spec](value)
        match value:
            case Quoted():
                return f"“{value.strip(' ').replace(chr(10), '↵')}”" if value.strip(" ") else "a space"
            case int():
                return f"{value:,}"
            case float():
                return significant(value) if value % 1 else f"{value:.0f}"
        return str(value)


def filled(text: str, facts: dict[str, object]) -> str:
    """A text with its numbers. Paragraphs stay separate; line ends within them are removed. Raises
    LessonError."""
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    try:
        return _Filler().vformat("\n\n".join(filter(None, paragraphs)), (), facts)
    except (KeyError, AttributeError, IndexError, ValueError) as error:
        raise LessonError(f"{text!r} has a field that is not known: {error}.") from error
