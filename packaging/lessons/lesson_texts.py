"""The texts of the lessons, with the facts of their recorded answers.

Numbers in a sentence are fields, such as `{round.accepted}`, which `lesson_facts.py` computes from the trace.
Every other claim of a sentence is a condition below it, such as `round.accepted == round.drafted`. Conditions
also find the step's round and the right answer to a question. If a new recording does not fit its lesson, the
sentence that is no longer true is named.
"""

from __future__ import annotations

import ast
import operator
import tomllib
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from string import Formatter
from typing import Any, Literal

import msgspec

from app.base.numbers import NONE, milliseconds, ordinal, percent, significant
from app.base.numbers import factor as times
from app.engine.errors import UserError
from app.engine.record.trace import Trace
from app.engine.strategy import length_fold
from app.lessons.lesson import Lesson, LessonError, LessonStep
from app.saved.measured import Measurement
from lesson_facts import AnswerFacts, Quoted, RoundFacts

FOLDER = Path(__file__).parent

_OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Add: operator.add, ast.Sub: operator.sub,
    ast.Mult: operator.mul, ast.Div: operator.truediv, ast.In: lambda part, whole: part in whole,
}  # fmt: skip


class ConditionError(UserError):
    """A condition cannot be parsed, or names a fact that does not exist."""


def holds(condition: str, facts: Mapping[str, object]) -> bool:
    """Whether a condition is true. A comparison with a fact that does not apply (None) is false.

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


class ChoiceText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A possible answer to a question."""

    text: str
    right: str
    """The condition under which it is the right answer."""


class StepText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A round of the answer and the text about it. If it has choices, a question is asked before the round is
    shown."""

    at: str
    """Selects the round: the first one from the previous step's round on that fulfils this condition."""
    text: str
    """Shown beside the round; a question is shown before it."""
    true: tuple[str, ...] = ()
    """Conditions for the text's claims other than its numbers."""
    choices: tuple[ChoiceText, ...] = ()
    """The three answers to choose from, if the text asks."""
    card: Literal["drafted", "own", "none"] = "drafted"
    """As in LessonStep."""
    why: str = ""
    """Explains the right answer by what the screen shows then."""
    look: str = ""
    """As in LessonStep."""


class LessonText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lesson as it is written."""

    title: str
    about: str
    steps: tuple[StepText, ...]


def text_files() -> tuple[Path, ...]:
    """The texts of all lessons, in order."""
    return tuple(sorted(FOLDER.glob("[0-9]*.toml")))


def read_text(path: Path) -> LessonText:
    """Raises LessonError."""
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), LessonText)
    except (ValueError, msgspec.ValidationError) as error:
        raise LessonError(f"{path.name} is damaged: {error}.") from error


def told(name: str, lesson: LessonText, trace: Trace, measurement: Measurement | None) -> Lesson:
    """A lesson's text with the facts of its recorded answer. Raises LessonError or ConditionError."""
    answer = AnswerFacts(trace, measurement)
    rounds = facts_of_rounds(trace)
    steps = tuple(
        _told_step(name, step, answer, facts) for step, facts in rounds_of_steps(name, lesson, answer, rounds)
    )
    return Lesson(lesson.title, lesson.about, steps)


def facts_of_rounds(trace: Trace) -> list[RoundFacts]:
    """The facts of all rounds of an answer."""
    fold = length_fold(trace.header.strategy)
    found, before = [], ""
    for round in trace.rounds:
        found.append(RoundFacts(round, trace.header, fold.add(round) if fold is not None else None, before))
        before += Quoted.of(round.emitted)
    return found


def rounds_of_steps(
    name: str, lesson: LessonText, answer: AnswerFacts, rounds: list[RoundFacts]
) -> list[tuple[StepText, RoundFacts]]:
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


def untrue(name: str, lesson: LessonText, trace: Trace, measurement: Measurement | None) -> list[str]:
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


def _told_step(name: str, step: StepText, answer: AnswerFacts, facts: RoundFacts) -> LessonStep:
    known = {"round": facts, "answer": answer}
    right = [index for index, choice in enumerate(step.choices) if holds(choice.right, known)]
    if step.choices and len(right) != 1:
        raise LessonError(f"{name}: {len(right)} answers to {step.text!r} are right.")
    choices = tuple(filled(choice.text, known) for choice in step.choices)
    correct = right[0] if right else 0
    place = facts.place if step.card == "drafted" else None
    text, why, look = (filled(words, known) for words in (step.text, step.why, step.look))
    return LessonStep(facts.index, step.card, place, text, choices, correct, why, look)


_FORMATS: dict[str, Callable[[float | None], str]] = {"%": percent, "x": times, "ms": milliseconds}


class _Filler(Formatter):
    """Fills in fields: texts in quotation marks, counts as integers, other numbers with three digits."""

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
