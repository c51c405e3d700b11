"""Scenes of simple arithmetic, worked in small steps that a small model can follow."""

from __future__ import annotations

from random import Random

from scene import Scene, Turn, ask

PEOPLE = ("Ada", "Alan", "Grace", "Emma", "Noah", "Lena", "Omar", "Mia", "Ravi", "Zoe")
GOODS = (
    "apples", "books", "marbles", "stamps", "coins", "pencils", "cards", "shells", "pears", "keys",
    "nuts", "stones", "eggs", "letters", "buttons", "tickets", "flowers", "plums", "beads", "maps",
)  # fmt: skip


def add(a: int, b: int) -> str:
    tens, ones = a // 10 * 10 + b // 10 * 10, a % 10 + b % 10
    return (
        f"Add the tens first: {a // 10 * 10} + {b // 10 * 10} = {tens}. Then the ones: "
        f"{a % 10} + {b % 10} = {ones}. Together, {tens} + {ones} = {a + b}."
    )


def subtract(a: int, b: int) -> str:
    rest = a - b // 10 * 10
    return (
        f"Take away the tens first: {a} - {b // 10 * 10} = {rest}. Then the ones: "
        f"{rest} - {b % 10} = {a - b}. So {a} - {b} = {a - b}."
    )


def multiply(a: int, b: int) -> str:
    if a < 10:
        return f"{b} times {a} is {a * b}."
    tens, ones = a // 10 * 10, a % 10
    return (
        f"Split {a} into {tens} and {ones}. First, {b} * {tens} = {b * tens}. Then, "
        f"{b} * {ones} = {b * ones}. Together, {b * tens} + {b * ones} = {a * b}."
    )


def plain(rng: Random) -> tuple[Turn, int]:
    """A sum in signs and its result."""
    kind = rng.choice("++--*")
    if kind == "+":
        a, b = rng.randint(11, 99), rng.randint(11, 99)
        answer, result = add(a, b), a + b
    elif kind == "-":
        a, b = sorted((rng.randint(11, 99), rng.randint(11, 99)), reverse=True)
        answer, result = subtract(a, b), a - b
    else:
        a, b = rng.randint(3, 29), rng.randint(2, 9)
        answer, result = multiply(a, b), a * b
    written = f"{a} {kind} {b}"
    if kind == "*" and rng.random() < 0.6:
        written = f"{a} times {b}"
    elif rng.random() < 0.3:
        written = written.replace("+", "plus").replace("-", "minus")
    requests = (f"What is {written}?", f"What is {written}?", f"Compute {written}.", f"{written}")
    return Turn(rng.choice(requests), answer), result


def words(rng: Random) -> tuple[Turn, int]:
    """A sum told as a little story and its result."""
    first, second = rng.sample(PEOPLE, 2)
    goods = rng.choice(GOODS)
    kind = rng.randrange(3)
    if kind == 0:
        a, b = rng.randint(11, 60), rng.randint(11, 39)
        told = f"{first} has {a} {goods} and gets {b} more from {second}."
        answer, result = add(a, b), a + b
        question = f"How many {goods} does {first} have now?"
    elif kind == 1:
        a = rng.randint(30, 90)
        b = rng.randint(11, a - 10)
        told = f"{first} has {a} {goods} and gives {b} of them to {second}."
        answer, result = subtract(a, b), a - b
        question = f"How many {goods} does {first} have left?"
    else:
        a, b = rng.randint(3, 19), rng.randint(2, 9)
        told = f"{first} has {b} boxes with {a} {goods} in each."
        answer, result = multiply(a, b), a * b
        question = f"How many {goods} is that?"
    noun = f"{first} has {result} {goods}" if kind < 2 else f"that is {result} {goods}"
    return Turn(f"{told} {question}", f"{answer} So {noun}."), result


def share(rng: Random) -> tuple[Turn, int]:
    """A simple percentage and its result."""
    percent, parts = rng.choice(((10, 10), (20, 5), (25, 4), (50, 2)))
    result = rng.randint(2, 12)
    whole = result * parts
    answer = (
        f"{percent} percent is one part in {parts}. {whole} divided by {parts} is {result}, so "
        f"{percent} percent of {whole} is {result}."
    )
    sign = rng.choice((" percent", " percent", "%"))
    return Turn(ask(rng, f"What is {percent}{sign} of {whole}?"), answer), result


def mean(rng: Random) -> tuple[Turn, int]:
    """The mean of three numbers and its result."""
    result = rng.randint(3, 9)
    first, second = rng.randint(1, result), rng.randint(1, result)
    third = 3 * result - first - second
    total = 3 * result
    answer = (
        f"Add the numbers: {first} + {second} + {third} = {total}. There are three of them, so "
        f"divide by 3: {total} / 3 = {result}. The mean is {result}."
    )
    wish = rng.choice(("the mean", "the average"))
    return Turn(f"What is {wish} of {first}, {second} and {third}?", answer), result


def scene(rng: Random) -> Scene:
    maker = rng.choices((plain, words, share, mean), (5, 3, 1, 1))[0]
    turn, result = maker(rng)
    turns = [turn]
    if rng.random() < 0.25 and 10 < result < 100:
        other = rng.randint(11, 40)
        turns.append(Turn(f"And plus {other}?", add(result, other)))
    return turns
