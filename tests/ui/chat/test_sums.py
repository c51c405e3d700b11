"""The sums over answers in the window: opened, copied, reset; warm answers say so wherever numbers stand."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QGuiApplication

from app.engine.record.stats import Statistics
from app.ui.instruments.sums_panel import SCOPES, Sums, SumsPanel
from tests.ui.windows import Desk, Windows


def opened(desk: Desk) -> SumsPanel:
    desk.page.instruments.head.sums.click()
    panel = desk.window.sums.panel
    assert panel.isVisible()
    return panel


def row(panel: SumsPanel, name: str) -> list[str]:
    return next(line.split("\t")[1:] for line in panel.text().splitlines() if line.startswith(name))


def test_sums_cover_the_answer_the_chat_and_all_since_the_reset(windows: Windows) -> None:
    desk = windows.open()
    first = desk.ask("hello").answer
    second = desk.ask("and more").answer
    panel = opened(desk)
    rounds = len(first.rounds), len(second.rounds)
    assert row(panel, "rounds") == [str(rounds[1]), str(sum(rounds)), str(sum(rounds))]
    both = Statistics.of([*first.rounds, *second.rounds])
    assert row(panel, "accepted / drafted")[1].startswith(f"{both.accepted} / {both.drafted} · ")
    panel.reset.click()
    desk.until(lambda: row(panel, "rounds") == [str(rounds[1]), str(sum(rounds)), "0"])
    panel.scopes.set_choice(SCOPES[1])
    panel.scopes.picked.emit(SCOPES[1])
    panel.copy.click()
    copied = QGuiApplication.clipboard().text()
    assert copied == panel.text() and "\n".join(Sums.over([first, second]).lines()) in copied


def test_a_warm_answer_says_so_wherever_its_numbers_stand(windows: Windows) -> None:
    desk = windows.open()
    desk.ask("hello")
    assert "warm" not in desk.page.instruments.head.scope.text()
    assert desk.window.status.speed.after.text() == "tok/s"
    warm = desk.ask("and more").answer
    assert warm.header is not None and warm.header.cached_tokens > 0
    desk.until(lambda: desk.page.instruments.head.scope.text().endswith("warm"))
    assert desk.window.status.speed.after.text() == "tok/s, warm"
    desk.window.go("inspector")
    assert desk.place("inspector").head.facts.text().endswith("warm")
    desk.window.go("chat")
    assert row(opened(desk), "answers") == ["1, 1 warm", "2, 1 warm", "2, 1 warm"]


@pytest.mark.parametrize("forget", [True, False])
def test_reset_empties_what_strategies_learned_when_asked_to(windows: Windows, forget: bool) -> None:
    desk = windows.open(strategy="suffix")

    def accepted() -> int:
        desk.controller.new_chat()
        return desk.ask("hello").answer.statistics.accepted

    first = accepted()
    panel = opened(desk)
    panel.forget.setChecked(forget)
    panel.reset.click()
    desk.window.sums.popover.close_panel()
    assert (accepted() > first) is not forget
