"""Replaces the chat's engine if a server answers."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from app.base.processes import bug_words
from app.engine.errors import PromptError, UserError
from app.engine.process import messages
from app.engine.process.host import Take, ThreadHome
from app.engine.types import Role

if TYPE_CHECKING:
    from app.servers.client import ServerClient

_ENDED = ("The server was disconnected.", "Everything so far is kept, and the server is asked again.")
_NOT_HERE = ("A server answers: nothing is loaded here.", "Load the models here first.")
_NOT_BEGUN = ("The answer was stopped before its first token.", "")


class ServerHome(ThreadHome):
    """The home of a server: the thread that asks it."""

    def __init__(self, key_of: Callable[[str], str], take: Take | None = None) -> None:
        """`key_of` gives the key of a server; for `take` see EngineHome."""
        super().__init__(take, partial(ServerLoop, key_of), _ENDED)


class ServerLoop:
    """Executes commands by asking a server. Load takes an address instead of a file. A server has its own
    speed and forgets nothing: SetPace and Forget have no effect."""

    def __init__(self, key_of: Callable[[str], str], emit: Take) -> None:
        self._key_of = key_of
        self._emit = emit
        self._commands: queue.SimpleQueue[messages.AnyCommand] = queue.SimpleQueue()
        self._stopped: set[int] = set()
        self._current = -1  # the run that is being done
        self._closing = False
        self._client: ServerClient | None = None

    def submit(self, command: messages.AnyCommand) -> None:
        """Queue a command; Stop and Shutdown act at once. Safe from any thread."""
        if isinstance(command, messages.Stop):
            self._stopped.add(command.run)
        elif not isinstance(command, messages.SetPace | messages.Forget):
            self._closing = self._closing or isinstance(command, messages.Shutdown)
            self._commands.put(command)

    def run(self) -> None:
        """Obey commands until Shutdown."""
        from app.servers.http import Stopped  # here, on the home's thread: it takes a moment to import

        while not isinstance(command := self._commands.get(), messages.Shutdown) and not self._closing:
            self._current = command.run
            try:
                for event in self._obeyed(command):
                    self._emit(event)
            except Stopped:
                self._emit(messages.Failed(command.run, *_NOT_BEGUN))
            except UserError as error:
                role = Role.TARGET if isinstance(command, messages.Load) else None
                self._emit(messages.Failed(command.run, error.message, error.hint, role=role))
            except Exception as bug:
                message = f"An unexpected error occurred: {type(bug).__name__}."  # its text may quote the key
                details = bug_words(bug)
                self._emit(messages.Failed(command.run, message, expected=False, details=details))
            self._stopped.discard(command.run)

    def _obeyed(self, command: messages.AnyCommand) -> Iterator[messages.Event]:
        """The events of a command. Raises UserError, Stopped."""
        from app.servers.client import ServerClient
        from app.servers.http import Stopped

        if isinstance(command, messages.Load):
            began, address = time.perf_counter(), command.target.path
            client = ServerClient(address, self._key_of(address), self._is_stopped)
            info = client.describe()
            self._client = client
            yield messages.Loaded(command.run, info, time.perf_counter() - began)
        elif isinstance(command, messages.Generate) and self._client is not None:
            begun = False
            for event in self._client.generate(command.request):
                begun = True
                yield msgspec.structs.replace(event, run=command.run)
            if not begun:
                raise Stopped
        elif isinstance(command, messages.Judge) and self._client is not None:
            yield self._client.judge(command)
        else:
            raise PromptError(*_NOT_HERE)

    def _is_stopped(self) -> bool:
        return self._closing or self._current in self._stopped
