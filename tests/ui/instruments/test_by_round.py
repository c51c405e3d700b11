"""Why drafts stopped: in words, the most frequent first, in two lines."""

from __future__ import annotations

import msgspec
import pytest
from pytestqt.qtbot import QtBot

from app.ui.instruments.by_round import DraftEnds
from app.ui.widgets.words import end_words
from tests.ui.instruments.answers import answer, begin, header, totals

ENDS = {"p_min": 4, "no match": 31, "n_max": 1_200}


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("n_max", "at n_max"),
        ("num_pred_tokens", "at num_pred_tokens"),
        ("p_min", "below p_min"),
        ("no match", "no match"),
        ("done", "done"),  # a word of a strategy from outside
        ("mine raised ValueError; n_max", "mine raised ValueError; at n_max"),
    ],
)
def test_in_words(end: str, words: str) -> None:
    assert end_words(end) == words


def test_the_most_frequent_comes_first_and_nothing_is_lost(qtbot: QtBot) -> None:
    shown = DraftEnds()
    qtbot.addWidget(shown)
    assert shown.lines(300) == []
    height = shown.sizeHint().height()
    shown.show_ends(ENDS)
    assert shown.sizeHint().height() == height  # nothing jumps
    assert shown.text() == "1,200× at n_max · 31× no match · 4× below p_min"
    assert shown.toolTip().splitlines()[1:] == ["1,200× at n_max", "31× no match", "4× below p_min"]
    assert shown.lines(2000) == [f"drafts stopped: {shown.text()}"]
    for width in range(40, 500, 20):
        lines = shown.lines(width)
        assert len(lines) <= 2
        assert " · ".join(lines) == f"drafts stopped: {shown.text()}"
        if len(lines) == 2 and " · " in lines[0]:
            assert shown.fontMetrics().horizontalAdvance(lines[0]) <= width


def test_the_plot_of_lengths_shows_it(panel) -> None:
    rounds = [
        msgspec.structs.replace(round, draft_end="n_max" if len(round.drafted) == 4 else "p_min")
        for round in answer(40)
    ]
    begin(panel, header())
    panel.answer.add(rounds)
    panel.answer.end(totals(rounds))
    full = sum(len(round.drafted) == 4 for round in rounds)
    assert panel.length.ends.text() == f"{full}× at n_max · {40 - full}× below p_min"
    begin(panel, header("none"))
    assert panel.length.ends.isHidden()
