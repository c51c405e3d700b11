"""The Hugging Face token, kept where huggingface_hub keeps it, never in the settings, never in a log; and the
variable for offline mode."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import huggingface_hub
from huggingface_hub import constants

from app.base.files import read_file, reason
from app.engine.errors import UserError

if TYPE_CHECKING:
    from app.hub.hub import Hub  # which loads all of the client


def is_forced_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids the use of the network, whatever the switch says. Quick."""
    return huggingface_hub.is_offline_mode()


_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


@dataclass(frozen=True, slots=True)
class KeptToken:
    """Where the token in use comes from; never the token itself."""

    place: str  # a file, or the name of an environment variable
    by_variable: bool

    def __str__(self) -> str:
        return f"the variable {self.place}" if self.by_variable else self.place


def kept_token() -> KeptToken | None:
    """Where the token in use comes from; None if there is none. Quick, without a request."""
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
    """Remove the token in use from this computer; others that huggingface_hub keeps by name stay. Raises
    UserError if an environment variable sets it, and if its file cannot be changed."""
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
