"""`draftscope lessons`: lists the lessons, or prints one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from app.base.numbers import ordinal
from app.base.paths import resource_folder
from app.cli.terminal.arguments import Parser, add_options
from app.cli.terminal.console import put, wrapped
from app.engine.errors import SettingError
from app.lessons.lesson import ToldLesson, lesson_files, read_lesson, tell_lesson, trace_file

PROG = "draftscope lessons"
_DESCRIPTION = """\
List the lessons, or print one: its texts about rounds, its question, and the answer. The
window shows them beside the rounds (Ctrl+Shift+L). No model is needed."""


def lessons(argv: list[str]) -> int:
    """Print the list or a lesson; returns the exit code. Raises UserError."""
    parser = Parser(PROG, _DESCRIPTION, f"{PROG} [NUMBER]")
    add_options(parser, "number [NUMBER]  A lesson of the list", number=int)
    number = parser.parse_args(argv).number
    files = lesson_files(resource_folder())
    if number is None:
        found = map(read_lesson, files)
        put(f"{place:2}  {lesson.title}: {lesson.about}" for place, lesson in enumerate(found, start=1))
    elif 1 <= number <= len(files):
        file = files[number - 1]
        replay = shlex.join(["draftscope", "replay", str(trace_file(file))])
        put([*_printed(tell_lesson(file)), f"The answer: {replay}"])
    else:
        raise SettingError(f"There is no lesson {number}.", f"They are 1 to {len(files)}.")
    return 0


def _printed(lesson: ToldLesson) -> Iterator[str]:
    """A lesson line by line."""
    yield f"{lesson.title} ({lesson.models})"
    for step in lesson.steps:
        yield ""
        yield f"Round {ordinal(step.round)}"
        yield from _wrapped(step.text)
        for place, choice in enumerate(step.choices, start=1):
            yield f"  {place}  {choice}"
        if step.choices:
            yield f"The right answer is {step.right + 1}."
            yield from _wrapped(step.why)
    yield ""


def _wrapped(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from wrapped(paragraph)
