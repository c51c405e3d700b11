"""What the fate of an emitted token is called."""

from __future__ import annotations

from app.engine.types import EmittedToken, Origin, Round, Verdict


def fate_word(one: Round, token: EmittedToken) -> str:
    """Its origin; but nothing is resampled where the target takes the token that it finds most probable."""
    rejected = next((drafted for drafted in one.drafted if drafted.verdict is Verdict.REJECTED), None)
    greedy = rejected is not None and rejected.target_id is not None and rejected.draw is None
    return "target's choice" if token.origin is Origin.RESAMPLED and greedy else token.origin.value
