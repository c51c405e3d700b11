"""HTTP requests that the caller may stop at any time; and sentences for what can go wrong."""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import httpx2
import msgspec

from app.base.files import DamagedError, decode_shallow
from app.engine.errors import UserError
from app.servers.address import is_local

_LONGEST = 200  # characters of a server's own words
_WORDS = msgspec.json.Decoder()


class ServerError(UserError):
    """A server cannot be asked, or its answer cannot be used. `status` is that of its refusal, 0 without
    one."""

    status = 0


def of_transport(error: Exception, address: str, patience: float) -> ServerError:
    """The sentence for an error of httpx2 during a request."""
    match error:
        case httpx2.ConnectTimeout():
            return ServerError(f"No server answers at {address}.", "Check the address and the network.")
        case TimeoutError():
            return ServerError(
                f"The server at {address} did not finish its answer within {2 * patience:g} s.",
                "It may be busy with other requests, or hang: check its log.",
            )
        case httpx2.TimeoutException():
            return ServerError(
                f"The server at {address} has sent nothing for {patience:g} s.",
                "It may be busy with other requests, or hang: check its log.",
            )
        case httpx2.ProxyError():
            return ServerError(
                f"The proxy between here and {address} refused: {_shortened(str(error))}.",
                "Check HTTP_PROXY and NO_PROXY.",
            )
        case httpx2.ConnectError():
            return ServerError(
                f"No server answers at {address}: {_cause(error)}.", "Start it, or check the address."
            )
        case _:
            return ServerError(
                f"The server at {address} stopped in the middle of its answer.",
                "Check its log: it may have ended.",
            )


def of_status(status: int, body: bytes, address: str, location: str = "", *, keyed: bool) -> ServerError:
    """The error for an unsuccessful status; `keyed`: a key was sent."""
    error = _refusal(status, body, address, location, keyed=keyed)
    error.status = status
    return error


def _refusal(status: int, body: bytes, address: str, location: str = "", *, keyed: bool) -> ServerError:
    told = _own_words(body)
    said = f": {told}" if told else ""
    if 300 <= status < 400:
        return ServerError(
            f"The server at {address} redirects to {_shortened(location) or 'a different address'}.",
            "Give that address, if you trust it.",
        )
    if status in (401, 403):
        what = "refuses the key" if keyed else "wants a key"
        return ServerError(
            f"The server at {address} {what} ({status}).",
            "Type its key where you chose it; on the command line: --server-key-env.",
        )
    if status in (404, 405, 501):
        return ServerError(
            f"The server at {address} does not support this request ({status}){said}.",
            "Give the address of a llama-server or of vLLM, without a path.",
        )
    if status in (429, 503):
        return ServerError(
            f"The server at {address} is busy or not ready ({status}){said}.", "Try again soon."
        )
    return ServerError(f"The server at {address} refused the request ({status}){said}.")


def strange(address: str, what: str) -> ServerError:
    """The sentence for an answer that llama-server and vLLM never give."""
    return ServerError(
        f"The server at {address} {what}.", "Use llama-server, vLLM, or a server that answers as they do."
    )


def _own_words(body: bytes) -> str:
    """A server's own explanation of its refusal."""
    try:
        told = _WORDS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    for key in ("error", "message", "detail"):
        if isinstance(told, dict):
            told = told.get(key, told)
    return _shortened(told) if isinstance(told, str) else ""


def _cause(error: Exception) -> str:
    """Why no server was reached, in the system's words without their number."""
    words = re.sub(r"^\[Errno -?\d+\] ", "", _shortened(str(error)))
    return words[:1].lower() + words[1:]


def _shortened(text: str) -> str:
    """Foreign text for the end of a sentence: one line, limited length."""
    line = " ".join(text.split()).removesuffix(".")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


PATIENCE = 300.0
"""Seconds without a byte after which a server counts as hanging. (A long prompt takes minutes on a slow
machine.)"""
_CONNECT = 10.0  # seconds
_LOOK = 0.05  # seconds between two checks of `stopping`
LONGEST_LINE = 2**20  # bytes; a chunk of a stream has some hundred
LARGEST_ANSWER = 2**24  # bytes


class Stopped(Exception):  # noqa: N818 - what happened, not a mistake
    """The caller stopped the request; the connection is closed."""


class StreamLine(NamedTuple):
    """A line of a stream, and when it arrived (time.perf_counter) or, if the caller was busy, was taken."""

    at: float
    text: bytes


class Asker:
    """Sends requests to one server. Safe from any number of threads, each with its own request."""

    def __init__(
        self, address: str, key: str, stopping: Callable[[], bool], patience: float = PATIENCE
    ) -> None:
        """Requests are stopped as soon as `stopping` returns True."""
        self.address = address
        self._key = key
        self._stopping = stopping
        self._patience = patience
        # Reading the certificates takes a tenth of a second; without https nothing needs them.
        self._verify = httpx2.create_ssl_context() if address.startswith("https:") else False

    def ask(self, path: str, body: object | None = None) -> Any:
        """The JSON answer of a path to GET, or to POST with a `body`. Raises ServerError, Stopped."""
        answer = b"".join(line.text for line in self._pieces(path, body, _whole))
        return self._decoded(answer)

    def text(self, path: str) -> str:
        """The text answer of a path to GET. Raises ServerError, Stopped."""
        return b"".join(line.text for line in self._pieces(path, None, _whole)).decode(errors="replace")

    def stream(self, path: str, body: object) -> Iterator[tuple[float, dict[str, Any]]]:
        """The events of a streamed answer to POST: (arrival time, JSON). Raises ServerError, Stopped."""
        for line in self._pieces(path, body, _lines):
            name, _, data = line.text.partition(b":")
            if name not in (b"data", b"error") or data.strip() == b"[DONE]":
                continue
            event = self._decoded(data)
            if not isinstance(event, dict):
                raise strange(self.address, "streams something that is not an answer")
            if name == b"error" or "error" in event:
                raise of_status(_code(event), self._without_key(data), self.address, keyed=bool(self._key))
            yield line.at, event

    def _without_key(self, refusal: bytes) -> bytes:
        """Remove the key from a server's own words, which may quote it."""
        return refusal.replace(self._key.encode(), b"(the key)") if self._key else refusal

    def _decoded(self, data: bytes) -> Any:
        try:
            return decode_shallow(data)
        except DamagedError as error:
            raise strange(self.address, f"answers with JSON that cannot be used: {error}") from None

    def _pieces(
        self, path: str, body: object | None, cut: Callable[[httpx2.Response, str], AsyncIterator[bytes]]
    ) -> Iterator[StreamLine]:
        """The answer to a request, in pieces. Raises ServerError, Stopped."""
        # The loop runs only while the caller waits for a line: one that is slow makes the server wait, too.
        loop, came, lines = asyncio.new_event_loop(), asyncio.Event(), deque[StreamLine]()

        def put(line: StreamLine) -> None:
            lines.append(line)
            came.set()

        reading = loop.create_task(self._read(path, body, cut, put))
        reading.add_done_callback(lambda _reading: came.set())
        try:
            while lines or not reading.done():
                if self._stopping():
                    raise Stopped
                if lines:
                    yield lines.popleft()
                    continue
                came.clear()
                with contextlib.suppress(TimeoutError):
                    _run(loop, asyncio.wait_for(came.wait(), _LOOK))
            reading.result()
        finally:
            reading.cancel()
            _run(loop, asyncio.gather(reading, return_exceptions=True))
            _run(loop, loop.shutdown_asyncgens())
            loop.close()

    async def _read(
        self,
        path: str,
        body: object | None,
        cut: Callable[[httpx2.Response, str], AsyncIterator[bytes]],
        put: Callable[[StreamLine], None],
    ) -> None:
        headers = {"Accept-Encoding": "identity"} | (
            {"Authorization": f"Bearer {self._key}"} if self._key else {}
        )
        if body is not None:
            headers["Content-Type"] = "application/json"
        limits = httpx2.Timeout(self._patience, connect=min(_CONNECT, self._patience))
        try:
            async with (
                # A stream lasts as long as tokens come; any other answer has to end.
                asyncio.timeout(2 * self._patience if cut is _whole else None),
                httpx2.AsyncClient(
                    verify=self._verify, timeout=limits, trust_env=not is_local(self.address)
                ) as client,
                client.stream(
                    "GET" if body is None else "POST",
                    self.address + path,
                    content=None if body is None else msgspec.json.encode(body),
                    headers=headers,
                ) as response,
            ):
                if response.headers.get("content-encoding", "identity") != "identity":
                    raise strange(self.address, "compresses its answer, which was not asked for")
                if not response.is_success:
                    async with asyncio.timeout(2 * self._patience):
                        refusal = b"".join([piece async for piece in _whole(response, self.address)])
                    raise of_status(
                        response.status_code,
                        self._without_key(refusal),
                        self.address,
                        response.headers.get("location", ""),
                        keyed=bool(self._key),
                    )
                async for piece in cut(response, self.address):
                    put(StreamLine(time.perf_counter(), piece))
        except (httpx2.HTTPError, TimeoutError) as error:
            raise of_transport(error, self.address, self._patience) from None  # its request holds the key
        except httpx2.InvalidURL:
            raise strange(self.address, "has an address that cannot be used") from None


def _run(loop: asyncio.AbstractEventLoop, work: Awaitable[object]) -> None:
    """Run a loop until `work` has ended: on another thread if this one runs a loop already, as in a notebook.
    Raises what `work` raises."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        loop.run_until_complete(work)
        return
    with ThreadPoolExecutor(1, "asking a server") as beside:
        beside.submit(loop.run_until_complete, work).result()


async def _whole(response: httpx2.Response, address: str) -> AsyncIterator[bytes]:
    size = 0
    async for piece in response.aiter_raw():
        size += len(piece)
        if size > LARGEST_ANSWER:
            raise strange(address, f"sends more than {LARGEST_ANSWER // 2**20} MB")
        yield piece


async def _lines(response: httpx2.Response, address: str) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in response.aiter_raw():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.strip(b"\r")
        if len(rest) > LONGEST_LINE:
            raise strange(address, f"sends a line of more than {LONGEST_LINE // 2**20} MB")
    if rest:
        yield rest


def _code(event: dict[str, Any]) -> int:
    """The status of an error within a stream."""
    error = event.get("error", event)
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500
