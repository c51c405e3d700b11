"""The rules by name."""

from __future__ import annotations

from app.engine.lengths.auto import AutoLength
from app.engine.lengths.base import DraftLength, FixedLength
from app.engine.lengths.ewma import EwmaLength
from app.engine.types import LengthRule

_RULES: dict[LengthRule, type[DraftLength]] = {
    LengthRule.FIXED: FixedLength,
    LengthRule.EWMA: EwmaLength,
    LengthRule.AUTO: AutoLength,
}


def make_length(rule: LengthRule) -> DraftLength:
    """A controller of that rule that knows nothing yet."""
    return _RULES[rule]()
