"""What a dialogue is made of."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class Turn:
    """One question and its answer."""

    user: str
    assistant: str


Scene = list[Turn]


def ask(rng: Random, request: str) -> str:
    """The request as people type it: now and then without a capital or a full stop."""
    roll = rng.random()
    if roll < 0.08 and request[1:2].islower():
        request = request[0].lower() + request[1:]
    if roll < 0.12 and request.endswith("."):
        request = request[:-1]
    if 0.12 <= roll < 0.18 and request.endswith("."):
        request = f"{request} Thanks."
    return request
