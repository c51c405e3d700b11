"""What the words and numbers of the window mean: one text for the tooltips and for the glossary in Help."""

from __future__ import annotations

from app.engine.fates import FATES

GLOSSARY: dict[str, str] = {
    "round": "Draft k tokens, verify them in one pass of the target, emit. Each emitted token is of a round.",
    "target, draft": (
        "The target is the model whose answer is wanted. A draft, by a smaller model or copied from the "
        "text, proposes its next tokens."
    ),
    **{fate: meaning.definition for fate, meaning in FATES.items()},
    "untold": "Emitted by a server that does not tell what became of its drafts.",
    "p": "The target's probability of the token.",
    "q": "The token's probability in the proposal it was drawn from; 1 where nothing was drawn.",
    "draft_p": "The draft model's own probability of its token.",
    "residual": (
        "What is left of p where q is taken away, max(p − q, 0), scaled to 1: the token in place of a "
        "rejected one is drawn from it."
    ),
    "acceptance rate": "Accepted / drafted, pooled over all rounds shown.",
    "α, judged acceptance": (
        "Accepted / (accepted + rejected).\n"
        "The chance that a drafted token passes once it is judged. Not defined for block verification, which "
        "judges a draft as a whole."
    ),
    "α of teacher forcing": (
        "The mean over the places of the target's own answers of Σ min(p, q), the chance that a drawn draft "
        "token passes; at temperature 0 the share of places with the same most probable token."
    ),
    "τ, tokens per drafted round": (
        "1 + accepted / rounds with a draft.\n"
        "The 1 is the target's own token; a round in which the answer ends inside the draft has none."
    ),
    "tokens per pass": "Emitted / rounds. Every round is one pass of the target.",
    "draft share": "Accepted / emitted.",
    "tokens/s": (
        "Emitted tokens / wall time from the start of round 0 to the answer's end; while it comes, to its "
        "latest round. Prompt time is not in it."
    ),
    "speed-up": (
        "Tokens/s over that of strategy none, measured with the same prompt, seed, sampling and settings. "
        "Measure baseline takes turns, with drafts and without, and says the lowest and the highest factor."
    ),
    "end to end": "The same comparison from the request to the last token, with reading the prompt.",
    "c, v(k)": (
        "c: one draft token / one single-token target pass. v(k): a target pass over k+1 tokens / over one. "
        "Both are measured."
    ),
    "predicted factor": (
        "Of a fixed draft length k: (1 + α + … + α^k) / (v(k) + k c). That every token passes with the same "
        "α is an assumption. Over rounds as they were: (1 + mean accepted) / mean(v(k) + k c)."
    ),
    "engine overhead": (
        "1 − (time in native decode calls and the logits reads that wait for them) / wall time of generation."
    ),
    "J/token": (
        "Energy from the request to the end / emitted tokens, of whole processor packages (RAPL) and cards "
        "(NVML), where the system tells it."
    ),
    "depth": "Tokens of a document that a measurement puts before its question.",
    "context": "Tokens of this chat, up to the end of its last answer / tokens the target has room for.",
    "cold": "Started with empty caches and fresh drafter state, as every measured run does.",
    "warm": (
        "The answer began with caches that earlier answers had filled, so part of its prompt was not read "
        "again, and strategies may know earlier answers. Measured runs begin cold."
    ),
}
"""The words and their definitions, in the order in which they are best learnt."""


def explained(word: str) -> str:
    """A word of the glossary and its definition, for a tooltip."""
    meaning = GLOSSARY[word]
    symbol = len(word.split(",", maxsplit=1)[0]) == 1 or "_" in word  # it keeps its small letter
    return f"{word if symbol else word[0].upper() + word[1:]}: {meaning[0].lower()}{meaning[1:]}"


ACCEPTANCE_RATE = explained("acceptance rate")
ALPHA = explained("α, judged acceptance")
TAU = explained("τ, tokens per drafted round")
DRAFT_ENDS = "Why drafts ended, or why there was none, with the number of rounds."
TOKENS_PER_PASS = explained("tokens per pass")
DRAFT_SHARE = explained("draft share")
TOKENS_PER_SECOND = explained("tokens/s")
SPEED_UP = explained("speed-up")
END_TO_END = explained("end to end")
PREDICTED = (
    f"{explained('predicted factor')}\n{explained('c, v(k)')}\n"
    "Number and dot: the whole answer, with its rounds without a draft. Ring: the best k."
)
WARM = explained("warm")
CONTEXT = explained("context")
DRAFT_P = explained("draft_p")
Q = explained("q")
P = explained("p")
VERDICT = "\n".join(meaning.explained(fate) for fate, meaning in FATES.items())
