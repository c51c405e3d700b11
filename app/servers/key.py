"""The key of a server: from an environment variable or the system's keyring, never in a setting, a log or a
result.

`keyring` is optional: where it is not installed, or the system has no store, only variables serve.
"""

from __future__ import annotations

import os
from typing import Any

from app.engine.errors import UserError

_SERVICE = "draftscope"


def find_key(address: str, variable: str = "") -> str:
    """The key for a server: that of the named variable, else the kept one, else "". Raises UserError where
    the variable is empty, and where it holds what no key can be."""
    if not variable:
        return kept_key(address)
    key = os.environ.get(variable, "").strip()
    if not key:
        raise UserError(f"The environment variable {variable} is not set.", "Put the server's key into it.")
    return checked_key(key)


def checked_key(key: str) -> str:
    """A key that can be sent; raises UserError, without the key."""
    if not key.isascii() or not key.isprintable() or any(letter.isspace() for letter in key):
        raise UserError("That is not a key: it has spaces or special characters.", "Copy it again.")
    return key


def can_keep() -> bool:
    """Whether this system can keep a key."""
    return _keyring() is not None


def kept_key(address: str) -> str:
    """The key that the system keeps for a server; "" without one."""
    keyring = _keyring()
    if keyring is None:
        return ""
    try:
        return keyring.get_password(_SERVICE, address) or ""
    except keyring.errors.KeyringError:  # locked, or its service is gone: the server will ask for a key
        return ""


def keep_key(address: str, key: str) -> None:
    """Keep a key for a server; an empty one removes it. Raises UserError."""
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
        raise UserError(f"The keyring did not keep the key ({why}).", "Unlock it, then try again.") from None


def _keyring() -> Any:
    """The library, if it is installed and the system has a store; else None."""
    try:
        import keyring
        import keyring.errors
    except ImportError:
        return None
    return keyring if getattr(keyring.get_keyring(), "priority", 0) > 0 else None
