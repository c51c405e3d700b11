"""A running server in the place of the chat's engine: the same commands, the same events."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from functools import partial

import msgspec

from app.base.bugs import bug_words
from app.engine.errors import PromptError, UserError
from app.engine.process.host import ThreadHome
from app.engine.process.messages import (
    AnyCommand,
    Event,
    Failed,
    Forget,
    Generate,
    Load,
    Loaded,
    SetPace,
    Shutdown,
    Stop,
)
from app.engine.types import Role
from app.servers.client import ServerClient
from app.servers.http import Stopped

_ENDED = ("The server was let go.", "What came before is kept, and the server is asked again.")
_NOT_HERE = ("A server answers: nothing is loaded here.", "Load the models here first.")
_NOT_BEGUN = ("The answer was stopped before its first token.", "")


class ServerHome(ThreadHome):
    """The home of a server: the thread that asks it."""

    def __init__(self, key_of: Callable[[str], str]) -> None:
        """`key_of` gives the key of a server."""
        super().__init__(partial(ServerLoop, key_of), _ENDED)


class ServerLoop:
    """Obeys commands by asking a server. Load takes an address in place of a file and asks what answers
    there. A server writes at its own speed, and forgets nothing: SetPace and Forget have no effect."""

    def __init__(self, key_of: Callable[[str], str], emit: Callable[[Event], None]) -> None:
        self._key_of = key_of
        self._emit = emit
        self._commands: queue.SimpleQueue[AnyCommand] = queue.SimpleQueue()
        self._stopped: set[int] = set()
        self._current = -1  # the run that is being done
        self._closing = False
        self._client: ServerClient | None = None

    def submit(self, command: AnyCommand) -> None:
        """Queue a command; Stop and Shutdown act at once. Safe from any thread."""
        if isinstance(command, Stop):
            self._stopped.add(command.run)
        elif not isinstance(command, SetPace | Forget):
            self._closing = self._closing or isinstance(command, Shutdown)
            self._commands.put(command)

    def run(self) -> None:
        """Obey commands until Shutdown."""
        while not isinstance(command := self._commands.get(), Shutdown) and not self._closing:
            self._current = command.run
            try:
                for event in self._obeyed(command):
                    self._emit(event)
            except Stopped:
                self._emit(Failed(command.run, *_NOT_BEGUN))
            except UserError as error:
                role = Role.TARGET if isinstance(command, Load) else None
                self._emit(Failed(command.run, error.message, error.hint, role=role))
            except Exception as bug:
                message = f"An unexpected error occurred: {type(bug).__name__}."  # its text may quote the key
                details = bug_words(bug)
                self._emit(Failed(command.run, message, expected=False, details=details))
            self._stopped.discard(command.run)

    def _obeyed(self, command: AnyCommand) -> Iterator[Event]:
        """The events of a command. Raises UserError, Stopped."""
        if isinstance(command, Load):
            began, address = time.perf_counter(), command.target.path
            client = ServerClient(address, self._key_of(address), self._is_stopped)
            info = client.describe()
            self._client = client
            yield Loaded(command.run, info, time.perf_counter() - began)
        elif isinstance(command, Generate) and self._client is not None:
            begun = False
            for event in self._client.generate(command.request):
                begun = True
                yield msgspec.structs.replace(event, run=command.run)
            if not begun:
                raise Stopped
        else:
            raise PromptError(*_NOT_HERE)

    def _is_stopped(self) -> bool:
        return self._closing or self._current in self._stopped
