"""The draft length rules by name. Grammar, forms and help texts are generated from these entries."""

from __future__ import annotations

from app.engine.lengths.auto import Auto
from app.engine.lengths.base import Fixed, LengthRule
from app.engine.lengths.ewma import Ewma

LENGTHS: dict[str, type[LengthRule]] = {rule.name: rule for rule in (Fixed, Ewma, Auto)}
