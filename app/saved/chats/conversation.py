"""A chat: its head (what a list shows) and its turns. Immutable; ChatStore makes changed copies."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from app.engine.templates.options import TemplateOptions
from app.engine.types import Message

NEW_TITLE = "New chat"
TITLE_LENGTH = 60
_LONGEST_NAME = 200  # bytes; systems take 255, and measurements add to it
INFILL = "infill"
MODES = ("chat", "completion", INFILL)
GAP = "[…]"


class Question(msgspec.Struct, frozen=True, tag="question", omit_defaults=True):
    """The user's input: a message of a chat, a text to continue, or the texts around a gap."""

    text: str
    suffix: str | None = None  # the text after the gap that the answer fills; None if there is no gap

    @property
    def whole(self) -> str:
        """The text, with its gap marked."""
        return self.text if self.suffix is None else f"{self.text}{GAP}{self.suffix}"

    @property
    def is_blank(self) -> bool:
        return not (self.text.strip() or (self.suffix or "").strip())


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """The pair's answer. The tokens and their fates are in the file `trace`."""

    trace: str
    text: str | None = None  # None: still streaming, or cut off by a crash
    note: str = ""  # such as "Stopped"
    error: str = ""
    hint: str = ""  # what to do about the error
    others: tuple[tuple[Question | Answer, ...], ...] = ()
    """The other versions of this answer in order, each with the turns that followed it."""
    version: int = 0  # the place of this one among all

    @property
    def versions(self) -> tuple[Answer, ...]:
        """All versions of the answer, in order."""
        others = [answer for answer, *_ in self.others if isinstance(answer, Answer)]
        return (*others[: self.version], self, *others[self.version :])

    @property
    def has_possible_versions(self) -> bool:
        """Whether every other version begins with its answer, and this one's place among them is possible."""
        begins = all(branch and isinstance(branch[0], Answer) for branch in self.others)
        return begins and 0 <= self.version <= len(self.others)

    @property
    def trace_name(self) -> str:
        """The name of the trace's file: always a valid name inside the chat's folder, even if the chat is
        damaged."""
        name = Path(self.trace.replace("\\", "/")).name
        fits = name.strip(".") and len(name.encode(errors="replace")) <= _LONGEST_NAME and "\0" not in name
        return name if fits else "damaged"


Turn = Question | Answer


def in_place_of(turn: Turn, answer: Answer) -> Answer:
    """The same version as `turn`, with this answer."""
    if not isinstance(turn, Answer):
        return answer
    return replace(answer, others=turn.others, version=turn.version)


def again(turns: Sequence[Turn], answer: Answer, goes_on: bool) -> Answer:
    """A further version of the first answer in `turns`, which keeps its turns; or the same version, if it is
    continued."""
    former = turns[0] if turns else None
    if not isinstance(former, Answer):
        return answer
    if goes_on:
        return in_place_of(former, answer)
    branches = _branches(former, turns[1:])
    return replace(answer, others=branches, version=len(branches))


def turned(turns: Sequence[Turn], version: int) -> tuple[Turn, ...]:
    """The turns with a different version of their first answer, and its following turns. Raises IndexError if
    there is no such version."""
    shown = turns[0]
    assert isinstance(shown, Answer)
    branches = _branches(shown, turns[1:])
    answer, *after = branches[version]
    assert isinstance(answer, Answer)
    return replace(answer, others=(*branches[:version], *branches[version + 1 :]), version=version), *after


def _branches(shown: Answer, after: Sequence[Turn]) -> tuple[tuple[Turn, ...], ...]:
    """All versions of an answer, each with the turns that followed it."""
    mine = (replace(shown, others=(), version=0), *after)
    return *shown.others[: shown.version], mine, *shown.others[shown.version :]


def with_versions(turns: Iterable[Turn]) -> Iterator[Turn]:
    """The turns, and those of all other versions."""
    level = [*turns]
    while level:
        yield from level
        answers = [turn for turn in level if isinstance(turn, Answer)]
        level = [turn for answer in answers for branch in answer.others for turn in branch]


class ChatHead(msgspec.Struct, frozen=True):
    """A chat's entry in a list. Times are ISO 8601, UTC, so they sort as text."""

    id: str
    title: str
    created: str
    updated: str
    mode: str = "chat"  # one of MODES
    revision: int = 0  # counts the changes of the turns, so that a stale view is noticed
    damaged: str = ""  # why the chat, or a part of it, could not be read
    newer: bool = False  # written by a newer version: read-only


class Conversation(msgspec.Struct, frozen=True):
    """A whole chat."""

    head: ChatHead
    system_prompt: str = ""
    turns: tuple[Turn, ...] = ()
    template_options: TemplateOptions = {}  # for the chat template

    @property
    def id(self) -> str:
        return self.head.id

    def question_before(self, at: int) -> Question | None:
        """The last question before turn `at`, if there is one."""
        return next((turn for turn in reversed(self.turns[:at]) if isinstance(turn, Question)), None)

    def messages(self) -> tuple[Message, ...]:
        """The messages that the model gets.

        Chat templates need user and assistant in turn. Unanswered questions are joined to the next question,
        so that nothing is missing.
        """
        messages = [Message("system", self.system_prompt)] if self.system_prompt.strip() else []
        waiting: list[str] = []
        for turn in self.turns:
            if isinstance(turn, Question):
                waiting.append(turn.whole)
            elif turn.text and waiting:
                messages.append(Message("user", "\n\n".join(waiting)))
                messages.append(Message("assistant", turn.text))
                waiting.clear()
        if waiting:
            messages.append(Message("user", "\n\n".join(waiting)))
        return tuple(messages)

    def texts(self) -> Iterator[str]:
        """The texts that a search looks at."""
        yield self.head.title
        for turn in self.turns:
            yield turn.whole if isinstance(turn, Question) else turn.text or ""


def title_from(prompt: str) -> str:
    """A chat's first title: the first line of its first prompt, cut at a word."""
    line = next((line.strip() for line in prompt.splitlines() if line.strip()), "")
    words = " ".join(line.split())
    if len(words) <= TITLE_LENGTH:
        return words or NEW_TITLE
    cut = words[:TITLE_LENGTH]
    space = cut.rfind(" ")
    return (cut[:space] if space > TITLE_LENGTH // 2 else cut).rstrip(" ,.;:") + "…"


def title_with(head: ChatHead, turn: Turn | None) -> str:
    """The title of a chat after a new turn: a new chat is named after its first question."""
    if head.title != NEW_TITLE or not isinstance(turn, Question):
        return head.title
    return title_from(f"{turn.text}\n{turn.suffix or ''}")


def new_trace_name() -> str:
    """The name of a new answer's trace."""
    return f"{uuid.uuid4().hex}.jsonl"


def as_seen(chat: Conversation, seen: Conversation) -> Conversation:
    """The chat on disk, completed from `seen`: with texts of interrupted answers, and with turns that could
    not be written. These are saved with the next turn."""
    if chat.head.revision != seen.head.revision:
        return chat
    answers = {turn.trace: turn for turn in seen.turns if isinstance(turn, Answer)}
    turns = (
        answers.get(turn.trace, turn) if isinstance(turn, Answer) and turn.text is None else turn
        for turn in chat.turns
    )
    return replace(chat, turns=(*turns, *seen.turns[len(chat.turns) :]))


def with_head(chat: Conversation, **changes: object) -> Conversation:
    return replace(chat, head=replace(chat.head, **changes))
