"""The engine behind one interface with two homes: a process of its own, or a thread of this one.

Commands go in, events come out (messages.py). In the process home native code can abort, fault or run out
of memory: the process dies, `receive` says so, and whoever owns the home makes a new one.
"""

from __future__ import annotations

import multiprocessing
import os
import queue
import signal
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Protocol

import msgspec

from app.engine.errors import SettingError, UserError
from app.engine.messages import (
    AnyCommand,
    AnyEvent,
    Event,
    Failed,
    Generate,
    Load,
    Loaded,
    LoadProgress,
    Shutdown,
    Stop,
)
from app.engine.plugins import use_drafters
from app.engine.strategy import StrategySpec

if TYPE_CHECKING:
    from app.engine.engine import Engine

_encode = msgspec.msgpack.Encoder().encode
_decode_command = msgspec.msgpack.Decoder(AnyCommand).decode
_decode_event = msgspec.msgpack.Decoder(AnyEvent).decode

_PROGRESS_STEP = 0.01
_GOODBYE_SECONDS = 2.0


class EngineHome(Protocol):
    """Where an engine lives."""

    def send(self, command: AnyCommand) -> None:
        """Hand over a command; Stop acts at once, the others wait for their turn."""

    def receive(self, timeout: float) -> Event | None:
        """The next event, or None when none came within `timeout` seconds.

        After a Failed event with `gone` set, nothing more comes from this home.
        """

    def close(self) -> None:
        """End the engine, whatever it is doing."""


class Server:
    """Runs commands one after another against an engine; the same in both homes."""

    def __init__(self, emit: Callable[[AnyEvent], None]) -> None:
        self._emit = emit
        self._inbox: queue.SimpleQueue[AnyCommand] = queue.SimpleQueue()
        self._engine: Engine | None = None
        self._stopped: set[int] = set()
        self._current = -1  # the run at work
        self._closing = False
        # Held while the run at work changes and while it is stopped: no Stop hits the run behind its own.
        self._turn = threading.Lock()

    def submit(self, command: AnyCommand) -> None:
        """Take a command; safe from any thread."""
        if isinstance(command, Stop):
            self._stopped.add(command.run)
            self._stop_current(command.run)
            return
        if isinstance(command, Shutdown):
            self._closing = True
            self._stop_current(self._current)
        self._inbox.put(command)

    def _stop_current(self, run: int) -> None:
        with self._turn:
            if self._engine is not None and self._current == run:
                self._engine.stop()

    def _is_stopped(self, run: int) -> bool:
        return self._closing or run in self._stopped

    def run(self) -> None:
        """Serve until Shutdown; commands that still wait by then are dropped."""
        while not isinstance(command := self._inbox.get(), Shutdown) and not self._closing:
            with self._turn:
                self._current = command.run
            try:
                if isinstance(command, Load):
                    self._load(command)
                elif isinstance(command, Generate):
                    self._generate(command)
            except UserError as error:
                self._emit(Failed(command.run, error.message, error.hint))
            except Exception as error:
                self._emit(
                    Failed(
                        command.run,
                        f"The engine met an error it does not know: {error}.",
                        "The next prompt may work; the details help to report it.",
                        expected=False,
                        details=traceback.format_exc(),
                    )
                )
            finally:
                with self._turn:
                    self._current = -1
                self._stopped.discard(command.run)
        if self._engine is not None:
            self._engine.close()

    def _load(self, command: Load) -> None:
        # Imported here: the window makes homes and must never load the native library itself.
        from app.engine.engine import Engine

        started = time.perf_counter()
        shown = ("", 0.0)

        def report(file: str, fraction: float) -> bool:
            nonlocal shown
            if file != shown[0] or fraction >= shown[1] + _PROGRESS_STEP:
                shown = (file, fraction)
                self._emit(LoadProgress(command.run, file, fraction))
            return not self._is_stopped(command.run)

        try:
            self._engine = Engine(command.target, command.draft, report, previous=self._engine)
        except UserError:
            if self._is_stopped(command.run):
                kept = "The pair from before is still there." if self._engine else "No model is loaded."
                raise UserError("Loading was stopped.", kept) from None
            raise
        self._emit(Loaded(command.run, self._engine.pair, time.perf_counter() - started))

    def _generate(self, command: Generate) -> None:
        if self._engine is None:
            raise UserError("No model is loaded.", "Choose a target first.")
        _know_drafters(command)
        for event in self._engine.generate(command.request, command.run):
            self._emit(event)  # type: ignore[arg-type]
            # A Stop that came before the run began: its flag was cleared by the start.
            if self._is_stopped(command.run):
                self._engine.stop()


def _know_drafters(command: Generate) -> None:
    """Know the plug-ins in use. One that cannot be used is told to those who ask for a strategy that is not
    there; the others lose nothing by it."""
    problems = use_drafters(command.drafters)
    try:
        StrategySpec.parse(command.request.strategy)
    except SettingError as unknown:
        raise next(iter(problems.values()), unknown) from None


class ThreadHome:
    """The engine on a thread of this process. Native crashes take the process along."""

    def __init__(self) -> None:
        self._events: queue.SimpleQueue[Event] = queue.SimpleQueue()
        self._server = Server(self._events.put)
        self._thread = threading.Thread(target=self._server.run, name="engine", daemon=True)
        self._thread.start()

    def send(self, command: AnyCommand) -> None:
        self._server.submit(command)

    def receive(self, timeout: float) -> Event | None:
        try:
            return self._events.get(timeout=timeout)
        except queue.Empty:
            return None

    def close(self) -> None:
        self._server.submit(Shutdown(0))
        self._thread.join(_GOODBYE_SECONDS)


class ProcessHome:
    """The engine in a process of its own."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), name="draftscope engine")
        self._process.daemon = True
        self._process.start()
        theirs.close()
        self._run = -1
        self._gone = False
        self._closed = False
        self._sending = threading.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def send(self, command: AnyCommand) -> None:
        if not isinstance(command, Stop):
            self._run = command.run
        try:
            with self._sending:
                self._connection.send_bytes(_encode(command))
        except OSError:
            return  # the process is gone; `receive` reports it

    def receive(self, timeout: float) -> Event | None:
        if self._gone:
            return None
        try:
            if not self._connection.poll(timeout):
                return None
            event: AnyEvent = _decode_event(self._connection.recv_bytes())
            return event
        except (EOFError, OSError):
            self._gone = True
            self._process.join(_GOODBYE_SECONDS)
            return Failed(
                self._run,
                f"The engine stopped unexpectedly ({_exit_words(self._process.exitcode)}).",
                "What came before is kept, and the engine starts again by itself.",
                expected=False,
                gone=True,
            )

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._gone:
            self.send(Shutdown(0))
            self._drain()
        self._gone = True
        self._process.join(_GOODBYE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._connection.close()
        self._process.close()

    def _drain(self) -> None:
        """Take what the engine still has to say: in a full pipe it would wait for ever."""
        until = time.monotonic() + _GOODBYE_SECONDS
        try:
            while time.monotonic() < until:
                if self._connection.poll(0.05):
                    self._connection.recv_bytes()
        except (EOFError, OSError):
            return


def _exit_words(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"signal {-code}, {signal.strsignal(-code) or signal.Signals(-code).name}"
        except ValueError:
            return f"signal {-code}"
    return f"exit code {code}"


def _serve(connection: Connection) -> None:
    """The engine process: commands are read on a thread, so that Stop gets through at once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the window to handle

    def emit(event: AnyEvent) -> None:
        try:
            connection.send_bytes(_encode(event))
        except OSError:
            os._exit(0)  # the window is gone, and nobody waits for an answer

    server = Server(emit)

    def read() -> None:
        try:
            while True:
                server.submit(_decode_command(connection.recv_bytes()))
        except (EOFError, OSError):
            os._exit(0)
        except BaseException:
            # A command that cannot be read: better gone, which is noticed, than deaf.
            traceback.print_exc()
            os._exit(1)

    threading.Thread(target=read, name="commands", daemon=True).start()
    server.run()
    # Daemon threads and native libraries do not always part in peace; everything is freed already.
    os._exit(0)


def make_home(kind: str) -> EngineHome:
    """`kind` is "process" or "thread"."""
    return ThreadHome() if kind == "thread" else ProcessHome()
