"""What the engine does, in the words of the status bar."""

from __future__ import annotations

import pytest

from app.engine.process.messages import LoadProgress, LoadStage, PromptProgress
from app.engine.types import Role
from app.ui.state.engine_session import Activity, EngineState
from app.ui.window.activity_controller import state_words


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (EngineState(), "No model loaded"),
        (EngineState(Activity.LOADING), "Loading"),
        (
            EngineState(Activity.LOADING, None, LoadProgress(1, Role.DRAFT, "a.gguf", 0.5)),
            "Loading draft 50 %",
        ),
        (
            EngineState(
                Activity.LOADING, None, LoadProgress(1, Role.TARGET, "a.gguf", 1.0, LoadStage.TESTING)
            ),
            "Testing target",
        ),
        (
            EngineState(Activity.READING, None, PromptProgress(2, Role.TARGET, 512, 1024)),
            "Reading prompt 50 %",
        ),
        (EngineState(Activity.READING, None, PromptProgress(2, Role.DRAFT, 0, 0)), "Reading prompt 0 %"),
        (EngineState(Activity.STOPPING), "Stopping"),
    ],
)
def test_the_status_says_what_the_engine_does_and_how_far(state: EngineState, words: str) -> None:
    assert state_words(state) == words
