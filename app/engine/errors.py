"""The errors meant for people. Every other exception is a bug."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.engine.types import Role


class UserError(Exception):
    """A user's request cannot be met.

    `message` is one sentence on what is wrong, `hint` what to do about it. Both are shown where the user
    acted. `role` is the model that could not be opened; None for other errors.
    """

    role: Role | None = None

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[type[UserError], tuple[str, str]]:
        return type(self), (self.message, self.hint)


class ModelFileError(UserError):
    """A model file cannot be opened or used."""


def no_model_at(path: Path) -> ModelFileError:
    """The error for a model file that does not exist."""
    with contextlib.suppress(OSError):  # the working folder may be gone
        path = path.absolute()
    return ModelFileError(
        f"{path.name or path} does not exist.", f"Looked for {path}. Choose a different model file."
    )


class NoRoomError(ModelFileError):
    """A device has too little memory for a model.

    `of_context`: the file was read, but its context found no room.
    """

    of_context = False


class PairError(UserError):
    """A draft does not fit its target."""


class SettingError(UserError):
    """A setting is unknown or out of its range."""


class PromptError(UserError):
    """A prompt cannot be used (empty, longer than the context, refused by the template)."""


class DrafterError(UserError):
    """A plug-in drafter cannot be used."""


class TraceError(UserError):
    """A trace file cannot be read."""
