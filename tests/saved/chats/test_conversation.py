"""The messages that the model gets of a chat, and a chat's title."""

from __future__ import annotations

import pytest

from app.saved.chats.conversation import (
    TITLE_LENGTH,
    Answer,
    ChatHead,
    Conversation,
    Question,
    Turn,
    title_from,
)


def chat(*turns: Turn, system: str = "") -> Conversation:
    return Conversation(ChatHead("00000000", "t", "", ""), system, turns)


def said(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in conversation.messages()]


def test_messages_alternate_behind_the_system_prompt() -> None:
    conversation = chat(Question("A"), Answer("1", "a"), Question("B"), Answer("2", None), system="S")
    assert said(conversation) == [("system", "S"), ("user", "A"), ("assistant", "a"), ("user", "B")]


def test_a_blank_system_prompt_is_none() -> None:
    assert said(chat(Question("A"), system=" \n")) == [("user", "A")]


def test_a_question_that_was_never_answered_is_joined_to_the_next() -> None:
    failed = Answer("1", "", error="The engine broke off.")
    conversation = chat(Question("A"), failed, Question("B"), Answer("2", "b"), Question("C"))
    assert said(conversation) == [("user", "A\n\nB"), ("assistant", "b"), ("user", "C")]


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Write a haiku.", "Write a haiku."),
        ("\n\n  Two\t words  \nsecond line", "Two words"),
        (" \n ", "New chat"),
        ("word " * 40, "word word word word word word word word word word word word…"),
        ("x" * 200, "x" * TITLE_LENGTH + "…"),
    ],
)
def test_titles(prompt: str, title: str) -> None:
    assert title_from(prompt) == title
    assert len(title_from(prompt)) <= TITLE_LENGTH + 1
