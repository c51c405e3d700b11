"""Can this draft serve this target, and if not, what differs? The rules are llama.cpp's."""

from __future__ import annotations

from typing import Protocol

from app.engine.errors import PairError

MAX_SIZE_DIFFERENCE = 128
FIRST_COMPARED_ID = 5  # the first few are control tokens whose names differ between conversions


class VocabularyLike(Protocol):
    """What is compared of a vocabulary."""

    size: int
    kind: int
    bos: int
    eos: int
    adds_bos: bool
    adds_eos: bool

    def raw_text(self, id: int) -> bytes: ...


def check_vocabularies(target: VocabularyLike, draft: VocabularyLike) -> str:
    """Returns "same vocabulary" or "same but padded: …"; raises PairError that names what differs."""
    hint = "Choose a draft of the same model family."
    if target.kind != draft.kind:
        raise PairError("The draft does not fit the target: their tokenizers are of different kinds.", hint)
    for article, name, adds, which_id in (("a", "BOS", "adds_bos", "bos"), ("an", "EOS", "adds_eos", "eos")):
        ours, theirs = getattr(target, adds), getattr(draft, adds)
        if ours != theirs:
            which = "target" if ours else "draft"
            raise PairError(
                f"The draft does not fit the target: only the {which} adds {article} {name} token.", hint
            )
        if ours and getattr(target, which_id) != getattr(draft, which_id):
            raise PairError(
                f"The draft does not fit the target: {name} is token {getattr(target, which_id)} in the "
                f"target and {getattr(draft, which_id)} in the draft.",
                hint,
            )
    if abs(target.size - draft.size) > MAX_SIZE_DIFFERENCE:
        raise PairError(
            f"The draft does not fit the target: {target.size:,} tokens in the target's vocabulary, "
            f"{draft.size:,} in the draft's.",
            hint,
        )
    for id in range(FIRST_COMPARED_ID, min(target.size, draft.size)):
        ours_text, theirs_text = target.raw_text(id), draft.raw_text(id)
        if ours_text != theirs_text:
            raise PairError(
                f"The draft does not fit the target: token {id} is “{_shown(ours_text)}” in the target "
                f"and “{_shown(theirs_text)}” in the draft.",
                hint,
            )
    if target.size != draft.size:
        return f"same but padded: {target.size:,} and {draft.size:,} tokens"
    return "same vocabulary"


def _shown(text: bytes) -> str:
    return text.decode("utf-8", errors="replace")
