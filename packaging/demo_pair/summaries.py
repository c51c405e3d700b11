"""Scenes that ask for a short paragraph to be summed up in a sentence."""

from __future__ import annotations

from random import Random

from scene import Scene, Turn

# So many towns that their names cannot be remembered: they have to be copied from the question.
TOWNS = tuple(
    first + last
    for first in ("Ald", "Nor", "Elm", "Brook", "Har", "Stone", "Mill", "Ash", "Win", "King", "Red")
    for last in ("bury", "wick", "stead", "field", "low", "bridge", "ford", "ton", "dale", "port")
)
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
CAUSES = ("heavy rain", "a broken cable", "strong wind", "a burst pipe", "a software fault")
PLACES = ("library", "museum", "swimming pool", "theatre", "market hall", "railway station")
PLANS = ("a new roof", "a second floor", "longer opening hours", "a small garden", "a bigger hall")
CROPS = ("apples", "pears", "cherries", "potatoes", "carrots", "onions")
FILES = ("report", "table", "log", "picture", "letter", "invoice")

REQUESTS = (
    "Summarise this in one sentence:\n\n{text}",
    "Sum up this paragraph in one sentence:\n\n{text}",
    "Summarise the following text:\n\n{text}",
    "{text}\n\nSum this up in a sentence.",
)


def place(rng: Random) -> tuple[str, str]:
    what, town, plan = rng.choice(PLACES), rng.choice(TOWNS), rng.choice(PLANS)
    year, visitors = rng.randint(1880, 1999), rng.randint(11, 98) * 1000
    text = (
        f"The {what} of {town} was opened in {year}. Last year {visitors} people came, which is "
        f"more than ever before. On most days there is hardly any room left. The town has "
        f"therefore decided to pay for {plan}."
    )
    summary = f"Because more people than ever visit the {what} of {town}, it will get {plan}."
    return text, summary


def failure(rng: Random) -> tuple[str, str]:
    what, town, day, cause = (rng.choice(bank) for bank in (PLACES, TOWNS, DAYS, CAUSES))
    text = (
        f"On {day} morning the {what} of {town} stayed closed. The reason was {cause}, which was "
        f"noticed shortly after six. Workers needed {rng.randint(2, 9)} hours for the repair. In "
        f"the evening everything was open again."
    )
    return text, f"On {day} the {what} of {town} was closed for some hours because of {cause}."


def harvest(rng: Random) -> tuple[str, str]:
    crop, town, tons = rng.choice(CROPS), rng.choice(TOWNS), rng.randint(20, 90)
    better = rng.random() < 0.5
    weather = "The spring was warm and wet." if better else "The spring was cold and dry."
    text = (
        f"The farmers of {town} grow {crop}. {weather} They brought in {tons} tons this year, "
        f"which is {'more' if better else 'less'} than the year before. Prices are expected to "
        f"{'fall' if better else 'rise'}."
    )
    cause = "a warm, wet spring" if better else "a cold, dry spring"
    summary = (
        f"After {cause}, the farmers of {town} brought in {'more' if better else 'fewer'} {crop} "
        f"than last year, so prices should {'fall' if better else 'rise'}."
    )
    return text, summary


def program(rng: Random) -> tuple[str, str]:
    kind, seconds = rng.choice(FILES), rng.randint(20, 90)
    fast = rng.randint(2, 9)
    text = (
        f"Our program needed {seconds} seconds to open a {kind}. We measured where the time went "
        f"and found that the same {kind} was read many times. Now it is read once and kept in "
        f"memory. Opening a {kind} takes {fast} seconds today."
    )
    summary = (
        f"Opening a {kind} now takes {fast} seconds instead of {seconds}, because the program "
        f"reads it only once."
    )
    return text, summary


def draft(rng: Random) -> tuple[str, str]:
    before, rate = rng.randint(10, 30), rng.randint(5, 9) * 10
    after = before * 2
    text = (
        f"A team ran a large model at {before} tokens per second. They added a small draft model "
        f"with the same tokenizer. The target accepted {rate} percent of the drafted tokens. The "
        f"speed rose to {after} tokens per second, and the answers stayed the same."
    )
    summary = (
        f"With a small draft model, of whose tokens {rate} percent were accepted, the large model "
        f"became twice as fast and gave the same answers."
    )
    return text, summary


def scene(rng: Random) -> Scene:
    text, summary = rng.choice((place, failure, harvest, program, draft))(rng)
    return [Turn(rng.choice(REQUESTS).format(text=text), summary)]
