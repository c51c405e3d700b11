"""Errors of the Hub and of downloads, in sentences; the only module that interprets them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

import httpx2
from huggingface_hub import errors, get_token
from huggingface_hub.utils import parse_ratelimit_headers

from app.base.files import FULL, reason
from app.engine.errors import UserError

LONGEST_WAIT = 3600.0  # seconds; the longest wait that a server may ask for


class Trouble(StrEnum):
    """The kind of error, from which the window offers help."""

    OFFLINE = "offline"  # offline mode is on
    GATED = "gated"  # a token is needed, and the repo's conditions accepted
    DENIED = "denied"  # there is a token, but it does not give access
    NOT_FOUND = "not found"
    BUSY = "busy"  # 429
    UNREACHABLE = "unreachable"  # no connection, a cut one, no answer in time
    SERVER = "server"  # 5xx, or an answer that cannot be used
    CHANGED = "changed"  # the file has changed since it was looked up
    LOCKED = "locked"  # another program is downloading the same file
    NO_SPACE = "no space"
    DISK = "disk"  # the folder cannot be written
    CHECKSUM = "checksum"
    NOT_DELETED = "left"  # it was cancelled, but something could not be deleted
    NAME = "name"  # a name that would leave the folder
    CRASHED = "crashed"  # the download process ended


PASSING = frozenset({Trouble.BUSY, Trouble.UNREACHABLE, Trouble.SERVER, Trouble.CHANGED, Trouble.LOCKED})
"""Trouble that a retry may solve."""


class HubError(UserError):
    """Something failed at the Hub, in the network or on the disk.

    `wait` is how many seconds the server asked to wait before a retry; None if it did not say.
    """

    def __init__(self, trouble: Trouble, message: str, hint: str = "", wait: float | None = None) -> None:
        super().__init__(message, hint)
        self.trouble = trouble
        self.wait = wait

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.trouble, self.message, self.hint, self.wait)


def offline_error() -> HubError:
    return HubError(
        Trouble.OFFLINE, "Offline mode is on: the network is not used.", "Turn it off to search and download."
    )


def unusable_answer(problem: str) -> HubError:
    return HubError(
        Trouble.SERVER,
        f"The Hub's answer cannot be used: {problem}.",
        "Try again later, or check HF_ENDPOINT.",
    )


def explain(error: Exception, subject: str) -> HubError | None:
    """The sentence for an error of the client, the network or the disk; None for a bug.

    `subject` is what was requested, such as "owner/name". The error's own text is not used, because it may
    contain an address with a signature.
    """
    match error:
        case HubError():
            return error
        case errors.OfflineModeIsEnabled():
            return offline_error()
        case errors.GatedRepoError():
            return _gated(subject)
        case errors.RepositoryNotFoundError():
            return HubError(
                Trouble.NOT_FOUND,
                f"The Hub has no repository {subject}, or it is private.",
                "Check the name; for a private one, enter your Hugging Face token.",
            )
        case errors.RemoteEntryNotFoundError() | errors.RevisionNotFoundError():
            return HubError(
                Trouble.NOT_FOUND,
                f"{subject} is not on the Hub.",
                "It may have been renamed: look at the repository's files.",
            )
        case errors.HfHubHTTPError():
            return _status(error, subject)
        case errors.FileMetadataError():
            return unusable_answer("it does not describe the file")
        case httpx2.TimeoutException():
            return HubError(
                Trouble.UNREACHABLE, "The Hub does not answer.", "Check the connection, or try again later."
            )
        case httpx2.ProxyError():
            return HubError(Trouble.UNREACHABLE, "The proxy refuses the connection.", "Check HTTPS_PROXY.")
        case httpx2.ReadError() | httpx2.WriteError() | httpx2.RemoteProtocolError():
            return HubError(Trouble.UNREACHABLE, "The connection was cut.", "Try again in a moment.")
        case httpx2.TransportError():
            return HubError(
                Trouble.UNREACHABLE, "The Hub cannot be reached.", "Check the connection, or go offline."
            )
        case httpx2.HTTPError() | httpx2.InvalidURL():
            return unusable_answer("its address is not valid")
        case RecursionError():  # in JSON that the client reads
            return unusable_answer("it is nested too deep")
        case OSError():
            return disk_error(error)
    return None


def disk_error(error: OSError) -> HubError:
    """The sentence for a file that cannot be written."""
    if error.errno in FULL:
        return HubError(
            Trouble.NO_SPACE,
            "The disk is full. What was downloaded so far is kept.",
            "Free some space, then resume; or cancel to delete what was downloaded.",
        )
    return HubError(
        Trouble.DISK,
        f"The file cannot be written: {reason(error)}.",
        "Check the folder of the Hugging Face cache, or set HF_HOME to a different folder.",
    )


def not_deleted_error(why: OSError, where: Sequence[Path]) -> HubError:
    """The sentence for files of a cancelled download that could not be deleted."""
    return HubError(
        Trouble.NOT_DELETED,
        f"Cancelled, but not all of it could be deleted: {reason(why)}.",
        f"Left on the disk: {', '.join(map(str, where))}. Delete again, or remove it from this list.",
    )


def _gated(subject: str) -> HubError:
    if get_token() is None:
        return HubError(
            Trouble.GATED,
            f"{subject} is gated: it needs a Hugging Face token.",
            "Accept its conditions on its page, then enter a token.",
        )
    return HubError(
        Trouble.DENIED,
        f"{subject} is gated, and your account may not read it yet.",
        "Accept its conditions on its page, or enter a different token.",
    )


def _status(error: errors.HfHubHTTPError, subject: str) -> HubError:
    code = error.response.status_code
    wait = asked_wait(error.response.headers)
    if code == 401:
        return HubError(
            Trouble.GATED if get_token() is None else Trouble.DENIED,
            f"The Hub does not let you read {subject}.",
            "Enter a Hugging Face token that may read it.",
        )
    if code == 403:
        return HubError(
            Trouble.DENIED, f"Your token may not read {subject}.", "Enter a token with read access."
        )
    if code == 404:
        return HubError(Trouble.NOT_FOUND, f"{subject} is not on the Hub.", "Check the name.")
    if code == 429:
        return HubError(
            Trouble.BUSY, "The Hub asks to slow down (429).", "Wait a little; a token raises the limit.", wait
        )
    if code in (408, 416) or code >= 500:
        return HubError(Trouble.SERVER, f"The Hub has a problem ({code}).", "Try again later.", wait)
    return HubError(Trouble.NOT_FOUND, f"The Hub refuses {subject} ({code}).", "Check the name.")


def asked_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asked to wait: Retry-After (seconds or date), or the rate limit's reset."""
    text = headers.get("retry-after", "").strip()
    seconds: float | None = None
    if text.isdigit():
        seconds = float(text)
    elif text:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except ValueError:
            seconds = None
    if seconds is None and (limit := parse_ratelimit_headers(headers)) and limit.remaining == 0:
        seconds = float(limit.reset_in_seconds)
    return None if seconds is None else min(max(seconds, 0.0), LONGEST_WAIT)
