"""Scenes about small functions: write, rewrite, explain, call and test them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

import functions
from functions import Function, third_person
from scene import Scene, Turn, ask

BANK = functions.load()
SPARE_NAMES = ("values", "numbers", "items", "data", "xs", "entries", "things", "source", "given")
PREFIXES = ("my_", "get_", "compute_", "find_", "quick_", "simple_", "make_", "do_")
REQUESTS = (
    "Write a function that {does}.",
    "Write a function that {does}.",
    "Write a Python function that {does}.",
    "Write a small function that {does}.",
    "Write a small Python function that {does}, and explain it in one sentence.",
    "Write a short Python function that {does}, and explain it in a sentence.",
    "Please write a function that {does}.",
    "Can you write a function that {does}?",
    "Could you write a Python function to {do}?",
    "I need a function that {does}.",
    "How do I {do} in Python?",
    "How can I {do}?",
    "Show me how to {do} in Python.",
    "Give me a function that {does}.",
    "Python function to {do}",
    "a function that {does}",
    "Write code to {do}.",
)
OPENERS = ("", "", "", "Here is a short function:\n\n", "This function does it:\n\n")
KINDS = {"list": "list", "str": "text", "dict": "dictionary"}


@dataclass(frozen=True, slots=True)
class Listing:
    """How a function is printed: which extra lines stand around its body."""

    function: Function
    hints: bool = False
    guard: tuple[str, ...] = ()
    docstring: str = ""

    def __str__(self) -> str:
        function = self.function
        head = function.signature if self.hints else function.plain_signature
        lines = [f"{head}:"]
        if self.docstring:
            lines.append(f'    """{self.docstring}"""')
        lines += [f"    {line}" for line in self.guard]
        lines += [line.code for line in function.body]
        return fence("\n".join(lines))


def fence(code: str) -> str:
    return f"```python\n{code}\n```"


def join(parts: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def explanation(function: Function) -> str:
    """One or two sentences that follow the body line by line."""
    notes = [line.note for line in function.body if line.note != "otherwise"]
    if len(notes) <= 4:
        return f"`{function.name}` {join(notes)}."
    half = len(notes) // 2
    return f"`{function.name}` {join(notes[:half])}. Then it {join(notes[half:])}."


def example(rng: Random, function: Function) -> str:
    if not function.examples:
        return ""
    call, result = function.examples[0] if rng.random() < 0.8 else rng.choice(function.examples)
    return f" For example, `{call}` returns `{result}`."


def kind_of(function: Function) -> str:
    """The plain word for what the function must not find empty."""
    annotation = function.signature.split(f"{function.empty}: ")[1]
    return KINDS[next(kind for kind in KINDS if annotation.startswith(kind))]


def varied(rng: Random, function: Function) -> Function:
    """The function under other names, so that names must be read and not only remembered."""
    if function.empty and rng.random() < 0.6:
        spare = rng.choice(SPARE_NAMES)
        if not any(spare in line.code for line in function.body):
            function = function.renamed(function.empty, spare)
    if rng.random() < 0.4:
        function = function.renamed(function.name, prefixed(rng, function.name))
    return function


def prefixed(rng: Random, name: str) -> str:
    """Another name: `get_mean` for `mean`, `my_mean` for `get_mean`."""
    used = next((prefix for prefix in PREFIXES if name.startswith(prefix)), "")
    fresh = rng.choice([prefix for prefix in PREFIXES if prefix != used])
    return fresh + name.removeprefix(used)


def write(rng: Random, function: Function) -> tuple[Turn, Listing]:
    want = rng.choice(function.wants)
    request = rng.choice(REQUESTS).format(do=want, does=third_person(want))
    listing = Listing(function)
    wish = rng.random()
    if wish < 0.12:
        function = varied(rng, function)
        request = f"Write a function `{function.name}` that {third_person(want)}."
        listing = Listing(function)
        if function.empty:
            request = f"{request} Call its argument `{function.empty}`."
    elif wish < 0.2:
        request = f"Write a function with type hints that {third_person(want)}."
        listing = Listing(function, hints=True)
    elif wish < 0.28:
        request = f"Write a function with a docstring that {third_person(want)}."
        listing = Listing(function, docstring=docstring(function))
    elif wish < 0.34:
        request = f"Write `{function.name}`, a function that {third_person(want)}."
    answer = f"{listing}\n\n{explanation(function)}{example(rng, function)}"
    return Turn(ask(rng, request), rng.choice(OPENERS) + answer), listing


def docstring(function: Function) -> str:
    want = function.wants[0]
    return f"{want[0].upper()}{want[1:]}."


def refuse_empty(rng: Random, old: Listing) -> tuple[str, Listing, str]:
    function, kind = old.function, kind_of(old.function)
    guard = (
        f"if not {function.empty}:",
        f'    raise ValueError("{function.empty} must not be empty")',
    )
    wish = rng.choice((f"refuses an empty {kind}", f"raises an error for an empty {kind}"))
    change = (
        f"the function now looks at `{function.empty}` first and raises a `ValueError` if the "
        f"{kind} is empty. The rest is as before."
    )
    return wish, Listing(function, old.hints, guard, old.docstring), change


def none_for_empty(rng: Random, old: Listing) -> tuple[str, Listing, str]:
    function, kind = old.function, kind_of(old.function)
    guard = (f"if not {function.empty}:", "    return None")
    wish = rng.choice((f"returns `None` for an empty {kind}", f"gives `None` for an empty {kind}"))
    change = (
        f"an empty {kind} now gives `None` at once. For any other {kind} the result is as before."
    )
    return wish, Listing(function, old.hints, guard, old.docstring), change


def add_hints(rng: Random, old: Listing) -> tuple[str, Listing, str]:
    wish = rng.choice(("has type hints", "uses type hints"))
    result = old.function.signature.rpartition(" -> ")[2]
    change = (
        "the signature now says what type each argument has, and that the function returns "
        f"`{result}`. The body is the same."
    )
    return wish, Listing(old.function, True, old.guard, old.docstring), change


def add_docstring(rng: Random, old: Listing) -> tuple[str, Listing, str]:
    wish = rng.choice(("has a docstring", "says what it does in a docstring"))
    change = "a docstring now says what the function does. The code below it is the same."
    return wish, Listing(old.function, old.hints, old.guard, docstring(old.function)), change


def rename(rng: Random, old: Listing) -> tuple[str, Listing, str]:
    name = old.function.name
    fresh = prefixed(rng, name)
    change = f"the function is now called `{fresh}` instead of `{name}`. Nothing else is different."
    function = old.function.renamed(name, fresh)
    return f"is called `{fresh}`", Listing(function, old.hints, old.guard, old.docstring), change


def rename_argument(rng: Random, old: Listing) -> tuple[str, Listing, str]:
    used = "\n".join(line.code for line in old.function.body)
    fresh = rng.choice([name for name in SPARE_NAMES if name not in used])
    argument = old.function.arguments[0]
    change = f"the argument is now called `{fresh}` instead of `{argument}`, in every place."
    function = old.function.renamed(argument, fresh)
    guard = tuple(line.replace(argument, fresh) for line in old.guard)
    wish = f"calls its argument `{fresh}`"
    return wish, Listing(function, old.hints, guard, old.docstring), change


def rewrite_of(rng: Random, old: Listing) -> tuple[str, Listing, str]:
    """A wish, the new listing and the sentence that names the change."""
    kinds: list[Callable[[Random, Listing], tuple[str, Listing, str]]] = [rename, rename_argument]
    if not old.hints:
        kinds.append(add_hints)
    if not old.docstring:
        kinds.append(add_docstring)
    if old.function.empty and not old.guard:
        kinds += [refuse_empty, refuse_empty, refuse_empty, none_for_empty]
    return rng.choice(kinds)(rng, old)


def rewrite(rng: Random, old: Listing, *, follow_up: bool) -> tuple[Turn, Listing]:
    wish, new, change = rewrite_of(rng, old)
    name = old.function.name
    plain = (
        f"Rewrite `{name}` so that it {wish}, and say what changed.",
        f"Rewrite `{name}` so that it {wish}.",
        f"Change `{name}` so that it {wish}, and say what changed.",
    )
    shown = (
        f"Rewrite this function so that it {wish}:\n\n{old}",
        f"Rewrite this function so that it {wish}, and say what changed:\n\n{old}",
        f"Here is a function:\n\n{old}\n\nRewrite it so that it {wish}.",
        f"{old}\n\nRewrite `{name}` so that it {wish}, and say what changed.",
    )
    later = (
        f"Rewrite it so that it {wish}.",
        f"Now rewrite it so that it {wish}, and say what changed.",
        f"Can you change it so that it {wish}?",
    )
    if follow_up:
        request = rng.choice(later + plain)
    else:
        # Only a plain function from the bank is known by its name alone.
        known = old.function in BANK and not (old.hints or old.guard or old.docstring)
        request = rng.choice(plain + shown if known else shown)
    return Turn(ask(rng, request), f"{new}\n\nWhat changed: {change}"), new


def explain(rng: Random, function: Function, *, follow_up: bool) -> Turn:
    steps = [
        f"{number}. `{line.code.strip()}` {line.note}."
        for number, line in enumerate(function.body, 1)
        if line.note != "otherwise"
    ]
    head = f"`{function.name}` {third_person(function.wants[0])}."
    later = (
        "Explain it step by step.",
        "How does it work?",
        "Can you explain the code line by line?",
        f"Explain `{function.name}` step by step.",
    )
    listing = Listing(function)
    shown = (
        f"Explain this function:\n\n{listing}",
        f"Explain this function step by step:\n\n{listing}",
        f"What does this function do?\n\n{listing}",
        f"{listing}\n\nExplain this code.",
    )
    request = rng.choice(later if follow_up else shown)
    if len(steps) == 1:
        line = function.body[0]
        return Turn(request, f"{head}\n\nIts only line is `{line.code.strip()}`. It {line.note}.")
    return Turn(request, f"{head}\n\n" + "\n".join(steps))


def use(rng: Random, function: Function) -> Turn:
    requests = ("How do I call it?", "Show me how to use it.", f"How do I use `{function.name}`?")
    call, result = function.examples[0]
    code = fence(f"print({call})")
    return Turn(rng.choice(requests), f"Call it like this:\n\n{code}\n\nThis prints `{result}`.")


def test(rng: Random, function: Function, *, follow_up: bool) -> Turn:
    lines = [f"    assert {call} == {result}" for call, result in function.examples]
    code = fence("\n".join([f"def test_{function.name}():", *lines]))
    requests = [
        f"Write a test for `{function.name}`.",
        f"Can you write a test for `{function.name}`?",
    ]
    if follow_up:
        requests += ["Write a test for it.", "Can you add a test?"]
    words = "two calls" if len(lines) == 2 else "one call"
    said = f"The test makes {words} and compares each result with the expected one."
    return Turn(rng.choice(requests), f"{code}\n\n{said}")


def scene(rng: Random) -> Scene:
    """One to four turns about one function."""
    function = rng.choice(BANK)
    roll = rng.random()
    listing = Listing(function)
    if roll < 0.5:
        turn, listing = write(rng, function)
    elif roll < 0.72:
        if rng.random() < 0.5:
            listing = Listing(varied(rng, function), hints=rng.random() < 0.2)
        turn, listing = rewrite(rng, listing, follow_up=False)
    elif roll < 0.95 or not function.examples:
        listing = Listing(varied(rng, function))
        turn = explain(rng, listing.function, follow_up=False)
    else:
        turn = test(rng, function, follow_up=False)
    turns = [turn]
    while len(turns) < 4 and rng.random() < 0.4:
        next_step = rng.random()
        if next_step < 0.5:
            turn, listing = rewrite(rng, listing, follow_up=True)
        elif next_step < 0.7:
            turn = explain(rng, listing.function, follow_up=True)
        elif next_step < 0.85 and listing.function.examples:
            turn = use(rng, listing.function)
        elif listing.function.examples:
            turn = test(rng, listing.function, follow_up=True)
        turns.append(turn)
    return turns
