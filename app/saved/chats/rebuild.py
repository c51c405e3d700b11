"""A chat made again from the traces of its answers, where its own file is gone or cannot be read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.engine.record.trace import Trace, salvage_trace
from app.engine.types import Message
from app.saved.chats.chat_file import NAME
from app.saved.chats.conversation import Answer, ChatHead, Conversation, Question, Turn, title_from


def answers_of(folder: Path) -> dict[str, Trace]:
    """The readable traces of a chat's answers by file name, the oldest first; those of measurements, whose
    names have a second dot, are left out."""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        if path.name != NAME and path.name.count(".") == 1:
            trace = salvage_trace(path).trace
            if trace is not None:
                found[path.name] = trace
    return dict(sorted(found.items(), key=lambda item: item[1].header.started_at))


def rebuilt(folder: Path, stamp: str) -> Conversation | None:
    """The chat whose traces are in `folder`; None where no trace can be read. `stamp` is the time now.

    The messages that the last answer was given say what came before it. Answers that they do not hold follow
    with the question that each was given: nothing that can be read is left out.
    """
    answers = answers_of(folder)
    if not answers:
        return None
    *_, last = answers
    header = answers[last].header
    system = next((message.content for message in header.messages if message.role == "system"), "")
    turns, placed = _turns(last, answers)
    for name in answers:
        if name not in placed:
            turns += [Question(_asked(answers[name])), _answer(name, answers[name])]
    first = next(turn for turn in turns if isinstance(turn, Question))
    mode = "chat" if header.messages else "completion"
    head = ChatHead(folder.name, title_from(first.text), stamp, stamp, mode, revision=1)
    return Conversation(head, system, tuple(turns), header.template_options)


def _turns(last: str, answers: dict[str, Trace]) -> tuple[list[Turn], set[str]]:
    """(the turns up to and with the answer `last`, the names of the traces among them)"""
    messages = _dialogue(answers[last])
    turns: list[Turn] = []
    placed = {last}
    for at, message in enumerate(messages):
        if message.role == "user":
            turns.append(Question(message.content))
            continue
        name = _trace_of(message.content, messages[:at], answers)
        placed.add(name)
        turns.append(Answer(name, message.content))
    if not messages:
        turns.append(Question(_asked(answers[last])))
    return [*turns, _answer(last, answers[last])], placed


def _trace_of(text: str, before: Sequence[Message], answers: dict[str, Trace]) -> str:
    """The trace of an answer with this text that was given these messages; "" where there is none."""
    named = (
        name for name, trace in answers.items() if trace.text == text and _dialogue(trace) == tuple(before)
    )
    return next(named, "")


def _dialogue(trace: Trace) -> tuple[Message, ...]:
    return tuple(message for message in trace.header.messages if message.role != "system")


def _asked(trace: Trace) -> str:
    """The question of an answer: its last message, or the bare prompt."""
    asked = _dialogue(trace)
    return asked[-1].content if asked else trace.header.prompt


def _answer(name: str, trace: Trace) -> Answer:
    """An answer without totals was cut off: reading the chat takes its text from the trace."""
    return Answer(name, trace.text, error=trace.totals.error) if trace.totals is not None else Answer(name)
