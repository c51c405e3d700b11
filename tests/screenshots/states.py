"""Takes the pictures of all states, or of those of some scenes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.screenshots import answers, lessons, places
from tests.screenshots.scenes import opened
from tests.screenshots.variants import StateVisitor


def visit(folder: Path, names: Sequence[str]) -> None:
    """Open the window, and take the pictures of these scenes, or of all."""
    scenes = answers.SCENES | lessons.SCENES | places.SCENES
    folder.mkdir(parents=True, exist_ok=True)
    with opened(1600, 1000) as window:
        for name in names or scenes:
            scenes[name](StateVisitor(window, folder))
