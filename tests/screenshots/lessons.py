"""States of the places where one learns: lessons, stage, toys, tour."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from app.ui.lessons.place import LessonsPlace
from app.ui.lessons.player import LessonPlayer
from app.ui.lessons.stage import LessonStage
from app.ui.lessons.toy import LawToy
from tests.benchmarks.ui.window import turn
from tests.screenshots.answers import begins, draw, part, press
from tests.screenshots.variants import Scene, StateVisitor

Key = Qt.Key
QUESTIONS = 1, 2, 4, 6, 7, 8, 9, 11  # the lessons whose first question is looked at


def lessons(visitor: StateVisitor) -> None:
    """The list; of some lessons a question, and its answer; of one the first step."""
    visitor.window.go("lessons")
    visitor.calm()
    visitor.variants("lessons")
    for number in QUESTIONS:
        visitor.click(begins(visitor, f"{number}  "))
        while not part(visitor, LessonPlayer).course.asking:
            press(visitor, Key.Key_Right)
        visitor.variants(f"lesson-{number}-question")
        press(visitor, Key.Key_2)
        visitor.variants(f"lesson-{number}-answer")
        press(visitor, Key.Key_Escape)
    visitor.click(begins(visitor, "10  "))
    visitor.variants("lesson-10")
    press(visitor, Key.Key_Escape)


def stage(visitor: StateVisitor) -> None:
    """Steps in front of an audience."""
    visitor.window.go("lessons")
    visitor.calm()
    visitor.click(begins(visitor, "7  "))
    press(visitor, Key.Key_F5, on=part(visitor, LessonsPlace))
    shown = visitor.window.findChild(LessonStage)
    assert isinstance(shown, LessonStage)
    shown.showNormal()

    def take(name: str, *keys: Qt.Key, again: Callable[[], object] = lambda: None) -> None:
        press(visitor, *keys, on=shown)
        visitor.variants(f"stage-{name}", of=shown, again=again)

    def draw_again() -> None:
        QTest.keyClick(shown, Key.Key_D)
        turn(lambda: "Draw again" in shown.card.draws.text())

    take("first")
    take("question", Key.Key_Space)
    take("answer", Key.Key_2)
    take("drawn", again=draw_again)
    while visitor.window.inspection.lesson is shown.course.answer and not last(shown):
        press(visitor, Key.Key_Space, on=shown)
    take("last")
    shown.course.open(8)
    take("four-lines", Key.Key_Space, Key.Key_Space, Key.Key_1)
    shown.close()
    press(visitor, Key.Key_Escape)


def last(shown: LessonStage) -> bool:
    """Whether the lesson's last step is shown whole."""
    course = shown.course
    return course.at.step == len(course.lesson.steps) - 1 and not course.asking


def toys(visitor: StateVisitor) -> None:
    """Both toys, before and after the draws."""
    visitor.window.go("lessons")
    visitor.calm()
    visitor.click("Try the rule")
    for name, keys in (("three", []), ("two", [Key.Key_Right])):
        toy = part(visitor, LawToy)
        press(visitor, *keys, on=toy.kind)
        visitor.variants(f"toy-{name}")
        draw(visitor)
        visitor.variants(f"toy-{name}-drawn")
    press(visitor, Key.Key_Right, on=part(visitor, LawToy).rule)
    visitor.variants("toy-block")
    press(visitor, Key.Key_Escape)


def tour(visitor: StateVisitor) -> None:
    """The tour's steps, and the parts of the window."""
    visitor.window.go("lessons")
    visitor.calm()
    visitor.click("Take the tour (3 minutes)")
    place = part(visitor, LessonsPlace)
    for number in itertools.count(1):
        visitor.variants(f"tour-{number}")
        press(visitor, Key.Key_Right)
        if not place.isVisible():
            break
    for number in range(5):  # in some variants a part has no room, and is left out

        def again(before: int = number) -> None:
            place.tour.show_parts()
            press(visitor, *[Key.Key_Right] * before, on=place.tour.card.next)

        visitor.variants(f"tour-part-{number + 1}", again=again)
    press(visitor, Key.Key_Escape)


SCENES: dict[str, Scene] = {scene.__name__: scene for scene in (lessons, stage, toys, tour)}
