"""Scenes that ask for a list (`lists.txt`, `tips.txt`), and for more of it."""

from __future__ import annotations

from pathlib import Path
from random import Random

from scene import Scene, Turn, ask

HERE = Path(__file__).parent
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight")
REQUESTS = (
    "List {n} {topic}.",
    "List {n} {topic}.",
    "Name {n} {topic}.",
    "Give me {n} {topic}.",
    "Give me a list of {n} {topic}.",
    "Can you name {n} {topic}?",
    "Write down {n} {topic}.",
    "{n} {topic}, please.",
)


def load(name: str, separator: str) -> dict[str, list[str]]:
    """Items by topic."""
    lines = (HERE / name).read_text(encoding="utf-8").strip().splitlines()
    topics = (line.split(": ", 1) for line in lines)
    return {topic: items.split(separator) for topic, items in topics}


BANK = load("lists.txt", ", ") | load("tips.txt", " / ")


def numbered(items: list[str], first: int) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, first))


def scene(rng: Random) -> Scene:
    topic = rng.choice(list(BANK))
    items = BANK[topic]
    count = rng.randint(3, min(6, len(items)))
    word = str(count) if rng.random() < 0.2 else NUMBERS[count]
    request = rng.choice(REQUESTS).format(n=word, topic=topic)
    request = request[0].upper() + request[1:]
    head = f"Here are {NUMBERS[count]} {topic}:"
    turns = [Turn(ask(rng, request), f"{head}\n\n{numbered(items[:count], 1)}")]
    rest = items[count:]
    if rest and rng.random() < 0.3:
        more = min(rng.randint(1, 3), len(rest))
        request = rng.choice(("{n} more, please.", "Give me {n} more.", "Can you add {n} more?"))
        request = request.format(n=NUMBERS[more])
        turns.append(Turn(request[0].upper() + request[1:], numbered(rest[:more], count + 1)))
    return turns
