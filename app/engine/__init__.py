"""The speculative engine. No Qt, no network; usable from a script with five lines."""

from app.engine.engine import Engine
from app.engine.errors import UserError
from app.engine.types import GenerationRequest, Message, ModelOptions, Sampling

__all__ = ["Engine", "GenerationRequest", "Message", "ModelOptions", "Sampling", "UserError"]
