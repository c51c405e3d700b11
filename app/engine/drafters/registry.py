"""The strategies by name. Grammar, forms, help texts and tooltips are made from these lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from app.engine.drafters.base import Drafter, Resources
from app.engine.drafters.draft_simple import DraftSimple, DraftSimpleParams
from app.engine.drafters.prompt_lookup import PromptLookup, PromptLookupParams


@dataclass(frozen=True, slots=True)
class StrategyKind:
    """One strategy: its parameter dataclass, when it helps, and how its drafter is made."""

    name: str
    params: type[Any]
    summary: str
    needs_draft: bool
    make: Callable[[Any, Resources], Drafter]
    """(parameters, resources) -> drafter. The draft's context is there where `needs_draft` says so."""


def _draft_simple(params: DraftSimpleParams, resources: Resources) -> Drafter:
    assert resources.draft is not None
    return DraftSimple(params, resources.draft, resources.vocabulary.size)


KINDS: dict[str, StrategyKind] = {
    kind.name: kind
    for kind in (
        StrategyKind(
            "prompt-lookup",
            PromptLookupParams,
            "Copies from the text so far. Helps where the answer repeats its prompt: rewriting, "
            "summaries, code edits.",
            needs_draft=False,
            make=lambda params, _resources: PromptLookup(params),
        ),
        StrategyKind(
            "draft-simple",
            DraftSimpleParams,
            "A small model with the same vocabulary guesses ahead. Helps where the target is large "
            "and the draft often agrees with it.",
            needs_draft=True,
            make=_draft_simple,
        ),
    )
}
