"""Access to the Hub: one client whose answers have limits, offline mode, and every failure as a sentence."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx2
from huggingface_hub import constants, get_session, set_client_factory
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status
from typing_extensions import override

from app import __version__
from app.base import processes
from app.base.files import DamagedError, check_count
from app.hub.errors import HubError, Trouble, explain, offline_error, unusable_answer
from app.hub.token import is_forced_offline

ANSWER_SECONDS = 20.0  # without one byte of an answer
WHOLE_SECONDS = 60.0  # for a whole answer; for a file, until its bytes begin
LARGEST_LISTING = 2**25  # bytes; a repository of 100,000 files has 25 million
LARGEST_ANSWER = 2**20  # bytes, of whatever else is asked, and of refusals
FILE = {"draftscope.most": None}
"""The extensions of a request for a file: its bytes have no limit here."""
_LISTING = {"draftscope.most": LARGEST_LISTING}


class Hub:
    """The Hub at one address, by default where HF_ENDPOINT points. Safe from any thread."""

    def __init__(self, offline: Callable[[], bool] = lambda: False, endpoint: str = "") -> None:
        """`offline` is asked before every request; HF_HUB_OFFLINE counts too."""
        self._offline = offline
        self.endpoint = endpoint or constants.ENDPOINT

    @property
    def is_offline(self) -> bool:
        return self._offline() or is_forced_offline()

    @contextlib.contextmanager
    def asking(self, subject: str) -> Iterator[None]:
        """For one question about `subject`; raises HubError, also in offline mode."""
        if self.is_offline:
            raise offline_error()
        bounded_session()
        try:
            yield
        except (KeyError, TypeError, AttributeError) as error:
            raise unusable_answer(f"its data about {subject} has an unknown form") from error
        except Exception as error:
            if isinstance(error, ValueError) and not isinstance(error, OSError):
                raise unusable_answer(f"its data about {subject} has an unknown form") from error
            if (known := explain(error, subject)) is None:
                raise
            raise known from error

    def get(self, path: str, query: Mapping[str, Any]) -> bytes:
        """One GET, within `asking`; returns JSON of a number of values that memory has room for. The client's
        own listings try again for half a minute before they report a missing connection; here a person waits,
        and can try again. They also take ten times as long for a repository with 100,000 files."""
        headers = build_hf_headers(library_name="draftscope", library_version=__version__)
        response = bounded_session().get(
            f"{self.endpoint}{path}", params=dict(query), headers=headers, extensions=_LISTING
        )
        hf_raise_for_status(response)
        try:
            check_count(response.content)
        except DamagedError as error:
            raise unusable_answer(str(error)) from None
        return response.content


def bounded_session() -> httpx2.Client:
    """huggingface_hub's client, for all that is asked through it, with limits. It is looked up each time,
    because it can be closed."""
    session = get_session()
    if not isinstance(session, _BoundedClient):
        asks = session.event_hooks["request"]
        hooks: dict[str, list[Callable[..., Any]]] = {
            "request": [*asks, _limit_request],
            "response": [_limit_response],
        }
        set_client_factory(lambda: _BoundedClient(event_hooks=hooks, follow_redirects=True, timeout=None))
        session = get_session()
    return session


class _BoundedClient(httpx2.Client):
    """A client whose requests end in time, also if a server sends a byte now and then."""

    @override
    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """The same, within WHOLE_SECONDS. (A read that waits cannot be ended from outside: its thread
        continues until its own limits end it.)"""
        answers: queue.SimpleQueue[httpx2.Response | BaseException] = queue.SimpleQueue()

        def ask() -> None:
            try:
                answers.put(httpx2.Client.send(self, request, **options))
            except BaseException as error:  # raised below
                answers.put(error)

        processes.start(threading.Thread(target=ask, name="Hub request", daemon=True))
        try:
            answer = answers.get(timeout=WHOLE_SECONDS)
        except queue.Empty:
            raise _slow() from None
        if isinstance(answer, BaseException):
            raise answer
        return answer


def _limit_request(request: httpx2.Request) -> None:
    """Set a time limit where there is none: the client would wait for ever, and not all of its calls take
    one. And ask for an answer whose size is that of its bytes: a few kilobytes can unpack to gigabytes."""
    if not any((request.extensions.get("timeout") or {}).values()):
        request.extensions["timeout"] = httpx2.Timeout(ANSWER_SECONDS).as_dict()
    request.headers["Accept-Encoding"] = "identity"


def _limit_response(response: httpx2.Response) -> None:
    """Limit what will be read. Raises HubError."""
    request = response.request
    packed = response.headers.get("content-encoding", "identity") != "identity"
    if packed and request.method != "HEAD":
        raise unusable_answer("it is compressed, which was not asked for")
    most = request.extensions.get("draftscope.most", LARGEST_ANSWER)
    if not response.is_success:
        most = LARGEST_ANSWER
    if most is not None:
        response.stream = _BoundedStream(response.stream, most)


class _BoundedStream(httpx2.SyncByteStream):
    """A body that ends, in bytes and in time."""

    def __init__(self, stream: Any, most: int) -> None:
        self._stream = stream
        self._most = most
        self._ends = time.monotonic() + WHOLE_SECONDS

    @override
    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for piece in self._stream:
            size += len(piece)
            if size > self._most:
                raise unusable_answer(f"it has more than {self._most // 2**20} MB")
            if time.monotonic() > self._ends:
                raise _slow()
            yield piece

    @override
    def close(self) -> None:
        self._stream.close()


def _slow() -> HubError:
    return HubError(
        Trouble.UNREACHABLE,
        f"The Hub's answer has not ended within {WHOLE_SECONDS:g} s.",
        "Check the connection, or try again later.",
    )
