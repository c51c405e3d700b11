"""The stage: large letters, keys alone, and everything in sight."""

from __future__ import annotations

import re

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFontInfo
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QApplication, QWidget
from pytestqt.qtbot import QtBot

from app.base.paths import find_paths, resource_folder
from app.lessons.lesson import TourPlan, lesson_files, tell_lesson
from app.ui.inspector.contents import cards_of, in_plain_words
from app.ui.lessons.course import Course, StepAt
from app.ui.lessons.place import LessonsPlace
from app.ui.lessons.stage import LEAST, LessonStage
from app.ui.state.chat_side import Inspection
from app.ui.theme import Theme
from app.ui.theme.style import Styler
from app.ui.theme.theme import LargeTheme
from tests.ui.named import words_in
from tests.ui.pixels import painted


@pytest.fixture(scope="module")
def lessons() -> list:
    return [tell_lesson(path) for path in lesson_files(resource_folder())]


@pytest.fixture
def course(lessons) -> Course:
    return Course(lessons)


@pytest.fixture
def stage(qtbot: QtBot, theme: Theme, course: Course) -> LessonStage:
    made = LessonStage(theme, course)
    qtbot.addWidget(made)
    made.resize(1024, 768)
    made.show()
    qtbot.waitExposed(made)
    return made


def in_sight(stage: LessonStage) -> bool:
    """Whether the words have the height that they need, and nothing lies beyond the stage."""
    parts: list[QWidget] = [stage.title, stage.words, *([stage.card] if stage.card.isVisible() else [])]
    parts += [stage.coming] * stage.coming.isVisible()
    flowing = [stage.words, *([stage.coming] if stage.coming.isVisible() else [])]
    fits = all(part.height() >= part.heightForWidth(part.width()) for part in flowing)
    return fits and all(stage.rect().contains(part.geometry()) for part in parts)


def test_only_lessons_whose_cards_have_q_speak_of_it(lessons) -> None:
    for lesson in lessons:
        for step in lesson.steps:
            if re.search(r"\bq\b", f"{step.text} {step.why} {step.look}"):
                cards = cards_of(lesson.trace.rounds[step.round], lesson.trace.header)
                assert any("q" in in_plain_words(card).headings for card in cards), lesson.name


def test_one_key_goes_through_all_steps_and_everything_is_in_sight(
    stage: LessonStage, course: Course, qtbot: QtBot
) -> None:
    ended: list[bool] = []
    course.finished.connect(lambda: ended.append(True))
    shown = set()
    while not ended:
        shown.add((course.at, course.asking))
        assert stage.size().toTuple() == (1024, 768)
        qtbot.waitUntil(lambda: in_sight(stage))
        said = stage.words.text if course.asking or not course.step.choices else stage.words.why
        assert said.isVisible()
        assert said.text().split() in (course.step.text.split(), course.step.why.split())
        assert stage.foot.isVisible() and ("D draw" in stage.foot.keys.text()) is stage.card.draws.isVisible()
        QTest.keyClick(stage, Qt.Key.Key_Space)
    questions = sum(bool(step.choices) for lesson in course.lessons for step in lesson.steps)
    assert len(shown) == len(course.every) + questions


@pytest.mark.parametrize(("height", "least"), [(768, LEAST), (1536, 2 * LEAST), (480, LEAST)])
def test_the_smallest_letters_can_be_read_from_far(stage: LessonStage, height: int, least: int) -> None:
    stage.resize(1024, height)
    for part in (stage.title, stage.words.text, stage.words.why):
        assert QFontInfo(part.font()).pixelSize() >= least


@pytest.mark.parametrize("size", [(1024, 768), (1024, 700)])
def test_letters_stay_large_when_the_place_is_put_into_the_window(
    qtbot: QtBot, qapp: QApplication, theme: Theme, course: Course, size: tuple[int, int]
) -> None:
    styler = Styler(qapp, theme, find_paths().icons)
    styler.apply()  # without a style sheet Qt keeps the letters
    window, place = QWidget(), QWidget()
    qtbot.addWidget(window)
    stage = LessonStage(theme, course, place)
    place.setParent(window)
    window.show()
    stage.resize(*size)
    stage.show()
    while not course.asking:
        course.next()
    for part in (stage.words.text, stage.words.why):
        assert QFontInfo(part.font()).pixelSize() >= LEAST
    qtbot.waitUntil(lambda: in_sight(stage))
    stage.close()
    qapp.setStyleSheet("")
    styler.deleteLater()


def test_letters_for_a_projector_do_not_depend_on_the_text_size(theme: Theme, stage: LessonStage) -> None:
    large = LargeTheme(theme, stage, least=-1.5)
    for scale in (1.0, 2.0):
        theme.set_scale(scale)
        large.set_pixels(28)
        sizes = [QFontInfo(font).pixelSize() for font in (large.sans(-1.5), large.mono(-1))]
        assert 28 <= sizes[0] <= sizes[1] <= 32


def edges(stage: LessonStage) -> set[str]:
    """The colours at the upper and the lower edge of the answer's text: its ground alone, if no line is
    cut."""
    picture = stage.text.viewport().grab().toImage()
    rows = (0, picture.height() - 1)
    return {picture.pixelColor(x, y).name() for x in range(picture.width()) for y in rows}


@pytest.mark.parametrize("size", [(1024, 768), (1920, 1080)], ids=str)
def test_no_line_of_the_answer_is_cut_and_its_last_one_is_shown(
    stage: LessonStage, course: Course, theme: Theme, qtbot: QtBot, size: tuple[int, int]
) -> None:
    stage.resize(*size)
    ended: list[bool] = []
    course.finished.connect(lambda: ended.append(True))
    while not ended:
        qtbot.waitUntil(lambda: in_sight(stage))
        assert edges(stage) == {theme.palette.ground.lower()}, course.at
        last = stage.text.last_rect
        assert last is not None and stage.text.viewport().rect().contains(last.toRect()), course.at
        course.next()


@pytest.mark.parametrize("size", [(1024, 768), (1600, 1000)], ids=str)
def test_a_round_on_two_lines_is_whole_beside_its_card(
    stage: LessonStage, course: Course, qtbot: QtBot, size: tuple[int, int]
) -> None:
    course.open(6)
    stage.resize(*size)
    qtbot.waitUntil(lambda: stage.text.lines_of_round == 2)
    qtbot.waitUntil(lambda: stage.text.height() == 2 * stage.text.line_height())
    content = stage.card.content
    assert content is not None and content.sums and content.legend[-1][1].startswith("rejected")


def test_a_round_on_four_lines_is_whole_beside_its_card(
    stage: LessonStage, course: Course, qtbot: QtBot
) -> None:
    stage.resize(1600, 1000)
    course.follow([StepAt(8, 2)])
    course.choose(0)
    qtbot.waitUntil(lambda: stage.text.lines_of_round == 4 and in_sight(stage))
    assert stage.text.height() == 4 * stage.text.line_height()
    content = stage.card.content
    assert content is not None and content.bars and content.sums


def test_what_is_said_of_cards_that_are_not_there_is_left_out(stage: LessonStage, course: Course) -> None:
    told = [step for lesson in course.lessons for step in lesson.steps if step.look]
    assert len(told) > 3
    for at in course.every:
        course.follow([at])
        course.next()
        said = f"{stage.words.text.text()} {stage.words.why.text()}"
        assert "above the cards" not in said.lower() and "last card" not in said
        stage.words.says_where = True
        course.moved.emit()
        step = course.step
        assert not step.look or step.look in words_in(stage)
        stage.words.says_where = False


def test_no_card_is_cut(stage: LessonStage, course: Course, qtbot: QtBot) -> None:
    stage.resize(1024, 768)
    for at in course.every:
        course.follow([at])
        course.next()
        qtbot.waitUntil(lambda: in_sight(stage))
        assert stage.card.isHidden() or stage.rect().contains(stage.card.geometry()), at


def test_the_draws_have_every_number_and_the_whole_token(
    stage: LessonStage, course: Course, theme: Theme, qtbot: QtBot
) -> None:
    theme.set_motion("less")
    course.open(6)
    course.next()
    course.choose(1)
    qtbot.waitUntil(lambda: in_sight(stage))
    QTest.keyClick(stage, Qt.Key.Key_D)
    texts = [text for text, _left, _base in painted(stage.card)]
    assert {"q", "p", "drawn", "0.460", "0.420"} <= set(texts) and texts.count("·nature") == 2


def test_where_nothing_is_drawn_a_card_has_words_for_its_letters(stage: LessonStage, course: Course) -> None:
    course.open(0)
    content = stage.card.content
    assert content is not None
    assert content.headings == ("draft", "target")
    assert [line.name for line in content.sums] == ["target's best", "drafted"]


def test_no_button_stands_over_the_answer(stage: LessonStage, course: Course) -> None:
    stage.resize(1920, 1080)
    course.open(5)
    assert not any(button.isVisible() for button in stage.text.findChildren(QAbstractButton))


def test_keys_answer_and_go_back(stage: LessonStage, course: Course) -> None:
    while not course.asking:
        QTest.keyClick(stage, Qt.Key.Key_Right)
    right = course.step.right
    QTest.keyClick(stage, (Qt.Key.Key_1, Qt.Key.Key_2, Qt.Key.Key_3)[right])
    assert course.chosen == right and "Yes." in words_in(stage)
    before = course.at
    QTest.keyClick(stage, Qt.Key.Key_Left)
    assert course.path.index(course.at) == course.path.index(before) - 1


def test_there_is_nothing_to_press_but_the_answers_and_the_draws(stage: LessonStage, course: Course) -> None:
    while not course.asking:
        shown = {button for button in stage.findChildren(QAbstractButton) if button.isVisible()}
        assert shown <= {stage.card.draws}
        QTest.keyClick(stage, Qt.Key.Key_Right)
    pressed = [button.text() for button in stage.findChildren(QAbstractButton) if button.isVisible()]
    assert pressed == list(course.step.choices)


def test_a_key_draws_the_place_a_thousand_times(stage: LessonStage, course: Course, theme: Theme) -> None:
    theme.set_motion("less")
    stage.resize(1920, 1080)
    course.follow([StepAt(6, 2)])
    assert stage.card.draws.isVisible() and stage.card.draws.text() == "Draw 1,000 (D)"
    QTest.keyClick(stage, Qt.Key.Key_D)
    tally = stage.card.draws.tally
    assert tally is not None and tally.total == 1000


def test_f5_opens_the_stage_at_the_step_and_esc_leaves_it(qtbot: QtBot, theme: Theme, course: Course) -> None:
    place = LessonsPlace(theme, course, TourPlan((), ()), Inspection(), lambda _place: None, lambda: False)
    qtbot.addWidget(place)
    place.show()
    qtbot.waitExposed(place)
    place.open(2)
    course.next()
    QTest.keyClick(QApplication.focusWidget() or place, Qt.Key.Key_F5)
    assert place.stage.isVisible() and place.stage.isFullScreen()
    QTest.keyClick(place.stage, Qt.Key.Key_Right)
    at = course.at
    QTest.keyClick(place.stage, Qt.Key.Key_Escape)
    assert not place.stage.isVisible() and place.player.isVisible() and course.at == at
    place.show_list()
    course.follow(course.every[:2])  # as the tour does
    QTest.keyClick(QApplication.focusWidget() or place, Qt.Key.Key_F5)
    assert course.path is course.every and course.at.step == 0
    place.close_place()
    assert not place.stage.isVisible()
