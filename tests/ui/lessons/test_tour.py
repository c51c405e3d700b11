"""The tour: from the empty chat through some steps and the parts of the window, back to the prompt."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QPushButton

from app.base.paths import resource_folder
from app.lessons.lesson import lesson_files, read_tour, tell_lesson
from tests.ui.named import named, words_in
from tests.ui.windows import Desk, Windows

PLAN = read_tour(resource_folder())


def begun(windows: Windows) -> Desk:
    """A window in which the tour has been asked for."""
    desk = windows.open()
    desk.window.resize(1440, 900)
    named(desk.page.transcript, "Take the tour (3 minutes)", QPushButton).click()
    return desk


def press(key: Qt.Key) -> None:
    QTest.keyClick(QApplication.focusWidget(), key)


def test_the_tour_shows_steps_of_lessons_that_exist() -> None:
    told = {path.stem: tell_lesson(path) for path in lesson_files(resource_folder())}
    steps = [told[step.lesson].steps[step.step - 1] for step in PLAN.steps]
    assert len(steps) >= 3 and any(step.choices for step in steps)


def test_the_tour_ends_at_the_prompt_and_keys_alone_go_through_it(windows: Windows) -> None:
    desk = begun(windows)
    place = desk.place("lessons")
    assert place.isVisible() and place.player.isVisible()
    for number in range(1, len(PLAN.steps) + 1):
        assert f"Tour, {number} of {len(PLAN.steps)}" in words_in(place)
        if place.player.course.asking:
            press(Qt.Key.Key_1)
        press(Qt.Key.Key_Right)
    assert desk.page.isVisible()
    for number, part in enumerate(PLAN.parts, start=1):
        assert f"{number} of {len(PLAN.parts)}" in words_in(desk.window), "a part was not found"
        assert part.words in words_in(desk.window)
        press(Qt.Key.Key_Right)
    assert PLAN.parts[-1].words not in words_in(desk.window)
    assert desk.prompt.hasFocus() and not place.tour.running


def test_parts_go_back_with_a_key_and_esc_leaves_the_tour(windows: Windows) -> None:
    desk = begun(windows)
    place = desk.place("lessons")
    while desk.window.rail.isVisible() and not desk.page.isVisible():
        press(Qt.Key.Key_Right)
    press(Qt.Key.Key_Right)
    press(Qt.Key.Key_Left)
    assert PLAN.parts[0].words in words_in(desk.window)
    press(Qt.Key.Key_Escape)
    assert PLAN.parts[0].words not in words_in(desk.window) and not place.tour.running
    desk.window.go("lessons")
    assert "Tour, " not in words_in(place.list)


def test_leaving_the_tour_in_a_lesson_leads_to_the_list(windows: Windows) -> None:
    desk = begun(windows)
    place = desk.place("lessons")
    press(Qt.Key.Key_Escape)
    assert place.list.isVisible() and not place.tour.running
    place.open(10)
    for _ in place.player.course.lesson.steps:
        place.player.course.next()
    place.player.course.next()
    assert place.list.isVisible(), "the last lesson leads to the list, not on with the tour"


def test_the_tour_can_be_asked_for_in_help_and_in_the_list(windows: Windows) -> None:
    desk = windows.open()
    desk.window.commands["tour"].trigger()
    place = desk.place("lessons")
    assert place.player.isVisible() and place.tour.running
    press(Qt.Key.Key_Escape)
    named(place, "Take the tour (3 minutes)", QPushButton).click()
    assert place.player.isVisible() and place.tour.running


def test_the_status_bar_belongs_to_what_is_on_the_screen(windows: Windows) -> None:
    desk = windows.open()
    answer = desk.ask("hello").answer
    status, window = desk.window.status, desk.window
    window.go("lessons")
    place = desk.place("lessons")
    assert status.answer is answer, "the list is of no answer"
    place.open(0)
    lesson = place.player.course.answer
    assert status.answer is lesson and not status.measure.isVisible()
    place.player.inspect.click()
    assert desk.place("inspector").isVisible() and status.answer is lesson
    window.go("chat")
    assert status.answer is answer and status.measure.isVisible()
