"""`draftscope lessons`."""

from __future__ import annotations

import shlex

from app.base.paths import resource_folder
from app.lessons.lesson import lesson_files, tell_lesson
from tests.commands import Command

LESSONS = [tell_lesson(path) for path in lesson_files(resource_folder())]


def test_all_lessons_are_listed_by_number(command: Command) -> None:
    ended = command("lessons")
    assert ended.code == 0
    listed = [line.strip() for line in ended.out.splitlines()]
    assert listed == [f"{n}  {lesson.title}: {lesson.about}" for n, lesson in enumerate(LESSONS, start=1)]


def test_a_lesson_is_printed_with_its_numbers_and_its_answer(command: Command) -> None:
    lesson = LESSONS[6]
    ended = command("lessons", "7")
    words = " ".join(ended.out.split())
    assert ended.code == 0 and words.startswith(f"{lesson.title} (SmolLM2 135M, a real model)")
    for step in lesson.steps:
        assert " ".join(step.text.split()) in words and " ".join(step.why.split()) in words
        if step.choices:
            assert f"The right answer is {step.right + 1}." in words
    replay = shlex.split(ended.out.splitlines()[-1].removeprefix("The answer: draftscope "))
    assert command(*replay, "--verify").code == 0


def test_a_lesson_that_does_not_exist_is_refused(command: Command) -> None:
    for number in ("0", "12"):
        ended = command("lessons", number)
        assert ended.code == 2 and "1 to 11" in ended.err
