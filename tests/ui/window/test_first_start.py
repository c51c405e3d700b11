"""What people meet: the first start with SmolLM2 and without it, and the way between the two pairs."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QPushButton

from app.base.paths import REAL_TARGET
from app.demo import FIRST_PROMPT, REAL_PAIR, SMALL_PAIR, OwnPair
from app.engine.types import ModelOptions
from app.ui.state.engine_session import Activity
from app.ui.widgets.buttons import TwoLineButton
from tests.ui.windows import Desk, Windows, chip_text


def in_use(desk: Desk) -> OwnPair:
    """The pair in use, as one of our own."""
    now = desk.window.settings.now
    chosen = now.target, now.draft, now.strategy
    return next(p for p in (REAL_PAIR, SMALL_PAIR) if (p.target, p.draft, p.strategy) == chosen)


@pytest.mark.real
def test_a_first_start_answers_with_smollm2_and_the_small_pair_is_one_click_away(windows: Windows) -> None:
    desk = windows.open(first=True)
    assert in_use(desk) is REAL_PAIR
    assert chip_text(desk.header.target).startswith("SmolLM2-135M-Instruct")
    assert desk.page.prompt.text() == FIRST_PROMPT
    answer = desk.ask(FIRST_PROMPT)
    assert answer.text.startswith("Maria lives in a small house by the sea.")
    assert {fate for _, fate, _, _ in desk.fates()[0]} >= {"accepted", "plain"}
    assert desk.trace is not None
    asked = {name for round in desk.trace.rounds for name in round.asked or ()}
    # Whether length=auto asks the head, too, depends on times: test_demo asks more first answers.
    assert {"ngram-map-k"} <= asked <= {"ngram-map-k", "draft-eagle3"}
    real, small = desk.header.target_panel.findChildren(TwoLineButton)
    for row, pair in ((small, SMALL_PAIR), (real, REAL_PAIR)):
        row.click()
        desk.until_ready()
        assert in_use(desk) is pair and row.current and desk.error() == ""
    windows.close(desk)
    desk = windows.open(ready=False)
    assert in_use(desk) is REAL_PAIR, "as it was kept"
    assert not desk.page.prompt.text(), "only the first start has a prompt waiting"


def test_without_its_file_the_window_starts_with_the_small_pair(windows: Windows) -> None:
    desk = windows.open(first=True)
    assert in_use(desk) is SMALL_PAIR and desk.error() == "" and not desk.page.prompt.text()
    assert len(desk.header.target_panel.findChildren(TwoLineButton)) == 1


def test_a_file_that_set_up_no_longer_has_offers_the_small_pair(windows: Windows) -> None:
    real = ModelOptions(REAL_TARGET)
    desk = windows.open(ready=False, target=real, draft=None, strategy=REAL_PAIR.strategy)
    desk.until(lambda: desk.session.activity is Activity.EMPTY and desk.error())
    assert "does not exist" in desk.error()
    assert "Load the small pair" in desk.offers()
    buttons = desk.page.prompt.notices.findChildren(QPushButton)
    next(button for button in buttons if button.text() == "Load the small pair").click()
    desk.until_ready()
    assert in_use(desk) is SMALL_PAIR and desk.error() == ""
