"""The speculative engine. No Qt, no network; usable from a script of ten lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.engine.errors import UserError
from app.engine.types import GenerationRequest, Message, ModelOptions, Sampling

if TYPE_CHECKING:
    from app.engine.engine import Engine
    from app.engine.record.stats import Statistics

__all__ = ["Engine", "GenerationRequest", "Message", "ModelOptions", "Sampling", "Statistics", "UserError"]


def __getattr__(name: str) -> Any:
    # llama.cpp is loaded only when an engine is created: the window imports only the types.
    if name == "Engine":
        from app.engine.engine import Engine

        return Engine
    if name == "Statistics":
        from app.engine.record.stats import Statistics

        return Statistics
    raise AttributeError(name)
