"""Prompts of published benchmarks, a JSON object on each line.

Spec-Bench and MT-Bench (`question.jsonl`) and SPEED-Bench have the user's messages in `turns`, and prepared
files of SPEED-Bench may have whole conversations in `messages`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from app.base import numbers
from app.base.files import DamagedError, decode
from app.engine.errors import PromptError
from app.engine.types import Message
from app.lab.experiment import Prompt

PLACEHOLDER = "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE"
"""The beginning of a turn that SPEED-Bench's own script replaces by a text of other data sets."""


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
    """The prompts of a file, whether they are a user's messages, and what to know of them, in sentences."""

    prompts: tuple[Prompt, ...]
    chat: bool
    notes: tuple[str, ...]


def parse_questions(text: str, file: str) -> Questions | None:
    """The questions of a file; None for a text that has no such object on each line.

    Each turn of a conversation is a prompt of its own. Raises PromptError where a file has placeholders only.
    """
    questions = _questions(text)
    if not questions or not any(question.asked for question in questions):
        return None
    asked = [question for question in questions if question.asked]
    ready = [question for question in asked if not any(PLACEHOLDER in turn for turn in question.asked)]
    missing = len(asked) - len(ready)
    if not ready:
        raise PromptError(
            f"{file} holds placeholders in place of its prompts.",
            "Prepare it with SPEED-Bench's own script, which fetches the texts.",
        )
    notes = []
    if missing:
        left_out = numbers.count(missing, "placeholder")
        notes.append(f"{file}: {left_out} left out: SPEED-Bench's script fetches these prompts.")
    if several := sum(len(question.asked) > 1 for question in ready):
        notes.append(
            f"{file}: {numbers.count(several, 'conversation')} of several turns. Each turn is a prompt, "
            "asked with the conversation before it."
        )
    prompts = tuple(
        Prompt(text, question.category, before=question.asked[:at])
        for question in ready
        for at, text in enumerate(question.asked)
    )
    return Questions(prompts, any(question.turns or question.messages for question in ready), tuple(notes))


def _questions(text: str) -> Sequence[_BenchmarkQuestion] | None:
    """The question of every line; None where a line is none."""
    try:
        return [decode(_question, line) for line in text.split("\n") if line.strip()]
    except DamagedError:
        return None
