"""Scenes whose answers are made of the question: quoting, re-formatting, replacing a word."""

from __future__ import annotations

from collections.abc import Callable

from base.scene import Dice, Expect, Scene, Turn, fence, join, wordings
from base.words import NOUNS, full_name, name, sentence, town, word
from scenes.code import invented

QUOTE = wordings(
    "(Repeat|Copy|Quote|Write out) (this|the following) (text|passage|paragraph)"
    " (word for word|exactly|without any change):\n\n{text}",
    "{text}\n\n(Repeat|Copy|Quote) (this|the text above) (word for word|exactly).",
    "(Quote|Repeat) this:\n\n{text}",
)
QUOTE_CODE = wordings(
    "(Repeat|Copy|Write out) (this|the following) (code|function)(| exactly| without any change):\n\n{text}"
)
QUOTE_WORDS = wordings("(Repeat|Copy|Write out) (these|the following) words(| in the same order):\n\n{text}")
BULLETS = wordings(
    "(Turn|Make|Rewrite) (this|the following) (text|passage|paragraph) (into|as) a bullet list"
    "(|, one sentence each|, one point a sentence):\n\n{text}",
    "{text}\n\n(Turn|Make) (this|that) into a bullet list.",
)
NUMBERED = wordings(
    "(Number|Please number) the sentences of (this|the following) (text|passage|paragraph):\n\n{text}",
    "(Turn|Make) (this|the following) (text|passage|paragraph) into a numbered list:\n\n{text}",
)
LINES = wordings(
    "(Put|Write) (each|every) sentence of (this|the following) (text|passage|paragraph)"
    " on (a line of its own|its own line):\n\n{text}",
)
ITEMS = wordings(
    "(Turn|Make) (this|the following) (list|line) into (a bullet list|bullets):\n\n{text}",
    "(Write|List) these (things|items) as (a bullet list|bullets):\n\n{text}",
)
LINE = wordings(
    "(Put|Write) (this|the following) list (on|into) one line(|, with commas):\n\n{text}",
    "(Turn|Make) (this|the following) list into a sentence with commas:\n\n{text}",
)
TABLE = wordings(
    "(Turn|Make|Convert) (this|these lines|the following lines|this CSV) into a(| Markdown) table:\n\n{text}",
    "(Show|Write) (this|these lines|this CSV) as a(| Markdown) table:\n\n{text}",
)
REPLACE = wordings(
    "(Replace|Change) `{old}` (by|with|to) `{new}` in (this|the following) (text|passage|paragraph)"
    ":\n\n{text}",
    "{text}\n\n(Replace|Change) `{old}` (by|with|to) `{new}`(| in this text).",
)
LATER = {
    "bullets": wordings(
        "(Now|And now) (as|make it) a bullet list.", "(Turn|Make) (it|that) into a bullet list."
    ),
    "numbered": wordings(
        "(Now|And now) (as|make it) a numbered list.", "(Number|Please number) the sentences."
    ),
    "again": wordings("(Say|Repeat|Write) (it|that) (again|once more)."),
}


def told(dice: Dice) -> str:
    """A sentence with invented names and numbers."""
    return dice.choice(
        (
            lambda: (
                f"{full_name(dice)} moved from {town(dice)} to {town(dice)} in {dice.randint(1950, 2025)}."
            ),
            lambda: f"The {dice.choice(NOUNS)} of {name(dice)} weighs {dice.randint(2, 99)} grams.",
            lambda: f"{name(dice)} and {name(dice)} keep their {dice.choice(NOUNS)}s in {town(dice)}.",
            lambda: f"In {town(dice)} a {dice.choice(NOUNS)} costs {dice.randint(2, 99)} euros.",
            lambda: f"{name(dice)} found {dice.randint(2, 99)} {dice.choice(NOUNS)}s under the bridge.",
            lambda: f"The road to {town(dice)} is {dice.randint(2, 99)} kilometres long.",
            lambda: f"Every {dice.choice(NOUNS)} needs a {dice.choice(NOUNS)} and a {dice.choice(NOUNS)}.",
            lambda: f"{full_name(dice)} sold the {dice.choice(NOUNS)} to {name(dice)}.",
            lambda: f"In {dice.randint(1950, 2025)} the {dice.choice(NOUNS)} of {town(dice)} was mended.",
            lambda: f"{name(dice)} keeps {dice.randint(2, 99)} {dice.choice(NOUNS)}s for {full_name(dice)}.",
            lambda: f"Nobody in {town(dice)} knows the {dice.choice(NOUNS)} that {name(dice)} lost.",
            lambda: f"From {town(dice)} to {town(dice)} it takes {dice.randint(2, 99)} minutes.",
            lambda: f"When {name(dice)} comes, the {dice.choice(NOUNS)} is next to the {dice.choice(NOUNS)}.",
            lambda: f"{name(dice)}, {name(dice)} and {name(dice)} share a {dice.choice(NOUNS)}.",
        )
    )()


def passage(dice: Dice, least: int = 1, most: int = 4) -> list[str]:
    """Sentences, of Python's documentation or told."""
    make = dice.choice((sentence, told))
    return [make(dice) for _ in range(dice.randint(least, most))]


def bullets(items: list[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def numbered(items: list[str]) -> str:
    return "\n".join(f"{number}. {item}" for number, item in enumerate(items, 1))


def exactly(request: str, answer: str) -> Turn:
    return Turn(request, answer, Expect(text=answer))


def quote_scene(dice: Dice) -> Scene:
    roll = dice.random()
    if roll < 0.15:
        text = fence(invented.function(dice).source)
        return [exactly(dice.pick(QUOTE_CODE).format(text=text), text)]
    if roll < 0.35:
        text = dice.choice((", ", " "))
        text = text.join(word(dice) for _ in range(dice.randint(4, 16)))
        return [exactly(dice.pick(QUOTE_WORDS).format(text=text), text)]
    sentences = passage(dice)
    text = " ".join(sentences)
    turns = [exactly(dice.pick(QUOTE).format(text=text), text)]
    if dice.random() < 0.25:
        kind = dice.choice(list(LATER))
        answer = {"bullets": bullets(sentences), "numbered": numbered(sentences), "again": text}[kind]
        turns.append(exactly(dice.pick(LATER[kind]), answer))
    return turns


def reformat_sentences(dice: Dice) -> Turn:
    sentences = passage(dice, 2, 4)
    requests, layout = dice.choice(((BULLETS, bullets), (NUMBERED, numbered), (LINES, "\n".join)))
    return exactly(dice.pick(requests).format(text=" ".join(sentences)), layout(sentences))


def reformat_items(dice: Dice) -> Turn:
    make: Callable[[Dice], str] = dice.choice((word, name, lambda dice: f"{word(dice)} {dice.choice(NOUNS)}"))
    items = [make(dice) for _ in range(dice.randint(3, 7))]
    if dice.random() < 0.5:
        text = dice.choice((", ".join(items), join(items)))
        return exactly(dice.pick(ITEMS).format(text=text), bullets(items))
    return exactly(dice.pick(LINE).format(text=bullets(items)), ", ".join(items))


def table(dice: Dice) -> Turn:
    columns = {
        "name": lambda: name(dice),
        "town": lambda: town(dice),
        "age": lambda: str(dice.randint(18, 90)),
        "item": lambda: dice.choice(NOUNS),
        "count": lambda: str(dice.randint(1, 99)),
    }
    head = dice.some(list(columns), 2, 3)
    rows = [[columns[column]() for column in head] for _ in range(dice.randint(2, 4))]
    text = "\n".join(",".join(row) for row in [head, *rows])
    lines = [head, ["---"] * len(head), *rows]
    answer = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return exactly(dice.pick(TABLE).format(text=text), answer)


def replaced(dice: Dice) -> Turn:
    sentences = [told(dice) for _ in range(dice.randint(1, 3))]
    text = " ".join(sentences)
    names = [part for part in text.replace(".", "").split() if part[0].isupper() and len(part) > 4]
    old = dice.choice(names or [text.split()[0]])
    new = name(dice)
    return exactly(dice.pick(REPLACE).format(old=old, new=new, text=text), text.replace(old, new))


def reformat_scene(dice: Dice) -> Scene:
    return [dice.choice((reformat_sentences, reformat_items, table, replaced))(dice)]
