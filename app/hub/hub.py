"""Access to the Hub: a client with limits on answers, offline mode, and sentences for failures. The Hugging
Face token is stored where huggingface_hub stores it, never in settings or logs."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import huggingface_hub
from huggingface_hub import constants, get_session, set_client_factory
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status
from typing_extensions import override

from app import __version__
from app.base import processes
from app.base.files import DamagedError, check_count, read_file, reason
from app.engine.errors import UserError
from app.hub.errors import HubError, Trouble, explain, offline_error, unusable_answer


def is_forced_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids using the network, regardless of the switch. Quick."""
    return huggingface_hub.is_offline_mode()


_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


@dataclass(frozen=True, slots=True)
class KeptToken:
    """The source of the token in use; never the token itself."""

    place: str  # a file, or the name of an environment variable
    by_variable: bool

    def __str__(self) -> str:
        return f"the variable {self.place}" if self.by_variable else self.place


def kept_token() -> KeptToken | None:
    """The source of the token in use; None without a token. Quick, without a request."""
    for name in _VARIABLES:
        if os.environ.get(name, "").strip():
            return KeptToken(name, by_variable=True)
    path = Path(constants.HF_TOKEN_PATH)
    return KeptToken(str(path), by_variable=False) if _read(path) else None


def save_token(hub: Hub, token: str) -> None:
    """Check a token with the Hub, and save it. Raises UserError if it is refused, HubError if the Hub
    cannot be asked."""
    token = token.strip()
    if not token or not token.isascii() or any(letter.isspace() for letter in token):
        raise UserError(
            "That is not a token.", "A token starts with hf_; copy it from your settings on the Hub."
        )
    if (kept := kept_token()) and kept.by_variable:
        raise UserError(
            f"{kept.place} is set, and takes precedence over any other token.", "Change it there."
        )
    with hub.asking("the token"):
        try:
            huggingface_hub.login(token, add_to_git_credential=False)
        except (ValueError, huggingface_hub.errors.HfHubHTTPError) as error:
            code = getattr(getattr(error, "response", None), "status_code", 401)
            if code not in (400, 401, 403):
                raise
            # Without its cause, whose text could hold the token.
            raise UserError("The Hub does not know this token.", "Make a new one with read access.") from None


def forget_token() -> None:
    """Remove the token in use from this computer; others that huggingface_hub stores by name stay. Raises
    UserError if an environment variable sets it, or if its file cannot be changed."""
    from huggingface_hub.utils import get_stored_tokens  # which loads all of the client

    kept = kept_token()
    if kept is not None and kept.by_variable:
        raise UserError(f"The token comes from {kept}.", "Unset it there, then start Draftscope again.")
    path = Path(constants.HF_TOKEN_PATH)
    token = _read(path)
    for name, stored in get_stored_tokens().items():
        if token and stored.strip() == token:
            with contextlib.suppress(OSError):  # its last step needs git, which may be missing
                huggingface_hub.logout(name)
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise _not_removed(path, reason(error)) from error
    if token and token in get_stored_tokens().values():
        raise _not_removed(Path(constants.HF_STORED_TOKENS_PATH), "it is stored under a name as well")


def _not_removed(path: Path, why: str) -> UserError:
    return UserError(f"The token was not removed: {why}.", f"Delete {path} by hand.")


def _read(path: Path) -> str:
    try:
        return read_file(path).decode().strip()
    except (OSError, ValueError):
        return ""


ANSWER_SECONDS = 20.0  # without one byte of an answer
WHOLE_SECONDS = 60.0  # for a whole answer; for a file, until its bytes begin
LARGEST_LISTING = 2**25  # bytes; a repository of 100,000 files has 25 million
LARGEST_ANSWER = 2**20  # bytes, of whatever else is asked, and of refusals
FILE = {"draftscope.most": None}
"""The extensions of a request for a file: its bytes have no limit here."""
_LISTING = {"draftscope.most": LARGEST_LISTING}


class Hub:
    """The Hub at an address, by default HF_ENDPOINT's. Safe from any thread."""

    def __init__(self, offline: Callable[[], bool] = lambda: False, endpoint: str = "") -> None:
        """`offline` is asked before every request; HF_HUB_OFFLINE counts too."""
        self._offline = offline
        self.endpoint = endpoint or constants.ENDPOINT

    @property
    def is_offline(self) -> bool:
        return self._offline() or is_forced_offline()

    @contextlib.contextmanager
    def asking(self, subject: str) -> Iterator[None]:
        """A context for one request about `subject`; raises HubError, also in offline mode."""
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
        """One GET, within `asking`; returns JSON with a limited number of values. The client's own listings
        retry for half a minute before they report a missing connection; here a person is waiting. They also
        take ten times as long for a repository with 100,000 files."""
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


_replacing = threading.Lock()


def bounded_session() -> httpx2.Client:
    """huggingface_hub's client, with limits on all its requests. It is looked up each time, because it can be
    closed."""
    with _replacing:  # a second replacement would close the client that the first has just given out
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
    """A client whose requests end in time, even if a server sends a byte now and then."""

    @override
    def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """The same, within WHOLE_SECONDS. (A waiting read cannot be ended from outside: its thread continues
        until its own limits end it.)"""
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
    """Set a missing time limit: the client would wait for ever, and not all calls take one. Ask for an
    uncompressed answer: a few kilobytes can unpack to gigabytes."""
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
