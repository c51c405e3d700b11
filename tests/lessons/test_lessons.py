"""The lessons that come with the app are true: every number, every claim, every right answer."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from app.base.paths import REAL_DRAFT, REAL_TARGET, resource_folder
from app.lessons.lesson import lesson_files, read_lesson, recorded, tell_lesson, trace_file
from lesson_texts import FOLDER, LessonText, read_text, told, untrue
from tests.commands import Command

LESSONS = lesson_files(resource_folder())
MOST_BYTES = 2_000_000
_FIELD = re.compile(r"\{[^}]*\}|SmolLM2|\b[01]\b")  # 0 and 1 are the ends of a probability


@pytest.fixture(params=LESSONS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


def text_of(path: Path) -> Path:
    """The text that a lesson was told from."""
    return FOLDER / f"{path.stem}.toml"


def texts(lesson: LessonText) -> list[str]:
    """Everything that a lesson says."""
    steps = [
        text
        for step in lesson.steps
        for text in (step.text, step.why, step.look, *(c.text for c in step.choices))
    ]
    return [lesson.title, lesson.about, *steps]


def test_what_a_lesson_says_follows_from_its_trace(path: Path) -> None:
    written = read_text(text_of(path))
    assert untrue(path.stem, written, *recorded(path)) == []
    told_anew = told(path.stem, written, *recorded(path))
    assert read_lesson(path) == told_anew, "make lessons ARGS=texts writes it"


def test_a_lesson_states_numbers_only_as_fields(path: Path) -> None:
    for text in texts(read_text(text_of(path))):
        assert not re.search(r"\d", _FIELD.sub("", text)), text


def test_a_lesson_asks_a_question_with_three_answers(path: Path) -> None:
    asked = [step for step in tell_lesson(path).steps if step.choices]
    assert len(asked) == 1
    assert len(set(asked[0].choices)) == 3 and asked[0].why


def test_a_lesson_and_its_baseline_pass_replay_verify(path: Path, command: Command) -> None:
    for file in sorted(trace_file(path).parent.glob(f"{path.stem}*.jsonl")):
        assert command("replay", file, "--verify").code == 0, file.name


def test_a_lesson_is_the_recording_that_the_recorder_makes(path: Path) -> None:
    asked = tomllib.loads((FOLDER / "recordings.toml").read_text(encoding="utf-8"))
    assert set(asked) == {lesson.stem for lesson in LESSONS}
    recording = asked[path.stem]
    trace, measurement = recorded(path)
    header = trace.header
    assert header.messages[-1].content == recording["prompt"]
    assert header.strategy == recording["strategy"]
    assert header.sampling.temperature == recording.get("temperature", 0)
    assert header.seed == recording.get("seed", 0)
    assert header.sampling.min_p == recording.get("min_p", 0)
    target, draft = header.pair.target, header.pair.draft
    assert target.path == (REAL_TARGET if recording.get("real") else "resources/demo_pair/target.gguf")
    without = len(recording.get("without", ()))
    if recording.get("head"):
        assert draft is not None and draft.path == REAL_DRAFT
    elif recording.get("real") and not without:
        assert draft is None
    else:
        assert draft is not None and (not without or target.n_layers - draft.n_layers == without)
        file = Path(draft.path).name if without else recording.get("draft", "draft.gguf")
        assert draft.path == (file if without else f"resources/demo_pair/{file}"), (
            "no path of the recording machine"
        )
    assert (measurement is not None) == recording.get("baseline", False)


def test_all_lessons_are_small() -> None:
    folder = LESSONS[0].parent
    assert sum(file.stat().st_size for file in folder.iterdir()) < MOST_BYTES
