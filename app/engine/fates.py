"""The fates of tokens: their names and meanings.

A fate has a value in Verdict or in Origin and a row in FATES; its colours are in `ui/theme/palette.py`. The
rule (`rules/`) and `generate.py` decide fates; `recheck.py` knows where each may appear.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What became of a drafted token, in the order of appearance in a round."""

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
        """`word`, followed by the definition; if `undrawn`, the one for temperature 0."""
        definition = (undrawn and self.undrawn) or self.definition
        return f"{word}: {definition[0].lower()}{definition[1:]}"


UNTOLD_DRAFT = "The server does not report what it drafted."
"""Replaces the fate's definition if a token's round is unknown."""

FATES: dict[str, Fate] = {
    Origin.ACCEPTED: Fate("A drafted token that the target accepted."),
    Origin.RESAMPLED: Fate(
        "The target's token in place of the rejected one:\n"
        "its own choice (greedy), drawn from the residual (speculative, block), or its own draw (match).",
        undrawn="The target's choice in place of the rejected token: its most probable one.",
    ),
    Origin.BONUS: Fate("The target's extra token after a wholly accepted draft."),
    Origin.PLAIN: Fate("Emitted in a round without a draft."),
    Verdict.REJECTED: Fate(
        "The first drafted token of a round that the target did not accept.\nNot part of the text."
    ),
    Verdict.IGNORED: Fate(
        "Drafted tokens after a rejected one, or after the end of the answer: never judged, except as part "
        "of a block.\nNot part of the text."
    ),
}
"""The fates by verdict or origin, in the order shown."""
JUDGED = frozenset((Verdict.ACCEPTED, Verdict.REJECTED))
"""The verdicts of judged tokens. The rule never reached the others, unless it judges drafts as blocks."""
STRUCK = frozenset(FATES) - frozenset(Origin)
"""The verdicts of tokens that were drafted but never emitted."""
