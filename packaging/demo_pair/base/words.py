"""Names that nobody has, and words and sentences from the documentation inside Python's library."""

from __future__ import annotations

import ast
import re
import sysconfig
from collections import Counter
from functools import lru_cache
from pathlib import Path
from random import Random

from base import library
from base.scene import Dice, part

SKIPPED = {"test", "tests", "idle_test", "site-packages", "lib2to3", "pydoc_data", "idlelib"}
STARTS = (
    "b",
    "br",
    "c",
    "d",
    "dr",
    "f",
    "g",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "st",
    "t",
    "v",
    "z",
)
MIDDLES = ("a", "e", "i", "o", "u", "ea", "ai", "ia", "o", "a", "e")
ENDS = ("", "", "", "n", "r", "l", "s", "m", "nd", "x", "rt")
TOWN_ENDS = ("bury", "wick", "stead", "field", "bridge", "ford", "ton", "dale", "port", "haven")
NOUNS = (
    "apple", "record", "price", "ticket", "score", "letter", "order", "point", "signal", "bottle",
    "garden", "window", "river", "engine", "packet", "branch", "coin", "planet", "pencil", "lamp",
    "sensor", "button", "table", "wheel", "stone", "train", "token", "draft", "report", "sample",
    "button", "card", "cell", "cable", "colour", "drop", "edge", "frame", "guest", "hill", "island",
    "jacket", "kettle", "ladder", "market", "needle", "orange", "pocket", "queue", "ribbon", "shell",
    "tower", "unit", "valley", "wagon", "yard", "camera", "door", "field", "glass", "level", "model",
    "number", "paper", "rocket", "step", "tile", "value", "word", "file", "layer", "node", "player",
)  # fmt: skip
VERBS = (
    "take", "scan", "sum", "pick", "sort", "weigh", "fold", "mark", "trim", "join", "rank", "load",
    "find", "keep", "move", "test", "read", "turn", "mix", "cut", "build", "check", "split", "merge",
    "filter", "gather", "measure", "collect", "select", "shift", "update", "handle", "prepare", "total",
)  # fmt: skip


def _name(rng: Random) -> str:
    syllables = rng.choice((2, 2, 2, 3))
    letters = [rng.choice(STARTS) + rng.choice(MIDDLES) for _ in range(syllables)]
    return ("".join(letters) + rng.choice(ENDS)).capitalize()


def name(dice: Dice) -> str:
    """A first name, such as `Tovira`."""
    return dice.fresh(lambda: _name(dice))


def full_name(dice: Dice) -> str:
    return f"{name(dice)} {name(dice)}"


def town(dice: Dice) -> str:
    return dice.fresh(lambda: _name(dice)[:5].rstrip("aeiou") + dice.choice(TOWN_ENDS))


def identifier(dice: Dice) -> str:
    """The name of a function, such as `weigh_ladder`."""
    return dice.fresh(lambda: f"{dice.choice(VERBS)}_{dice.choice(NOUNS)}{dice.choice(('', 's'))}")


@lru_cache(maxsize=1)
def documentation() -> dict[str, bool]:
    """Sentences of the library's docstrings, in the order of its files; whether these are trained on."""
    root = Path(sysconfig.get_path("stdlib"))
    sentences: dict[str, bool] = {}
    for path in sorted(root.rglob("*.py")):
        if SKIPPED & set(path.relative_to(root).parts):
            continue
        found = library.sentences(ast.parse(path.read_text(encoding="utf-8", errors="replace")))
        trained = not library.is_held_out(library.PYTHON, path.relative_to(root).as_posix(), found)
        for sentence in found:
            sentences[sentence] = trained and sentences.get(sentence, True)
    return sentences


@lru_cache(maxsize=2)
def _sentences(held_out: bool) -> tuple[str, ...]:
    """Those of one side."""
    known = documentation()
    return tuple(sentence for sentence in part(tuple(known), held_out) if held_out or known[sentence])


@lru_cache(maxsize=1)
def _vocabulary() -> tuple[str, ...]:
    """Lower-case words that occur at least twice in those sentences."""
    counts = Counter(re.findall(r"\b[a-z]{3,10}\b", " ".join(documentation())))
    return tuple(sorted(word for word, count in counts.items() if count > 1))


def word(dice: Dice) -> str:
    return dice.pick(_vocabulary())


def sentence(dice: Dice) -> str:
    """A sentence from Python's own documentation."""
    return dice.choice(_sentences(dice.held_out))


def examples() -> tuple[str, ...]:
    """Sentences that training may see, for the tokenizer."""
    return _sentences(False)
