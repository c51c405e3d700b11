"""Scenes that ask for the fields of a text as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from base.scene import Dice, Expect, Scene, Turn, fence, join, wordings
from base.words import NOUNS, full_name, town, word
from scenes.copying import told

ONE = wordings(
    "(Extract|Give me|Take) the {fields} (as JSON|in JSON)(| from this text):\n\n{text}",
    "(Extract|Read) the {fields} from (this text|the following text) (as|into) JSON:\n\n{text}",
    "{text}\n\n(Extract|Give me|Write) the {fields} as JSON.",
)
MANY = wordings(
    "(Extract|Give me) the {fields} of (everyone|each one|all of them) as a JSON list:\n\n{text}",
    "{text}\n\n(Extract|Write) the {fields} of each one as a JSON list.",
)
JOBS = (
    "baker",
    "teacher",
    "nurse",
    "pilot",
    "farmer",
    "painter",
    "driver",
    "lawyer",
    "cook",
    "tailor",
    "singer",
)
PLACES = ("library", "town hall", "museum", "old theatre", "station", "market hall", "school", "harbour")
LICENCES = ("MIT", "Apache-2.0", "BSD-3-Clause", "GPL-3.0", "PSF-2.0", "MPL-2.0", "ISC", "Zlib")


@dataclass(frozen=True, slots=True)
class Form:
    """Texts with gaps, and what goes into the gaps."""

    texts: tuple[str, ...]
    gaps: dict[str, Callable[[Dice], str | int | float]]


def day(dice: Dice) -> str:
    return f"{dice.randint(2020, 2029)}-{dice.randint(1, 12):02}-{dice.randint(1, 28):02}"


def hour(dice: Dice) -> str:
    return f"{dice.randint(6, 22)}:{dice.choice((0, 5, 10, 15, 20, 30, 40, 45)):02}"


PERSON = Form(
    (
        "{name} is {age} years old, works as a {job} and lives in {town}.",
        "{name} ({age}) is a {job} from {town}.",
        "The {job} {name}, aged {age}, lives in {town}.",
        "In {town} there is a {job} called {name}, who is {age} years old.",
        "{name} comes from {town}, is {age} and earns a living as a {job}.",
        "Meet {name}, a {job} of {age} years, who lives in {town}.",
        "{town} is where {name}, {age}, works as a {job}.",
        "At the age of {age}, {name} moved to {town} and became a {job}.",
        "Ask {name} in {town}: a {job}, {age} years old.",
        "The name is {name}, the job {job}, the age {age}, the town {town}.",
    ),
    {
        "name": full_name,
        "age": lambda dice: dice.randint(18, 90),
        "job": lambda dice: dice.choice(JOBS),
        "town": town,
    },
)
FORMS = (
    PERSON,
    PERSON,
    Form(
        (
            "{customer} ordered {quantity} {item}s for {price} euros on {date}.",
            "On {date} we sold {quantity} {item}s to {customer}. The price was {price} euros.",
            "Order of {date}: {quantity} {item}s, {price} euros, to be sent to {customer}.",
            "{customer} paid {price} euros for {quantity} {item}s. That was on {date}.",
            "For {price} euros {customer} bought {quantity} {item}s on {date}.",
            "The order that {customer} placed on {date} was for {quantity} {item}s and {price} euros.",
        ),
        {
            "customer": full_name,
            "quantity": lambda dice: dice.randint(2, 60),
            "item": lambda dice: dice.choice(NOUNS),
            "price": lambda dice: dice.randint(3, 999),
            "date": day,
        },
    ),
    Form(
        (
            "The talk {title} by {speaker} begins at {time} on {date} in the {place}.",
            "{speaker} speaks about {title} on {date}, at {time}, in the {place}.",
            "On {date} the {place} opens at {time} for {speaker}, whose talk is called {title}.",
            "{title}, a talk by {speaker}: {date}, {time}, {place}.",
            "The {place} invites you to {title} with {speaker}, on {date} at {time}.",
            "At {time} on {date} {speaker} opens the evening in the {place} with {title}.",
            "The guest of the {place} is {speaker}. The talk, {title}, is on {date} and begins at {time}.",
        ),
        {
            "title": lambda dice: f"{word(dice).capitalize()} {dice.choice(NOUNS)}s",
            "speaker": full_name,
            "time": hour,
            "date": day,
            "place": lambda dice: dice.choice(PLACES),
        },
    ),
    Form(
        (
            "{title} is a book by {author}. It came out in {year} and has {pages} pages.",
            "In {year} {author} published {title}, a book of {pages} pages.",
            "{author} wrote {title} ({year}, {pages} pages).",
            "The {pages} pages of {title} were written by {author} in {year}.",
            "{year}: {title} by {author}, {pages} pages.",
            "With {title}, {author} finished a book of {pages} pages in {year}.",
        ),
        {
            "title": lambda dice: f"The {word(dice).capitalize()} {dice.choice(NOUNS).capitalize()}",
            "author": full_name,
            "year": lambda dice: dice.randint(1900, 2025),
            "pages": lambda dice: dice.randint(80, 900),
        },
    ),
    Form(
        (
            "The train to {destination} leaves {start} at {time} from platform {platform}.",
            "From {start} to {destination}: {time}, platform {platform}.",
            "At {time} a train goes from {start} to {destination}. It stands on platform {platform}.",
            "Platform {platform}: the train to {destination}, from {start}, at {time}.",
            "To get from {start} to {destination}, take the train at {time} on platform {platform}.",
            "A train leaves platform {platform} at {time}. It runs from {start} to {destination}.",
        ),
        {
            "start": town,
            "destination": town,
            "time": hour,
            "platform": lambda dice: dice.randint(1, 20),
        },
    ),
    Form(
        (
            "{package} {version} is out. It needs {size} MB and is licensed under {licence}.",
            "Version {version} of {package} ({licence}) takes {size} MB.",
            "We use {package} in version {version}, {size} MB, under the licence {licence}.",
            "{package} is at version {version}, has a size of {size} MB "
            "and comes with the licence {licence}.",
            "The licence of {package} {version} is {licence}; the download has {size} MB.",
            "Install {package}, version {version}: {size} MB, {licence}.",
            "There is a new version of {package}: {version}. It is {size} MB large, under {licence}.",
        ),
        {
            "package": lambda dice: f"{word(dice)}-{dice.choice(NOUNS)}",
            "version": lambda dice: f"{dice.randint(0, 9)}.{dice.randint(0, 20)}.{dice.randint(0, 9)}",
            "size": lambda dice: dice.randint(2, 400),
            "licence": lambda dice: dice.choice(LICENCES),
        },
    ),
)


def answered(requests: str, fields: list[str], text: str, value: object) -> Turn:
    request = requests.format(fields=join(fields), text=text)
    return Turn(request, fence(json.dumps(value, indent=2), "json"), Expect(value=value))


def several(dice: Dice) -> Turn:
    """A few people in one text."""
    fields = dice.some(list(PERSON.gaps), 2, 3)
    texts, values = [], []
    for _ in range(dice.randint(2, 3)):
        record = {gap: make(dice) for gap, make in PERSON.gaps.items()}
        texts.append(dice.pick(PERSON.texts).format(**record))
        values.append({field: record[field] for field in fields})
    return answered(dice.pick(MANY), fields, " ".join(texts), values)


def scene(dice: Dice) -> Scene:
    if dice.random() < 0.15:
        return [several(dice)]
    form = dice.choice(FORMS)
    record = {gap: make(dice) for gap, make in form.gaps.items()}
    text = dice.pick(form.texts).format(**record)
    if dice.random() < 0.3:
        text = " ".join(dice.sample([text, told(dice)], 2))
    fields = dice.some(list(form.gaps), 2, len(form.gaps))
    return [answered(dice.pick(ONE), fields, text, {field: record[field] for field in fields})]
