"""The Hugging Face token: kept where huggingface_hub keeps it, never in the settings, never in a log."""

from __future__ import annotations

import os

import huggingface_hub

from app.engine.errors import UserError
from app.hub.hub import Hub


def has_token() -> bool:
    """Whether there is a token, from huggingface_hub's file or from HF_TOKEN."""
    return huggingface_hub.get_token() is not None


def save_token(hub: Hub, token: str) -> None:
    """Try a token out on the Hub and keep it. Raises UserError where it is refused, HubError where the Hub
    cannot be asked."""
    token = token.strip()
    if not token or not token.isascii() or any(letter.isspace() for letter in token):
        raise UserError("That is not a token.", "It begins with hf_; copy it from your settings on the Hub.")
    if os.environ.get("HF_TOKEN"):
        raise UserError("HF_TOKEN is set, and comes before any other token.", "Change it there.")
    with hub.asking("the token"):
        try:
            huggingface_hub.login(token, add_to_git_credential=False)
        except (ValueError, huggingface_hub.errors.HfHubHTTPError) as error:
            code = getattr(getattr(error, "response", None), "status_code", 401)
            if code not in (400, 401, 403):
                raise
            # Without its cause: that one's text could hold the token.
            raise UserError("The Hub does not know this token.", "Make a new one with read access.") from None


def forget_token() -> None:
    """Remove the token that is kept; one in HF_TOKEN stays."""
    huggingface_hub.logout()
