"""A server's address, for lanes, journals and reports; its key; and sentences about it.

A key comes from an environment variable or the system's keyring, and is never in settings, logs or results.
`keyring` is optional: if it is not installed, or the system has no store, only variables work.
"""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit

from app.base import numbers
from app.engine.errors import SettingError, UserError
from app.engine.types import ServerInfo, WholeServer

_SCHEMES = ("http://", "https://")
_LOCAL = ("localhost", "::1")


def is_address(path: str) -> bool:
    """Whether a model's path is a server's address."""
    return path.startswith(_SCHEMES)


def server_address(text: str) -> str:
    """The normal form of an address: http://HOST:PORT, without a final slash or /v1. Raises SettingError."""
    written = text.strip()
    hint = "Write http://HOST:PORT, such as http://127.0.0.1:8080."
    if "://" not in written:
        written = f"http://{written}"
    try:
        parts = urlsplit(written)
        port = parts.port
    except ValueError:
        raise SettingError(f"“{text}” is not the address of a server.", hint) from None
    if "@" in parts.netloc:  # it would stand in results
        raise SettingError("An address cannot contain a name or a password.", "Enter the key separately.")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise SettingError(f"“{text}” is not the address of a server.", hint)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}"


def is_local(address: str) -> bool:
    """Whether a server is on this machine, so that no proxy is used."""
    host = urlsplit(address).hostname or ""
    return host in _LOCAL or host.startswith("127.")


_SERVICE = "draftscope"


def find_key(address: str, variable: str = "") -> str:
    """The key for a server: from the named variable, else the stored one, else "". Raises UserError if the
    variable is empty or not a possible key."""
    if not variable:
        return kept_key(address)
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UserError(f"The environment variable {variable} is not set.", "Set it to the server's key.")
    return checked_key(key)


def checked_key(key: str) -> str:
    """Check that a key can be sent; raises UserError (without the key)."""
    if not key.isascii() or not key.isprintable() or any(letter.isspace() for letter in key):
        raise UserError("That is not a key: it has spaces or special characters.", "Copy it again.")
    return key


def can_keep() -> bool:
    """Whether this system can store a key."""
    return _keyring() is not None


def kept_key(address: str) -> str:
    """The stored key for a server; "" without one."""
    keyring = _keyring()
    if keyring is None:
        return ""
    try:
        return keyring.get_password(_SERVICE, address) or ""
    except keyring.errors.KeyringError:  # locked, or its service is gone: the server will ask for a key
        return ""


def keep_key(address: str, key: str) -> None:
    """Store a key for a server; an empty one removes it. Raises UserError."""
    keyring = _keyring()
    if keyring is None:
        raise UserError("This system has no keyring.", "Install keyring, or use an environment variable.")
    try:
        if key:
            keyring.set_password(_SERVICE, address, checked_key(key))
        elif keyring.get_password(_SERVICE, address):
            keyring.delete_password(_SERVICE, address)
    except keyring.errors.KeyringError as error:
        why = type(error).__name__  # its text could hold the key
        raise UserError(f"The keyring did not save the key ({why}).", "Unlock it, then try again.") from None


def _keyring() -> Any:
    """The library, if it is installed and the system has a store; else None."""
    try:
        import keyring
        import keyring.errors
    except ImportError:
        return None
    return keyring if getattr(keyring.get_keyring(), "priority", 0) > 0 else None


def server_words(server: ServerInfo) -> str:
    """A server's description in a sentence."""
    version = f" {server.version}" if server.version else ""
    drafts = f"drafts with {numbers.listed(server.speculation)}" if server.speculation else "does not draft"
    slots = f", {numbers.count(server.slots, 'slot')}" if server.slots else ""
    settings = "".join(f", {name} {value:.4g}" for name, value in _numbers(server))
    by_default = f"; by default{settings.removeprefix(',')}" if settings else ""
    return f"{server.kind}{version} at {server.address}: {server.model}, {drafts}{slots}{by_default}."


def fate_words(server: ServerInfo) -> str:
    """A sentence on what a server reports about its drafts."""
    if not server.speculation:
        return "Without drafts every token is plain."
    if server.tells_fates:
        return "It reports how many tokens of every draft were accepted; p and q are unknown."
    return "It does not report what was accepted: fates, p and q are unknown."


def whole_words(whole: WholeServer) -> str:
    """The drafts of a whole server in a few words; "" if it had none."""
    share = numbers.percent(whole.accepted / whole.drafted) if whole.drafted else ""
    return f"{share} of {whole.drafted:,} drafted tokens" if share else ""


def baseline_words(server: ServerInfo) -> str:
    """A sentence on what a server's answers can be compared with."""
    if not server.speculation:
        return "It is a baseline for itself and for other servers of the same model."
    if server.switches_off:
        return "It answers without drafts on request: that is its baseline."
    return "It cannot turn drafting off: its baseline is a second server of the same model without drafts."


def _numbers(server: ServerInfo) -> list[tuple[str, float]]:
    return [(name, value) for name, value in server.settings.items() if not isinstance(value, str)]
