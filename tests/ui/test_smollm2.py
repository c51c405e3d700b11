"""SmolLM2-135M in the window: its answer in colours, its name, and what is said of its strategy."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.base.paths import REAL_TARGET
from app.engine.types import ModelOptions, Sampling
from tests.equality import RENAME
from tests.ui.windows import Windows, chip_text

pytestmark = pytest.mark.real


def test_the_window_shows_its_answer_and_name(windows: Windows, real_file: Path) -> None:
    desk = windows.open(
        target=ModelOptions(REAL_TARGET, ctx_size=512), draft=None, strategy="prompt-lookup",
        max_tokens=64, sampling=Sampling(temperature=0),
    )  # fmt: skip
    answer = desk.ask(RENAME.messages[0].content)
    assert desk.trace is not None and answer.text == desk.trace.text
    assert {fate for _, fate, _, _ in desk.fates()[0]} >= {"accepted", "rejected", "resampled", "bonus"}
    assert desk.notes() == [] and desk.error() == ""
    assert chip_text(desk.header.target).startswith("SmolLM2-135M-Instruct")
    assert desk.saved()["target"]["path"] == REAL_TARGET  # type: ignore[index]
    desk.until(lambda: bool(desk.page.instruments.cost.advice.text()))
