"""A chat's file, JSON Lines: the head, then the settings of the whole chat, then its turns.

The head is alone on the first line, so a list of a thousand chats reads a thousand lines. Damaged lines are
shown unchanged: no word of a chat becomes invisible.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from app.base.files import (
    DamagedError,
    copy_aside,
    decode,
    explained,
    keep_as,
    make_own_folder,
    open_file,
    read_file,
    reason,
    write_atomic,
    write_hint,
)
from app.engine.errors import UserError
from app.engine.templates.options import TemplateOptions
from app.saved.chats.conversation import (
    MODES,
    Answer,
    ChatHead,
    Conversation,
    Question,
    Turn,
    with_head,
    with_versions,
)

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "", "f": ""}
_BEFORE = re.compile(r'^.*?"text":"', re.DOTALL)
_BEHIND = re.compile(r'"(?:,"note":".*)?\}$', re.DOTALL)
_NO_TEXT = re.compile(r':[^"]{4},"note"')


def repaired(line: bytes) -> bytes:
    """The line with invalid UTF-8 replaced and control characters escaped; empty if it is still not JSON."""
    try:
        found: Any = json.loads(line.decode("utf-8", errors="replace"), strict=False)
        return msgspec.json.encode(found)
    except (ValueError, RecursionError):
        return b""


def text_field(line: bytes, name: str) -> str:
    """The text field `name` of a line that is no longer JSON; "" if it is not found."""
    found = re.search(rf'"{name}":"((?:[^"\\]|\\.)*)"', line.decode("utf-8", errors="replace"))
    return _unescaped(found[1]) if found else ""


def turn_as_it_stands(line: bytes, before: Turn | None) -> Turn:
    """A turn that shows an unreadable line: a question or an answer, by its first words or by its place."""
    text = line.decode("utf-8", errors="replace")
    kind = text[:40]
    is_question = '"question"' in kind or ('"answer"' not in kind and not isinstance(before, Question))
    bare = _unescaped(_BEHIND.sub("", _BEFORE.sub("", text, count=1)))
    if is_question:
        return Question(bare)
    trace = text_field(line, "trace")
    # An answer that was cut off has null for its text: the trace contains the text.
    return Answer(trace, None if trace and _NO_TEXT.search(text) else bare)


def _unescaped(text: str) -> str:
    def character(found: re.Match[str]) -> str:
        code = found[1]
        if len(code) == 5:
            return chr(int(code[1:], 16)).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return _ESCAPED.get(code, code)

    return _ESCAPE.sub(character, text)


NAME = "chat.jsonl"
FORMAT = 1, 1  # 1.1 brought the other versions of answers
"""The major and minor number: a program reads newer minors of its major number."""
UNREADABLE = "Could not be read"
"""The title of a chat whose own title is damaged."""
DAMAGED = "The file of this chat is damaged; what can be read is shown."


_BODY = re.compile(rb'{"system_prompt":"([^"\\]|\\.)*","template_options":(?!.*"type":)')
"""The line of the whole chat's settings, without a turn joined to it by a damaged line break."""


class _Head(ChatHead, frozen=True, omit_defaults=True):
    """A head in the file."""

    format: str = ""

    @property
    def version(self) -> tuple[int, int]:
        major, _, minor = self.format.partition(".")
        return int(major), int(minor)

    @property
    def major(self) -> int:
        return int(self.format.split(".")[0])


class _Body(msgspec.Struct, frozen=True):
    system_prompt: str = ""
    template_options: TemplateOptions = {}


_head = msgspec.json.Decoder(_Head)
_body = msgspec.json.Decoder(_Body)
_turn = msgspec.json.Decoder(Turn)
_encode = msgspec.json.Encoder().encode


def write_chat(folder: Path, chat: Conversation) -> None:
    """Write the chat into its folder, whole or not at all; raises UserError. A damaged file, or one of an
    older format, is kept beside it."""
    fields = {name: getattr(chat.head, name) for name in ChatHead.__struct_fields__}
    fields["damaged"] = ""
    try:
        lines = [
            _encode(_Head(**fields, format=".".join(map(str, FORMAT)))),
            _encode(_Body(chat.system_prompt, chat.template_options)),
            *(_encode(turn) for turn in chat.turns),
        ]
    except UnicodeEncodeError as error:
        raise UserError(
            "The chat was not saved: something in it is not valid text.", "Look for odd characters in it."
        ) from error
    try:
        make_own_folder(folder)
        if chat.head.damaged:
            copy_aside(folder / NAME, "damaged")
        _keep_older(folder / NAME)
        write_atomic(folder / NAME, b"\n".join(lines) + b"\n")
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()  # of a new chat: an empty folder would look like a damaged one
        raise UserError(
            f"The chat was not saved: {reason(error)}.",
            f"What is on the screen can still be copied. {write_hint(error, folder.parent)}",
        ) from error


def _keep_older(file: Path) -> None:
    """Copy a chat's file that an older format wrote, before it is rewritten. Raises OSError."""
    try:
        with open_file(file) as lines:
            written = decode(_head, lines.readline()).version
    except (FileNotFoundError, ValueError):  # a new chat; a damaged one, which is kept anyway
        return
    if written < FORMAT:
        keep_as(file, f"version-{'.'.join(map(str, written))}")


def check_writable(chat: Conversation) -> None:
    """Raise UserError if writing would lose data of a newer version."""
    if chat.head.newer:
        raise UserError(chat.head.damaged, "Update Draftscope to continue this chat, or start a new one.")


def read_chat(folder: Path) -> Conversation:
    """Read a chat. `head.damaged` says where a part is damaged; raises UserError if nothing is left."""
    with explained("This chat could not be read"):
        first, *lines = read_file(folder / NAME).split(b"\n")
    head = _read_head(first, folder)
    lines = [line for line in lines if line]
    try:
        first_line, *turns = lines
        body, read = _read_body(first_line), tuple(map(_read_turn, turns))
    except ValueError:  # a DamagedError, or no line at all
        if not lines and head.damaged:
            raise UserError(
                f"This chat could not be read: {NAME} is damaged.", f"The file is in {folder}."
            ) from None
        body, read = _salvaged(first, lines)
        head = msgspec.structs.replace(head, damaged=head.damaged or DAMAGED)
    return Conversation(head, body.system_prompt, read, body.template_options)


def read_head(folder: Path) -> ChatHead:
    """Read a chat's head; if the chat cannot be read, the head says so."""
    try:
        with open_file(folder / NAME) as file:
            return _read_head(file.readline(), folder)
    except OSError as error:
        return _damaged(folder, f"This chat could not be read: {reason(error)}.")


def _read_head(line: bytes, folder: Path) -> ChatHead:
    why = ""
    for candidate in (line, repaired(line)):
        try:
            read = decode(_head, candidate)
            _check_head(read)
            break
        except ValueError:
            why = DAMAGED
    else:
        return _damaged(folder, why, text_field(line, "title"))
    fields = {name: getattr(read, name) for name in ChatHead.__struct_fields__}
    newer = read.major > FORMAT[0]
    if newer:
        why = f"This chat has the newer format {read.format}."
    # A copied folder is another chat: its id is the folder's name.
    mode = read.mode if read.mode in MODES else MODES[0]
    return ChatHead(**fields | {"id": folder.name, "mode": mode, "damaged": why, "newer": newer})


def _check_head(head: _Head) -> None:
    """Raise ValueError for an impossible value: the list sorts by times and shows ages."""
    for stamp in (head.created, head.updated):
        when = datetime.fromisoformat(stamp)
        if when.tzinfo is None or not 1970 <= when.year < 9000:
            raise ValueError(stamp)
    known = head.mode in MODES or head.major > FORMAT[0]
    if head.major < 1 or not known or not 0 <= head.revision < 2**53:
        raise ValueError(head)


def _read_body(line: bytes) -> _Body:
    """Decode the line; raises DamagedError, also for an object without a system prompt."""
    read: _Body = decode(_body, line)
    if b'"system_prompt"' not in line and line != b"{}":
        raise DamagedError("it contains no system prompt")
    return read


def _read_turn(line: bytes) -> Turn:
    """Decode the line; raises DamagedError, also for an answer whose text has a damaged name, or whose
    versions are impossible."""
    read: Turn = decode(_turn, line)
    if isinstance(read, Answer) and read.text is None and b'"text":null' not in line:
        raise DamagedError("it contains no text")
    if not all(turn.has_possible_versions for turn in with_versions((read,)) if isinstance(turn, Answer)):
        raise DamagedError("it has impossible versions")
    return read


def _salvaged(first: bytes, lines: list[bytes]) -> tuple[_Body, tuple[Turn, ...]]:
    """(what belongs to the whole chat, the turns) of a file with damaged or missing lines."""
    body = _Body(text_field(first, "system_prompt"))  # where the line break behind the head is damaged
    turns: list[Turn] = []
    for number, line in enumerate(lines):
        for candidate in (line, repaired(line)):
            with contextlib.suppress(DamagedError):
                turns.append(_read_turn(candidate))
                break
            if number == 0:
                with contextlib.suppress(DamagedError):
                    body = _read_body(candidate)
                    break
        else:
            if number == 0 and _BODY.match(line):
                body = _Body(text_field(line, "system_prompt"))  # the template's options are damaged
            else:
                turns.append(turn_as_it_stands(line, turns[-1] if turns else None))
    return body, tuple(turns)


def _damaged(folder: Path, why: str, title: str = "") -> ChatHead:
    try:
        changed = datetime.fromtimestamp(os.stat(folder).st_mtime, UTC)
    except OSError:
        changed = datetime.fromtimestamp(0, UTC)
    stamp = changed.isoformat(timespec="milliseconds")
    return ChatHead(folder.name, title or UNREADABLE, stamp, stamp, damaged=why)


def current(folder: Path, seen: Conversation) -> Conversation:
    """The chat on disk; if its file is older than the seen chat (a restored backup), the seen chat. The older
    file is then kept beside it, because the next one replaces it. Raises UserError."""
    chat = read_chat(folder)
    if chat.head.revision >= seen.head.revision or chat.head.newer:
        return chat
    with explained("The chat was not saved", folder=folder):
        copy_aside(folder / NAME, "older")
    return seen


def written(folder: Path, chat: Conversation) -> Conversation:
    """Write the chat and return it as it is on disk; raises UserError if it cannot be written."""
    check_writable(chat)
    write_chat(folder, chat)
    return with_head(chat, damaged="")
