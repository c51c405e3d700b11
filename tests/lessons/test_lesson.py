"""The files of a lesson."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engine.record.trace import write_trace
from app.lessons.lesson import LessonError, lesson_files, read_lesson, tell_lesson
from tests.ui.traces import make_round, make_trace

TRACE = make_trace([make_round(0, (b"A", b" fox"), b" sat", position=0)])
STEP = '{"round": 0, "card": "own", "place": null, "text": "C"}'


def test_a_damaged_lesson_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "lessons"
    with pytest.raises(LessonError, match="no lessons"):
        lesson_files(tmp_path)
    folder.mkdir()
    file = folder / "01-x.json"
    for text in ('{"title"', '{"title": "A"}', '{"title": "A", "about": "", "steps": [], "mood": 1}'):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(LessonError, match=r"01-x.json is damaged"):
            read_lesson(file)


def test_a_lesson_is_told_from_its_two_files(tmp_path: Path) -> None:
    file = tmp_path / "01-x.json"
    file.write_text(f'{{"title": "A", "about": "B", "steps": [{STEP}]}}', encoding="utf-8")
    write_trace(tmp_path / "01-x.jsonl", TRACE)
    found = tell_lesson(file)
    assert (found.name, found.title, found.about, found.steps[0].text) == ("01-x", "A", "B", "C")
    assert found.trace.rounds == TRACE.rounds and found.measurement is None
