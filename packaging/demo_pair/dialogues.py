"""Conversations: scenes of all kinds in a row, with or without a system message."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import coding
import limits
import lists
import stories
import summaries
import sums
import talk
from scene import Scene

SYSTEMS = (
    "You are a helpful assistant.",
    "You are a helpful assistant. Answer in short, plain sentences.",
    "You write short Python functions and explain them.",
    "You are the demo model of Draftscope.",
    "Be brief.",
)
SCENES = (
    coding.scene,
    talk.scene,
    stories.scene,
    lists.scene,
    sums.scene,
    summaries.scene,
    limits.scene,
)
# How often each scene comes. The later mixes have more of what is learnt last: copying numbers and
# names from the question.
MIXES = {
    "first": (10, 5, 3, 2, 4, 2, 1),
    "second": (10, 5, 4, 2, 10, 4, 1),
    "third": (10, 4, 4, 2, 24, 8, 1),
}
Message = tuple[str, str]


def conversation(rng: Random, mix: str, scenes: int) -> list[Message]:
    """(role, content) messages of `scenes` scenes."""
    messages: list[Message] = []
    if rng.random() < 0.3:
        messages.append(("system", rng.choice(SYSTEMS)))
    for _ in range(scenes):
        turns: Scene = rng.choices(SCENES, MIXES[mix])[0](rng)
        for turn in turns:
            messages += [("user", turn.user), ("assistant", turn.assistant)]
    return messages


def conversations(seed: int, mix: str = "first") -> Iterator[list[Message]]:
    """Endless conversations; most of them short, as a chat begins."""
    rng = Random(seed)
    while True:
        yield conversation(rng, mix, rng.choices((1, 2, 3, 6, 10), (70, 15, 8, 5, 2))[0])
