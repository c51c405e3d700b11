"""The fates of tokens: their names and meanings.

A fate has a value in Verdict or in Origin and a row in FATES; its colours are in `ui/theme/palette.py`.
Its rule (`rules/`) and `generate.py` decide it, and `recheck.py` knows where it may appear.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What became of a drafted token, in the order in which the verdicts appear in a round."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    IGNORED = "ignored"


class Origin(StrEnum):
    """Where an emitted token came from."""

    ACCEPTED = "accepted"
    RESAMPLED = "resampled"
    BONUS = "bonus"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True)
class Fate:
    """The meaning of a verdict or an origin."""

    definition: str
    undrawn: str = ""  # the definition at temperature 0, if that differs

    def explained(self, word: str, undrawn: bool = False) -> str:
        """`word`, followed by the definition, at temperature 0 if `undrawn`."""
        definition = (undrawn and self.undrawn) or self.definition
        return f"{word}: {definition[0].lower()}{definition[1:]}"


UNTOLD_DRAFT = "The server does not report what it drafted."
"""The text for a token whose round is unknown, in place of the fate's definition."""

FATES: dict[str, Fate] = {
    Origin.ACCEPTED: Fate("A drafted token that the target accepted."),
    Origin.RESAMPLED: Fate(
        "The target's token in place of the rejected one:\n"
        "its own choice (greedy), drawn from the residual (speculative, block), or its own draw (match).",
        undrawn="The target's choice in place of the rejected token: its most probable one.",
    ),
    Origin.BONUS: Fate("The target's extra token when the whole draft was accepted."),
    Origin.PLAIN: Fate("Emitted in a round without a draft."),
    Verdict.REJECTED: Fate(
        "The first drafted token of a round that the target did not accept.\nNot part of the text."
    ),
    Verdict.IGNORED: Fate(
        "Drafted tokens after a rejected one, or after the end of the answer: never judged, except as part "
        "of a block.\nNot part of the text."
    ),
}
"""The fates by verdict or origin, in the order in which they are shown."""
JUDGED = frozenset((Verdict.ACCEPTED, Verdict.REJECTED))
"""The verdicts of tokens that the rule judged. It never reached the other tokens, unless it judges drafts as
blocks."""
STRUCK = frozenset(FATES) - frozenset(Origin)
"""The verdicts of tokens that were drafted but never emitted."""
