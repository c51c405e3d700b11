"""Scenes that ask for a list (`lists.txt`, `tips.txt`), and for more of it."""

from __future__ import annotations

from pathlib import Path

from base.scene import Dice, Expect, Scene, Turn, ask, wordings

HERE = Path(__file__).parent
NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight")
REQUESTS = wordings(
    "(List|Name|Write down|Please list|Please name) {n} {topic}.",
    "Give me(| a list of) {n} {topic}.",
    "(Can|Could) you (name|list) {n} {topic}?",
)
MORE = wordings("(Give me|Name|List) {n} more.", "(Can|Could) you add {n} more?")


def load(name: str, separator: str) -> dict[str, list[str]]:
    """Items by topic."""
    lines = (HERE / name).read_text(encoding="utf-8").strip().splitlines()
    topics = (line.split(": ", 1) for line in lines)
    return {topic: items.split(separator) for topic, items in topics}


BANK = load("lists.txt", ", ") | load("tips.txt", " / ")


def numbered(items: list[str], first: int) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, first))


def scene(dice: Dice) -> Scene:
    """The items come in the bank's order, as a person's own list does."""
    topic = dice.choice(list(BANK))
    items = BANK[topic]
    count = dice.randint(3, min(6, len(items)))
    word = str(count) if dice.random() < 0.2 else NUMBERS[count]
    request = dice.pick(REQUESTS).format(n=word, topic=topic)
    answer = f"Here are {NUMBERS[count]} {topic}:\n\n{numbered(items[:count], 1)}"
    turns = [Turn(ask(dice, request), answer, Expect(phrases=(numbered(items[:count], 1),)))]
    rest = items[count:]
    if rest and dice.random() < 0.3:
        more = min(dice.randint(1, 3), len(rest))
        answer = numbered(rest[:more], count + 1)
        turns.append(Turn(dice.pick(MORE).format(n=NUMBERS[more]), answer, Expect(text=answer)))
    return turns
