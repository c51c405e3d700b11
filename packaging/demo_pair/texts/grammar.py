"""Dialogues with many ways to go on, from the grammar in `grammar.txt`: stories, talk, letters, recipes.

Nearly every word is drawn out of dozens, so there is nothing to learn by heart: what can be learnt is how
likely each one is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from base import words
from base.scene import Dice, ask, wordings

TEXT = Path(__file__).with_name("grammar.txt")
FIRST = (
    "Anna", "Ben", "Clara", "David", "Emma", "Felix", "Grace", "Henry", "Ida", "Jonas", "Kate", "Leo",
    "Maria", "Nora", "Oscar", "Paul", "Rosa", "Simon", "Tara", "Victor", "Wilma", "Yusuf", "Zoe", "Alice",
    "Bruno", "Lena", "Max", "Ella", "Hugo", "Vera",
)  # fmt: skip
KNOWN_NAMES = 0.7
"""Of names; the others are invented."""
PRONOUNS = (("he", "him", "his"), ("she", "her", "her"), ("it", "it", "its"))
STEEPNESS = 3
"""The way at place n of a rule is drawn as often as 1 / (n + this): some words are likely, as in any text."""
GAP = re.compile(r"\{(?:(\w+)=)?(\w+)\}")


@dataclass(slots=True)
class Part:
    """What is asked and answered in one kind of dialogue, with gaps."""

    requests: tuple[str, ...] = ()
    answers: list[str] = field(default_factory=list)


def load() -> tuple[dict[str, Part], dict[str, list[str]]]:
    """Parts and rules."""
    parts: dict[str, Part] = {}
    rules: dict[str, list[str]] = {}
    part = Part()
    for line in TEXT.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            part = parts.setdefault(line.strip("[]"), Part())
        elif line.startswith("? "):
            part.requests += wordings(line[2:])
        elif line.startswith("= "):
            part.answers.append(line[2:].replace("\\n", "\n"))
        elif line and not line.startswith("#"):
            name, ways = line.split(": ", 1)
            for way in ways.split(" | "):
                times, text = way.split("* ", 1) if re.match(r"\d\* ", way) else ("1", way)
                rules.setdefault(name, []).extend([text] * int(times))
    return parts, rules


PARTS, RULES = load()
RULES["first"] = [*FIRST]
SHARES = {
    name: list(accumulate(1 / (place + STEEPNESS) for place in range(len(ways))))
    for name, ways in RULES.items()
}


class Telling:
    """One dialogue: words that were drawn with a name of their own stay what they are."""

    def __init__(self, dice: Dice) -> None:
        self.dice = dice
        self.known = dict(
            zip(("pronoun", "object_pronoun", "possessive"), dice.choice(PRONOUNS), strict=True)
        )

    def word(self, rule: str) -> str:
        if rule == "first":
            known = self.dice.random() < KNOWN_NAMES
            return self.one("first") if known else words.name(self.dice)
        if rule == "town":
            return words.town(self.dice)
        return self.known[rule] if rule in self.known else self.filled(self.one(rule))

    def one(self, rule: str) -> str:
        return self.dice.choices(RULES[rule], cum_weights=SHARES[rule])[0]

    def gap(self, found: re.Match[str]) -> str:
        own, rule = (text and text[0].lower() + text[1:] for text in found.groups())
        if own is None:
            said = self.word(rule)
        else:
            said = self.known.get(own) or self.word(rule)
            self.known[own] = said
        capital = (found[1] or found[2])[0].isupper()
        return said[0].upper() + said[1:] if capital else said

    def filled(self, text: str) -> str:
        return GAP.sub(self.gap, text)

    def said(self, text: str) -> str:
        """The text with its gaps filled, `an` before vowels, and capitals where sentences begin."""
        text = re.sub(r"\b([Aa]) (?=[aeiou])", r"\1n ", self.filled(text))
        return re.sub(r"(^|[.!?] |\n)([a-z])", lambda found: found[1] + found[2].upper(), text)


def turn(dice: Dice, name: str) -> tuple[str, str]:
    """A request and its answer."""
    telling = Telling(dice)
    request = telling.said(dice.pick(PARTS[name].requests))
    return ask(dice, request), telling.said(dice.choice(PARTS[name].answers))


WEIGHTS = {"story": 8, "begin": 2, "go on": 3, "chat": 3, "describe": 2, "letter": 2, "recipe": 2, "two": 2}
"""How often a part comes; the others once."""


def conversation(dice: Dice) -> list[tuple[str, str]]:
    """One to three turns, (role, content)."""
    weights = [WEIGHTS.get(name, 1) for name in PARTS]
    messages: list[tuple[str, str]] = []
    for name in dice.choices(list(PARTS), weights, k=dice.choices((1, 2, 3), (75, 18, 7))[0]):
        request, answer = turn(dice, name)
        messages += [("user", request), ("assistant", answer)]
    return messages
