"""What is to be seen in a driven window."""

from __future__ import annotations

import msgspec


class Look(msgspec.Struct):
    """A look at the Chat place."""

    activity: str
    error: str  # what the notices say, "" without one
    texts: list[str]  # questions and answers
    notes: list[str]  # below answers
    tokens: int  # of the last answer
    chats: list[str]  # the titles in the list
    target: str  # the name of the loaded file
    prompt: str  # what is typed and not sent
    status: str  # the status bar
