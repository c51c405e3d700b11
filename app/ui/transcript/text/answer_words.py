"""Words about an answer: how it was made, how it ended."""

from __future__ import annotations

from app.engine.types import FinishReason, TraceHeader, Verification

CAPTIONS = {
    FinishReason.END: "",
    FinishReason.STOP: "Ended at a stop string",
    FinishReason.LENGTH: "Ended at the token limit",
    FinishReason.CONTEXT: "Ended because the context is full",
    FinishReason.CANCELLED: "Stopped",
    FinishReason.FAILED: "Interrupted",
}


def manner(header: TraceHeader) -> str:
    """How the answer was made, in a few words."""
    temperature = header.sampling.temperature
    if header.strategy == "none":
        words = "no draft"
    else:
        words = header.verification.value
    if header.verification is not Verification.GREEDY and temperature:
        words += f"  ·  temperature {temperature:g}"
    return f"{words}  ·  warm" if header.warm else words
