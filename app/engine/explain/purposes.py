"""What people do with a model, and the strategy to begin with for each."""

from __future__ import annotations

from dataclasses import dataclass

from app.engine.strategy import StrategySpec


@dataclass(frozen=True, slots=True)
class KindOfWork:
    """A kind of work and its strategies. They are starting points: the prompts decide."""

    name: str
    with_draft: str  # where the pair has a draft model
    without_draft: str
    reason: str

    def spec(self, has_draft: bool) -> StrategySpec:
        """The strategy to begin with."""
        return StrategySpec.parse(self.with_draft if has_draft else self.without_draft)


PURPOSES = (
    KindOfWork(
        "Chat",
        "draft-simple:length=auto",
        "suffix",
        "Free talk repeats little of what was said, so a draft model finds more than a look-up. Without "
        "a draft model, suffix drafts phrases of earlier answers.",
    ),
    KindOfWork(
        "Code edits",
        "ngram-mod+draft-simple",
        "ngram-mod",
        "An edit repeats most of the code that it was given. ngram-mod drafts such runs at almost no "
        "cost, and a draft model writes what is new.",
    ),
    KindOfWork(
        "Structured output",
        "suffix+draft-simple",
        "suffix",
        "Keys, quotes and brackets return in every record. suffix learns them from this answer and "
        "earlier ones.",
    ),
    KindOfWork(
        "Long sessions",
        "suffix+draft-simple",
        "suffix",
        "suffix remembers the answers of a session, so it drafts more the longer the session lasts.",
    ),
    KindOfWork(
        "Summarise and quote",
        "prompt-lookup+draft-simple",
        "prompt-lookup",
        "Names and quotations stand in the prompt. prompt-lookup copies them from there.",
    ),
    KindOfWork(
        "Little memory",
        "prompt-lookup",
        "prompt-lookup",
        "It needs no draft model and keeps nothing between answers. ngram-mod takes 16.8 MB, suffix up to "
        "60 MB.",
    ),
    KindOfWork(
        "As fast as possible",
        "ngram-mod+draft-simple:length=auto",
        "ngram-mod:length=auto",
        "The look-up drafts first, the draft model where it finds nothing, and measured costs decide how"
        " long drafts are. “Tune for me” in Compare finds the best settings for your own prompts.",
    ),
)
