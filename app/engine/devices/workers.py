"""Workers: other processes or machines that compute layers, reached by llama.cpp's RPC protocol.

llama.cpp ends the process if a worker cannot be reached. It waits for ever if the worker is busy: a worker
serves one program at a time. So workers are checked here first, without the native library.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from dataclasses import dataclass

from app.engine.errors import UserError

DEFAULT_PORT = 50052  # llama.cpp's
PATIENCE = 2.0  # seconds for the greeting; one on this machine takes a millisecond
VERSION = (7, 0)  # of the protocol, in the built-in llama.cpp

_HELLO = 14
_CAPABILITIES = 24  # bytes, all zero: plain TCP
_ANSWER = struct.Struct("<QBBBB")  # size of the answer; major, minor, patch, padding


class WorkerError(UserError):
    """A worker cannot be used; `endpoint` is its "host:port"."""

    def __init__(self, message: str, hint: str = "", endpoint: str = "") -> None:
        super().__init__(message, hint)
        self.endpoint = endpoint

    def __reduce__(self) -> tuple[type[WorkerError], tuple[str, str, str]]:  # type: ignore[override]
        return type(self), (self.message, self.hint, self.endpoint)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a worker listens."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Endpoint:
        """Read "host:port"; raises WorkerError."""
        host, _, port = text.strip().rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise WorkerError(
                f"“{text}” is not the address of a worker.",
                f"Write it as HOST:PORT, such as 192.168.1.20:{DEFAULT_PORT}.",
                text,
            )
        if ":" in host or any(character in host for character in " /@[]"):
            raise WorkerError(
                f"“{host}” is not a host that llama.cpp can reach.", "Give a name or an IPv4 address.", text
            )
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        return self.host == "localhost" or self.host.startswith("127.")


def check_worker(text: str, patience: float = PATIENCE) -> None:
    """Greet the worker at "host:port"; raises WorkerError if none answers or its version differs."""
    endpoint = Endpoint.parse(text)
    try:
        version = _greet(endpoint, patience)
    except TimeoutError:
        raise WorkerError(
            f"The worker at {endpoint} does not answer.",
            "It serves one program at a time and may be busy, or a firewall blocks it.",
            text,
        ) from None
    except OSError as error:
        raise WorkerError(
            f"There is no worker at {endpoint}: {error.strerror or error}.",
            f"Start one there: draftscope worker --host {endpoint.host} --port {endpoint.port}",
            text,
        ) from None
    if version is None:
        raise WorkerError(
            f"The program that listens at {endpoint} is not a llama.cpp worker.", "Check the port.", text
        )
    if version[0] != VERSION[0] or version[1] > VERSION[1]:
        raise WorkerError(
            f"The worker at {endpoint} speaks version {version[0]}.{version[1]} of llama.cpp's protocol, and "
            f"this program {VERSION[0]}.{VERSION[1]}.",
            "Use the same version of Draftscope or llama.cpp on both machines.",
            text,
        )


def _greet(endpoint: Endpoint, patience: float) -> tuple[int, int] | None:
    """The version that the worker answers with; None if the answer does not come from a worker."""
    hello = struct.pack("<BQ", _HELLO, _CAPABILITIES) + bytes(_CAPABILITIES)
    with socket.create_connection((endpoint.host, endpoint.port), patience) as connection:
        connection.settimeout(patience)
        connection.sendall(hello)
        answer = b""
        while len(answer) < _ANSWER.size:
            part = connection.recv(64)
            if not part:
                return None
            answer += part
        # Reset rather than linger: the worker is free for the next program at once.
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
    size, major, minor, _patch, _padding = _ANSWER.unpack(answer[: _ANSWER.size])
    return (major, minor) if size == 4 + _CAPABILITIES else None


def lost_workers(endpoints: tuple[str, ...]) -> tuple[str, ...]:
    """The `endpoints` where no worker answers."""
    lost = []
    for endpoint in endpoints:
        try:
            check_worker(endpoint)
        except WorkerError:
            lost.append(endpoint)
    return tuple(lost)
