"""Check and repair: what is damaged or left over in the user's folders, and the remedy.

Nothing is changed until `repair` is called with the findings, and nothing is deleted. Leftovers go to the
chats' trash; damaged files are kept under a new name.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from app.base.files import DamagedError, decode_object, is_left, read_file, reason, set_aside
from app.base.paths import Paths
from app.engine.errors import UserError
from app.engine.record.trace import Trace, salvage_trace
from app.engine.types import Message
from app.lab.drafts import results_in
from app.lab.runs.journal import Journal, OtherVersionError, is_free, trace_folder_of
from app.saved.chats.chat_file import NAME, read_chat, read_head, write_chat
from app.saved.chats.conversation import Answer, ChatHead, Conversation, Question, Turn, title_from
from app.saved.chats.store import ChatStore
from app.saved.chats.trash import Superseded
from app.saved.measured import run_files


@dataclass(frozen=True, slots=True)
class DataFault:
    """One sentence for the fault and one for the remedy; "" if there is nothing to do.

    `mend` applies the remedy; raises UserError or OSError.
    """

    words: str
    remedy: str = ""
    mend: Callable[[], object] | None = field(default=None, compare=False)


def answers_of(folder: Path) -> dict[str, Trace]:
    """The readable traces of a chat's answers by file name, oldest first. Traces of measurements, whose names
    have a second dot, are left out."""
    found = {}
    for path in sorted(folder.glob("*.jsonl")):
        if path.name != NAME and path.name.count(".") == 1:
            trace = salvage_trace(path).trace
            if trace is not None:
                found[path.name] = trace
    return dict(sorted(found.items(), key=lambda item: item[1].header.started_at))


def rebuilt(folder: Path, stamp: str) -> Conversation | None:
    """The chat rebuilt from the traces in `folder`; None if no trace can be read. `stamp` is the time now.

    The last answer's messages give the turns before it. Answers that are not among them follow, each with its
    question, so no readable answer is lost.
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
    """(the turns up to and including the answer `last`, the names of their traces)"""
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
    """The trace of an answer with this text to these messages; "" if there is none."""
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
    """An answer without totals was interrupted: its text is read from the trace."""
    return Answer(name, trace.text, error=trace.totals.error) if trace.totals is not None else Answer(name)


_YOUNG = 600  # seconds; a file may be about to be named by its chat
TO_TRASH = "It is moved to the chats' trash for 7 days."


class ChatCheck(ChatStore):
    """A chat store that finds damage and repairs it under the store's own lock."""

    def findings(self) -> Iterator[DataFault]:
        """The faults, chat by chat; nothing is changed. Raises UserError if the folder is gone."""
        for folder in sorted(self._folders()):
            try:
                chat = read_chat(folder)
            except UserError as error:
                yield self._unreadable(folder, error)
                continue
            if chat.head.newer:
                continue  # its rules are not known here
            if chat.head.damaged:
                yield self._damaged(folder, chat)
            else:
                yield from self._traces(folder, chat)

    def put_away(self, path: Path) -> None:
        """Move a file or a folder to the chats' trash. Raises UserError or OSError."""
        with self._locked():
            self._trash.put_other(path, self._steady.now())

    def _unreadable(self, folder: Path, error: UserError) -> DataFault:
        if not any(folder.iterdir()):
            return DataFault(
                f"The folder of the chat {folder.name} is empty.", TO_TRASH, partial(self.put_away, folder)
            )
        if read_head(folder).newer:
            return DataFault(error.message)
        answers = len(answers_of(folder))
        if not answers:
            return DataFault(f"{error.message} ({folder.name})")
        words = f"The chat {folder.name} cannot be read."
        return DataFault(words, _made_again(answers), partial(self._rebuild, folder))

    def _damaged(self, folder: Path, chat: Conversation) -> DataFault:
        """If the chat no longer names all its answers, the traces are the better source."""
        words = f"The chat “{chat.head.title}” is damaged."
        answers = answers_of(folder)
        if answers.keys() <= {turn.trace for turn in chat.turns if isinstance(turn, Answer)}:
            remedy = "It is rewritten from what can be read; the damaged file is kept."
            return DataFault(words, remedy, partial(self._change, chat.id, lambda found: found))
        return DataFault(words, _made_again(len(answers)), partial(self._rebuild, folder))

    def _rebuild(self, folder: Path) -> None:
        with self._locked():
            chat = rebuilt(folder, self._stamp())
            if chat is None:
                raise UserError(f"The chat {folder.name} has no answer that can be read.")
            if (folder / NAME).exists():
                set_aside(folder / NAME, "damaged")
            write_chat(folder, chat)

    def _traces(self, folder: Path, chat: Conversation) -> Iterator[DataFault]:
        title = chat.head.title
        answers = [turn for turn in chat.turns if isinstance(turn, Answer) and turn.trace]
        named = {NAME}
        for turn in answers:
            path = Superseded(folder).trace(turn)
            named |= {path.name, *(file.name for file in run_files(path))}
            damage = salvage_trace(path).damage
            if not path.exists():
                yield DataFault(f"“{title}”: the trace of an answer is gone. Its text is kept.")
            elif damage is not None:
                yield DataFault(f"“{title}”: {damage.message} What can be read is shown.")
        for path in sorted(folder.glob("*.jsonl")):
            if path.name not in named and time.time() - path.stat().st_mtime > _YOUNG:
                trace = salvage_trace(path).trace
                held = len(trace.token_ids) if trace is not None else 0
                yield DataFault(
                    f"“{title}”: the chat does not name the trace {path.name} ({held:,} tokens).",
                    TO_TRASH,
                    partial(self.put_away, path),
                )


def _made_again(answers: int) -> str:
    many = "s" * (answers != 1)
    return f"It is rebuilt from the trace{many} of {answers} answer{many}; a damaged file is kept."


_SET_ASIDE = "It is kept under a new name, and a new one is started."


def check_data(paths: Paths) -> tuple[DataFault, ...]:
    """All faults in the user's data. Reads every chat and every trace, and changes nothing."""
    chats = ChatCheck(paths.chats)
    found = [
        *_lists(paths),
        *_journals(paths.data / "compare", chats),
        *_measured_drafts(paths.data / "drafts"),
    ]
    if not (paths.chats.exists() or paths.settings.exists()):
        return tuple(found)  # no window has been here, which makes the folder of the chats
    try:
        found += [*chats.findings(), *_partials(paths, chats)]
    except UserError as error:
        found.append(DataFault(str(error)))
    except OSError as error:
        found.append(DataFault(f"The folders cannot be read: {reason(error)}."))
    return tuple(found)


def repair(findings: Iterable[DataFault]) -> tuple[str, ...]:
    """Apply every remedy; returns a sentence for each that could not be applied."""
    failed = []
    for finding in findings:
        if finding.mend is None:
            continue
        try:
            finding.mend()
        except UserError as error:
            failed.append(f"{finding.words} {error}")
        except OSError as error:
            failed.append(f"{finding.words} It could not be repaired: {reason(error)}.")
    return tuple(failed)


def _lists(paths: Paths) -> Iterator[DataFault]:
    """The lists that are one JSON object each."""
    lists = {
        "settings file": paths.settings,
        "presets file": paths.presets,
        "list of downloads": paths.data / "downloads.json",
        "list of added files": paths.data / "library.json",
        "list of model facts": paths.data / "library-cache.json",
        "list of verified files": paths.checked,
        "set-up of Compare": paths.data / "compare" / "setup.json",
    }
    for subject, path in lists.items():
        try:
            decode_object(read_file(path))
        except FileNotFoundError:
            continue
        except OSError as error:
            yield DataFault(f"The {subject} cannot be read: {reason(error)}.")
        except DamagedError as error:
            words = f"The {subject} is damaged: {error}."
            yield DataFault(words, _SET_ASIDE, partial(set_aside, path, "damaged"))


def _journals(folder: Path, chats: ChatCheck) -> Iterator[DataFault]:
    for path in sorted(folder.glob("*.jsonl")):
        try:
            Journal.read(path)
        except OtherVersionError as error:
            yield DataFault(error.message, "It stays as it is.")
        except UserError as error:
            if is_free(path):
                remedy = "It is kept under a new name, and no longer offered."
                yield DataFault(error.message, remedy, partial(set_aside, path, "damaged"))
    journals = {trace_folder_of(path) for path in folder.glob("*.jsonl")}
    for traces in sorted(folder.glob("*-traces")):
        if traces not in journals and time.time() - traces.stat().st_mtime > _YOUNG:
            words = f"The traces {traces.name} belong to a measurement that no longer exists."
            yield DataFault(words, TO_TRASH, partial(chats.put_away, traces))


def _measured_drafts(folder: Path) -> Iterator[DataFault]:
    for path in sorted(folder.glob("*.json")):
        try:
            results_in(read_file(path))
        except OSError as error:
            yield DataFault(f"The measured drafts {path.name} cannot be read: {reason(error)}.")
        except DamagedError as error:
            words = f"The measured drafts {path.name} are damaged: {error}."
            remedy = "The file is kept under a new name; measure that target's drafts again."
            yield DataFault(words, remedy, partial(set_aside, path, "damaged"))


def _partials(paths: Paths, chats: ChatCheck) -> Iterator[DataFault]:
    """Files that a killed process left half written. (A window removes them when it starts.)"""
    for folder in (paths.config, paths.data):
        for left in sorted(folder.rglob("*.partial")):
            if is_left(left):
                words = f"{left.name} is half written, and the program that wrote it is gone."
                yield DataFault(words, TO_TRASH, partial(chats.put_away, left))
