"""Scenes about small functions: write, explain, rename, rewrite and test them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from base.scene import Dice, Expect, Scene, Turn, ask, fence, join, wordings
from base.words import NOUNS, identifier
from scenes.code import functions, invented
from scenes.code.functions import Function, third_person

BANK = functions.load()
KINDS = {"list": "list", "str": "text", "dict": "dictionary"}
OPENERS = ("", "", "", "Here is a short function:\n\n", "This function does it:\n\n")

WRITE = wordings(
    "(Write|Please write|Give me|Show me|I need) a(| small| short| Python| small Python| short Python)"
    " function (that {does}|to {do}).",
    "(Write|Please write) a (small|short)(| Python) function that {does}, and explain it in a sentence.",
    "(Can|Could) you write a(| small| Python) function (that {does}|to {do})?",
    "How (do|can|would) I {do}( in Python|)?",
    "(Write|Show me)(| some| short) Python code to {do}.",
)
WRITE_NAMED = wordings(
    "(Write|Please write|Give me|I need) a(| small| Python) function(| called| named) `{name}` that {does}.",
    "(Write|Please write) `{name}`, a(| small| short) function that {does}.",
    "(Can|Could) you write a(| small) function `{name}` that {does}?",
)
WITH_ARGUMENT = wordings(" (Call|Name) (its|the)(| first) argument `{argument}`.")
EXPLAIN = wordings(
    "(Explain|Please explain|Describe) this (function|code)(| step by step| line by line):\n\n{code}",
    "What does this (function|code) do(|, step by step|, line by line)?\n\n{code}",
    "{code}\n\n(Explain|Please explain) this (function|code)(| step by step| line by line).",
)
EXPLAIN_LATER = wordings(
    "(Explain|Please explain) (it|the code|`{name}`)(| step by step| line by line).",
    "(Can|Could) you explain (it|the code|the function) (step by step|line by line)?",
    "How does (it|this|`{name}`) work?",
)
REWRITE = wordings(
    "(Rewrite|Change|Please rewrite|Edit) this function so that it {wish}:\n\n{code}",
    "(Rewrite|Change) this function so that it {wish}, and say what changed:\n\n{code}",
    "(Here|This) is a(| Python) function:\n\n{code}\n\n(Rewrite|Change) it so that it {wish}.",
    "{code}\n\n(Rewrite|Change|Please rewrite) (`{name}`|this function) so that it {wish}.",
    "{code}\n\n(Rewrite|Change) (it|`{name}`) so that it {wish}, and say what changed.",
)
REWRITE_LATER = wordings(
    "(Rewrite|Change|Please change) (it|`{name}`|the function) so that it {wish}(|, and say what changed).",
    "(Can|Could) you (change|rewrite) (it|the function) so that it {wish}?",
    "(Now|Next,) (rewrite|change) it so that it {wish}.",
)
REWRITE_KNOWN = wordings("(Rewrite|Change) `{name}` so that it {wish}(|, and say what changed).")
TEST = wordings(
    "(Write|Please write|Add|Give me) (a test|tests|a short test) for (this function|this code):\n\n{code}",
    "{code}\n\n(Write|Please write|Add) (a test|tests) for (it|`{name}`|this function).",
)
TEST_LATER = wordings(
    "(Write|Please write|Add) (a test|tests) for (it|`{name}`).",
    "(Can|Could) you (add|write) (a test|tests)?",
)
TEST_KNOWN = wordings("(Write|Please write|Give me) (a test|tests) for `{name}`.")
USE = wordings("(How do I|How can I) (call|use) (it|`{name}`)?", "Show me how to (call|use) (it|`{name}`).")


@dataclass(frozen=True, slots=True)
class Listing:
    """How a function is printed: which extra lines stand around its body."""

    function: Function
    hints: bool = False
    guard: tuple[str, ...] = ()
    docstring: str = ""

    def __str__(self) -> str:
        return fence(self.source)

    @property
    def source(self) -> str:
        function = self.function
        head = function.signature if self.hints else function.plain_signature
        lines = [f"{head}:"]
        if self.docstring:
            lines.append(f'    """{self.docstring}"""')
        lines += [f"    {line}" for line in self.guard]
        lines += [line.code for line in function.body]
        return "\n".join(lines)

    def renamed(self, old: str, new: str) -> Listing:
        guard = tuple(line.replace(old, new) for line in self.guard)
        return replace(self, function=self.function.renamed(old, new), guard=guard)


def explanation(function: Function) -> str:
    """One or two sentences that follow the body line by line."""
    notes = [line.note for line in function.body if line.note != "otherwise"]
    if len(notes) <= 4:
        return f"`{function.name}` {join(notes)}."
    half = len(notes) // 2
    return f"`{function.name}` {join(notes[:half])}. Then it {join(notes[half:])}."


def docstring(function: Function) -> str:
    want = function.wants[0]
    return f"{want[0].upper()}{want[1:]}."


def kind_of(function: Function) -> str:
    """The plain word for what may be empty."""
    annotation = function.signature.split(f"{function.empty}: ")[1]
    return KINDS[next(kind for kind in KINDS if annotation.startswith(kind))]


def varied(dice: Dice, function: Function) -> Function:
    """The function under other names, so that names must be read and not only remembered."""
    if function.empty:
        spare = f"{dice.choice(NOUNS)}s"
        if not any(spare in line.code for line in function.body):
            function = function.renamed(function.empty, spare)
    return function.renamed(function.name, identifier(dice))


def shown(dice: Dice) -> Listing:
    """A function that stands in a question: mostly one that nobody knows."""
    roll = dice.random()
    if roll < 0.6:
        function = invented.function(dice)
    else:
        function = dice.choice(BANK)
        function = varied(dice, function) if roll < 0.85 or dice.held_out else function
    return Listing(function, hints=dice.random() < 0.15)


def works(function: Function, *phrases: str) -> Expect:
    """The answer's code gives what the function gives."""
    return Expect(phrases=phrases, calls=function.examples)


# ------------------------------------------------------------------------------ write


def write(dice: Dice) -> tuple[Turn, Listing]:
    function = dice.choice(BANK) if dice.random() < 0.75 else invented.function(dice)
    want = dice.choice(function.wants)
    roll = dice.random()
    if function.invented or roll < 0.2:
        if not function.invented:
            function = varied(dice, function)
        request = dice.pick(WRITE_NAMED)
        if function.empty and not function.invented:
            request += dice.pick(WITH_ARGUMENT).format(argument=function.empty)
        elif function.invented:
            request += f" It starts with `{function.plain_signature}:`."
    else:
        request = dice.pick(WRITE)
    listing = Listing(function)
    request = request.format(do=want, does=third_person(want), name=function.name)
    if 0.2 <= roll < 0.27:
        request, listing = f"{request} Use type hints.", replace(listing, hints=True)
    elif 0.27 <= roll < 0.34:
        request, listing = (
            f"{request} Add a docstring.",
            replace(listing, docstring=docstring(function)),
        )
    example = ""
    if function.examples and not function.invented:
        call, result = function.examples[0]
        example = f" For example, `{call}` returns `{result}`."
    answer = f"{listing}\n\n{explanation(function)}{example}"
    return Turn(ask(dice, request), dice.choice(OPENERS) + answer, works(function)), listing


# ---------------------------------------------------------------------------- rewrite

Change = tuple[str, Listing, str]
"""What is wished, the new listing, and the sentence that names the change."""


def rename(dice: Dice, old: Listing) -> Change:
    name = old.function.name
    fresh = identifier(dice)
    said = f"the function is now called `{fresh}` instead of `{name}`. Nothing else is different."
    return f"is called `{fresh}`", old.renamed(name, fresh), said


def rename_argument(dice: Dice, old: Listing) -> Change:
    used = old.source
    fresh = dice.choice([noun for noun in NOUNS if noun not in used]) + dice.choice(("", "s"))
    argument = dice.choice(old.function.arguments)
    said = f"the argument is now called `{fresh}` instead of `{argument}`, in every place."
    wish = dice.choice((f"calls its argument `{fresh}`", f"calls `{argument}` `{fresh}`"))
    if len(old.function.arguments) > 1:
        wish = f"calls `{argument}` `{fresh}`"
    return wish, old.renamed(argument, fresh), said


def refuse_empty(dice: Dice, old: Listing) -> Change:
    empty = old.function.empty
    kind = kind_of(old.function)
    guard = (f"if not {empty}:", f'    raise ValueError("{empty} must not be empty")')
    wish = dice.choice((f"refuses an empty {kind}", f"raises an error for an empty {kind}"))
    said = (
        f"the function now looks at `{empty}` first and raises a `ValueError` if the {kind} is empty. "
        f"The rest is as before."
    )
    return wish, replace(old, guard=guard), said


def none_for_empty(dice: Dice, old: Listing) -> Change:
    empty = old.function.empty
    kind = kind_of(old.function)
    wish = dice.choice((f"returns `None` for an empty {kind}", f"gives `None` for an empty {kind}"))
    said = f"an empty {kind} now gives `None` at once. For any other {kind} the result is as before."
    return wish, replace(old, guard=(f"if not {empty}:", "    return None")), said


def add_hints(dice: Dice, old: Listing) -> Change:
    result = old.function.signature.rpartition(" -> ")[2]
    said = (
        "the signature now says what type each argument has, and that the function returns "
        f"`{result}`. The body is the same."
    )
    return dice.choice(("has type hints", "uses type hints")), replace(old, hints=True), said


def add_docstring(dice: Dice, old: Listing) -> Change:
    text = docstring(old.function)
    wish = dice.choice(("has a docstring", "says what it does in a docstring"))
    if dice.random() < 0.4:
        wish = f'has the docstring "{text}"'
    said = "a docstring now says what the function does. The code below it is the same."
    return wish, replace(old, docstring=text), said


def lone_numbers(listing: Listing) -> list[str]:
    """Numbers of an invented function that stand in its code once, so that each can be named."""
    numbers = re.findall(r"\b\d+\b", listing.source) if listing.function.invented else []
    return [number for number in numbers if numbers.count(number) == 1 and number not in "01"]


def change_number(dice: Dice, old: Listing) -> Change:
    number = dice.choice(lone_numbers(old))
    fresh = str(dice.choice([number for number in range(2, 99) if str(number) not in old.source]))
    said = f"the number {number} is now {fresh}. Nothing else is different."
    return f"uses {fresh} instead of {number}", old.renamed(number, fresh), said


def renames(old: Listing) -> list[Callable[[Dice, Listing], Change]]:
    return [rename, rename_argument]


def changes(old: Listing) -> list[Callable[[Dice, Listing], Change]]:
    function, kinds = old.function, list[Callable[[Dice, Listing], Change]]()
    if not old.hints:
        kinds.append(add_hints)
    if not old.docstring:
        kinds.append(add_docstring)
    if function.empty and not old.guard:
        kinds += [refuse_empty, none_for_empty]
    if lone_numbers(old):
        kinds.append(change_number)
    return kinds or [rename]


def rewritten(
    dice: Dice,
    old: Listing,
    kinds: list[Callable[[Dice, Listing], Change]],
    requests: tuple[str, ...],
) -> tuple[Turn, Listing]:
    wish, new, said = dice.choice(kinds)(dice, old)
    request = dice.pick(requests).format(wish=wish, code=old, name=old.function.name)
    added = [line for line in new.source.splitlines() if line not in old.source.splitlines()]
    answer = f"{new}\n\nWhat changed: {said}"
    return Turn(ask(dice, request), answer, works(new.function, *added)), new


# -------------------------------------------------------------------- explain and test


def explained(dice: Dice, listing: Listing, requests: tuple[str, ...]) -> Turn:
    function = listing.function
    told = [line for line in function.body if line.note != "otherwise"]
    steps = [f"{number}. `{line.code.strip()}` {line.note}." for number, line in enumerate(told, 1)]
    request = dice.pick(requests).format(code=listing, name=function.name)
    head = f"`{function.name}` {third_person(function.wants[0])}."
    body = "\n".join(steps)
    if len(steps) == 1:
        body = f"Its only line is `{told[0].code.strip()}`. It {told[0].note}."
    ticked = tuple(f"`{line.code.strip()}`" for line in told)
    return Turn(request, f"{head}\n\n{body}", Expect(phrases=(f"`{function.name}`", *ticked)))


def tested(dice: Dice, function: Function, requests: tuple[str, ...]) -> Turn:
    lines = [f"    assert {call} == {result}" for call, result in function.examples]
    code = fence("\n".join([f"def test_{function.name}():", *lines]))
    request = dice.pick(requests).format(code=Listing(function), name=function.name)
    words = "two calls" if len(lines) == 2 else "one call"
    said = f"The test makes {words} and compares each result with the expected one."
    expect = Expect(
        phrases=(f"assert {function.name}(",),
        given=function.source,
        calls=((f"test_{function.name}()", "None"),),
    )
    return Turn(request, f"{code}\n\n{said}", expect)


def used(dice: Dice, function: Function) -> Turn:
    call, result = function.examples[0]
    request = dice.pick(USE).format(name=function.name)
    return Turn(request, f"Call it like this:\n\n{fence(f'print({call})')}\n\nThis prints `{result}`.")


def with_examples(dice: Dice) -> Function:
    return dice.choice([function for function in BANK if function.calls])


# ----------------------------------------------------------------------------- scenes


def write_scene(dice: Dice) -> Scene:
    return [write(dice)[0]]


def explain_scene(dice: Dice) -> Scene:
    return [explained(dice, shown(dice), EXPLAIN)]


def rename_scene(dice: Dice) -> Scene:
    listing = shown(dice)
    return [rewritten(dice, listing, renames(listing), REWRITE)[0]]


def rewrite_scene(dice: Dice) -> Scene:
    if dice.random() < 0.15:
        listing = Listing(dice.choice(BANK))
        return [rewritten(dice, listing, changes(listing), REWRITE_KNOWN)[0]]
    listing = shown(dice)
    return [rewritten(dice, listing, changes(listing), REWRITE)[0]]


def test_scene(dice: Dice) -> Scene:
    function = with_examples(dice)
    if dice.random() < 0.3:
        return [tested(dice, function, TEST_KNOWN)]
    return [tested(dice, varied(dice, function), TEST)]


def follow_up_scene(dice: Dice) -> Scene:
    """A function is written or shown, and then worked on."""
    if dice.random() < 0.5:
        turn, listing = write(dice)
    else:
        listing = shown(dice)
        turn, listing = rewritten(dice, listing, changes(listing), REWRITE)
    turns = [turn]
    for _ in range(dice.choice((1, 1, 2))):
        roll = dice.random()
        if roll < 0.4:
            turn, listing = rewritten(dice, listing, renames(listing), REWRITE_LATER)
        elif roll < 0.7:
            turn, listing = rewritten(dice, listing, changes(listing), REWRITE_LATER)
        elif roll < 0.85 or listing.function.invented or not listing.function.calls:
            turn = explained(dice, listing, EXPLAIN_LATER)
        elif roll < 0.93:
            turn = tested(dice, listing.function, TEST_LATER)
        else:
            turn = used(dice, listing.function)
        turns.append(turn)
    return turns
