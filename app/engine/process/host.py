"""The engine's two homes behind one interface: a separate process, or a thread of this process.

Commands go in, events come out (messages.py). Native code in the process home may abort, crash or run out of
memory. Then the process dies, its last event reports it, and the home's owner makes a new one."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import queue
import threading
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Protocol

import msgspec

from app.base.processes import Child, bug_words, exit_words, start
from app.engine.devices.workers import lost_workers
from app.engine.process import messages
from app.engine.process.limits import go_first, limit_memory
from app.engine.process.safer import Death, explain_death
from app.engine.process.server import Server
from app.engine.types import PairInfo, split_list

_MOST = 2**16  # bytes, what a pipe holds


class FaultDump:
    """A pipe that faulthandler writes into: file names, lines and functions, no values.

    A pipe leaves no file behind, and its contents outlive the process. On Windows nothing is written, because
    faulthandler cannot write to pipes there.
    """

    def __init__(self) -> None:
        self._reading, self.writing = Pipe(duplex=False)  # `writing` is for the process

    def read(self) -> str:
        """What an ended process has written; "" if nothing."""
        if os.name != "posix":
            return ""
        os.set_blocking(self._reading.fileno(), False)
        try:
            return os.read(self._reading.fileno(), _MOST).decode("utf-8", errors="replace")
        except BlockingIOError:  # nothing, and a child of the process holds the pipe
            return ""

    def close(self) -> None:
        self._reading.close()


def dump_faults(writing: Connection) -> None:
    """In the engine process: make faulthandler write there. The connection must stay open."""
    if os.name == "posix":
        os.set_blocking(writing.fileno(), False)  # a full pipe cuts the dump, and hangs nothing
        faulthandler.enable(writing.fileno())


_encode = msgspec.msgpack.Encoder().encode
_decode_command = msgspec.msgpack.Decoder(messages.AnyCommand).decode
_decode_event = msgspec.msgpack.Decoder(messages.AnyEvent).decode

_GOODBYE_SECONDS = 2.0
_LOOK = 0.1  # seconds between two tries to end a process that is still being started
_LONGEST_EVENT = 2**28  # bytes; the longest holds a prompt's text
_ENDED = ("The engine was ended.", "Everything so far is kept, and a new engine loads the same pair.")
_DAMAGED = (
    "The engine sent a message that cannot be read, and was ended.",
    "Everything so far is kept, and a new engine loads the same pair.",
)
_NOT_STARTED = ("The engine could not be started.", "Close other programs, and load the pair again.")
_NO_UNICODE = (
    "A file name or a text has characters that are not valid Unicode: it cannot be sent to the engine.",
    "Rename the file, or remove the characters that are not shown from the text.",
)


Take = Callable[[messages.Event], None]
"""Takes an event, on any thread. After a Failed event with `gone` set, nothing more comes."""


def _ignore(_event: messages.Event) -> None:
    """Take an event of an engine that was abandoned."""


class EngineHome:
    """The common part of both homes: how events arrive."""

    def __init__(self, take: Take | None) -> None:
        """`take` gets every event as it comes; without it, `receive` returns them one by one."""
        self._events: queue.SimpleQueue[messages.Event] = queue.SimpleQueue()
        self._take = take or self._events.put

    def send(self, command: messages.AnyCommand) -> None:
        """Send a command; Stop acts at once, other commands wait for their turn."""
        raise NotImplementedError

    def receive(self, timeout: float) -> messages.Event | None:
        """The next event, or None if none came within `timeout` seconds."""
        try:
            return self._events.get(timeout=timeout)
        except queue.Empty:
            return None

    def end(self) -> None:
        """Abandon the engine, even if it does not respond: its next event says that it is gone. Safe from any
        thread."""
        raise NotImplementedError

    def close(self) -> None:
        """End the engine, whatever it is doing, and wait for the end; this gives no event."""
        raise NotImplementedError


class CommandLoop(Protocol):
    """Runs on the thread of a home."""

    def submit(self, command: messages.AnyCommand) -> None:
        """Queue a command; safe from any thread."""

    def run(self) -> None:
        """Obey commands until Shutdown."""


class ThreadHome(EngineHome):
    """The engine on a thread of this process, which a native crash ends too."""

    def __init__(
        self,
        take: Take | None = None,
        make_loop: Callable[[Take], CommandLoop] = Server,
        ended: tuple[str, str] = _ENDED,
    ) -> None:
        """`make_loop` gets the receiver of events; `ended` is the message and hint after `end`."""
        super().__init__(take)
        self._loop = make_loop(self._tell)
        self._told_at_end = ended
        self._telling = threading.Lock()
        self._thread = threading.Thread(target=self._loop.run, name="engine", daemon=True)
        self._thread.start()

    def _tell(self, event: messages.Event, last: bool = False) -> None:
        with self._telling:
            self._take(event)
            if last:
                self._take = _ignore

    def send(self, command: messages.AnyCommand) -> None:
        self._loop.submit(command)

    def end(self) -> None:
        """Abandon the thread, which cannot be ended from outside: it runs until its next check."""
        self._loop.submit(messages.Shutdown(0))
        self._tell(messages.Failed(-1, *self._told_at_end, gone=True), last=True)

    def close(self) -> None:
        self._loop.submit(messages.Shutdown(0))
        self._take = _ignore  # the thread may still run, and must not keep a receiver alive
        self._thread.join(_GOODBYE_SECONDS)


class ProcessHome(EngineHome):
    """The engine in a separate process. A thread starts it, reads its events, and explains its end."""

    def __init__(self, take: Take | None = None) -> None:
        super().__init__(take)
        self._run = -1
        self._waiting: messages.AnyCommand | None = None  # the command that has not ended yet
        self._loaded: messages.Load | None = None
        self._pair: PairInfo | None = None  # the loaded pair
        self._loading: messages.LoadProgress | None = (
            None  # the latest progress, while a pair is being loaded
        )
        self._last_words = ""
        self._closed = False
        self._ended = False  # the process was ended on purpose
        self._child: Child | None = None  # while the process lives
        self._holding = threading.Lock()  # held while the child is set, and while it is killed
        # A thread sends: a hanging engine reads nothing, and its pipe fills up.
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._live, name="from the engine", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        """The process; None before it has started and after it has ended."""
        with self._holding:
            return self._child.pid if self._child is not None else None

    def send(self, command: messages.AnyCommand) -> None:
        try:
            data = _encode(command)
        except UnicodeEncodeError:
            self._take(messages.Failed(command.run, *_NO_UNICODE))
            return
        if not isinstance(command, messages.Stop):
            self._run, self._waiting, self._loading = command.run, command, None
        self._outbox.put(data)

    def _live(self) -> None:
        """The life of the process, from its start to what explains its end."""
        words = _NOT_STARTED
        try:
            faults = FaultDump()
            child = Child("draftscope engine", _serve, faults.writing)
            words = _DAMAGED
            failed = self._explain(*self._hear_out(child, faults))
        except Exception as error:  # such as no memory
            failed = messages.Failed(self._run, *words, expected=False, details=bug_words(error), gone=True)
        if not self._closed:
            self._take(failed)

    def _hear_out(self, child: Child, faults: FaultDump) -> tuple[int | None, bool, str]:
        """Exchange messages with the process until it ends; if it cannot be heard, end it. Returns its exit
        code, whether it sent an unreadable message, and its fault dump."""
        faults.writing.close()  # the process has its own
        with self._holding:
            self._child = child
        if self._ended:
            child.kill()
        sender = threading.Thread(
            target=self._send_all, args=(child.connection,), name="to the engine", daemon=True
        )
        damaged = True
        try:
            start(sender)
            damaged = self._hear(child.connection)
        finally:
            code = child.end(0 if damaged else _GOODBYE_SECONDS)
            with self._holding:
                self._child = None
            self._outbox.put(None)
            if sender.ident is not None:  # it has started
                sender.join()
            child.close()
            dump = faults.read()
            faults.close()
        return code, damaged, dump

    def _send_all(self, connection: Connection) -> None:
        with contextlib.suppress(OSError):  # the process is gone, which `_hear` notices
            while (data := self._outbox.get()) is not None:
                connection.send_bytes(data)

    def _hear(self, connection: Connection) -> bool:
        """Pass the process's events on until it ends. Returns whether it sent an unreadable message."""
        while True:
            try:
                event: messages.AnyEvent = _decode_event(connection.recv_bytes(_LONGEST_EVENT))
            except (EOFError, OSError, ValueError) as error:  # an undecodable message is a ValueError
                # An impossible length is an OSError without a number.
                return not (isinstance(error, EOFError) or getattr(error, "errno", None))
            self._follow(event)
            if not (self._closed or isinstance(event, messages.LastWords)):
                self._take(event)

    def _follow(self, event: messages.AnyEvent) -> None:
        """Remember the state that would explain the process's end."""
        if isinstance(event, messages.LastWords):
            self._last_words = event.text
        elif isinstance(event, messages.LoadProgress):
            self._loading = event
        elif self._waiting is not None and event.run == self._waiting.run:
            if isinstance(event, messages.Loaded) and isinstance(self._waiting, messages.Load):
                self._loaded, self._pair = self._waiting, event.pair
            if isinstance(event, messages.ENDS):
                self._waiting, self._loading = None, None

    def _explain(self, code: int | None, damaged: bool, faults: str) -> messages.Failed:
        """Describe why the process ended."""
        ended = self._ended and Death(code, exit_words(code)).is_sent  # it may have crashed right before
        if ended or damaged:
            words = _ENDED if ended else _DAMAGED
            return messages.Failed(self._run, *words, expected=ended, details=faults, gone=True)
        waiting = self._waiting
        load, pair = (waiting, None) if isinstance(waiting, messages.Load) else (self._loaded, self._pair)
        asked = [
            request
            for request in (load, waiting)
            if isinstance(request, messages.Load | messages.Measure | messages.Lighten)
        ]
        rpc = ",".join(options.rpc for both in asked for options in (both.target, both.draft) if options)
        if isinstance(waiting, messages.ListDevices):
            rpc += f",{waiting.rpc}"
        lost, loading = lost_workers(split_list(rpc)), self._loading
        # A lost worker concerns the whole pair, and of two files read at the same time either may be to
        # blame.
        role = None if loading is None or loading.beside or lost else loading.role
        testing = loading is not None and loading.stage is messages.LoadStage.TESTING
        on_devices = pair.on_devices if pair else loading.on_devices if loading and testing else None
        death = Death(
            code,
            exit_words(code),
            load,
            n_ctx=pair.target.n_ctx if pair else 0,
            # Any of the files that are being read may crash the engine.
            file=" or ".join(filter(None, (loading.file, loading.beside))) if loading else "",
            testing=testing,
            on_devices=on_devices,
            last_words=self._last_words,
            lost=lost,
        )
        told = explain_death(death)
        return msgspec.structs.replace(told, run=self._run, details=faults, role=role)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.send(messages.Shutdown(0))
        self._thread.join(_GOODBYE_SECONDS)  # what the engine still says is read: a full pipe would hold it
        while self._thread.is_alive():
            self._kill()
            self._thread.join(_LOOK)

    def end(self) -> None:
        self._ended = True
        self._kill()

    def _kill(self) -> None:
        with self._holding:
            if self._child is not None:
                self._child.kill()


def _serve(connection: Connection, faults: Connection) -> None:
    """The engine process: commands are read on a thread, so that Stop acts at once."""
    dump_faults(faults)
    go_first()

    sending = threading.Lock()

    def emit(event: messages.AnyEvent) -> None:
        data = _encode(event)
        try:
            with sending:  # last words may come from any thread
                connection.send_bytes(data)
        except OSError:
            os._exit(0)  # the window is gone

    def before_load() -> None:
        # Imported here: the window makes homes, but must never load the native library.
        from app.engine.native import on_abort

        on_abort(lambda text: emit(messages.LastWords(-1, text)))
        limit_memory()

    server = Server(emit, before_load)

    def read() -> None:
        try:
            while True:
                server.submit(_decode_command(connection.recv_bytes()))
        except (EOFError, OSError):
            os._exit(0)
        except BaseException as error:
            # An unreadable command: better to exit, which is noticed, than to ignore commands.
            with contextlib.suppress(OSError):
                os.write(faults.fileno(), bug_words(error).encode())
            os._exit(1)

    threading.Thread(target=read, name="commands", daemon=True).start()
    server.run()
    # Skips the normal exit, where daemon threads and native libraries may crash; everything is freed already.
    os._exit(0)


def make_home(kind: str, take: Take | None = None) -> EngineHome:
    """Make a home; `kind` is "process" or "thread"."""
    return ThreadHome(take) if kind == "thread" else ProcessHome(take)
