"""The strategies by name. Grammar, forms, help texts and tooltips are generated from these entries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from app.engine.compat import FitKind
from app.engine.drafters.base import Drafter, Resources
from app.engine.drafters.draft_simple import DraftSimple, DraftSimpleParams, HeadParams
from app.engine.drafters.ngram_cache import NgramCache, NgramCacheParams
from app.engine.drafters.ngram_map import NgramMapK, NgramMapK4v, NgramMapK4vParams, NgramMapKParams
from app.engine.drafters.ngram_mod import POOL_SIZE, NgramMod, NgramModParams
from app.engine.drafters.ngram_simple import NgramSimple, NgramSimpleParams
from app.engine.drafters.oracle import Oracle, OracleParams
from app.engine.drafters.prompt_lookup import PromptLookup, PromptLookupParams
from app.engine.drafters.suffix import Suffix, SuffixParams
from app.engine.drafters.through_text import ThroughText

if TYPE_CHECKING:
    from app.engine.native import Context


class Keeps(NamedTuple):
    """What a drafter keeps in main memory, in bytes."""

    per_token: int = 0  # of the context
    fixed: int = 0
    more_tokens: str = ""  # the setting that says how many tokens it keeps besides the context's


@dataclass(frozen=True, slots=True)
class StrategyKind:
    """One strategy: its parameter dataclass, when it helps, and how its drafter is made."""

    name: str
    params: type[Any]
    summary: str
    needs_draft: bool = field(default=False, kw_only=True)
    needs_mtp: bool = field(default=False, kw_only=True)
    """Drafts with the head that the target's own file holds."""
    is_synthetic: bool = field(default=False, kw_only=True)
    """Drafts from a rehearsal of the answer: its speed is an experiment's, and every output says so."""
    memory: tuple[str, ...] | None = field(default=None, kw_only=True)
    """The parameters that shape the drafter's memory: the others may change while the memory stays (see
    `Drafter.adjust`). None: all parameters shape it."""
    keeps: Keeps = field(default=Keeps(), kw_only=True)
    least: str = field(default="n_min", kw_only=True)
    """The name of the setting for the shortest draft, if there is one: shorter drafts are discarded. n_min
    also applies if the loop asks for fewer tokens; other settings apply before a draft is cut."""
    walks: bool = field(default=True, kw_only=True)
    """Whether its drafts in a known text can be found out without models (see explain/walk.py)."""
    settings: tuple[str, ...] = field(default=("",), kw_only=True)
    """Settings worth trying on an unknown machine, the most promising first; "" are the defaults."""
    make: Callable[[Any, Resources], Drafter] = field(kw_only=True)
    """(parameters, resources) -> drafter. The resources hold the draft's context if `needs_draft`."""

    @property
    def by_model(self) -> bool:
        """Whether a model guesses its drafts, or a head; the others copy."""
        return self.needs_draft or self.needs_mtp

    def memory_at(self, params: Any, n_ctx: int) -> int:
        """The bytes that its drafter keeps at most, with a context of so many tokens; 0 where that is not
        known."""
        return self.keeps.fixed + self.keeps.per_token * (n_ctx + getattr(params, self.keeps.more_tokens, 0))


def draft_of(resources: Resources) -> Context:
    """The draft's context, of a strategy that needs one."""
    assert resources.draft is not None
    return resources.draft


def _draft_simple(params: DraftSimpleParams, resources: Resources) -> Drafter:
    draft = draft_of(resources)
    if resources.fit is not None and resources.fit.kind is FitKind.THROUGH_TEXT:
        return ThroughText(params, draft, resources.vocabulary)
    return DraftSimple(params, draft, resources.vocabulary.size)


def _head(params: HeadParams, resources: Resources) -> Drafter:
    return DraftSimple(params, draft_of(resources), resources.vocabulary.size)


KINDS: dict[str, StrategyKind] = {
    kind.name: kind
    for kind in (
        StrategyKind(
            "prompt-lookup",
            PromptLookupParams,
            "Copies from the text so far. Helps where the answer repeats its prompt: rewriting, "
            "summaries, code edits. Keeps 0.3 kB per token of this text.",
            keeps=Keeps(300),
            needs_draft=False,
            memory=(),
            settings=(
                "max_ngram_size=3:num_pred_tokens=8",
                "max_ngram_size=2:num_pred_tokens=4",
                "max_ngram_size=2:num_pred_tokens=8",
                "max_ngram_size=3:num_pred_tokens=16",
                "max_ngram_size=4:num_pred_tokens=32",
            ),
            make=lambda params, _resources: PromptLookup(params),
        ),
        StrategyKind(
            "ngram-simple",
            NgramSimpleParams,
            "Copies long stretches that followed a long match. Helps where the answer repeats much of its "
            "prompt word for word: code edits, corrections. Keeps 0.2 kB per token of this text.",
            keeps=Keeps(200),
            needs_draft=False,
            least="size_n",
            memory=(),
            settings=("size_n=8:size_m=16", "size_n=4:size_m=8", "size_n=12:size_m=48"),
            make=lambda params, _resources: NgramSimple(params),
        ),
        StrategyKind(
            "ngram-map-k",
            NgramMapKParams,
            "Copies what followed a long match, and the next time only as much as was accepted before. "
            "Helps where "
            "long passages come back in a chat with small changes. Keeps 0.3 kB per token of the text.",
            keeps=Keeps(300),
            needs_draft=False,
            memory=("size_n", "size_m"),
            settings=("size_n=8:size_m=16", "size_n=4:size_m=8", "size_n=12:size_m=48"),
            make=lambda params, _resources: NgramMapK(params),
        ),
        StrategyKind(
            "ngram-map-k4v",
            NgramMapK4vParams,
            "Experimental in llama.cpp. Copies what followed a long match where one continuation is much "
            "more frequent than the others. Helps where the same passage continues in few ways: logs, "
            "tables, generated code. Keeps 0.3 kB per token of the text.",
            keeps=Keeps(300),
            needs_draft=False,
            memory=("size_n", "size_m"),
            settings=("size_n=8:size_m=16", "size_n=4:size_m=8", "size_n=8:size_m=16:min_hits=2"),
            make=lambda params, _resources: NgramMapK4v(params),
        ),
        StrategyKind(
            "ngram-mod",
            NgramModParams,
            "Remembers what followed each run of tokens, in one pool of 16.8 MB for all chats. Helps where "
            "long passages come back: code edits, summaries, reasoning that is repeated in the answer.",
            keeps=Keeps(fixed=4 * POOL_SIZE),
            needs_draft=False,
            least="",  # its n_min looks at the uncut draft, and never asks for more than n_max
            memory=("n_match",),
            settings=("n_match=16:n_min=4:n_max=32", "n_match=8:n_min=2:n_max=16", "n_match=24:n_min=48"),
            make=lambda params, _resources: NgramMod(params),
        ),
        StrategyKind(
            "ngram-cache",
            NgramCacheParams,
            "Counts what followed the last one to four tokens, here and in files of earlier texts. Helps "
            "where phrases come back, and with statistics of similar texts. Keeps 0.6 kB per token of the "
            "longest text, and the files.",
            keeps=Keeps(600),
            needs_draft=False,
            memory=("lookup_cache_static", "lookup_cache_dynamic"),
            settings=("n_draft=8", "n_draft=4"),
            make=lambda params, resources: NgramCache(
                params, resources.vocabulary.size, resources.lookup_caches
            ),
        ),
        StrategyKind(
            "suffix",
            SuffixParams,
            "Continues as this conversation and earlier answers most often did; a longer match drafts "
            "further. Helps where answers resemble each other: agents, code, repeated tasks. Keeps 0.6 kB "
            "per token of the conversation, and of up to max_cached_tokens tokens of earlier answers.",
            keeps=Keeps(600, more_tokens="max_cached_tokens"),
            needs_draft=False,
            memory=("max_depth", "max_cached_tokens"),
            settings=("n_max=8", "n_max=4", "n_max=16", "n_max=16:max_spec_factor=2"),
            make=lambda params, _resources: Suffix(params),
        ),
        StrategyKind(
            "oracle",
            OracleParams,
            "Synthetic: drafts the answer itself, known from a rehearsal, with planted errors. Shows what a "
            "draft of such acceptance and cost would bring on this machine.",
            is_synthetic=True,
            least="",
            memory=(),
            walks=False,
            make=lambda params, resources: Oracle(params, resources.vocabulary.size),
        ),
        StrategyKind(
            "draft-simple",
            DraftSimpleParams,
            "A small model guesses ahead. One with another vocabulary guesses through text. Helps where the "
            "target is large and the draft often agrees with it.",
            needs_draft=True,
            memory=("replace",),
            settings=(
                "n_max=4",
                "n_max=8:p_min=0.5",
                "n_max=2",
                "n_max=6:p_min=0.75",
                "n_max=16:length=auto",
                "n_max=3",
                "n_max=16:p_min=0.75",
                "n_max=1",
                "n_max=12:p_min=0.5",
                "n_max=8",
                "n_max=4:p_min=0.5",
            ),
            make=_draft_simple,
        ),
        StrategyKind(
            "draft-eagle3",
            HeadParams,
            "A small head guesses ahead from what the target computes inside. It needs the file that was "
            "trained for this target.",
            needs_draft=True,
            memory=(),
            make=_head,
        ),
        *(
            StrategyKind(
                name,
                HeadParams,
                "A small block guesses all tokens of a draft in one pass, from what the target computes "
                f"inside{more}. It needs the file that was trained for this target.",
                needs_draft=True,
                memory=(),
                make=_head,
            )
            for name, more in (("draft-dflash", ""), ("draft-dspark", ", each beside the token before"))
        ),
        StrategyKind(
            "draft-mtp",
            HeadParams,
            "The target's own head guesses ahead (multi-token prediction). The target's file holds it, as "
            "those of Qwen3.5 and GLM-4.5 may, or a file of its own, loaded as the draft.",
            needs_mtp=True,
            walks=False,
            memory=(),
            make=_head,
        ),
    )
}
