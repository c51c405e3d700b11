"""prompt-lookup: copy what followed the latest earlier occurrence of the last few tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.engine.drafters import base
from app.engine.params import param

if TYPE_CHECKING:
    from app.engine.types import TokenIds


@dataclass(frozen=True, slots=True)
class PromptLookupParams:
    """Settings of prompt-lookup; names as in llama-cpp-python and transformers.

    max_ngram_size: Match this many of the latest tokens, or fewer if they are not found. Usually 2 to 4:
        longer matches mislead less often, but shorter ones are found more often.
    num_pred_tokens: Copy at most this many tokens. Usually 4 to 16: longer copies help if long passages
        repeat, but make every miss cost more.
    """

    max_ngram_size: int = param(3, low=1, high=64, unit="tokens")
    num_pred_tokens: int = param(8, low=1, high=512, unit="tokens")


class PromptLookup(base.Drafter):
    """Keeps, for every n-gram length, the last place where each n-gram of the context was continued.

    An index replaces the scan, so a round costs only its new tokens, however long the history.
    """

    def __init__(self, params: PromptLookupParams) -> None:
        self.adjust(params)

    def adjust(self, params: PromptLookupParams) -> None:
        self._params = params
        self.reset()

    def reset(self) -> None:
        self._known: list[int] = []
        # n -> the n-gram's tokens -> index of the token that followed its latest occurrence
        self._after: dict[int, dict[tuple[int, ...], int]] = {
            n: {} for n in range(1, self._params.max_ngram_size + 1)
        }

    def begin(self, context: TokenIds, surroundings: base.RunContext) -> None:
        self.reset()  # drafts from this text only: nothing is kept from other answers
        self._learn(context)

    def _learn(self, context: TokenIds) -> None:
        """Index the n-grams that new tokens continue."""
        first_new = len(self._known)
        self._known.extend(context[first_new:].tolist())
        for at in range(max(1, first_new), len(self._known)):
            for n, after in self._after.items():
                if n <= at:
                    after[tuple(self._known[at - n : at])] = at

    def propose(self, context: TokenIds, k: int) -> base.Proposal:
        self._learn(context)
        # The longest n-gram wins, and of its occurrences the latest.
        for n in range(min(self._params.max_ngram_size, len(self._known)), 0, -1):
            at = self._after[n].get(tuple(self._known[-n:]))
            if at is not None:
                wanted = min(k, self._params.num_pred_tokens)
                ids = self._known[at : at + wanted]
                end = "end of the text" if len(ids) < wanted else "num_pred_tokens"
                if len(ids) == k < self._params.num_pred_tokens:
                    end = base.ENOUGH
                return base.Proposal(ids=ids, match=at, end=end)
        return base.Proposal(end="no match")


KIND = base.StrategyKind(
    "prompt-lookup",
    PromptLookupParams,
    "Copies from the text so far. Helps if the answer repeats its prompt: rewriting, summaries, code edits. "
    "Uses 0.3 kB of memory per token of the text.",
    keeps=base.Keeps(300),
    memory=(),
    settings=(
        "max_ngram_size=3:num_pred_tokens=8",
        "max_ngram_size=2:num_pred_tokens=4",
        "max_ngram_size=2:num_pred_tokens=8",
        "max_ngram_size=3:num_pred_tokens=16",
        "max_ngram_size=4:num_pred_tokens=32",
    ),
    length="num_pred_tokens",
    copies=base.Copies.ALL,
    vllm=base.VllmMethod(
        "ngram",
        {
            "num_speculative_tokens": "num_pred_tokens",
            "prompt_lookup_max": "max_ngram_size",
            "prompt_lookup_min": 1,
        },
    ),
    make=lambda params, _resources: PromptLookup(params),
)
