"""The file of one chat, JSON Lines: the head, then what belongs to the whole chat, then its turns.

The head stands alone on the first line, so that a list of a thousand chats reads a thousand lines.
"""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from app.chats.conversation import ChatHead, Conversation, Turn
from app.engine.errors import UserError
from app.files import reason, write_atomic

NAME = "chat.jsonl"
MAJOR = 1


class _Head(ChatHead, frozen=True, omit_defaults=True):
    """A head as it stands in the file."""

    format: str = ""


class _Body(msgspec.Struct, frozen=True):
    system_prompt: str = ""


_head = msgspec.json.Decoder(_Head)
_body = msgspec.json.Decoder(_Body)
_turn = msgspec.json.Decoder(Turn)
_encode = msgspec.json.Encoder().encode


def write_chat(folder: Path, chat: Conversation) -> None:
    """Write the chat into its folder, whole or not at all; raises UserError."""
    fields = {name: getattr(chat.head, name) for name in ChatHead.__struct_fields__}
    try:
        lines = [
            _encode(_Head(**fields, format=f"{MAJOR}.0")),
            _encode(_Body(chat.system_prompt)),
            *(_encode(turn) for turn in chat.turns),
        ]
    except UnicodeEncodeError as error:
        raise UserError(
            "The chat was not saved: something in it is not valid text.", "Look for odd characters in it."
        ) from error
    try:
        folder.mkdir(exist_ok=True)
        write_atomic(folder / NAME, b"\n".join(lines) + b"\n")
    except OSError as error:
        with contextlib.suppress(OSError):
            folder.rmdir()  # of a new chat: an empty folder would look like a damaged one
        raise UserError(
            f"The chat was not saved: {reason(error)}.",
            f"What is on the screen can still be copied. Look at the folder {folder.parent}.",
        ) from error


def read_chat(folder: Path) -> Conversation:
    """Read a chat; raises UserError that says what is wrong with it."""
    try:
        lines = (folder / NAME).read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"This chat could not be read: {reason(error)}.") from error
    head = _checked(lines[0], folder)
    try:
        body = _body.decode(lines[1])
        turns = tuple(_turn.decode(line) for line in lines[2:] if line)
    except (msgspec.DecodeError, UnicodeDecodeError, IndexError) as error:
        raise UserError(
            f"This chat could not be read: {NAME} is damaged.", f"The file is in {folder}."
        ) from error
    return Conversation(head, body.system_prompt, turns)


def read_head(folder: Path) -> ChatHead:
    """Read what a list shows; a chat that cannot be read gets a head that says so."""
    try:
        with (folder / NAME).open("rb") as file:
            return _checked(file.readline(), folder)
    except OSError as error:
        return _damaged(folder, f"This chat could not be read: {reason(error)}.")
    except UserError as error:
        return _damaged(folder, error.message)


def _checked(line: bytes, folder: Path) -> ChatHead:
    try:
        read = _head.decode(line)
        major = int(read.format.split(".")[0])
    except (msgspec.DecodeError, ValueError):
        raise UserError(f"This chat could not be read: {NAME} is damaged.") from None
    if major > MAJOR:
        raise UserError(f"This chat has the newer format {read.format}.", "Update Draftscope to open it.")
    fields = {name: getattr(read, name) for name in ChatHead.__struct_fields__}
    # A folder that someone copied is another chat: its name is what it is found by.
    return ChatHead(**fields | {"id": folder.name, "damaged": ""})


def _damaged(folder: Path, why: str) -> ChatHead:
    try:
        changed = datetime.fromtimestamp(os.stat(folder).st_mtime, UTC)
    except OSError:
        changed = datetime.fromtimestamp(0, UTC)
    stamp = changed.isoformat(timespec="milliseconds")
    return ChatHead(folder.name, "Could not be read", stamp, stamp, damaged=why)
