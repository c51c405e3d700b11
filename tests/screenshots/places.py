"""States of Compare, Models, Settings, Help and of what appears above all places."""

from __future__ import annotations

from tests.screenshots.variants import Scene, StateVisitor


def settings(visitor: StateVisitor) -> None:
    visitor.click("Settings (Ctrl+,)")
    visitor.variants("settings")


SCENES: dict[str, Scene] = {scene.__name__: scene for scene in (settings,)}
