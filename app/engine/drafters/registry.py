"""The strategies by name. Grammar, forms, help texts and tooltips are made from these lines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.engine.drafters.base import Drafter
from app.engine.drafters.draft_simple import DraftSimple, DraftSimpleParams
from app.engine.drafters.prompt_lookup import PromptLookup, PromptLookupParams

if TYPE_CHECKING:
    from app.engine.native import Context


@dataclass(frozen=True, slots=True)
class StrategyKind:
    """One strategy: its parameter dataclass, when it helps, and how its drafter is made."""

    name: str
    params: type[Any]
    summary: str
    needs_draft: bool
    make: Callable[[Any, Context | None, int], Drafter]
    """(parameters, draft context, target vocabulary size) -> drafter. The context is there where
    `needs_draft` says so."""


def _draft_simple(params: DraftSimpleParams, context: Context | None, n_vocab: int) -> Drafter:
    assert context is not None
    return DraftSimple(params, context, n_vocab)


def _prompt_lookup(params: PromptLookupParams, _context: Context | None, _n_vocab: int) -> Drafter:
    return PromptLookup(params)


KINDS: dict[str, StrategyKind] = {
    kind.name: kind
    for kind in (
        StrategyKind(
            "prompt-lookup",
            PromptLookupParams,
            "Copies from the text so far. Helps where the answer repeats its prompt: rewriting, "
            "summaries, code edits.",
            needs_draft=False,
            make=_prompt_lookup,
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
