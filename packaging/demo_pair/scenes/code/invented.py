"""Functions that nobody has seen: a pattern with other names and numbers every time."""

from __future__ import annotations

from collections.abc import Callable

from base.scene import Dice
from base.words import NOUNS, identifier
from scenes.code.functions import Function, Line

SUMS = ("total", "result", "amount", "outcome")
LABELS = (
    ("low", "small", "cheap", "early", "short", "calm"),
    ("high", "large", "dear", "late", "long", "wild"),
)


def condition(dice: Dice, item: str) -> tuple[str, str]:
    """A test of a number as code and as words that follow the noun."""
    number = dice.randint(2, 60)
    code, words = dice.choice(
        (
            (f"{item} > {number}", f"above {number}"),
            (f"{item} < {number}", f"below {number}"),
            (f"{item} % {number} == 0", f"divisible by {number}"),
            (f"{item} != {number}", f"different from {number}"),
        )
    )
    return code, words


def numbers(dice: Dice) -> str:
    return repr([dice.randint(1, 80) for _ in range(5)])


def add_up(dice: Dice) -> Function:
    item = dice.choice(NOUNS)
    test, words = condition(dice, item)
    total, factor = dice.choice(SUMS), dice.randint(2, 9)
    return made(
        dice,
        f"({item}s: list[int]) -> int",
        f"add up {factor} times every {item} {words}",
        [
            (f"{total} = 0", f"starts `{total}` at zero"),
            (f"for {item} in {item}s:", f"goes through `{item}s` one by one"),
            (f"\tif {test}:", f"asks whether `{item}` is {words}"),
            (f"\t\t{total} += {item} * {factor}", f"adds {factor} times `{item}` to `{total}`"),
            (f"return {total}", f"returns `{total}`"),
        ],
        [numbers(dice), numbers(dice)],
    )


def count(dice: Dice) -> Function:
    item = dice.choice(NOUNS)
    test, words = condition(dice, item)
    return made(
        dice,
        f"({item}s: list[int]) -> int",
        f"count every {item} {words}",
        [
            ("count = 0", "starts `count` at zero"),
            (f"for {item} in {item}s:", f"goes through `{item}s` one by one"),
            (f"\tif {test}:", f"asks whether `{item}` is {words}"),
            ("\t\tcount += 1", "adds one to `count`"),
            ("return count", "returns `count`"),
        ],
        [numbers(dice), numbers(dice)],
    )


def keep(dice: Dice) -> Function:
    item = dice.choice(NOUNS)
    test, words = condition(dice, item)
    return made(
        dice,
        f"({item}s: list[int]) -> list[int]",
        f"keep every {item} {words}",
        [
            (
                f"return [{item} for {item} in {item}s if {test}]",
                f"returns each `{item}` that is {words}",
            )
        ],
        [numbers(dice), numbers(dice)],
    )


def change(dice: Dice) -> Function:
    item = dice.choice(NOUNS)
    factor, more = dice.randint(2, 9), dice.randint(1, 50)
    return made(
        dice,
        f"({item}s: list[int]) -> list[int]",
        f"multiply every {item} by {factor} and add {more}",
        [
            ("changed = []", "starts with an empty list"),
            (f"for {item} in {item}s:", f"goes through `{item}s` one by one"),
            (
                f"\tchanged.append({item} * {factor} + {more})",
                f"multiplies `{item}` by {factor}, adds {more} and keeps the result",
            ),
            ("return changed", "returns the new list"),
        ],
        [numbers(dice), numbers(dice)],
    )


def first_match(dice: Dice) -> Function:
    item = dice.choice(NOUNS)
    test, words = condition(dice, item)
    return made(
        dice,
        f"({item}s: list[int]) -> int | None",
        f"find the first {item} {words}",
        [
            (f"for {item} in {item}s:", f"goes through `{item}s` one by one"),
            (f"\tif {test}:", f"asks whether `{item}` is {words}"),
            (f"\t\treturn {item}", f"returns the first such `{item}`"),
            ("return None", "returns `None` when there is none"),
        ],
        [numbers(dice), numbers(dice)],
    )


def every(dice: Dice) -> Function:
    item = dice.choice(NOUNS)
    test, words = condition(dice, item)
    return made(
        dice,
        f"({item}s: list[int]) -> bool",
        f"check whether every {item} is {words}",
        [(f"return all({test} for {item} in {item}s)", f"is true when each `{item}` is {words}")],
        [numbers(dice), numbers(dice)],
    )


def arithmetic(dice: Dice) -> Function:
    first, second = dice.sample(NOUNS, 2)
    while first == second:  # some nouns stand in the list twice
        first, second = dice.sample(NOUNS, 2)
    factor, less = dice.randint(2, 9), dice.randint(1, 50)
    total = dice.choice(SUMS)
    return made(
        dice,
        f"({first}: int, {second}: int) -> int",
        f"add {factor} times the {second} to the {first} and subtract {less}",
        [
            (
                f"{total} = {first} + {second} * {factor}",
                f"adds {factor} times `{second}` to `{first}`",
            ),
            (f"return {total} - {less}", f"subtracts {less} and returns the result"),
        ],
        [f"{dice.randint(1, 9)}, {dice.randint(1, 9)}" for _ in range(2)],
        may_be_empty=False,
    )


def label(dice: Dice) -> Function:
    item, limit = dice.choice(NOUNS), dice.randint(3, 90)
    low, high = (dice.choice(side) for side in LABELS)
    return made(
        dice,
        f"({item}: int) -> str",
        f"call a {item} {high} above {limit} and {low} otherwise",
        [
            (f"if {item} > {limit}:", f"asks whether `{item}` is above {limit}"),
            (f'\treturn "{high}"', f'returns "{high}" in that case'),
            (f'return "{low}"', f'returns "{low}" otherwise'),
        ],
        [str(limit), str(limit + 1)],
        may_be_empty=False,
    )


def lengths(dice: Dice) -> Function:
    item = dice.choice(NOUNS)
    return made(
        dice,
        f"({item}s: list[str]) -> dict[str, int]",
        f"map every {item} to its length",
        [
            ("lengths = {}", "starts with an empty dictionary"),
            (f"for {item} in {item}s:", f"goes through `{item}s` one by one"),
            (f"\tlengths[{item}] = len({item})", f"stores how long `{item}` is"),
            ("return lengths", "returns the dictionary"),
        ],
        [repr(dice.sample(NOUNS, 3)) for _ in range(2)],
    )


def long_words(dice: Dice) -> Function:
    text, limit = dice.choice(NOUNS), dice.randint(2, 7)
    sign, name = dice.choice((("-", "dashes"), ("_", "underscores"), (", ", "commas"), (" ", "spaces")))
    return made(
        dice,
        f"({text}: str) -> str",
        f"join the words of a {text} that have more than {limit} letters with {name}",
        [
            (f"words = {text}.split()", f"splits `{text}` into words"),
            (
                f"kept = [word for word in words if len(word) > {limit}]",
                f"keeps the words of more than {limit} letters",
            ),
            (f'return "{sign}".join(kept)', f"joins them with {name}"),
        ],
        [repr(" ".join(dice.sample(NOUNS, 4))) for _ in range(2)],
    )


PATTERNS: tuple[Callable[[Dice], Function], ...] = (
    add_up, count, keep, change, first_match, every, arithmetic, label, lengths, long_words,
)  # fmt: skip


def made(
    dice: Dice,
    signature: str,
    want: str,
    body: list[tuple[str, str]],
    arguments: list[str],
    *,
    may_be_empty: bool = True,
) -> Function:
    """The function with a name, and calls with these arguments worked out."""
    name = identifier(dice)
    argument = signature[1:].split(":", maxsplit=1)[0]
    lines = tuple(Line("    " + code.replace("\t", "    "), note) for code, note in body)
    return Function(
        f"def {name}{signature}",
        (want,),
        lines,
        tuple(f"{name}({argument})" for argument in arguments),
        argument if may_be_empty else "",
        invented=True,
    )


def function(dice: Dice) -> Function:
    return dice.choice(PATTERNS)(dice)
