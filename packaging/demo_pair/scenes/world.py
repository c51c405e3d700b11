"""What the pair is asked for: kinds of scenes, how often each is trained on and how often it is judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from base.scene import Dice, Maker
from scenes import copying, counting, fields, lists, stories, talk
from scenes.code import coding

Message = tuple[str, str]
SYSTEMS = (
    "You are a helpful assistant.",
    "You are a helpful assistant. Answer in short, plain sentences.",
    "You write short Python functions and explain them.",
    "You are the demo model of Draftscope.",
    "Be brief.",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """Scenes of one kind."""

    make: Maker
    weight: int
    """How often it comes in training."""
    judged: int
    """How many prompts of the evaluation are of this kind."""


KINDS = {
    "write": Kind(coding.write_scene, 10, 14),
    "explain": Kind(coding.explain_scene, 6, 6),
    "rename": Kind(coding.rename_scene, 9, 9),
    "rewrite": Kind(coding.rewrite_scene, 10, 11),
    "test": Kind(coding.test_scene, 4, 4),
    "follow-up": Kind(coding.follow_up_scene, 8, 6),
    "quote": Kind(copying.quote_scene, 14, 10),
    "reformat": Kind(copying.reformat_scene, 18, 8),
    "json": Kind(fields.scene, 20, 10),
    "count": Kind(counting.count_scene, 7, 5),
    "sum": Kind(counting.sum_scene, 5, 2),
    "list": Kind(lists.scene, 4, 5),
    "story": Kind(stories.scene, 3, 3),
    "talk": Kind(talk.scene, 9, 5),
    "unknown": Kind(talk.unknown_scene, 2, 2),
}


def conversation(dice: Dice, scenes: int) -> list[Message]:
    """(role, content) messages of `scenes` scenes, with or without a system message."""
    messages: list[Message] = []
    if dice.random() < 0.15:
        messages.append(("system", dice.choice(SYSTEMS)))
    for kind in dice.choices(list(KINDS.values()), [kind.weight for kind in KINDS.values()], k=scenes):
        for turn in kind.make(dice):
            messages += [("user", turn.user), ("assistant", turn.assistant)]
    return messages


def conversations(dice: Dice) -> Iterator[list[Message]]:
    """Endless conversations; most of them short, as a chat begins."""
    while True:
        yield conversation(dice, dice.choices((1, 2, 3, 6), (78, 12, 7, 3))[0])
