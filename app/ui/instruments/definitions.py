"""What the shown numbers mean: the definitions of METRICS.md, one place for all tooltips."""

from __future__ import annotations

from app.engine.fates import FATES

ACCEPTANCE_RATE = "Acceptance rate: accepted / drafted, pooled over all rounds shown."
ALPHA = (
    "α, judged acceptance: accepted / (accepted + rejected).\n"
    "The chance that a drafted token passes once it is judged. Not defined for block verification, which "
    "judges a draft as a whole."
)
TAU = (
    "τ, tokens per drafted round: 1 + accepted / rounds with a draft.\n"
    "The 1 is the target's own token; a round in which the answer ends inside the draft has none."
)
DRAFT_ENDS = "Why drafts ended, or why there was none, with the number of rounds."
TOKENS_PER_PASS = "Tokens per pass: emitted / rounds. Every round is one pass of the target."
DRAFT_SHARE = "Draft share: accepted / emitted."
TOKENS_PER_SECOND = (
    "Tokens/s: emitted tokens / wall time from the start of round 0. Prompt time is not in it."
)
SPEED_UP = (
    "Speed-up: tokens/s over that of strategy none, measured with the same prompt, seed, sampling "
    "and settings."
)
PREDICTED = (
    "Predicted speed-up of a fixed draft length k: (1 + α + … + α^k) / (v(k) + k c).\n"
    "c: one draft token / one single-token target pass. v(k): a target pass over k+1 tokens / over one. "
    "Both are measured; that every token passes with the same α is an assumption.\n"
    "Dot and number: the rounds with a draft as they were, (1 + mean accepted) / mean(v(k) + k c). "
    "Ring: the best k."
)
WARM = (
    "Warm: the answer began with caches that earlier answers had filled, so part of its prompt was not read "
    "again, and strategies may know earlier answers. Measured runs begin cold."
)
CONTEXT = "Context: tokens of this chat, up to the end of its last answer / tokens the target has room for."
DRAFT_P = "draft_p: the draft model's own probability of its token."
Q = "q: the token's probability in the proposal it was drawn from."
P = "p: the target's probability of the token."
VERDICT = "\n".join(
    fate.explained(" or ".join(filter(None, (name, fate.undrawn)))) for name, fate in FATES.items()
)
