"""Words that were typed and not sent: in the folder of their chat; those of a new chat beside all folders."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from app.base.files import DamagedError, decode, read_file, reason, set_aside, write_atomic, write_hint
from app.engine.errors import UserError
from app.saved.chats.conversation import Question

NOTHING = Question("")
_decoder = msgspec.json.Decoder(Question)


class Unsent:
    """The words of every chat; a chat that was never saved has the id ""."""

    def __init__(self, folder: Path) -> None:
        """`folder` is that of the chats."""
        self._folder = folder

    def read(self, chat_id: str) -> Question:
        """What was typed in a chat; a damaged file is set aside. Raises UserError."""
        file = self._file(chat_id)
        try:
            return decode(_decoder, read_file(file))
        except FileNotFoundError:
            return NOTHING
        except DamagedError:
            with contextlib.suppress(OSError):
                set_aside(file, "damaged")
            raise UserError("What was typed here is damaged.", f"The file is in {file.parent}.") from None
        except OSError as error:
            raise UserError(f"What was typed here cannot be read: {reason(error)}.") from error

    def keep(self, chat_id: str, words: Question) -> None:
        """Save what is typed in a chat, whole or not at all; a deleted chat keeps what it had. Raises
        UserError."""
        file = self._file(chat_id)
        try:
            if words == NOTHING:
                file.unlink(missing_ok=True)
            elif file.parent.is_dir():
                write_atomic(file, msgspec.json.encode(words))
        except UnicodeEncodeError as error:
            raise UserError(
                "What you type is not saved: something in it is not valid text.", "Look for odd characters."
            ) from error
        except OSError as error:
            raise UserError(
                f"What you type is not saved: {reason(error)}.", write_hint(error, self._folder)
            ) from error

    def _file(self, chat_id: str) -> Path:
        return self._folder / chat_id / "unsent.json" if chat_id else self._folder / ".unsent.json"
