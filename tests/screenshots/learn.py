"""States of the places where one learns: chat, Inspector, slow motion, lessons, stage, toys."""

from __future__ import annotations

from tests.screenshots.variants import Scene, StateVisitor


def law(visitor: StateVisitor) -> None:
    """A judged place in the Inspector, and its draw."""
    visitor.click("Chat")
    visitor.work("One name, everywhere")
    visitor.variants("chat")
    visitor.click("Inspect this round")
    visitor.variants("inspector")


SCENES: dict[str, Scene] = {scene.__name__: scene for scene in (law,)}
