"""Scenes of plain questions with fixed answers (`answers.txt`), and of questions nobody here can answer."""

from __future__ import annotations

from pathlib import Path

from base.scene import Dice, Expect, Scene, Turn, ask, wordings
from base.words import word

BANK = Path(__file__).with_name("answers.txt")
LEADS = ("", "", "", "", "", "", "Please tell me: ", "A question: ", "Quick question: ", "And ")
SUBJECTS = (
    "football", "opera", "the stock market", "tax law", "medicine", "quantum physics", "wine",
    "the Roman empire", "dinosaurs", "black holes", "gardening", "chess openings", "guitars",
    "electric cars", "volcanoes", "the French revolution", "vaccines", "bees", "knitting",
    "the moon landing", "photography", "cheese", "Shakespeare", "Mozart", "solar cells",
    "earthquakes", "economics", "yoga", "poker", "ancient Egypt", "trains", "whales", "politics",
    "the weather in Spain", "old coins", "cooking", "climate change", "the Second World War",
)  # fmt: skip
UNKNOWN = wordings(
    "(What do you know|Tell me|Write an essay|Teach me something) about {x}(.)",
    "(Explain|Describe) {x} to me.",
    "(Can|Could) you help me with {x}?",
    "Who is the best in {x}?",
    "What is (new in|the history of) {x}?",
    "Recommend a (film|book) about {x}.",
)
OFFER = "I can write and change short Python functions, copy and sort out a text, or tell you a story."


def load() -> list[tuple[tuple[str, ...], str]]:
    """Pairs of (ways to ask, answer)."""
    entries = []
    for block in BANK.read_text(encoding="utf-8").strip().split("\n\n"):
        question, answer = block.splitlines()
        ways = tuple(question.removeprefix("? ").split(" | "))
        entries.append((ways, answer.removeprefix("= ").replace("\\n", "\n")))
    return entries


ENTRIES = load()


def question(dice: Dice) -> Turn:
    ways, answer = dice.choice(ENTRIES)
    request = dice.pick(ways)
    if request.endswith("?"):
        lead = dice.choice(LEADS)
        if lead:
            request = f"{lead}{request[0].lower()}{request[1:]}"
    return Turn(ask(dice, request), answer, Expect(phrases=(answer.split(". ")[0],)))


def scene(dice: Dice) -> Scene:
    """One question, or a few in a row."""
    turns = [question(dice)]
    while len(turns) < 3 and dice.random() < 0.25:
        turns.append(question(dice))
    return turns


def unknown_scene(dice: Dice) -> Scene:
    subject = dice.pick(SUBJECTS) if dice.random() < 0.7 else f"{word(dice)} {word(dice)}"
    answer = f"I am a very small model and know nothing about {subject}. {OFFER}"
    request = ask(dice, dice.pick(UNKNOWN).format(x=subject))
    return [Turn(request, answer, Expect(phrases=(f"know nothing about {subject}",)))]
