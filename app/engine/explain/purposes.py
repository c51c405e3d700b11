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

    @property
    def key(self) -> str:
        """Its name on the command line, such as "code-edits"."""
        return self.name.lower().replace(" ", "-")

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
        "Reasoning",
        FirstStrategy(
            "ngram-mod+draft-simple",
            "The answer repeats what the model has thought. ngram-mod drafts such runs at almost no cost, "
            "and the draft model drafts the thoughts.",
        ),
        FirstStrategy(
            "ngram-mod",
            "The answer repeats what the model has thought. ngram-mod drafts such runs at almost no cost.",
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
            "ngram-mod:n_match=4:n_min=1:n_max=16+draft-simple:n_max=4",
            "Names and quotations are in the prompt. ngram-mod copies them from there, and the draft model "
            "drafts the words between. llama.cpp's guide advises longer matches; measured with the bundled "
            "pair on prompts that ask for quotations, these made 2.37×, and the draft model alone 1.42×.",
        ),
        FirstStrategy(
            "prompt-lookup",
            "Names and quotations are in the prompt. prompt-lookup copies them from there. llama.cpp's guide "
            "proposes ngram-mod; measured with the bundled pair on prompts that ask for quotations, "
            "prompt-lookup made 1.93× and ngram-mod 1.88×.",
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
