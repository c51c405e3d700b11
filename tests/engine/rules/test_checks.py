"""Draws of traces before format 1.10, checked by their seed, their interval and its width."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.engine.fates import Origin, Verdict
from app.engine.rules.checks import Check, Judged, Own
from app.engine.sampling.draws import Draws, Purpose
from app.engine.types import DraftedToken, Draw, EmittedToken
from tests.ui.traces import make_header

AT, START, SEED = 5, 3, 8
HEADER = replace(make_header(), seed=SEED)
WIDTH = 0.25


def around(u: float, width: float = WIDTH) -> Draw:
    """A sound draw: its interval lies in [0, 1] and contains `u`."""
    low = min(max(u - width / 2, 0.0), 1 - width)
    return Draw(u, low, low + width)


def found(purpose: Purpose, draw: Draw, p: float = WIDTH) -> list[str]:
    """What is said of a draw for that purpose."""
    check = Check(HEADER)
    rejected = DraftedToken(7, b"b", Verdict.REJECTED, 1.0, p=0.0)
    if purpose is Purpose.DRAFT:
        token = DraftedToken(1, b"a", Verdict.ACCEPTED, p, draft_draw=draw)
        return list(check.drafted(Judged("it", AT, token, None, None), START, shares_luck=False))
    emitted = EmittedToken(1, b"a", Origin.RESAMPLED, p, draw)
    own = Own("it", AT, emitted, rejected, None)
    if purpose is Purpose.RESIDUAL:
        return list(check.from_residual(own, emitted, rejected))
    return list(check.from_p(own, draw, 1, emitted))


@pytest.mark.parametrize("purpose", [Purpose.DRAFT, Purpose.TOKEN, Purpose.RESIDUAL])
def test_an_interval_contains_the_draw_of_its_seed_and_is_as_wide_as_its_p(purpose: Purpose) -> None:
    draws = Draws(SEED)
    of_round = (START,) if purpose is Purpose.DRAFT else ()
    u = draws.uniform(AT, purpose, *of_round)
    sound = around(u)
    assert found(purpose, sound) == []
    other = around(0.125 if u > 0.5 else 0.875)
    assert found(purpose, other) == [f"it was drawn with {other.u:g}, but its seed gives {u:g}"]
    (words,) = found(purpose, Draw(u, other.low, other.high))
    assert words == f"it: its draw {u:g} is not in [{other.low:g}, {other.high:g})"
    assert f"it: [{u - 2:g}, {u + 0.5:g}) is not within [0, 1]" in found(purpose, Draw(u, u - 2, u + 0.5))
    assert found(purpose, sound, p=0.5) == ["it: its interval is 0.25 wide, but its probability is 0.5"]
