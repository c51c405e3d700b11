"""What can go wrong with a server, each in one sentence."""

from __future__ import annotations

import re

import httpx2
import msgspec

from app.engine.errors import UserError

_LONGEST = 200  # characters of a server's own words
_WORDS = msgspec.json.Decoder()


class ServerError(UserError):
    """A server cannot be asked, or what it says cannot be used. `status` is that of its refusal, 0 without
    one."""

    status = 0


def of_transport(error: Exception, address: str, patience: float) -> ServerError:
    """The sentence for what httpx2 raised while a server was asked."""
    match error:
        case httpx2.ConnectTimeout():
            return ServerError(f"No server answers at {address}.", "Check the address and the network.")
        case TimeoutError():
            return ServerError(
                f"The server at {address} has not ended its answer within {2 * patience:g} s.",
                "It may be busy with other requests, or hang: look at its log.",
            )
        case httpx2.TimeoutException():
            return ServerError(
                f"The server at {address} has sent nothing for {patience:g} s.",
                "It may be busy with other requests, or hang: look at its log.",
            )
        case httpx2.ProxyError():
            return ServerError(
                f"The proxy between here and {address} refused: {_shortened(str(error))}.",
                "Check HTTP_PROXY and NO_PROXY.",
            )
        case httpx2.ConnectError():
            return ServerError(
                f"No server answers at {address}: {_cause(error)}.",
                "Start it, or check the address.",
            )
        case _:
            return ServerError(
                f"The server at {address} broke off its answer.", "Look at its log: it may have ended."
            )


def of_status(status: int, body: bytes, address: str, location: str = "", *, keyed: bool) -> ServerError:
    """The error for an answer that is no success; `keyed`: a key was sent."""
    error = _refusal(status, body, address, location, keyed=keyed)
    error.status = status
    return error


def _refusal(status: int, body: bytes, address: str, location: str = "", *, keyed: bool) -> ServerError:
    told = _own_words(body)
    said = f": {told}" if told else ""
    if 300 <= status < 400:
        return ServerError(
            f"The server at {address} redirects to {_shortened(location) or 'another address'}.",
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
            f"What answers at {address} does not offer what is asked of it ({status}){said}.",
            "Give the address of a llama-server or of vLLM, without a path.",
        )
    if status in (429, 503):
        return ServerError(
            f"The server at {address} is busy or not ready ({status}){said}.", "Try again soon."
        )
    return ServerError(f"The server at {address} refused the request ({status}){said}.")


def strange(address: str, what: str) -> ServerError:
    """The sentence for an answer that a llama-server or vLLM does not give."""
    return ServerError(
        f"The server at {address} {what}.", "Only llama-server and vLLM, or a server that answers as they do."
    )


def _own_words(body: bytes) -> str:
    """What a server says of its refusal."""
    try:
        told = _WORDS.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    for key in ("error", "message", "detail"):
        if isinstance(told, dict):
            told = told.get(key, told)
    return _shortened(told) if isinstance(told, str) else ""


def _cause(error: Exception) -> str:
    """Why nothing was reached, in the system's words without their number."""
    words = re.sub(r"^\[Errno -?\d+\] ", "", _shortened(str(error)))
    return words[:1].lower() + words[1:]


def _shortened(text: str) -> str:
    """Strangers' text as the end of a sentence: one line, not endless."""
    line = " ".join(text.split()).removesuffix(".")
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
