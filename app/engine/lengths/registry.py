"""The rules by name."""

from __future__ import annotations

from app.engine.lengths.auto import AutoLength
from app.engine.lengths.base import DraftLength, FixedLength
from app.engine.lengths.ewma import EwmaLength, EwmaParams
from app.engine.types import LengthRule


def make_length(rule: LengthRule, ewma: EwmaParams = EwmaParams()) -> DraftLength:  # noqa: B008
    """A controller of that rule that knows nothing yet; `ewma` are the settings of that one."""
    match rule:
        case LengthRule.FIXED:
            return FixedLength()
        case LengthRule.EWMA:
            return EwmaLength(ewma)
        case LengthRule.AUTO:
            return AutoLength()
