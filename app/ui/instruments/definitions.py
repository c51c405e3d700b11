"""What the words and numbers of the window mean: one text for the tooltips and for the glossary in Help."""

from __future__ import annotations

from app.engine.fates import FATES

GLOSSARY: dict[str, str] = {
    "round": (
        "One cycle: draft k tokens, verify them in one target pass, emit. Every emitted token belongs to a "
        "round."
    ),
    "target, draft": (
        "The target is the model that answers. A draft proposes its next tokens: a smaller model guesses "
        "them, or they are copied from the text."
    ),
    **{fate: meaning.definition for fate, meaning in FATES.items()},
    "unknown": "Emitted by a server that does not report what happened to its drafts.",
    "p": "The target's probability of the token.",
    "q": "The token's probability in the proposal it was drawn from; 1 if nothing was drawn.",
    "draft_p": "The draft model's own probability of its token.",
    "residual": (
        "max(p − q, 0), rescaled to sum to 1: the probability that the draft did not cover. The "
        "replacement for a rejected token is drawn from it."
    ),
    "acceptance rate": "Accepted / drafted, over all rounds shown.",
    "α, judged acceptance": (
        "Accepted / (accepted + rejected).\nThe probability that a judged token is accepted. "
        "Block verification has no α, because it judges a draft as a whole."
    ),
    "α of teacher forcing": (
        "An estimate of α from answers that both models read: the mean of Σ min(p, q) over all positions. "
        "At temperature 0, the share of positions where both models have the same most likely token."
    ),
    "τ, tokens per drafted round": (
        "1 + accepted / rounds with a draft.\nThe 1 is the target's own token. It is missing if the answer "
        "ends inside the draft."
    ),
    "tokens per pass": "Emitted / rounds. Every round is one pass of the target.",
    "draft share": "Accepted / emitted.",
    "tokens/s": (
        "Emitted tokens / wall time from the start of the first round to the end of the answer (so far, "
        "while it runs). Prompt time is not included."
    ),
    "speed-up": (
        "Tokens/s divided by tokens/s without drafting, with the same prompt, seed, sampling and settings. "
        "Measure baseline alternates runs with and without drafts, and shows the lowest and highest factor."
    ),
    "end to end": "The same comparison from the request to the last token, including the prompt.",
    "c, v(k)": (
        "c: one draft token / one single-token target pass. v(k): a target pass over k+1 tokens / over one. "
        "Both are measured."
    ),
    "predicted factor": (
        "For a fixed draft length k: (1 + α + … + α^k) / (v(k) + k c), assuming the same α for every "
        "token. For the recorded rounds: (1 + mean accepted) / mean(v(k) + k c)."
    ),
    "engine overhead": (
        "1 − (time in native decode calls and the logits reads that wait for them) / wall time of generation."
    ),
    "J/token": (
        "Energy from the request to the end / emitted tokens. It covers whole processor packages (RAPL) "
        "and cards (NVML), if the system reports them."
    ),
    "depth": "Tokens of a document that a measurement places before its question.",
    "context": "Tokens up to the shown round of the last answer / tokens the target has room for.",
    "cold": "Started with empty caches and fresh drafter state, as every measured run does.",
    "warm": (
        "Started with caches filled by earlier answers: part of the prompt was not read again, and "
        "strategies may remember earlier answers. Measured runs start cold."
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
DRAFT_ENDS = "Why drafts stopped or were missing, with the number of rounds."
TOKENS_PER_PASS = explained("tokens per pass")
DRAFT_SHARE = explained("draft share")
TOKENS_PER_SECOND = explained("tokens/s")
SPEED_UP = explained("speed-up")
END_TO_END = explained("end to end")
PREDICTED = (
    f"{explained('predicted factor')}\n{explained('c, v(k)')}\nNumber and dot: the whole answer, including "
    "rounds without a draft. Ring: the best k."
)
WARM = explained("warm")
CONTEXT = explained("context")
DRAFT_P = explained("draft_p")
Q = explained("q")
P = explained("p")
VERDICT = "\n".join(meaning.explained(fate) for fate, meaning in FATES.items())
