"""The address of a server, as it stands in lanes, journals and reports."""

from __future__ import annotations

from urllib.parse import urlsplit

from app.engine.errors import SettingError

_SCHEMES = ("http://", "https://")
_LOCAL = ("localhost", "::1")


def is_address(path: str) -> bool:
    """Whether the path of a model is the address of a server."""
    return path.startswith(_SCHEMES)


def server_address(text: str) -> str:
    """An address in one spelling: http://HOST:PORT, without /v1 and a slash at its end. Raises
    SettingError."""
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
        raise SettingError("An address cannot hold a name or a password.", "Give a key apart from it.")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise SettingError(f"“{text}” is not the address of a server.", hint)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    path = parts.path.rstrip("/").removesuffix("/v1")
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{path}"


def is_local(address: str) -> bool:
    """Whether a server is on this machine: no proxy stands between."""
    host = urlsplit(address).hostname or ""
    return host in _LOCAL or host.startswith("127.")
