"""Can this draft serve this target, token by token or through text, and what differs?

Where draft tokens are used directly, the rules are llama.cpp's (`common_speculative_are_compatible`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

MAX_SIZE_DIFFERENCE = 128
FIRST_COMPARED_ID = 5  # the first few are control tokens whose names differ between conversions

MTP = "mtp"
"""The architecture name of a file with an MTP head alone."""
DSPARK, DFLASH2 = "dspark", "dflash2"
"""Our names for two relatives of DFlash, whose files also give "dflash" as the architecture."""
ASSISTANT = "gemma4-assistant"
HEAD_STRATEGIES = {
    "eagle3": "draft-eagle3",
    "dflash": "draft-dflash",
    DSPARK: "draft-dspark",
    DFLASH2: "draft-dflash",
    MTP: "draft-mtp",
    ASSISTANT: "draft-mtp",
}
"""Architectures of heads, and the strategy that drafts with each."""

# Architectures whose graphs hand out what a head reads, the inputs of layers and what the last one gives.
# With others llama.cpp ends the process, or hands out zeros.
_GIVE_LAYERS = frozenset((
    "bailingmoe3", "deepseek4", "gemma3n", "gemma4", "gpt-oss", "hunyuan_vl", "lfm2", "llama", "mimo2",
    "minimax-01", "minimax-m2", "muse-glimmer", "nanbeige", "nemotron_h", "qwen3", "qwen35", "qwen35moe",
    "qwen3moe", "qwen3next", "qwen4exp",
))  # fmt: skip
GIVE_LAST = frozenset((
    "bailingmoe3", "cohere2moe", "deepseek2", "deepseek32", "deepseek4", "gemma4", "glm4moe", "glm-dsa",
    "glm5-next", "gpt-oss", "hy_v3", "mimo2", "nemotron_h", "nemotron_h_moe", "qwen35", "qwen35moe",
    "qwen3next", "step35",
))  # fmt: skip
CHAINED = frozenset(("hy_v3", "mimo2", "step35"))
"""Architectures with one MTP head for each place of a draft. With others, several heads make llama.cpp end
the process."""
_KINDS = {1: "SentencePiece", 2: "BPE", 3: "WordPiece", 4: "Unigram", 5: "RWKV", 6: "PLaMo-2"}


class FitKind(StrEnum):
    """How a draft can serve a target."""

    SAME = "same vocabulary"
    PADDED = "same but padded"
    THROUGH_TEXT = "different: through text"
    CANNOT = "cannot"


@dataclass(frozen=True, slots=True)
class VocabularyFit:
    """How a draft can serve a target, and how they differ (empty if they do not)."""

    kind: FitKind
    detail: str = ""

    def __str__(self) -> str:
        if self.kind is FitKind.THROUGH_TEXT:
            return f"{self.kind} ({self.detail})"
        return f"{self.kind}: {self.detail}" if self.detail else self.kind


class VocabularyLike(Protocol):
    """The parts of a vocabulary that are compared."""

    size: int
    kind: int
    bos: int
    eos: int
    adds_bos: bool
    adds_eos: bool

    def raw_text(self, id: int) -> bytes: ...

    def piece(self, id: int) -> bytes: ...

    def texts(self, first: int, end: int) -> bytes | None: ...


def check_vocabularies(target: VocabularyLike, draft: VocabularyLike) -> VocabularyFit:
    """Classify the draft's vocabulary: same, same but padded, different (drafting goes through text), or
    unusable. Names the first difference."""
    for which, vocabulary in (("target", target), ("draft", draft)):
        if not vocabulary.kind or not vocabulary.size:
            return VocabularyFit(FitKind.CANNOT, f"the {which} has no vocabulary")
    different = _difference(target, draft)
    if not different:
        if target.size != draft.size:
            return VocabularyFit(FitKind.PADDED, f"{target.size:,} and {draft.size:,} tokens")
        return VocabularyFit(FitKind.SAME)
    for which, vocabulary in (("target", target), ("draft", draft)):
        if not any(vocabulary.piece(id) for id in range(vocabulary.size)):
            return VocabularyFit(FitKind.CANNOT, f"no token of the {which} has a text")
    return VocabularyFit(FitKind.THROUGH_TEXT, different)


def _difference(target: VocabularyLike, draft: VocabularyLike) -> str:
    """The first difference that keeps draft tokens from being used directly; empty if there is none."""
    if target.kind != draft.kind:
        return f"{_kind(target)} tokenizer in the target, {_kind(draft)} in the draft"
    for article, name, adds, which_id in (("a", "BOS", "adds_bos", "bos"), ("an", "EOS", "adds_eos", "eos")):
        ours, theirs = getattr(target, adds), getattr(draft, adds)
        if ours != theirs:
            return f"only the {'target' if ours else 'draft'} adds {article} {name} token"
        ours_id, theirs_id = getattr(target, which_id), getattr(draft, which_id)
        if ours and ours_id != theirs_id:
            return f"{name} is token {ours_id} in the target and {theirs_id} in the draft"
    if abs(target.size - draft.size) > MAX_SIZE_DIFFERENCE:
        return f"{target.size:,} tokens in the target's vocabulary, {draft.size:,} in the draft's"
    both = min(target.size, draft.size)
    texts = target.texts(FIRST_COMPARED_ID, both)
    if texts is not None and texts == draft.texts(FIRST_COMPARED_ID, both):
        return ""
    for id in range(FIRST_COMPARED_ID, both):
        ours_text, theirs_text = target.raw_text(id), draft.raw_text(id)
        if ours_text != theirs_text:
            ours_shown, theirs_shown = _shown(ours_text), _shown(theirs_text)
            return f"token {id} is “{ours_shown}” in the target and “{theirs_shown}” in the draft"
    return ""


def _kind(vocabulary: VocabularyLike) -> str:
    return _KINDS.get(vocabulary.kind, f"unknown (kind {vocabulary.kind})")


def _shown(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")


def why_unread(layers: Sequence[int], width: int, target: str, n_layers: int, n_embd: int) -> str:
    """Why a head cannot read a target, as a clause after "because"; empty if it can.

    It reads the inputs of `layers`, in rows of `width` numbers. The target of architecture `target` has
    `n_layers`, in rows of `n_embd`; layer number `n_layers` means the last one's output.
    """
    if width != n_embd:
        return f"it needs an embedding size of {width:,}, and the target has {n_embd:,}"
    if not all(0 <= layer <= n_layers for layer in layers):
        return f"it reads layer {max(layers, key=abs)}, but the target has {n_layers} layers"
    inner = any(layer < n_layers for layer in layers)
    if (inner and target not in _GIVE_LAYERS) or (n_layers in layers and target not in GIVE_LAST):
        return f"this llama.cpp does not expose these layers of architecture {target}"
    return ""
