"""The texts of lessons, told of a recorded answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from app.lessons.lesson import LessonError
from app.saved.measured import Measurement
from lesson_texts import (
    ChoiceText,
    ConditionError,
    LessonText,
    StepText,
    holds,
    read_text,
    told,
    untrue,
)
from tests.ui.traces import make_round, make_trace

FACTS = {
    "round": SimpleNamespace(accepted=3, drafted=4, own="fox", ratio=None),
    "answer": SimpleNamespace(acceptance_rate=0.75),
}


@pytest.mark.parametrize(
    "condition",
    [
        "round.accepted == 3",
        "round.accepted + 1 == round.drafted and answer.acceptance_rate == 3 / 4",
        "round.accepted > 3 or round.own == 'fox'",
        "not round.accepted != 3",
        "1 < round.accepted < round.drafted <= 4",
        "round.drafted - 2 * 2 >= 0",
        "'ox' in round.own",
    ],
)
def test_a_condition_that_fits_the_facts_holds(condition: str) -> None:
    assert holds(condition, FACTS)
    assert not holds(f"not ({condition})", FACTS)


def test_a_fact_that_does_not_apply_fulfils_no_comparison() -> None:
    for condition in (
        "round.ratio < 1",
        "round.ratio >= 1",
        "round.ratio + 1 > 0",
        "round.ratio == round.ratio",
    ):
        assert not holds(condition, FACTS)


@pytest.mark.parametrize(
    "condition",
    ["round.tokens == 1", "chat.open", "round.accepted ==", "len(round.own) == 3", "round.accepted is 3"],
)
def test_what_is_not_a_condition_is_refused_by_its_text(condition: str) -> None:
    with pytest.raises(ConditionError) as refused:
        holds(condition, FACTS)
    assert condition in str(refused.value)


TRACE = make_trace(
    [
        make_round(0, (b"A", b" fox"), b" sat", position=0),
        make_round(1, (b" on",), b" a", rejected=b" the", ignored=(b" mat",), position=3),
        make_round(2, (), b" rock", rejected=b" wall", position=5),
    ]
)
REJECTED = "round.rejected == 1"


def lesson(*steps: StepText) -> LessonText:
    return LessonText("A title", "What it shows.", steps)


def test_a_step_is_about_the_first_round_that_fits_behind_the_step_before() -> None:
    steps = StepText(REJECTED, ""), StepText(REJECTED, ""), StepText("round.accepted == 0", "")
    found = told("x", lesson(*steps), TRACE, None)
    assert [step.round for step in found.steps] == [1, 1, 2]


def test_a_step_without_a_round_is_named() -> None:
    with pytest.raises(LessonError, match=r"x: from round 3 on, no round fulfils 'round.accepted > 0'"):
        told("x", lesson(StepText("round.index == 2", ""), StepText("round.accepted > 0", "")), TRACE, None)


def test_fields_become_numbers_and_quoted_texts() -> None:
    text = (
        "{round.accepted} of {round.drafted}, {answer.acceptance_rate:%}, {answer.tokens_per_pass}:"
        " {round.taken}, {round.token}, {round.own}, {round.ratio}\nand more.\n\nA paragraph."
    )
    (step,) = told("x", lesson(StepText(REJECTED, text)), TRACE, None).steps
    assert (
        step.text == "1 of 3, 50.0\N{NO-BREAK SPACE}%, 2: “on”, “the”, “a”, 0.118 and more.\n\nA paragraph."
    )
    assert step.place == 1


def test_a_field_that_is_not_known_is_named() -> None:
    for field in ("{round.colour}", "{chat}", "{round.accepted:furlongs}"):
        with pytest.raises(LessonError, match="not known"):
            told("x", lesson(StepText(REJECTED, f"It has {field}.")), TRACE, None)


def test_the_right_answer_is_the_one_whose_condition_holds() -> None:
    choices = [ChoiceText(f"{{round.accepted}} or {n}", f"round.emitted == {n}") for n in (3, 1, 2)]
    (step,) = told("x", lesson(StepText(REJECTED, "How many?", choices=tuple(choices))), TRACE, None).steps
    assert step.choices[step.right] == "1 or 2"


@pytest.mark.parametrize("condition", ["round.emitted > 0", "round.emitted > 9"])
def test_a_question_with_no_or_several_right_answers_is_refused(condition: str) -> None:
    asked = lesson(
        StepText(REJECTED, "How many?", choices=tuple(ChoiceText(name, condition) for name in "abc"))
    )
    with pytest.raises(LessonError, match="are right"):
        told("x", asked, TRACE, None)
    (said,) = untrue("x", asked, TRACE, None)
    assert "How many?" in said and "are right" in said


def test_a_sentence_that_is_no_longer_true_is_named_with_its_round() -> None:
    step = StepText(REJECTED, "All {round.drafted} pass.", true=("round.accepted == round.drafted", REJECTED))
    assert untrue("x", lesson(step), TRACE, None) == [
        "x, round 2, 'All 3 pass.': 'round.accepted == round.drafted' is not true"
    ]


def test_facts_beside_the_baseline_need_one() -> None:
    plain = make_trace(
        [
            make_round(index, (), piece, position=index)
            for index, piece in enumerate((b"A", b" fox", b" sat", b" on", b" a", b" rock"))
        ]
    )
    step = StepText(REJECTED, "{answer.speed_up:x}, {answer.baseline_passes}", true=("answer.same_text",))
    (alone,) = told("x", lesson(step), TRACE, None).steps
    assert alone.text == "–, –"
    assert untrue("x", lesson(step), TRACE, None) and not untrue(
        "x", lesson(step), TRACE, Measurement(plain, TRACE)
    )
    (beside,) = told("x", lesson(step), TRACE, Measurement(plain, TRACE)).steps
    assert beside.text.endswith("×, 6")


def test_a_damaged_text_is_named(tmp_path: Path) -> None:
    file = tmp_path / "01-x.toml"
    for text in ("title = ", 'title = "A"', 'title = "A"\nabout = ""\nsteps = []\nmood = 1'):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(LessonError, match=r"01-x.toml is damaged"):
            read_text(file)
