"""Prompt suites: built-in ones and the user's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from app.base import numbers
from app.base.files import DamagedError, decode, read_file, reason
from app.engine.errors import PromptError
from app.engine.types import Message
from app.lab.experiment import Prompt
from app.lab.report.report import categories_of

SPEED_BENCH = {
    "code": "coding",
    "maths": "math",
    "story": "writing",
    "summarise": "summarization",
    "extraction": "rag",
    "long context": "rag",
    "chat": "qa",
}
"""SPEED-Bench's names for our categories that it shares."""


LONG = "long"
"""The suite of long documents."""


class Suite(msgspec.Struct, frozen=True):
    """Prompts with a name."""

    name: str
    title: str
    prompts: tuple[Prompt, ...]
    about: str = ""
    chat: bool = True  # its prompts are user messages
    max_tokens: int = 256  # enough for its answers
    notes: tuple[str, ...] = ()  # what to know of its file, in sentences

    @property
    def categories(self) -> tuple[str, ...]:
        return categories_of([prompt.category for prompt in self.prompts])

    def only(self, categories: tuple[str, ...]) -> Suite:
        """The prompts of some categories, by our names or SPEED-Bench's; raises PromptError for an unknown
        one."""
        wanted: set[str] = set()
        for name in categories:
            found = [
                category for category in self.categories if name in (category, SPEED_BENCH.get(category))
            ]
            if not found:
                allowed = ", ".join(self.categories) or "none: its prompts have no category"
                theirs = dict.fromkeys(
                    SPEED_BENCH[category] for category in self.categories if category in SPEED_BENCH
                )
                also = f"; by SPEED-Bench's names: {', '.join(theirs)}" if theirs else ""
                raise PromptError(f"{self.title} has no category “{name}”.", f"Allowed: {allowed}{also}.")
            wanted.update(found)
        kept = tuple(prompt for prompt in self.prompts if prompt.category in wanted)
        return msgspec.structs.replace(self, prompts=kept)


_Listed = list[str | Prompt]
_suite = msgspec.json.Decoder(Suite | _Listed)
_anything = msgspec.json.Decoder(Any)
_MOST_KEYS = 4
_EXPECTED = 'a JSON list of strings or of {"category": "...", "prompt": "..."}'


def built_in(resources: Path) -> tuple[Suite, ...]:
    """The built-in suites, in the order of their file names."""
    return tuple(read_suite(path) for path in sorted((resources / "suites").glob("*.json")))


def read_suite(path: Path) -> Suite:
    """Read a suite: a JSON list of strings or of {"category", "prompt"}, or the built-in format. Spec-Bench's
    and SPEED-Bench's questions work too, and text with one prompt per line. Raises PromptError.
    """
    if path.suffix == ".parquet":
        raise PromptError(
            f"{path.name} is a Parquet file, which Draftscope does not read.",
            'Write it as JSON Lines, for instance by datasets: load_dataset(…).to_json("questions.jsonl").',
        )
    try:
        text = read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PromptError(f"{path.name} is not UTF-8 text.", "Save it as UTF-8.") from None
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        raise PromptError(
            f"{path.name} cannot be read: {reason(error)}.", "Choose a different suite file."
        ) from error
    suite = parse_suite(text, path.stem, path.name)
    if not suite.prompts:
        raise PromptError(f"{path.name} contains no prompt.", "Write one prompt per line, or a JSON list.")
    return suite


def parse_suite(text: str, name: str, file: str = "") -> Suite:
    """Parse a suite: JSON, or else one prompt per line. Raises PromptError for JSON or JSON Lines of a
    different shape, and for invalid JSON in a `file` named .json."""
    try:
        read = decode(_suite, text)
    except DamagedError as error:
        if (found := parse_questions(text, file or name)) is not None:
            return Suite(name, name, found.prompts, chat=found.chat, notes=found.notes)
        if shape := _shape(text):
            raise PromptError(f"{file or name} contains {shape}.", f"Expected: {_EXPECTED}.") from error
        if file.lower().endswith(".json"):
            raise PromptError(f"{file} contains no list: {error}.", f"Expected: {_EXPECTED}.") from error
        read = [line.strip() for line in text.split("\n")]
    if isinstance(read, Suite):
        return read
    prompts = (entry if isinstance(entry, Prompt) else Prompt(entry) for entry in read)
    return Suite(name, name, tuple(prompt for prompt in prompts if prompt.prompt.strip()), chat=False)


def _shape(text: str) -> str:
    """The content of unusable JSON, in words; "" for text that is not JSON."""
    found = _json(text)
    if isinstance(found, list):
        for number, entry in enumerate(found, start=1):
            if not isinstance(entry, str) and not (
                isinstance(entry, dict) and isinstance(entry.get("prompt"), str)
            ):
                return f"a JSON list whose entry {number} is {_kind(entry)}"
        return "a JSON list with an entry whose category is not text"
    if isinstance(found, dict):
        return _kind(found)
    lines = [line for line in text.split("\n") if line.strip()]
    objects = [value for line in lines if line.lstrip()[0] == "{" and isinstance(value := _json(line), dict)]
    every = objects and len(objects) == len(lines)
    return f"a JSON object on each line, the first {_keys(objects[0])}" if every else ""


def _json(text: str) -> object:
    """The decoded text; None if it is not JSON."""
    try:
        return decode(_anything, text)
    except DamagedError:
        return None


def _kind(value: object) -> str:
    if isinstance(value, dict):
        return f"a JSON object {_keys(value)}"
    kinds = {list: "a list", bool: "true or false", int: "a number", float: "a number", str: "text"}
    return kinds.get(type(value), "null")


def _keys(value: dict[str, object]) -> str:
    names = [f"“{name}”" for name in value]
    more = [f"{len(names) - _MOST_KEYS} more"] if len(names) > _MOST_KEYS else []
    return f"with {numbers.listed([*names[:_MOST_KEYS], *more])}" if names else "without a key"


PLACEHOLDER = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE"
"""The beginning of a turn that SPEED-Bench's own script replaces by text from other data sets."""


class _BenchmarkQuestion(msgspec.Struct, frozen=True):
    category: str | None = None
    turns: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    prompt: str = ""

    @property
    def asked(self) -> tuple[str, ...]:
        """The user's messages."""
        said = tuple(message.content for message in self.messages if message.role == "user")
        return tuple(text for text in self.turns or said or (self.prompt,) if text.strip())


_question = msgspec.json.Decoder(_BenchmarkQuestion)


class Questions(NamedTuple):
    """The prompts of a file, whether they are a user's messages, and notes on them."""

    prompts: tuple[Prompt, ...]
    chat: bool
    notes: tuple[str, ...]


def parse_questions(text: str, file: str) -> Questions | None:
    """The questions of a file; None if not every line is such an object.

    Each turn of a conversation is a separate prompt. Raises PromptError if a file has only placeholders.
    """
    questions = _questions(text)
    if not questions or not any(question.asked for question in questions):
        return None
    asked = [question for question in questions if question.asked]
    ready = [question for question in asked if not any(PLACEHOLDER in turn for turn in question.asked)]
    missing = len(asked) - len(ready)
    if not ready:
        raise PromptError(
            f"{file} contains placeholders instead of prompts.",
            "Prepare it with SPEED-Bench's own script, which fetches the texts.",
        )
    notes = []
    if missing:
        left_out = numbers.count(missing, "placeholder")
        notes.append(f"{file}: {left_out} left out: SPEED-Bench's script fetches these prompts.")
    if several := sum(len(question.asked) > 1 for question in ready):
        notes.append(
            f"{file}: {numbers.count(several, 'conversation')} with several turns. Each turn is a prompt, "
            "sent with the conversation before it."
        )
    prompts = tuple(
        Prompt(text, question.category, before=question.asked[:at])
        for question in ready
        for at, text in enumerate(question.asked)
    )
    return Questions(prompts, any(question.turns or question.messages for question in ready), tuple(notes))


def _questions(text: str) -> Sequence[_BenchmarkQuestion] | None:
    """The question of every line; None if a line is not a question."""
    try:
        return [decode(_question, line) for line in text.split("\n") if line.strip()]
    except DamagedError:
        return None
