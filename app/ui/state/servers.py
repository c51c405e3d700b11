"""The running servers that the window knows: what they report about themselves, and their keys."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from PySide6.QtCore import QObject, Signal

from app.engine.errors import UserError
from app.engine.types import PairInfo
from app.servers.address import checked_key, find_key, keep_key
from app.ui.state.mailbox import Mailbox, call_each

log = logging.getLogger("draftscope")

PATIENCE = 30.0
"""Seconds without a byte after which a server that is asked what it is counts as hanging."""


@dataclass(frozen=True, slots=True)
class KnownServer:
    """What is known about a server; nothing until it was asked."""

    asking: bool = False
    info: PairInfo | None = None  # what it told last
    problem: UserError | None = None  # why it could not be asked, or its key not be kept
    wants_key: bool = False


@dataclass(slots=True)
class _Inquiry:
    """A server that is being asked."""

    key: str  # that was typed; "" takes the known one
    keep: bool  # in the system's keyring, once the server has accepted it
    stopped: threading.Event = field(default_factory=threading.Event)
    thread: threading.Thread | None = None


class Servers(QObject):
    """Asks servers what they are, each on its own thread. A typed key is known until the window closes. The
    system's keyring keeps it only if the user asked for that."""

    changed = Signal(str)  # the address of a server that is being asked, has answered or has failed

    def __init__(self, patience: float = PATIENCE) -> None:
        super().__init__()
        self._patience = patience
        self._mailbox = Mailbox(call_each)
        self._known: dict[str, KnownServer] = {}
        self._keys: dict[str, str] = {}
        self._inquiries: dict[str, _Inquiry] = {}

    def known(self, address: str) -> KnownServer:
        return self._known.get(address, KnownServer())

    def key_of(self, address: str) -> str:
        """The key that was typed for a server, else the one from the keyring, else "". Safe from any
        thread."""
        return self._keys.get(address) or find_key(address)

    def ask(self, address: str, key: str = "", *, keep: bool = False) -> None:
        """Ask what the server is; `changed` is emitted at the end. Does nothing while a request is
        running."""
        if address in self._inquiries:
            return
        known = self.known(address)
        try:
            inquiry = _Inquiry(checked_key(key) if key else "", keep)
        except UserError as error:
            self._set(address, KnownServer(info=known.info, problem=error, wants_key=True))
            return
        self._inquiries[address] = inquiry
        inquiry.thread = threading.Thread(
            target=self._work, args=(address, inquiry), name="asking a server", daemon=True
        )
        self._set(address, KnownServer(asking=True, info=known.info, wants_key=known.wants_key))
        inquiry.thread.start()

    def stop(self, address: str) -> None:
        """Stop asking a server."""
        if (inquiry := self._inquiries.get(address)) is not None:
            inquiry.stopped.set()

    def close(self) -> None:
        """End all inquiries; nothing is emitted afterwards."""
        self._mailbox.close()
        for inquiry in self._inquiries.values():
            inquiry.stopped.set()
        for inquiry in self._inquiries.values():
            if inquiry.thread is not None:
                inquiry.thread.join()

    def _set(self, address: str, known: KnownServer) -> None:
        self._known[address] = known
        self.changed.emit(address)

    # ------------------------------------------------------------------ on an inquiry's thread

    def _work(self, address: str, inquiry: _Inquiry) -> None:
        from app.servers.client import ServerClient  # its HTTP client takes a moment to import
        from app.servers.http import ServerError, Stopped

        end: Callable[[], None] = partial(self._end, address, None, None)
        try:
            key = inquiry.key or self.key_of(address)
            info = ServerClient(address, key, inquiry.stopped.is_set, self._patience).describe()
            end = partial(self._end, address, info, self._key_kept(address, inquiry))
        except Stopped:  # no failure: `end` leaves what was known as it is
            pass
        except UserError as error:
            refused = isinstance(error, ServerError) and error.status in (401, 403)
            end = partial(self._end, address, None, error, refused)
        except Exception as bug:  # its text may quote the key
            frames = "".join(traceback.format_tb(bug.__traceback__))
            log.error("Unexpected error while a server was asked: %s\n%s", type(bug).__name__, frames)
            unexpected = UserError("An unexpected error occurred.", "The log has the details.")
            end = partial(self._end, address, None, unexpected)
        self._mailbox.post(end)

    def _key_kept(self, address: str, inquiry: _Inquiry) -> UserError | None:
        """Keep the typed key, which the server accepted; returns the error if the keyring refused it."""
        if inquiry.key:
            self._keys[address] = inquiry.key
        try:
            if inquiry.key and inquiry.keep:
                keep_key(address, inquiry.key)
        except UserError as error:
            return error
        return None

    # ------------------------------------------------------------------ on the window's thread

    def _end(
        self, address: str, info: PairInfo | None, problem: UserError | None, wants_key: bool = False
    ) -> None:
        del self._inquiries[address]
        before = self.known(address)
        # What it told before is no longer so where it fails; if the inquiry was stopped, it still is.
        kept = before.info if info is None and problem is None else info
        self._set(address, KnownServer(info=kept, problem=problem, wants_key=wants_key))
