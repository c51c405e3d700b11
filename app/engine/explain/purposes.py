"""What people do with a model, and the strategy to begin with for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from app.engine.strategy import StrategySpec


class FirstStrategy(NamedTuple):
    """A strategy to begin with, as written, and why."""

    strategy: str
    reason: str

    @property
    def spec(self) -> StrategySpec:
        return StrategySpec.parse(self.strategy)


@dataclass(frozen=True, slots=True)
class KindOfWork:
    """A kind of work and what to begin with. The prompts decide."""

    name: str
    with_draft: FirstStrategy  # where the pair has a draft model
    without_draft: FirstStrategy

    def first(self, has_draft: bool) -> FirstStrategy:
        return self.with_draft if has_draft else self.without_draft


PURPOSES = (
    KindOfWork(
        "Chat",
        FirstStrategy(
            "draft-simple:length=auto",
            "Free talk repeats little, so a draft model finds more than a look-up. Measured costs decide how "
            "long drafts are.",
        ),
        FirstStrategy(
            "suffix",
            "Free talk repeats little. suffix finds phrases of earlier answers; a draft model would find "
            "more.",
        ),
    ),
    KindOfWork(
        "Code edits",
        FirstStrategy(
            "ngram-mod+draft-simple",
            "An edit repeats most of the code that it was given. ngram-mod drafts such runs at almost no "
            "cost, and the draft model drafts what is new.",
        ),
        FirstStrategy(
            "ngram-mod",
            "An edit repeats most of the code that it was given. ngram-mod drafts such runs at almost no "
            "cost.",
        ),
    ),
    KindOfWork(
        "Structured output",
        FirstStrategy(
            "suffix+draft-simple",
            "Keys, quotes and brackets return in every record. suffix learns them from this answer and "
            "earlier ones, and the draft model drafts the values.",
        ),
        FirstStrategy(
            "suffix",
            "Keys, quotes and brackets return in every record. suffix learns them from this answer and "
            "earlier ones.",
        ),
    ),
    KindOfWork(
        "Long sessions",
        FirstStrategy(
            "suffix+draft-simple",
            "suffix remembers the answers of a session, so it drafts more the longer the session lasts. The "
            "draft model drafts where it finds nothing.",
        ),
        FirstStrategy(
            "suffix",
            "suffix remembers the answers of a session, so it drafts more the longer the session lasts.",
        ),
    ),
    KindOfWork(
        "Summarise and quote",
        FirstStrategy(
            "prompt-lookup+draft-simple",
            "Names and quotations stand in the prompt. prompt-lookup copies them from there, and the draft "
            "model drafts the words between.",
        ),
        FirstStrategy(
            "prompt-lookup", "Names and quotations stand in the prompt. prompt-lookup copies them from there."
        ),
    ),
    KindOfWork(
        "Little memory",
        FirstStrategy(
            "prompt-lookup",
            "prompt-lookup needs no draft model and keeps 0.3 kB per token of the text. “No draft” in the "
            "draft's panel frees the draft model's memory.",
        ),
        FirstStrategy(
            "prompt-lookup",
            "prompt-lookup keeps 0.3 kB per token of the text; ngram-mod keeps 16.8 MB, suffix up to 60 MB.",
        ),
    ),
    KindOfWork(
        "As fast as possible",
        FirstStrategy(
            "ngram-mod+draft-simple:length=auto",
            "ngram-mod drafts first, the draft model where it finds nothing, and measured costs decide how "
            "long drafts are. “Tune for me” in Compare finds the best settings for your own prompts.",
        ),
        FirstStrategy(
            "ngram-mod:length=auto",
            "ngram-mod drafts at almost no cost, and measured costs decide how long drafts are. “Tune for "
            "me” in Compare finds the best settings for your own prompts.",
        ),
    ),
)
