"""The engine behind one interface with two homes: a process of its own, or a thread of this one.

Commands go in, events come out (messages.py). In the process home native code can abort, fault or run out
of memory: the process dies, `receive` says so, and whoever owns the home makes a new one.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import queue
import signal
import threading
import time
import traceback
from collections import deque
from multiprocessing.connection import Connection
from typing import Protocol

import msgspec

from app.engine.devices.workers import lost_workers
from app.engine.process.limits import go_first, limit_memory
from app.engine.process.messages import (
    AnyCommand,
    AnyEvent,
    DevicesListed,
    Event,
    Failed,
    Finished,
    LastWords,
    ListDevices,
    Load,
    Loaded,
    LoadProgress,
    LoadStage,
    Measure,
    Measured,
    Shutdown,
    Stop,
)
from app.engine.process.safer import Death, exit_words, explain_death
from app.engine.process.server import Server
from app.engine.types import PairInfo, split_list

_encode = msgspec.msgpack.Encoder().encode
_decode_command = msgspec.msgpack.Decoder(AnyCommand).decode
_decode_event = msgspec.msgpack.Decoder(AnyEvent).decode

_GOODBYE_SECONDS = 2.0
_LONGEST_EVENT = 2**28  # bytes; the longest holds a prompt's text
_ENDED = ("The engine was ended.", "What came before is kept, and a new engine loads the same pair.")
_DAMAGED = (
    "The engine sent a message that cannot be read, and was ended.",
    "What came before is kept, and a new engine loads the same pair.",
)
_NO_UNICODE = (
    "A file name or a text holds characters that are no Unicode: the engine cannot be told of it.",
    "Rename the file, or take the characters that are not shown out of the text.",
)
_ENDS = (Loaded, DevicesListed, Measured, Finished, Failed)  # of a command


class EngineHome(Protocol):
    """Where an engine lives."""

    def send(self, command: AnyCommand) -> None:
        """Hand over a command; Stop acts at once, the others wait for their turn."""

    def receive(self, timeout: float) -> Event | None:
        """The next event, or None when none came within `timeout` seconds.

        After a Failed event with `gone` set, nothing more comes from this home.
        """

    def end(self) -> None:
        """Give the engine up, one that answers to nothing too: `receive` says next that it is gone. Safe from
        any thread."""

    def close(self) -> None:
        """End the engine, whatever it is doing."""


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

    def end(self) -> None:
        """Nothing can end a thread from outside: it goes on until it looks up, and nobody listens."""
        self._server.submit(Shutdown(0))
        self._events.put(Failed(-1, *_ENDED, gone=True))

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
        self._waiting: AnyCommand | None = None  # the command whose end has not come yet
        self._loaded: Load | None = None
        self._pair: PairInfo | None = None  # that is loaded
        self._loading: LoadProgress | None = None  # the latest, while a pair is loaded
        self._last_words = ""
        self._gone = False
        self._closed = False
        self._ending = threading.Lock()  # held while the process is ended, and while it is forgotten
        self._ended = False  # because somebody wanted it
        self._damaged = False  # because of what it said
        # Sent by a thread: an engine that hangs reads nothing, and its pipe fills up.
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._sender = threading.Thread(target=self._send_all, name="to the engine", daemon=True)
        self._sender.start()
        self._refused: deque[Failed] = deque()  # commands that cannot be sent

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def send(self, command: AnyCommand) -> None:
        try:
            data = _encode(command)
        except UnicodeEncodeError:
            self._refused.append(Failed(command.run, *_NO_UNICODE))
            return
        if not isinstance(command, Stop):
            self._run, self._waiting, self._loading = command.run, command, None
        self._outbox.put(data)

    def _send_all(self) -> None:
        with contextlib.suppress(OSError):  # the process is gone; `receive` reports it
            while (data := self._outbox.get()) is not None:
                self._connection.send_bytes(data)

    def receive(self, timeout: float) -> Event | None:
        if self._refused:
            return self._refused.popleft()
        if self._gone:
            return None
        try:
            if not self._connection.poll(timeout):
                return None
            event: AnyEvent = _decode_event(self._connection.recv_bytes(_LONGEST_EVENT))
        except (EOFError, OSError, ValueError) as error:  # what cannot be decoded is a ValueError
            self._gone = True
            # A length that cannot be is an OSError without a number.
            self._damaged = not (isinstance(error, EOFError) or getattr(error, "errno", None))
            self._await_end(0 if self._damaged else _GOODBYE_SECONDS)
            return self._explain()
        self._follow(event)
        return None if isinstance(event, LastWords) else event

    def _follow(self, event: AnyEvent) -> None:
        """Keep in mind what an end would mean."""
        if isinstance(event, LastWords):
            self._last_words = event.text
        elif isinstance(event, LoadProgress):
            self._loading = event
        elif self._waiting is not None and event.run == self._waiting.run:
            if isinstance(event, Loaded) and isinstance(self._waiting, Load):
                self._loaded, self._pair = self._waiting, event.pair
            if isinstance(event, _ENDS):
                self._waiting, self._loading = None, None

    def _explain(self) -> Failed:
        """What the end of the process was, in words."""
        if self._ended or self._damaged:
            return Failed(self._run, *(_ENDED if self._ended else _DAMAGED), expected=self._ended, gone=True)
        waiting = self._waiting
        load, pair = (waiting, None) if isinstance(waiting, Load) else (self._loaded, self._pair)
        asked = [request for request in (load, waiting) if isinstance(request, Load | Measure)]
        rpc = ",".join(options.rpc for both in asked for options in (both.target, both.draft) if options)
        if isinstance(waiting, ListDevices):
            rpc += f",{waiting.rpc}"
        code = self._process.exitcode
        lost, loading = lost_workers(split_list(rpc)), self._loading
        # A worker is the pair's, and of two files that are read at the same time either may be to blame.
        role = None if loading is None or loading.beside or lost else loading.role
        told = explain_death(
            Death(
                code,
                exit_words(code),
                load,
                n_ctx=pair.target.n_ctx if pair else 0,
                file=_files(loading) if loading else "",
                testing=loading is not None and loading.stage is LoadStage.TESTING,
                on_devices=pair.on_devices if pair else loading is not None and loading.on_devices,
                last_words=self._last_words,
                lost=lost,
            )
        )
        return Failed(
            self._run, told.message, told.hint, expected=False, gone=True, offer=told.offer, role=role
        )

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._gone:
            self.send(Shutdown(0))
            self._drain()
        self._gone = True
        self._await_end(_GOODBYE_SECONDS)
        self._outbox.put(None)
        self._sender.join()
        self._connection.close()
        with self._ending:
            self._process.close()

    def end(self) -> None:
        with self._ending:
            if not self._closed:
                self._ended = True
                self._process.kill()

    def _await_end(self, seconds: float) -> None:
        """Wait for the end of the process; after `seconds` it is ended."""
        self._process.join(seconds)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _drain(self) -> None:
        """Take what the engine still has to say: in a full pipe it would wait for ever. If it does not leave,
        end it."""
        until = time.monotonic() + _GOODBYE_SECONDS
        try:
            while time.monotonic() < until:
                if self._connection.poll(0.05):
                    self._connection.recv_bytes(_LONGEST_EVENT)
        except (EOFError, OSError):
            return
        self._process.kill()


def _serve(connection: Connection) -> None:
    """The engine process: commands are read on a thread, so that Stop gets through at once."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C is for the window to handle
    go_first()

    sending = threading.Lock()

    def emit(event: AnyEvent) -> None:
        data = _encode(event)
        try:
            with sending:  # last words come from any thread
                connection.send_bytes(data)
        except OSError:
            os._exit(0)  # the window is gone, and nobody waits for an answer

    def before_load() -> None:
        # Imported here: the window makes homes and must never load the native library itself.
        from app.engine.native import on_abort

        on_abort(lambda text: emit(LastWords(-1, text)))
        limit_memory()

    server = Server(emit, before_load)

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


def _files(loading: LoadProgress) -> str:
    """The names of the files that are being read, each of which may end the engine."""
    return " or ".join(filter(None, (loading.file, loading.beside)))


def make_home(kind: str) -> EngineHome:
    """`kind` is "process" or "thread"."""
    return ThreadHome() if kind == "thread" else ProcessHome()
