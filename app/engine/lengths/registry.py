"""The draft length rules by name."""

from __future__ import annotations

from app.engine.lengths.auto import AutoLength
from app.engine.lengths.base import DraftLength, FixedLength
from app.engine.lengths.ewma import EwmaLength, EwmaParams
from app.engine.types import LengthRule


def make_length(rule: LengthRule, ewma: EwmaParams = EwmaParams()) -> DraftLength:  # noqa: B008
    """Make a draft length of that rule that has learned nothing; `ewma` are the settings of the EWMA rule."""
    match rule:
        case LengthRule.FIXED:
            return FixedLength()
        case LengthRule.EWMA:
            return EwmaLength(ewma)
        case LengthRule.AUTO:
            return AutoLength()
