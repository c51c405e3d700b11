"""The Lessons place: the list, the steps, the questions."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QLabel, QWidget
from pytestqt.qtbot import QtBot

from app.base.paths import resource_folder
from app.lessons.lesson import LessonStep, ToldLesson, TourPlan, lesson_files, tell_lesson
from app.ui.lessons.course import Course
from app.ui.lessons.place import LessonsPlace
from app.ui.lessons.player import LessonPlayer
from app.ui.state.answer import AnswerModel
from app.ui.state.chat_side import Inspection
from app.ui.theme import Theme
from tests.ui.named import named, words_in
from tests.ui.traces import make_round, make_trace

TRACE = make_trace(
    [
        make_round(0, (b"A", b" fox"), b" sat", position=0),
        make_round(1, (b" on",), b" a", rejected=b" the", ignored=(b" mat",), position=3),
        make_round(2, (b" rock",), b".", position=5),
    ]
)
ROUND = LessonStep(0, "drafted", 1, "All 2 pass.")
QUESTION = LessonStep(
    1, "drafted", 1, "The draft is “on the mat”. How many pass?", ("None", "One", "Two"), 1,
    "Only “on” passes.",
)  # fmt: skip
LAST = LessonStep(2, "drafted", 0, "It ends with “.”.")


def lesson(name: str, title: str, about: str, *steps: LessonStep) -> ToldLesson:
    return ToldLesson(title, about, steps, name=name, trace=TRACE, measurement=None)


FIRST = lesson("01", "A fox", "What passes.", ROUND, QUESTION)
SECOND = lesson("02", "A rock", "How it ends.", LAST)

NO_TOUR = TourPlan((), ())


@pytest.fixture
def inspection() -> Inspection:
    return Inspection()


@pytest.fixture
def course() -> Course:
    return Course([FIRST, SECOND])


@pytest.fixture
def place(qtbot: QtBot, theme: Theme, course: Course, inspection: Inspection) -> LessonsPlace:
    made = LessonsPlace(theme, course, NO_TOUR, inspection, lambda _place: None, lambda: False)
    qtbot.addWidget(made)
    made.resize(1000, 640)
    made.show()
    qtbot.waitExposed(made)
    return made


def press(place: QWidget, key: Qt.Key) -> None:
    """Press a key where the focus is."""
    focused = QApplication.focusWidget()
    QTest.keyClick(focused if focused is not None and place.isAncestorOf(focused) else place, key)


def test_the_list_names_every_lesson_and_opens_it(place: LessonsPlace, course: Course) -> None:
    row = named(place, "2  A rock", QAbstractButton)
    assert row.accessibleDescription() == "How it ends."
    row.click()
    assert "It ends with “.”." in words_in(place) and course.lesson.title == "A rock"


def test_keys_go_from_the_list_through_all_lessons_and_back(place: LessonsPlace, course: Course) -> None:
    press(place, Qt.Key.Key_Down)
    press(place, Qt.Key.Key_Up)
    press(place, Qt.Key.Key_Return)
    assert course.lesson.title == "A fox" and place.player.isVisible()
    for expected in ("All 2 pass.", "How many pass?", "Only “on” passes.", "It ends with “.”."):
        assert expected in words_in(place)
        press(place, Qt.Key.Key_Right)
    assert place.list.isVisible() and named(place, "2  A rock, in use", QAbstractButton).hasFocus()
    place.open(1)
    press(place, Qt.Key.Key_Left)
    assert course.lesson.title == "A fox" and "How many pass?" in words_in(place)
    press(place, Qt.Key.Key_Escape)
    assert place.list.isVisible()


def test_a_question_is_asked_before_its_round_is_shown(place: LessonsPlace, course: Course) -> None:
    place.open(0)
    press(place, Qt.Key.Key_Right)
    player = place.player
    assert course.answer.cursor == 1 and not player.round.time.isVisible()
    assert {card.content.word for card in player.round.grid.cards if card.content is not None} == {"?"}
    assert player.coming.isVisible() and player.coming.phase is not None
    assert player.coming.phase.tokens == [("·on", ""), ("·the", ""), ("·mat", "")]
    assert player.text.text_of(player.text.turns[0]) == "A fox sat"
    press(place, Qt.Key.Key_2)
    assert course.answer.cursor == 2 and player.round.isVisible() and not player.coming.isVisible()
    assert player.round.title.text() == "Round 2"
    assert player.text.text_of(player.text.turns[0]) == "A fox sat on a"


@pytest.mark.parametrize(("key", "verdict"), [(Qt.Key.Key_2, "Yes."), (Qt.Key.Key_3, "No: 2 is right.")])
def test_an_answer_is_judged_and_explained(
    place: LessonsPlace, course: Course, key: Qt.Key, verdict: str
) -> None:
    place.open(0)
    press(place, Qt.Key.Key_2)
    assert course.chosen is None, "nothing is asked yet"
    press(place, Qt.Key.Key_Right)
    press(place, key)
    assert verdict in words_in(place) and "Only “on” passes." in words_in(place)
    assert named(place, "2: One. right", QAbstractButton).isVisible()
    wrong = [button.accessibleName() for button in place.findChildren(QAbstractButton)]
    assert ("3: Two. your answer" in wrong) == (key == Qt.Key.Key_3)
    press(place, Qt.Key.Key_1)
    assert verdict in words_in(place), "a second answer does not count"


def test_a_question_can_be_passed_over(place: LessonsPlace, course: Course) -> None:
    place.open(0)
    press(place, Qt.Key.Key_Right)
    named(place, "Show the answer", QAbstractButton).click()
    assert course.chosen is None and "Only “on” passes." in words_in(place)
    assert not any(label.text().startswith(("Yes", "No:")) for label in place.findChildren(QLabel))
    place.open(0)
    press(place, Qt.Key.Key_Right)
    assert course.asking, "a lesson that is opened again asks again"


@pytest.mark.parametrize(("width", "beside"), [(1200, True), (500, False)])
def test_cards_stand_beside_the_words_or_below_them(
    place: LessonsPlace, qtbot: QtBot, width: int, beside: bool
) -> None:
    place.resize(width, 640)
    place.open(1)
    words, cards = place.player.words, place.player.round

    def stand() -> bool:
        first, second = (QRect(part.mapTo(place, QPoint()), part.size()) for part in (words, cards))
        return second.left() > first.right() if beside else second.top() > first.bottom()

    qtbot.waitUntil(lambda: cards.isVisible() and stand())


def test_the_round_of_a_step_opens_in_the_inspector(
    place: LessonsPlace, course: Course, inspection: Inspection
) -> None:
    opened: list[AnswerModel | None] = []
    inspection.opened.connect(lambda: opened.append(inspection.answer))
    place.open(1)
    named(place, "Inspector", QAbstractButton).click()
    assert opened == [course.answer] and inspection.name == "A rock"
    assert course.answer.inspected == 2


def test_a_question_about_a_copy_does_not_show_which_tokens_are_judged(qtbot: QtBot, theme: Theme) -> None:
    course = Course([tell_lesson(path) for path in lesson_files(resource_folder())])
    player = LessonPlayer(theme, course, lambda: None)
    qtbot.addWidget(player)
    player.show()
    course.open(5)
    while not course.asking:
        course.next()
    theme.set_mode("dark")  # what was copied before does not come back
    (card,) = player.round.grid.cards
    assert player.round.title.text().endswith("what was copied")  # no draft model thought of it
    assert card.content is not None and not card.content.bars
    assert card.content.title.startswith("·was·so·int") and "interesting" not in card.content.title
    assert not player.round.copied.isVisible()


def test_the_legend_has_the_fates_of_the_lesson(place: LessonsPlace) -> None:
    QTest.mouseClick(named(place, "1  A fox", QAbstractButton), Qt.MouseButton.LeftButton)
    (player,) = place.findChildren(LessonPlayer)
    legend = player.legend
    shown = {fate for fate, sample in legend.samples.items() if sample.isVisibleTo(legend)}
    assert shown == {"accepted", "rejected", "ignored", "resampled", "bonus"}
