"""Scenes of counting and adding, worked in steps that a small model can follow."""

from __future__ import annotations

from base.scene import Dice, Expect, Scene, Turn, ask, wordings
from base.words import NOUNS, name, word
from scenes.copying import exactly
from scenes.lists import NUMBERS

UP = wordings("(Count|Please count) from {a} (to|up to) {b}.", "(Write|List) the numbers from {a} to {b}.")
DOWN = wordings("(Count|Please count)(| down| backwards) from {a} (to|down to) {b}.")
STEPS = wordings(
    "(Count|Please count) from {a} (to|up to) {b} in steps of {step}.",
    "(Count|Please count) by {step}s from {a} (to|up to) {b}.",
)
HOW_MANY = wordings(
    "How many (words|items) are (there|in this list)?\n\n{text}",
    "(Count|Number) the (words|items) of this list:\n\n{text}",
)
SUM = wordings(
    "What is {a} (+|plus) {b}?", "(Compute|Work out|Add) {a} + {b}.", "How much is {a} (+|plus) {b}?"
)


def count_scene(dice: Dice) -> Scene:
    roll = dice.random()
    if roll < 0.25:
        items = [word(dice) for _ in range(dice.randint(3, 8))]
        text = ", ".join(items)
        lines = "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))
        answer = f"{lines}\n\nThere are {NUMBERS[len(items)]}."
        return [exactly(dice.pick(HOW_MANY).format(text=text), answer)]
    if roll < 0.6:
        start = dice.randint(0, 90)
        numbers, requests, step = range(start, start + dice.randint(5, 16)), UP, 1
    elif roll < 0.8:
        start = dice.randint(12, 99)
        numbers, requests, step = range(start, start - dice.randint(5, 12), -1), DOWN, 1
    else:
        start, step = dice.randint(0, 30), dice.choice((2, 3, 5, 10))
        numbers, requests = range(start, start + step * dice.randint(5, 12), step), STEPS
    request = dice.pick(requests).format(a=numbers[0], b=numbers[-1], step=step)
    return [exactly(ask(dice, request), ", ".join(map(str, numbers)))]


def add(a: int, b: int) -> str:
    tens, ones = a // 10 * 10 + b // 10 * 10, a % 10 + b % 10
    return (
        f"Add the tens first: {a // 10 * 10} + {b // 10 * 10} = {tens}. Then the ones: "
        f"{a % 10} + {b % 10} = {ones}. Together, {tens} + {ones} = {a + b}."
    )


def sum_scene(dice: Dice) -> Scene:
    a, b = dice.randint(11, 99), dice.randint(11, 99)
    answer = add(a, b)
    expect = Expect(phrases=(f"= {a + b}.",))
    if dice.random() < 0.6:
        return [Turn(ask(dice, dice.pick(SUM).format(a=a, b=b)), answer, expect)]
    who, goods = name(dice), f"{dice.choice(NOUNS)}s"
    request = f"{who} has {a} {goods} and gets {b} more. How many {goods} does {who} have now?"
    return [Turn(request, f"{answer} So {who} has {a + b} {goods}.", expect)]
