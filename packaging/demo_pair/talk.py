"""Scenes of plain questions and fixed answers (`answers.txt`)."""

from __future__ import annotations

from pathlib import Path
from random import Random

from scene import Scene, Turn, ask

BANK = Path(__file__).with_name("answers.txt")
LEADS = ("", "", "", "", "", "", "Please tell me: ", "A question: ", "Quick question: ", "And ")


def load() -> list[tuple[tuple[str, ...], str]]:
    """Pairs of (ways to ask, answer)."""
    entries = []
    for block in BANK.read_text(encoding="utf-8").strip().split("\n\n"):
        question, answer = block.splitlines()
        ways = tuple(question.removeprefix("? ").split(" | "))
        entries.append((ways, answer.removeprefix("= ").replace("\\n", "\n")))
    return entries


ENTRIES = load()


def turn(rng: Random) -> Turn:
    ways, answer = rng.choice(ENTRIES)
    request = rng.choice(ways)
    if request.endswith("?"):
        lead = rng.choice(LEADS)
        if lead:
            request = f"{lead}{request[0].lower()}{request[1:]}"
        if rng.random() < 0.05:
            request = request[:-1].lower()
    return Turn(ask(rng, request), answer)


def scene(rng: Random) -> Scene:
    """One question, or a few in a row."""
    turns = [turn(rng)]
    while len(turns) < 4 and rng.random() < 0.35:
        turns.append(turn(rng))
    return turns
