"""A running server in the place of the chat's engine: the same commands, the same events."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator

import msgspec

from app.base.bugs import bug_words
from app.engine.errors import PromptError, UserError
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


class ServerHome:
    """Has the interface of `EngineHome`. Load takes an address in place of a file and asks what answers
    there. A server writes at its own speed, and forgets nothing: SetPace and Forget have no effect."""

    def __init__(self, key_of: Callable[[str], str]) -> None:
        """`key_of` gives the key of a server."""
        self._key_of = key_of
        self._commands: queue.SimpleQueue[AnyCommand] = queue.SimpleQueue()
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._stopped: set[int] = set()
        self._current = -1  # the run that is being done
        self._closing = False
        self._client: ServerClient | None = None
        self._thread = threading.Thread(target=self._serve, name="server", daemon=True)
        self._thread.start()

    def send(self, command: AnyCommand) -> None:
        if isinstance(command, Stop):
            self._stopped.add(command.run)
        elif not isinstance(command, SetPace | Forget):
            self._commands.put(command)

    def receive(self, timeout: float) -> Event | None:
        try:
            return self._events.get(timeout=timeout)
        except queue.Empty:
            return None

    def end(self) -> None:
        self._closing = True
        self._events.put(Failed(-1, *_ENDED, gone=True))

    def close(self) -> None:
        self._closing = True
        self._commands.put(Shutdown(0))
        self._thread.join()

    def _serve(self) -> None:
        """Obey commands until the home is closed."""
        while not isinstance(command := self._commands.get(), Shutdown) and not self._closing:
            self._current = command.run
            try:
                for event in self._obeyed(command):
                    self._events.put(event)
            except Stopped:
                self._events.put(Failed(command.run, *_NOT_BEGUN))
            except UserError as error:
                role = Role.TARGET if isinstance(command, Load) else None
                self._events.put(Failed(command.run, error.message, error.hint, role=role))
            except Exception as bug:
                message = f"An unexpected error occurred: {type(bug).__name__}."  # its text may quote the key
                details = bug_words(bug)
                self._events.put(Failed(command.run, message, expected=False, details=details))
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
