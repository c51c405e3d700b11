"""Small answers to record: three rounds with every verdict, and their totals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from app.engine.fates import Origin, Verdict
from app.engine.record.trace import FORMAT
from app.engine.types import (
    DraftedToken,
    EmittedToken,
    FinishReason,
    ModelInfo,
    PairInfo,
    Round,
    Sampling,
    Totals,
    TraceHeader,
)

TEXT = "One two three"


def header(prompt: str = "Count") -> TraceHeader:
    model = ModelInfo(
        path="/models/t.gguf",
        name="t",
        architecture="llama",
        quantisation="Q8_0",
        size=1000,
        n_params=1000,
        n_layers=2,
        n_vocab=50,
        n_ctx_train=128,
        n_ctx=128,
        threads=1,
        has_chat_template=True,
    )
    return TraceHeader(
        format=FORMAT,
        app_version="0.1.0",
        strategy="draft-simple:n_max=2",
        verification="greedy",
        sampling=Sampling(),
        seed=1,
        max_tokens=16,
        pair=PairInfo(model),
        prompt=prompt,
        prompt_tokens=3,
        cached_tokens=0,
        cold=True,
        started_at="2030-01-01T00:00:00+00:00",
    )


def rounds() -> list[Round]:
    pieces = [b"One", b" two", b" three"]
    origins = [Origin.PLAIN, Origin.RESAMPLED, Origin.BONUS]
    return [
        Round(
            index=index,
            position=index,
            offset=0.1 * index,
            seconds=0.1,
            draft_seconds=0.01,
            verify_seconds=0.08,
            sample_seconds=0.01,
            native_seconds=0.09,
            drafted=(DraftedToken(9, b" no", Verdict.REJECTED, q=1.0, p=0.1),)
            if origin is Origin.RESAMPLED
            else (),
            emitted=(EmittedToken(index, piece, origin, p=0.9),),
        )
        for index, (piece, origin) in enumerate(zip(pieces, origins, strict=True))
    ]


def totals(reason: FinishReason = FinishReason.END, text: str = TEXT, error: str = "") -> Totals:
    return Totals(
        finish_reason=reason,
        text=text,
        seconds=0.3,
        prompt_seconds=0.1,
        draft_prompt_seconds=0.01,
        first_token_seconds=0.2,
        error=error,
    )


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = datetime(2030, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        # Every reading is a little later, so that events in order have different times.
        self.now += timedelta(milliseconds=1)
        return self.now

    def advance(self, **passed: float) -> None:
        self.now += timedelta(**passed)
