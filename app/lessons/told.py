"""A lesson with its recorded answer: every step's round, and its sentences with their numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any, Literal

from app.base.numbers import NONE, milliseconds, percent, significant
from app.base.numbers import factor as times
from app.base.paths import REAL_TARGET
from app.engine.record.length_fold import length_fold
from app.engine.record.trace import Trace, read_trace
from app.engine.strategy import StrategySpec
from app.lessons.condition import holds
from app.lessons.facts import AnswerFacts, Quoted, RoundFacts
from app.lessons.lesson import Lesson, LessonError, LessonStep, read_lesson
from app.saved.measured import Measurement, run_files

_FORMATS: dict[str, Callable[[float | None], str]] = {"%": percent, "x": times, "ms": milliseconds}


@dataclass(frozen=True, slots=True)
class ToldStep:
    """A step with its numbers."""

    round: int
    """The index of its round."""
    card: Literal["drafted", "own", "none"]
    """What it is about, as in `LessonStep`."""
    place: int | None
    """The place in the draft of the token that it is about; None where it is about none."""
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
    """The same request with and without drafts, where that was recorded."""

    @property
    def real(self) -> bool:
        """Whether SmolLM2 answered, not the small pair."""
        return self.trace.header.pair.target.path == REAL_TARGET

    @property
    def models(self) -> str:
        """Which of our models answered, in a few words."""
        return "SmolLM2 135M, a real model" if self.real else "small pair, made to be fast"


def tell_lesson(path: Path) -> ToldLesson:
    """Read a lesson's text file and the trace beside it. Raises LessonError, ConditionError or TraceError."""
    return told(path.stem, read_lesson(path), *recorded(path))


def recorded(path: Path) -> tuple[Trace, Measurement | None]:
    """The answer of a lesson, and its measurement where one was recorded. Raises TraceError."""
    trace = read_trace(trace_file(path))
    baseline = run_files(trace_file(path))[0]
    return trace, Measurement(read_trace(baseline), trace) if baseline.exists() else None


def trace_file(lesson: Path) -> Path:
    """The trace beside a lesson's text file."""
    return lesson.with_suffix(".jsonl")


def told(name: str, lesson: Lesson, trace: Trace, measurement: Measurement | None) -> ToldLesson:
    """Put a lesson and its recorded answer together. Raises LessonError or ConditionError."""
    answer = AnswerFacts(trace, measurement)
    rounds = facts_of_rounds(trace)
    steps = tuple(
        _told_step(name, step, answer, facts) for step, facts in rounds_of_steps(name, lesson, answer, rounds)
    )
    return ToldLesson(name, lesson.title, lesson.about, steps, trace, measurement)


def facts_of_rounds(trace: Trace) -> list[RoundFacts]:
    """The facts of all rounds of an answer."""
    fold = length_fold(StrategySpec.parse(trace.header.strategy))
    found, before = [], ""
    for round in trace.rounds:
        found.append(RoundFacts(round, trace.header, fold.add(round) if fold is not None else None, before))
        before += Quoted.of(round.emitted)
    return found


def rounds_of_steps(
    name: str, lesson: Lesson, answer: AnswerFacts, rounds: list[RoundFacts]
) -> list[tuple[LessonStep, RoundFacts]]:
    """Every step with the facts of its round. Raises LessonError where no round fulfils its condition."""
    found = []
    at = 0
    for step in lesson.steps:
        fits = (facts for facts in rounds[at:] if holds(step.at, {"round": facts, "answer": answer}))
        facts = next(fits, None)
        if facts is None:
            raise LessonError(f"{name}: from round {at} on, no round fulfils {step.at!r}.")
        at = facts.index
        found.append((step, facts))
    return found


def untrue(name: str, lesson: Lesson, trace: Trace, measurement: Measurement | None) -> list[str]:
    """What a lesson says that its answer does not bear out; empty if all of it is true."""
    answer = AnswerFacts(trace, measurement)
    wrong = []
    for step, facts in rounds_of_steps(name, lesson, answer, facts_of_rounds(trace)):
        known = {"round": facts, "answer": answer}
        said = f"{name}, round {facts.index}, {filled(step.text, known)!r}"
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
    """Fills in fields: texts in quotation marks, counts, three figures for everything else."""

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
    """A text with its numbers; paragraphs keep apart, line ends within them go. Raises LessonError."""
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    try:
        return _Filler().vformat("\n\n".join(filter(None, paragraphs)), (), facts)
    except (KeyError, AttributeError, IndexError, ValueError) as error:
        raise LessonError(f"{text!r} has a field that is not known: {error}.") from error
