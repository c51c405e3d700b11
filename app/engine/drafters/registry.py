"""The strategies by name. Grammar, forms, help texts and tooltips are generated from these entries."""

from __future__ import annotations

from app.engine.drafters import (
    draft_simple,
    ngram_cache,
    ngram_map,
    ngram_mod,
    ngram_simple,
    oracle,
    prompt_lookup,
    suffix,
)
from app.engine.drafters.base import StrategyKind

KINDS: dict[str, StrategyKind] = {
    kind.name: kind
    for kind in (
        prompt_lookup.KIND,
        ngram_simple.KIND,
        ngram_map.K_KIND,
        ngram_map.K4V_KIND,
        ngram_mod.KIND,
        ngram_cache.KIND,
        suffix.KIND,
        oracle.KIND,
        draft_simple.KIND,
        *draft_simple.HEADS,
    )
}
"""In order of precedence: copying strategies come before draft models."""
